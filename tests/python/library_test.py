"""How libdemarc.so and the program are found, and the topology that the library says of the stand-in card."""
import os
import shutil
import tempfile
import unittest
from pathlib import Path

from support import BUILD, PACKAGE, python

LIBRARY = BUILD / "libdemarc.so"
SHOW = "import demarc\ntry:\n    print(demarc.version())\nexcept demarc.Error as error:\n    print(error.code, error)"


class Finding(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def test_the_variable_names_the_library_and_no_other_is_taken(self):
        self.assertEqual(python(SHOW, DEMARC_LIBRARY=LIBRARY), "0.1.0\n")
        self.assertEqual(python(SHOW, DEMARC_LIBRARY="/none/l.so", PATH=f"{BUILD}:{os.environ['PATH']}"),
                         "2 DEMARC_LIBRARY=/none/l.so: this library does not exist\n")

    def test_an_installed_package_finds_the_library_and_the_program_of_its_prefix(self):
        for libraries in ("lib", "lib64", "lib/x86_64-linux-gnu"):
            prefix = self.folder / libraries.replace("/", "_") / "prefix"
            shutil.copytree(PACKAGE / "demarc", prefix / libraries / "demarc/python/demarc")
            shutil.copy(LIBRARY, prefix / libraries)
            (prefix / "bin").mkdir()
            (prefix / "bin/demarc").symlink_to("/bin/true")
            path = [prefix / libraries / "demarc/python"]
            self.assertEqual(python(SHOW, path=path), "0.1.0\n", libraries)
            found = python("from demarc._library import *; print(find_library(), find_program())", path=path)
            self.assertEqual(found, f"{prefix / libraries}/libdemarc.so {prefix}/bin/demarc\n")

    def test_a_package_elsewhere_belongs_to_no_prefix(self):
        for place in ("lib/other/python", "lib/demarc/other", "share/demarc/python"):
            shutil.copytree(PACKAGE / "demarc", self.folder / place / "demarc")
            shutil.copy(LIBRARY, (self.folder / place).parents[1])
            self.assertIn("(nothing beside it, ", python(SHOW, path=[self.folder / place], PATH=self.folder), place)

    def test_a_program_in_the_path_leads_to_its_library(self):
        (self.folder / "bin").mkdir()
        (self.folder / "lib").mkdir()
        shutil.copy(LIBRARY, self.folder / "lib")
        shutil.copy("/bin/true", self.folder / "bin/demarc")
        (self.folder / "linked").mkdir()
        (self.folder / "linked/demarc").symlink_to(self.folder / "bin/demarc")
        self.assertEqual(python(SHOW, PATH=self.folder / "linked"), "0.1.0\n")

    def test_what_was_tried_is_named(self):
        said = python(SHOW, PATH=self.folder)
        self.assertIn("2 libdemarc.so was not found (nothing beside it, and the loader's path: libdemarc.so: ", said)
        self.assertIn("name it in DEMARC_LIBRARY", said)
        (self.folder / "demarc").symlink_to("/bin/true")
        said = python(SHOW, PATH=self.folder)
        self.assertRegex(said, r"was not found \(/\S+/libdemarc.so, /lib/libdemarc.so, |was not found \(/\S+/libdemarc.so, /usr/lib/")
        said = python("import demarc; demarc.leases()", DEMARC_PROGRAM="/none/demarc")
        self.assertIn("the program demarc was not found (/none/demarc); put it into PATH or name it in DEMARC_PROGRAM", said)

    def test_the_program_is_found_beside_a_library_that_is_named(self):
        show = "from demarc._library import find_program; print(find_program())"
        for libraries, programs in (("build", "build"), ("one/lib", "one/bin"), ("two/lib/x86_64-linux-gnu", "two/bin")):
            for name in (libraries, programs):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            (self.folder / programs / "demarc").symlink_to("/bin/true")
            library = self.folder / libraries / "libdemarc.so"
            self.assertEqual(python(show, DEMARC_LIBRARY=library), f"{self.folder / programs}/demarc\n")

    def test_a_file_that_cannot_be_run_is_no_program(self):
        (self.folder / "demarc").write_text("text")
        for path in (self.folder / "demarc", self.folder):
            self.assertIn("was not found", python("import demarc; demarc.leases()", DEMARC_PROGRAM=path))

    def test_an_older_library_is_refused_by_the_function_that_it_lacks(self):
        other = BUILD / "libsmctrl.so"
        self.assertEqual(python(SHOW, DEMARC_LIBRARY=other), f"2 {other} has no demarc_version: it is older than this package\n")

    def test_package_and_library_have_one_version(self):
        self.assertEqual(python("import demarc; print(demarc.__version__ == demarc.version())", DEMARC_LIBRARY=LIBRARY), "True\n")


class Topology(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def show(self, code):
        return python("import demarc\n" + code, DEMARC_LIBRARY=LIBRARY, DEMARC_CACHE=self.folder,
                      DEMARC_LIBCUDA=BUILD / "libdemarc_fake_libcuda.so")

    def test_each_tpc_has_its_gpc_its_side_and_its_sms(self):
        self.assertEqual(self.show("print(demarc.topo().tpcs[11], demarc.topo(0).tpcs[1])"),
                         "Tpc(index=11, gpc=3, side=0, sms=(22, 23)) Tpc(index=1, gpc=1, side=1, sms=(2, 3))\n")

    def test_the_card_is_closed_whatever_happens(self):
        code = "from demarc import _library\n_library.library().demarc_close = lambda card: print('closed')\n"
        self.assertEqual(self.show(code + "demarc.topo()"), "closed\n")
        code += "_library.library().demarc_tpc_count = lambda card: 13\ntry: demarc.topo()\nexcept demarc.Error as e: print(e.code, e)"
        self.assertEqual(self.show(code), "closed\n1 there is no TPC 12; the card has 12\n")

    def test_tpcs_are_told_by_gpc_and_by_side(self):
        self.assertEqual(self.show("t = demarc.topo()\nprint({g: [u.index for u in v] for g, v in t.gpcs.items()}, t.sm_count)\n"
                                   "print({s: [u.index for u in v] for s, v in t.sides.items()})"),
                         "{0: [0, 3, 6, 9], 1: [1, 4, 7, 10], 2: [2, 5, 8], 3: [11]} 24\n"
                         "{0: [0, 2, 3, 5, 6, 8, 9, 11], 1: [1, 4, 7, 10]}\n")

    def test_a_side_that_is_not_known_is_none_and_the_last(self):
        self.assertEqual(self.show("from demarc import Tpc, Topology\n"
                                   "t = Topology(0, (Tpc(0, 1, None, (0,)), Tpc(1, 0, 1, (1,)), Tpc(2, 0, 0, (2, 3))))\n"
                                   "print(list(t.sides), list(t.gpcs), t, sep='\\n')"),
                         "[0, 1, None]\n[0, 1]\nTPC  GPC  side  SMs\n  0    1     -  0\n  1    0     1  1\n  2    0     0  2 3\n")

    def test_a_card_that_is_not_there_is_an_error_with_the_librarys_words(self):
        self.assertIn("2 there is no GPU cuda:7", self.show("try:\n    demarc.topo(7)\nexcept demarc.Error as e:\n    print(e.code, e)"))


if __name__ == "__main__":
    unittest.main()
