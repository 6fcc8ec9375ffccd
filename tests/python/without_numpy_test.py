"""The package in a Python without NumPy: what needs no arrays works, and the rest says in a sentence what to install."""
import sys
import tempfile
import unittest
from pathlib import Path

from support import HERE, PACKAGE, python

CALLS = ("demarc.emulate('k.ptx')", "demarc.locality(launch='bundled:hotspot')", "demarc.schedule('x.conf')")


class WithoutNumpy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        # It comes first in the path, so that a Python with NumPy lacks it, too.
        (self.folder / "numpy.py").write_text("raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')\n")

    def python(self, code):
        return python(code, path=[self.folder, PACKAGE, HERE / "fake"])

    def test_the_package_is_imported_and_reads_results(self):
        said = self.python("""
            import demarc
            try:
                demarc.isolate.read("/no/such/file.json")
            except demarc.Error as error:
                print(error)
        """)
        self.assertIn("/no/such/file.json", said)
        self.assertNotIn("numpy", said.lower())

    def test_what_works_on_arrays_names_numpy_and_how_to_install_it(self):
        for call in CALLS:
            said = self.python(f"""
                import demarc
                try:
                    {call}
                except ImportError as error:
                    print(error.name, type(error.__cause__).__name__)
                    print(error)
            """)
            self.assertEqual(said, "numpy ModuleNotFoundError\n"
                             f"demarc.emulate(), locality() and schedule() work on arrays of NumPy, but {sys.executable} cannot import it "
                             "(No module named 'numpy'): install NumPy (python3 -m pip install numpy, or the package python3-numpy)\n")

    def test_a_numpy_that_is_there_and_broken_is_told_with_its_cause(self):
        (self.folder / "numpy.py").write_text("raise ImportError('libopenblas.so.0: cannot open')\n")
        said = self.python(f"import demarc\n{CALLS[0]}\n")
        self.assertIn("cannot import it (libopenblas.so.0: cannot open): install NumPy", said)


if __name__ == "__main__":
    unittest.main()
