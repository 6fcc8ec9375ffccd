"""The table of two programs behind their lines (examples/pytorch/tenants.py), on the stand-in card, with programs that
compute nothing: what it starts where, what it prints, and what it does not let pass."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

from support import BUILD, ROOT, environment, own_libcuda

MPS = "#!/bin/sh\n[ \"$1\" = -d ] || cat >/dev/null\n"
# Says how it was started; frames are slower beside a neighbour, which says in two pieces how far it is. STEPS_* plant what is wrong.
STEPS = """#!{python}
import json, os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
place = os.environ.get("DEMARC_TENANT") or ("mask" if os.environ.get("DEMARC_CONTROL") else "")
if "GREEN_HALF" in os.environ and os.environ["LD_PRELOAD"].endswith("/libdemarc_compilers.so"):
    place = "green " + os.environ["GREEN_HALF"]
share = os.environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "")
beside = os.environ["STEPS_FOLDER"] + "/neighbour"
with open(os.environ["STEPS_FOLDER"] + "/started", "a") as log:
    log.write(" ".join(sys.argv[1:] + ["part", place, share]).strip() + "\\n")
print("ready", os.getpid(), flush=True)
if sys.argv[1:] == ["copies"]:
    open(beside, "w").close()
    count = 0
    try:
        while True:
            count += os.environ.get("STEPS_STALL") != place
            print("at ", end="", flush=True)
            time.sleep(0.02)
            print(count, flush=True)
    finally:
        os.remove(beside)
for line in sys.stdin:
    frames = int(line.split()[0])
    slow = 1.5 if os.path.exists(beside) and not place else 1.25 if os.path.exists(beside) else 1.0
    print(json.dumps({{"times": [slow] * frames, "sha256": "b" if os.environ.get("STEPS_WRONG") == place else "a"}}), flush=True)
"""


class TableOfTenants(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in [("steps", STEPS.format(python=sys.executable)), ("nvidia-cuda-mps-control", MPS)]:
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def run_table(self, *arguments, **changes):
        variables = environment(DEMARC_LIBCUDA=own_libcuda(self.folder), DEMARC_CACHE=self.folder / "cache",
                                STEPS_FOLDER=self.folder, DEMARC_FAKE_MPS=".sock.mps", PATH=f"{self.folder}:{os.environ['PATH']}", **changes)
        return subprocess.run([sys.executable, ROOT / "examples/pytorch/tenants.py", "--demarc", BUILD / "demarc", "--steps",
                               self.folder / "steps", "--victims", "steps", "--neighbours", "copies", "--memory", "64 MiB",
                               "--description", "h100-sxm", "--green-half", BUILD / "libdemarc_compilers.so", *arguments], env=variables, capture_output=True, text=True,
                              check=False, timeout=100)

    def test_each_program_is_started_in_its_part(self):
        ran = self.run_table()
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual((self.folder / "started").read_text(), textwrap.dedent("""\
            part
            copies part
            part  50
            copies part  50
            part green 0
            copies part green 1
            part mask
            copies part mask
            part a
            copies part b
            """))
        self.assertIn("| steps | copies | 50.00 | 50.00 | 1000 | 50.00 | 50.00 | 1000 | 25.00 | 25.00 | 1000 | 25.00 | 25.00 | 1000 | 25.00 | 25.00 | 1000 |",
                      ran.stdout)
        self.assertIn("| steps | 1.00 | 1.00 | 2.00 |", ran.stdout)
        self.assertIn("The outputs of all ways are the same to the bit.", ran.stdout)

    def test_the_clock_and_the_power_stand_beside_each_cell(self):
        smi = self.folder / "nvidia-smi"
        smi.write_text("#!/bin/sh\nwhile sleep 0.002; do echo '1980, 300.5'; done\n")
        smi.chmod(0o755)
        ran = self.run_table("--ways", "mask")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("| steps | copies | 1980.00 | 300.50 |", ran.stdout)

    def test_fewer_than_a_thousand_frames_have_no_p99(self):
        ran = self.run_table("--ways", "mask", "--frames", "999")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stdout, re.escape("| steps | 1.00 | - | - |"))

    def test_other_outputs_are_an_error(self):
        ran = self.run_table("--ways", "mps,tenant", STEPS_WRONG="a")
        self.assertEqual(ran.returncode, 3, ran.stderr)
        self.assertIn("steps computes other outputs: mps a, tenant b", ran.stderr)
        self.assertNotIn("the same to the bit", ran.stdout)

    def test_a_neighbour_that_stands_still_is_an_error_and_other_ways_are_measured(self):
        ran = self.run_table("--ways", "mask,tenant", STEPS_STALL="b")
        self.assertEqual(ran.returncode, 3, ran.stderr)
        self.assertIn("tenant: steps copies: did not work beside the victim", ran.stderr)
        self.assertRegex(ran.stdout, r"\| steps \| copies \| 25.00 \| 25.00 \| 1000 \|\n")

    def test_without_the_library_of_green_contexts_that_way_is_refused_and_the_others_are_not(self):
        missing = self.folder / "green_half.so"
        ran = self.run_table("--ways", "mps,green", "--green-half", missing)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertIn(f"{missing}: there is no such program; make it, or name it with --green-half", ran.stderr)
        self.assertEqual(self.run_table("--ways", "mask", "--green-half", missing).returncode, 0)

    def test_a_server_that_does_not_start_is_an_error(self):
        ran = self.run_table("--ways", "tenant", "--memory", "1 byte")
        self.assertEqual(ran.returncode, 3, ran.stderr)
        self.assertIn("tenant: demarc serve: ", ran.stderr)


class Node:
    """An input of a product."""

    def get_dtype(self):
        return "float16"

    def get_size(self):
        return [8, 8]


class Choice:
    """One of Inductor's kernels."""

    def __init__(self, description, name="triton_mm_7"):
        self.description, self.name, self.input_nodes = description, name, [Node()]


