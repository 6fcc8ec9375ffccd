"""tools/compare-textures-with-card.sh, with a program in the card's place that gives what a card gave: it says which cases differ, and by how much."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "emulate" / "textures"
DEMARC = Path(os.environ["DEMARC_BUILD"]) / "demarc"


class CompareTextures(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.kept = self.folder / "kept"
        self.kept.mkdir()
        self.work = self.folder / "work"
        self.work.mkdir()
        shutil.copy(CASES / "fetches.ptx", self.work)
        stand_in = self.work / "fetches"
        stand_in.write_text(f'#!/bin/sh\ncp "{self.kept}"/* "$1"\n')
        stand_in.chmod(0o755)

    def keep(self, *names):
        for name in names:
            shutil.copy(CASES / f"{name}.json", self.kept)
            shutil.copy(CASES / f"{name}.card", self.kept)

    def compare(self):
        return subprocess.run([ROOT / "tools" / "compare-textures-with-card.sh", DEMARC, self.work],
                              capture_output=True, text=True, check=False)

    def test_all_that_are_the_same_end_with_0(self):
        self.keep("plane-linear", "surface-write-zero")
        ended = self.compare()
        self.assertEqual(ended.stdout, "plane-linear: the same bytes\nsurface-write-zero: the same bytes\n")
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_one_that_differs_is_counted_and_the_rest_is_still_compared(self):
        self.keep("plane-i8-linear", "plane-point")
        card = self.kept / "plane-point.card"
        written = bytearray(card.read_bytes())
        written[-1] ^= 1
        card.write_bytes(written)
        ended = self.compare()
        self.assertEqual(ended.stdout, "plane-i8-linear: 4 words differ, the first at byte 32\n"
                         f"plane-point: 1 words differ, the first at byte {len(written) - 4}\n")
        self.assertEqual(ended.returncode, 3)

    def test_one_that_the_emulator_refuses_fails(self):
        self.keep("plane-point")
        launch = self.kept / "plane-point.json"
        launch.write_text(launch.read_text().replace('"2d"', '"cube"'))
        ended = self.compare()
        self.assertIn("plane-point: fails: ", ended.stdout)
        self.assertIn("'cube' is not covered", ended.stdout)
        self.assertEqual(ended.returncode, 3)

    def test_without_a_card_it_ends_with_2(self):
        (self.work / "fetches").write_text("#!/bin/sh\nexit 1\n")
        self.assertEqual(self.compare().returncode, 2)


if __name__ == "__main__":
    unittest.main()
