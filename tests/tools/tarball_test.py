"""tools/test-tarball.sh on this machine's root file system, with tarballs of which each has one fault that it must name."""

import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ["DEMARC_BUILD"]) / "libdemarc_compilers.so"
SOUND = {"version": 'echo "demarc 1.2.3"', "isolate": 'echo "mask+color (part 0)"',
         "doctor": 'echo "preload   works  here"; echo "compilers works  here"; echo "cuBLAS    works  here"; exit 2'}


def may_change_root():
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", *([] if os.getuid() == 0 else ["--map-root-user"]),
                           "sh", "-c", "mount -t proc proc /proc && chroot / true"], capture_output=True, check=False).returncode == 0


class Tarball(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def pack(self, library=LIBRARY, **parts):
        parts = {**SOUND, **parts}
        top = self.folder / "demarc-1.2.3-linux-x86_64"
        (top / "bin").mkdir(parents=True)
        (top / "lib").mkdir()
        program = top / "bin" / "demarc"
        program.write_text("#!/bin/sh\ncase $1 in\n--version) {version} ;;\nisolate) {isolate} ;;\ndoctor) {doctor} ;;\nesac\n".format(**parts))
        program.chmod(0o755)
        shutil.copy(library, top / "lib" / "libdemarc_compilers.so")
        with tarfile.open(self.folder / "t.tar.gz", "w:gz") as packed:
            packed.add(top, top.name)
        shutil.rmtree(top)

    def run_on(self, *roots):
        return subprocess.run([ROOT / "tools" / "test-tarball.sh", "--tarball", self.folder / "t.tar.gz", *roots], capture_output=True,
                              text=True, check=False)

    def test_that_is_sound_passes(self):
        self.pack()
        ran = self.run_on("/")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertRegex(ran.stdout, "^/: .+: passed\n1 passed, 0 failed\n$")

    def test_with_a_fault_fails_with_what_was_run_and_what_it_printed(self):
        for parts, said in (({"version": "echo 'libfmt.so.9: cannot open'; exit 127"}, "--version ends with 127: libfmt.so.9: cannot open"),
                            ({"version": "echo other 1"}, "--version prints: other 1"),
                            ({"isolate": "exit 1"}, "isolate ends with 1: "),
                            ({"isolate": "echo nothing"}, "isolate prints no row of mask+color: nothing"),
                            ({"doctor": f"{SOUND['doctor'][:-1]}1"}, "doctor ends with 1: "),
                            ({"doctor": "echo 'compilers works'"}, "does not find the library of preload"),
                            ({"doctor": "echo 'preload works'"}, "does not find the library of compilers"),
                            ({"doctor": "echo 'preload works'; echo 'compilers works'"}, "does not find the library of cuBLAS"),
                            ({"library": ROOT / "README.md"}, "libdemarc_compilers.so is not loaded: ")):
            self.pack(**parts)
            ran = self.run_on("/")
            self.assertEqual(ran.returncode, 3, ran.stdout)
            self.assertIn(said, ran.stdout)
            self.assertTrue(ran.stdout.endswith("0 passed, 1 failed\n"), ran.stdout)

    def test_leaves_nothing_in_the_root_file_system(self):
        before = set(Path("/tmp").glob("demarc-tarball.*"))
        self.pack(version="exit 1")
        self.run_on("/")
        self.assertEqual(set(Path("/tmp").glob("demarc-tarball.*")) - before, set())

    def test_is_tried_in_each_root_file_system(self):
        self.pack()
        (self.folder / "tmp").mkdir()
        ran = self.run_on(self.folder, "/")
        self.assertEqual(ran.returncode, 3)
        self.assertIn("failed: this is not a root file system", ran.stdout)
        self.assertTrue(ran.stdout.endswith("1 passed, 1 failed\n"), ran.stdout)

    def test_that_is_not_there_is_refused(self):
        self.assertIn("there is no such file", self.run_on("/").stderr)
        self.pack()
        self.assertIn("a root file system was expected", self.run_on().stderr)


if __name__ == "__main__":
    if may_change_root():
        unittest.main()
    print("not run: tarball in root file systems: unshare and chroot are not allowed")