class KernelsThatAreTried(unittest.TestCase):
    def setUp(self):
        sys.path.insert(0, str(ROOT / "examples" / "pytorch"))
        self.addCleanup(sys.path.remove, str(ROOT / "examples" / "pytorch"))
        import timing
        self.tried = lambda *descriptions: [one.description for one in timing.with_small_blocks([Choice(one) for one in descriptions])]

    def test_have_small_blocks(self):
        self.assertEqual(self.tried("BLOCK_K=16, BLOCK_M=64, BLOCK_N=64", "BLOCK_M=64, BLOCK_N=128", "BLOCK_M=256, BLOCK_N=16", "other"),
                         ["BLOCK_K=16, BLOCK_M=64, BLOCK_N=64", "BLOCK_M=256, BLOCK_N=16"])

    def test_are_all_where_no_block_is_small(self):
        self.assertEqual(self.tried("BLOCK_M=128, BLOCK_N=64", "other"), ["BLOCK_M=128, BLOCK_N=64", "other"])


class KernelsThatArePreferred(unittest.TestCase):
    DESCRIPTIONS = ("BLOCK_K=32, BLOCK_M=128, BLOCK_N=64", "BLOCK_K=128, BLOCK_M=64, BLOCK_N=64", "other",
                    "BLOCK_K=16, BLOCK_M=64, BLOCK_N=64", "BLOCK_K=16, BLOCK_M=32, BLOCK_N=32")

    def setUp(self):
        sys.path.insert(0, str(ROOT / "examples" / "pytorch"))
        self.addCleanup(sys.path.remove, str(ROOT / "examples" / "pytorch"))
        import timing
        self.work = timing.work_of
        self.first = lambda picked: [self.DESCRIPTIONS.index(one.description)
                                     for one in timing.preferred(picked, [Choice(one) for one in self.DESCRIPTIONS])]

    def test_are_those_that_were_picked_and_then_the_smallest(self):
        self.assertEqual(self.first({self.work(Choice("")): self.DESCRIPTIONS[0]}), [0, 4, 3, 1, 2])

    def test_are_the_smallest_where_none_of_those_that_were_tried_was_accepted(self):
        self.assertEqual(self.first({self.work(Choice("", "triton_convolution2d_1")): self.DESCRIPTIONS[0]}), [4, 3, 0, 1, 2])

    def test_take_128_columns_where_nothing_was_picked(self):
        self.assertEqual(self.first({}), [1, 3, 0, 2, 4])


if __name__ == "__main__":
    unittest.main()
