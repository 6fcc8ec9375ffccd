"""tools/programs/card.sh on the stand-in card: its steps hold where programs do as they should, and say what does not."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import BUILD, ROOT, environment, own_libcuda

CONFIG = """description = "h100-sxm"
memory = "64 MiB"
mps = "off"
[tenants.a]
tpcs = "1/2"
colors = "1/2"
[tenants.b]
tpcs = "2/2"
colors = "2/2"
"""
# A program on the stand-in: it allocates, copies and launches, and says whether its sums are right.
APP = """#!/bin/sh
{build}/demarc_exec_subject "$DEMARC_LIBCUDA" log context count
tail -n 1 log; rm log
"""
# What examples/tenants/steps.cu says, of a process that holds memory of the card. STEPS_SUM: the second time it is another.
STEPS = """#!{python}
import json, os, pathlib, subprocess, sys, tempfile, time
folder = pathlib.Path(tempfile.mkdtemp())
log = folder / "log"
held = subprocess.Popen(["{build}/demarc_exec_subject", os.environ["DEMARC_LIBCUDA"], log, "context", "count", f"wait-for={{folder}}/end"])
while not log.exists() or "count right" not in log.read_text():
    assert held.poll() is None
    time.sleep(0.01)
print("ready", held.pid, flush=True)
if sys.argv[1:] == ["copies"]:
    while True:
        print("at 1", flush=True)
        time.sleep(0.02)
for line in sys.stdin:
    marker = pathlib.Path("{folder}/seen")
    digest = "other" if marker.exists() and os.environ.get("STEPS_SUM") else "same"
    marker.touch()
    print(json.dumps({{"times": [1.0], "sha256": digest}}), flush=True)
(folder / "end").touch()
held.wait()
"""
SCRIPT = """import os, subprocess
subprocess.run(["{build}/demarc_exec_subject", os.environ["DEMARC_LIBCUDA"], "{folder}/script.log", "context"], check=True)
print("fine")
"""


class CardScript(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        words = {"python": sys.executable, "build": BUILD, "folder": self.folder}
        programs = self.folder / "programs"
        (programs / "sums").mkdir(parents=True)
        (programs / "list.tsv").write_text("sums\tstand-in\t-\t./app\tcount right\tstdout\t-\t-\t-\n")
        for name, text in [("programs/sums/app", APP), ("programs/steps", STEPS)]:
            (self.folder / name).write_text(text.format(**words))
            (self.folder / name).chmod(0o755)
        (self.folder / "script.py").write_text(SCRIPT.format(**words))
        (self.folder / "two.toml").write_text(CONFIG)

    def run_script(self, *steps, **changes):
        variables = environment(**({"DEMARC_LIBCUDA": own_libcuda(self.folder), "DEMARC_CACHE": self.folder / "cache",
                                    "CONFIG": self.folder / "two.toml", "PYTHON": self.folder / "script.py"} | changes))
        return subprocess.run([ROOT / "tools/programs/card.sh", BUILD / "demarc", self.folder / "programs", self.folder / "out",
                               *steps], env=variables, capture_output=True, text=True, check=False, timeout=100)

    def test_all_steps_hold_where_programs_do_as_they_should(self):
        ran = self.run_script()
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn("programs   1 programs, 1 ok plainly, 1 of these the same in the tenant\n", ran.stdout)
        self.assertIn("beside     1 programs, 1 ok plainly, 1 of these the same in the tenant\n", ran.stdout)
        self.assertRegex(ran.stdout, r'killed     [1-9][0-9]* bytes came back, filled with zeros; "sha256": "same" again\n')
        self.assertIn("python     script: fine\n", ran.stdout)

    def test_other_sums_after_a_kill_do_not_hold(self):
        ran = self.run_script("killed", STEPS_SUM="other")
        self.assertEqual(ran.returncode, 3)
        self.assertIn("killed     DID NOT HOLD: what came next computed something else\n", ran.stdout)

    def test_a_script_that_fails_does_not_hold(self):
        (self.folder / "script.py").write_text("raise SystemExit('no torch')\n")
        ran = self.run_script("python")
        self.assertEqual(ran.returncode, 3)
        self.assertIn("python     DID NOT HOLD: script: ", ran.stdout)

    def test_a_neighbour_that_does_not_work_does_not_hold(self):
        ran = self.run_script("programs", "beside", NEIGHBOUR="false")
        self.assertEqual(ran.returncode, 3)
        self.assertIn("beside     DID NOT HOLD: the neighbour ", ran.stdout)

    def test_a_server_that_does_not_start_and_a_step_that_is_none_are_told(self):
        self.assertIn("DID NOT HOLD: there is no such step", self.run_script("nothing").stdout)
        (self.folder / "two.toml").write_text("cards = 1\n")
        ran = self.run_script()
        self.assertEqual(ran.returncode, 2)
        self.assertIn("serve      did not start: ", ran.stdout)


if __name__ == "__main__":
    unittest.main()
