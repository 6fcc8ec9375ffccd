"""`make demo`, with programs in the places of apt-get, cmake and dpkg-query: what it says first, asks for and builds."""

import os
import pty
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STAND_INS = {
    "apt-get": 'echo "apt-get $*"',
    "cmake": 'echo "cmake $*"; mkdir -p build/release; cp "$DEMO_FOLDER/shown" build/release/demarc',
    "dpkg-query": '[ -z "$DEMO_MISSING" ] || case "$*" in *" $DEMO_MISSING") exit 1 ;; esac; echo installed',
    "id": "echo 0",
    "nproc": 'echo "$DEMO_PROCESSORS"',
}


class Demo(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("Makefile", "tools/install-packages.sh"):
            (self.folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.folder / name)
        programs = self.folder / "programs"
        programs.mkdir()
        for path, text in [*((programs / name, text) for name, text in STAND_INS.items()),
                           (self.folder / "shown", 'echo "demarc $*"')]:
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "DEMO_FOLDER": str(self.folder),
                            "DEMO_MISSING": "", "DEMO_PROCESSORS": "2"}
        for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CI", "DEBIAN_FRONTEND"):
            self.environment.pop(name, None)

    def demo(self, **variables):
        return subprocess.run(["make", "demo"], cwd=self.folder, env={**self.environment, **variables}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)

    def demo_of_a_person(self, answer, **variables):
        """The same with a terminal, on which the answer is typed: exit code and all that was shown."""
        ours, theirs = pty.openpty()
        started = subprocess.Popen(["make", "demo"], cwd=self.folder, env={**self.environment, **variables}, stdin=theirs,
                                   stdout=theirs, stderr=theirs)
        os.close(theirs)
        os.write(ours, answer)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:  # the terminal has no other side any more
            pass
        os.close(ours)
        return started.wait(), shown.decode()

    def test_says_first_how_long_it_takes(self):
        for processors, minutes in (("1", 7), ("2", 4), ("4", 2), ("6", 2), ("7", 1), ("64", 1)):
            lines = self.demo(DEMO_PROCESSORS=processors).stdout.splitlines()
            self.assertIn(f"takes up to {minutes} min ({processors} processors)", lines[0])

    def test_lists_the_packages_that_are_missing_before_it_installs_and_builds(self):
        shown = self.demo(DEMO_MISSING="libzstd-dev")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        lines = shown.stdout.splitlines()
        self.assertEqual(lines[1], "These packages are missing, and apt-get installs them: libzstd-dev")
        self.assertEqual(lines[2], "apt-get update -qq")
        self.assertEqual(lines[3], "apt-get install -y -qq --no-install-recommends libzstd-dev")
        self.assertIn("cmake --build --preset release --target demarc_program", lines[4:])
        self.assertIn("demarc demo --html build/demo/index.html", lines[4:])
        self.assertRegex(lines[-1], "^make demo: done in [0-9]+ s$")

    def test_says_nothing_of_packages_where_none_is_missing(self):
        self.assertNotIn("apt-get", self.demo().stdout)

    def test_asks_a_person_before_it_installs(self):
        code, shown = self.demo_of_a_person(b"\n", DEMO_MISSING="libzstd-dev")
        self.assertIn("Install them? [Y/n]", shown)
        self.assertIn("apt-get install", shown)
        self.assertEqual(code, 0)
        self.assertEqual(self.demo_of_a_person(b"yes\n", DEMO_MISSING="libzstd-dev")[0], 0)

    def test_asks_nothing_on_a_terminal_without_a_person(self):
        for variable in ({"CI": "true"}, {"DEBIAN_FRONTEND": "noninteractive"}):
            code, shown = self.demo_of_a_person(b"", DEMO_MISSING="libzstd-dev", **variable)
            self.assertNotIn("Install them?", shown)
            self.assertIn("apt-get install -y", shown)
            self.assertEqual(code, 0)

    def test_installs_and_builds_nothing_where_a_person_says_no(self):
        for answer in (b"n\n", b"\x04"):
            code, shown = self.demo_of_a_person(answer, DEMO_MISSING="libzstd-dev")
            self.assertIn("nothing was installed, because the answer was 'n'", shown)
            self.assertNotIn("apt-get install -y", shown)
            self.assertNotIn("cmake", shown)
            self.assertNotEqual(code, 0)

    def test_builds_what_exec_and_capture_load_into_programs(self):
        commands = subprocess.run([os.environ["NINJA"], "-C", os.environ["DEMARC_BUILD"], "-t", "commands", "demarc_program"],
                                  capture_output=True, text=True, check=True).stdout
        for library in ("preload", "capture", "compilers", "blas"):
            self.assertTrue(f"-o libdemarc_{library}.so" in commands, f"libdemarc_{library}.so is not built with the program")


if __name__ == "__main__":
    unittest.main()
