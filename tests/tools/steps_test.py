"""What a build of one room's tests takes: no other room's tests, and nothing of the program."""

import os
import re
import subprocess
import unittest
from pathlib import Path

BUILD = Path(os.environ["DEMARC_BUILD"])
ROOMS = ("base", "ptx", "device", "launch", "color", "workload", "emulate", "locality", "sim", "partition", "lease")


def commands(target):
    return subprocess.run([os.environ["NINJA"], "-C", BUILD, "-t", "commands", target], capture_output=True, text=True, check=True).stdout


class Steps(unittest.TestCase):
    def test_of_a_rooms_tests_build_no_other_rooms_tests_and_not_the_program(self):
        for room in ROOMS:
            text = commands(f"demarc_{room}_tests")
            programs = set(re.findall(r"-o \S*?(\w+_tests|src/cli/\S+\.o)(?:\s|$)", text))
            self.assertEqual(programs, {f"demarc_{room}_tests"})


if __name__ == "__main__":
    unittest.main()
