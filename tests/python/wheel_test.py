"""The wheel: what is in it, that it is the same each time, and that a Python which installed it starts with it."""
import base64
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from support import PACKAGE, ROOT, environment, python

specification = importlib.util.spec_from_file_location("wheel_of_demarc", PACKAGE / "wheel_of_demarc.py")
backend = importlib.util.module_from_spec(specification)
specification.loader.exec_module(backend)


class Wheel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def built(self, name="w"):
        return self.folder / name / backend.build_wheel(str(self.folder / name))

    def test_it_holds_every_file_of_the_package(self):
        names = set(zipfile.ZipFile(self.built()).namelist())
        tracked = {path.relative_to(PACKAGE).as_posix() for path in (PACKAGE / "demarc").rglob("*.py")}
        self.assertEqual(names, tracked | {"demarc.pth", "demarc/py.typed"} | {
            f"demarc-0.1.0.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD")})

    def test_its_record_has_the_digest_and_the_size_of_each_file(self):
        wheel = zipfile.ZipFile(self.built())
        lines = [line.split(",") for line in wheel.read("demarc-0.1.0.dist-info/RECORD").decode().splitlines()]
        self.assertEqual(lines.pop(), ["demarc-0.1.0.dist-info/RECORD", "", ""])
        self.assertEqual(len(lines), len(wheel.namelist()) - 1)
        for name, digest, size in lines:
            data = wheel.read(name)
            wanted = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            self.assertEqual((digest, size), (f"sha256={wanted}", str(len(data))), name)

    def test_the_same_sources_give_the_same_bytes(self):
        self.assertEqual(self.built("one").read_bytes(), self.built("two").read_bytes())

    def test_it_is_pure_python_of_the_packages_version(self):
        wheel = zipfile.ZipFile(self.built())
        self.assertIn(b"Root-Is-Purelib: true\nTag: py3-none-any\n", wheel.read("demarc-0.1.0.dist-info/WHEEL"))
        self.assertIn(b"Name: demarc\nVersion: 0.1.0\nRequires-Python: >=3.10\n", wheel.read("demarc-0.1.0.dist-info/METADATA"))

    def test_a_package_without_a_version_has_no_wheel(self):
        kept = backend.HERE
        self.addCleanup(setattr, backend, "HERE", kept)
        backend.HERE = self.folder
        (self.folder / "demarc").mkdir()
        (self.folder / "demarc/__init__.py").write_text("")
        with self.assertRaisesRegex(SystemExit, "there is no __version__"):
            backend.version()

    def test_pip_makes_it_without_a_network(self):
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode != 0:
            print("not run: wheel by pip: no pip")
            return
        subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-index", "--no-deps", "--disable-pip-version-check", "-w",
                        self.folder / "pip", PACKAGE], check=True, capture_output=True, env=environment())
        self.assertEqual((self.folder / "pip/demarc-0.1.0-py3-none-any.whl").read_bytes(), self.built().read_bytes())

    def test_a_folder_it_was_unpacked_into_starts_what_the_variable_asks_for(self):
        zipfile.ZipFile(self.built()).extractall(self.folder / "site")
        start = f"import site\nsite.addsitedir('{self.folder}/site')\nprint('goes on')"
        said = python(start, path=[], DEMARC_TENANT="b", DEMARC_PROGRAM="/none/demarc")
        self.assertIn("DEMARC_TENANT=b: the program demarc was not found", said)
        self.assertNotIn("goes on", said)
        self.assertEqual(python(start, path=[]), "goes on\n")

    def test_as_a_program_it_prints_where_the_wheel_is(self):
        script = [sys.executable, PACKAGE / "wheel_of_demarc.py"]
        said = subprocess.run([*script, self.folder / "x"], capture_output=True, text=True, check=True).stdout
        self.assertTrue(Path(said.strip()).is_file(), said)
        self.assertIn("usage: ", subprocess.run(script, capture_output=True, text=True).stderr)

    def make(self, **environment):
        """`make wheel` in a copy of what it needs."""
        shutil.copytree(PACKAGE, self.folder / "python", dirs_exist_ok=True)
        shutil.copy(ROOT / "Makefile", self.folder)
        return subprocess.run([shutil.which("make"), "wheel"], cwd=self.folder, env={"PATH": os.environ["PATH"], **environment},
                              capture_output=True, text=True, check=False)

    def test_make_builds_it(self):
        made = self.make()
        self.assertEqual(made.returncode, 0, made.stderr)
        wheel = self.folder / made.stdout.strip()
        self.assertEqual(wheel, self.folder / "build/wheel/demarc-0.1.0-py3-none-any.whl")
        self.assertEqual(wheel.read_bytes(), self.built().read_bytes())

    def test_make_names_the_package_where_python_or_its_library_is_missing(self):
        programs = self.folder / "programs"
        programs.mkdir()
        for text in (None, "#!/bin/sh\nexit 1\n"):
            if text:
                (programs / "python3").write_text(text)
                (programs / "python3").chmod(0o755)
            made = self.make(PATH=str(programs))
            self.assertIn("make wheel: there is no python3 with its standard library: install the package python3\n", made.stderr)
            self.assertIn("Error 1", made.stderr)
            self.assertFalse((self.folder / "build").exists())


if __name__ == "__main__":
    unittest.main()
