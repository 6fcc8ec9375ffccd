"""tools/compare-with-card.py: launches that were taken of the stand-in card, and what it says where an output differs."""
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import BUILD, ROOT, environment

# scale.f32 of two numbers by 3, and what a card would have made of them.
PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 a)
{
.reg .b32 %r<2>; .reg .b64 %rd<4>; .reg .f32 %f<3>;
ld.param.u64 %rd1, [a];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd3, %rd1, %rd2;
ld.global.f32 %f1, [%rd3];
mul.rn.f32 %f2, %f1, 0f40400000;
{more}
st.global.f32 [%rd3], %f2;
ret;
}
"""


class CardComparison(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def launch(self, on_card, element="f32", more=""):
        (self.folder / "k.ptx").write_text(PTX.replace("{more}", more))
        (self.folder / "card.bin").write_bytes(on_card)
        (self.folder / "l.json").write_text(json.dumps({
            "schema": "demarc.launch/1", "ptx": "k.ptx",
            "buffers": [{"name": "x", "bytes": 8, "element": element, "fill": "hex:0000803f00000040", "output": True}],
            "launches": [{"kernel": "scale", "grid": 1, "block": 2, "args": ["buf:x"]}], "check": {"file": "card.bin"}}))
        return self.folder / "l.json"

    def compare(self, *words, **changes):
        ended = subprocess.run([sys.executable, ROOT / "tools/compare-with-card.py", *words], env=environment(**changes),
                               capture_output=True, text=True, check=False, timeout=100)
        return ended.returncode, ended.stdout + ended.stderr

    def test_what_the_card_made_of_a_launch_is_what_the_emulator_is_held_against(self):
        code, said = self.compare(BUILD / "demarc", "--captured", self.launch(struct.pack("2f", 3, 6)))
        self.assertEqual((code, said), (0, f"{self.folder}/l.json: the same bytes\n1 of 1 launches: the same bytes\n"))

    def test_the_distance_is_a_part_of_the_largest_number_and_approximations_are_named(self):
        path = self.launch(struct.pack("2f", 3, 5), more="ex2.approx.f32 %f1, %f1;")
        code, said = self.compare(BUILD / "demarc", "--captured", path)
        self.assertEqual(code, 3)
        self.assertIn("l.json: x: 1 of 2 f32 differ, by 2.0e-01 of the largest (ex2.approx.f32)\n0 of 1 launches: the same bytes\n", said)

    def test_whole_numbers_are_counted(self):
        code, said = self.compare(BUILD / "demarc", "--captured", self.launch(struct.pack("2f", 4, 7), element="u32"))
        self.assertEqual(code, 3)
        self.assertIn("l.json: x: 2 of 2 u32 differ\n", said)

    def test_other_launches_are_run_on_the_card_with_the_options(self):
        path = self.launch(bytes(16))  # what is expected of it, and no card made
        launch = json.loads(path.read_text())
        launch["parameters"] = {"n": 8}
        launch["buffers"][0] |= {"bytes": "n", "fill": "iota"}
        path.write_text(json.dumps(launch))
        code, said = self.compare(BUILD / "demarc", path, "--", "--param", "n=16",
                                  DEMARC_LIBCUDA=BUILD / "libdemarc_fake_libcuda.so", DEMARC_CACHE=self.folder / "cache")
        self.assertEqual((code, said), (0, f"{path} --param n=16: the same bytes\n1 of 1 launches: the same bytes\n"))

    def test_a_launch_that_nobody_captured_is_not_taken_for_one(self):
        path = self.launch(b"")
        launch = json.loads(path.read_text())
        del launch["check"]
        path.write_text(json.dumps(launch))
        code, said = self.compare(BUILD / "demarc", "--captured", path)
        self.assertEqual(code, 3)
        self.assertIn("l.json: fails: its check has no files, so demarc capture did not make it\n", said)

    def test_a_launch_that_fails_a_file_that_is_none_and_one_without_outputs_are_told(self):
        path = self.launch(b"")
        path.write_text(path.read_text().replace('"scale"', '"scala"'))
        code, said = self.compare(BUILD / "demarc", "--captured", path)
        self.assertEqual(code, 3)
        self.assertIn("l.json: fails: demarc emulate: ", said)
        path.write_text(path.read_text().replace('"output": true', '"output": false'))
        self.assertEqual(self.compare(BUILD / "demarc", path), (1, f"compare-with-card.py: {path}: no buffer is an output\n"))
        path.write_text("{")
        self.assertIn(f"compare-with-card.py: {path}: ", self.compare(BUILD / "demarc", path)[1])
        self.assertIn("usage: compare-with-card.py", self.compare(BUILD / "demarc")[1])


if __name__ == "__main__":
    unittest.main()
