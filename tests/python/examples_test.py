"""The examples: what each does on the stand-in, or says where it lacks a lease."""
import ast
import subprocess
import sys
import tempfile
import unittest

from support import BUILD, HERE, PACKAGE, ROOT, environment

EXAMPLES = ROOT / "examples/python"


def run(name, *arguments, **changes):
    return subprocess.run([sys.executable, EXAMPLES / name, *arguments], capture_output=True, text=True,
                          env=environment(path=[PACKAGE, HERE / "fake"], **changes))


class Examples(unittest.TestCase):
    def test_each_parses_and_says_what_it_does_and_how_it_is_started(self):
        names = sorted(path.name for path in EXAMPLES.glob("*.py"))
        self.assertEqual(names, ["compiled_model.py", "topo.py", "triton_kernel.py"])
        for name in names:
            text = ast.get_docstring(ast.parse((EXAMPLES / name).read_text(), name))
            self.assertIn(f"python3 examples/python/{name}", text)

    def test_topo_prints_the_card(self):
        with tempfile.TemporaryDirectory() as cache:
            variables = {"DEMARC_LIBRARY": BUILD / "libdemarc.so", "DEMARC_CACHE": cache,
                         "DEMARC_LIBCUDA": BUILD / "libdemarc_fake_libcuda.so"}
            said = run("topo.py", **variables)
            self.assertEqual(said.stdout.splitlines()[-2:], ["8 TPCs of side 0, 16 SMs", "4 TPCs of side 1, 8 SMs"], said.stderr)
            missing = run("topo.py", "7", **variables)
            self.assertEqual(missing.returncode, 2)
            self.assertTrue(missing.stderr.startswith("topo.py: there is no GPU cuda:7"), missing.stderr)

    def test_the_others_need_a_lease_and_say_so(self):
        for name in ("triton_kernel.py", "compiled_model.py"):
            said = run(name)
            self.assertEqual((said.returncode, said.stdout), (2, ""))
            self.assertTrue(said.stderr.startswith(f"{name}: this process is in no tenant's lease: start it with demarc exec"))


if __name__ == "__main__":
    unittest.main()
