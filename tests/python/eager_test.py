"""Kernels that exist as machine code only: one sentence with what was called, its place and its tenant; and fills by the driver."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import LEASE, environment, leased, python

CURE = "its kernel exists as machine code only; use a build of it that has PTX"
CATCH = "except demarc.torch.NotColored as e: print(type(e).__name__, getattr(e, 'error_code', None), e)\n"


class Eager(unittest.TestCase):
    def program(self, text, name="program.py", **changes):
        """Runs that file, in a folder of its own, after enable()."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / name
        path.write_text("import demarc.torch, torch\ndemarc.torch.enable()\n" + text)
        return path, subprocess.run([sys.executable, path], env=environment(**(LEASE | changes)), capture_output=True, text=True)

    def test_an_operator_is_named_with_its_place_and_its_tenant(self):
        path, ended = self.program("def f():\n    x = 1; y = torch.kernel_of_aten()\nf()\n")
        # The innermost frame is the stand-in's, so PyTorch's own: the place is the program's.
        said, place = ended.stderr.splitlines()[-1].split(" at ")
        self.assertEqual(place, f"{path}:4, on a tensor of tenant 'a': {CURE}")
        self.assertTrue(said.startswith("demarc.torch.NotColored: `"), said)
        self.assertEqual(ended.returncode, 1)

    def test_the_source_of_the_call_is_shown(self):
        said = leased("import torch\nclass P:\n    def __add__(self, o): raise torch.AcceleratorError('CUDA error: no kernel image is "
                      f"available')\ntry: P() + 1\n{CATCH}")
        self.assertIn("NotColored None an operator in __add__() at <string>:5, on a tensor of tenant 'a': " + CURE, said)
        path, ended = self.program("def add(): raise torch.AcceleratorError('no kernel image is available', ) from None\nx = (1 +\n add())\n")
        new = sys.version_info >= (3, 11)
        shown = "`torch.AcceleratorError('no kernel image is available', )` at" if new else "`def add(): raise"
        self.assertIn(f"NotColored: {shown}", ended.stderr.splitlines()[-1])
        self.assertIn(f"at {path}:3, on a tensor", ended.stderr.splitlines()[-1])
        path, ended = self.program("raise torch.AcceleratorError('no kernel image is'\n  ' available')\n")
        shown = "`torch.AcceleratorError('no kernel image is'` at" if new else "`raise torch"
        self.assertIn(f"NotColored: {shown}", ended.stderr.splitlines()[-1])

    def test_before_python_3_11_the_line_is_shown(self):
        show = ("import types\nfrom demarc.torch import _eager\ncode = types.SimpleNamespace(co_filename=_eager.__file__, co_name='f')\n"
                "print(_eager._text(types.SimpleNamespace(f_locals={}, f_code=code, f_lineno=1)))")
        self.assertTrue(leased(show).startswith('`"""An error for kernels'))

    def test_a_folder_whose_name_begins_with_pytorchs_is_the_programs(self):
        self.assertEqual(leased("import os, types, torch\nfrom demarc.torch import _eager\n"
                                "code = types.SimpleNamespace(co_filename=os.path.dirname(torch.__file__) + 'vision/ops.py')\n"
                                "f = types.SimpleNamespace(f_code=code, f_back=None)\ng = types.SimpleNamespace(f_code=types.SimpleNamespace("
                                "co_filename=torch.__file__), f_back=f)\nprint(_eager.place(g) is f, _eager.place(f) is f)"), "True True\n")
        self.assertEqual(leased("import os, types, torch\nfrom demarc.torch import _eager\n"
                                "code = types.SimpleNamespace(co_filename=os.path.dirname(torch.__file__) + 'vision/ops.py')\n"
                                "f = types.SimpleNamespace(f_code=code, f_back=types.SimpleNamespace(f_code=types.SimpleNamespace(co_filename='p.py'), f_back=None))\n"
                                "print(_eager.place(f) is f)"), "True\n")

    def test_without_columns_the_line_is_shown(self):
        self.assertTrue(leased("import types\nfrom demarc.torch import _eager\ncode = types.SimpleNamespace(co_filename=_eager.__file__, co_name='f', "
                               "co_positions=lambda: iter([(None,) * 4]))\nprint(_eager._text(types.SimpleNamespace(f_locals={}, f_code=code, "
                               "f_lineno=1, f_lasti=0)))").startswith('`"""An error for kernels'))

    def test_where_all_frames_are_pytorchs_own_the_innermost_is_the_place(self):
        show = ("import types, torch\nfrom demarc.torch import _eager\ncode = types.SimpleNamespace(co_filename=torch.__file__)\n"
                "inner = types.SimpleNamespace(f_code=code, f_back=types.SimpleNamespace(f_code=code, f_back=None))\n"
                "print(_eager.place(inner) is inner)")
        self.assertEqual(leased(show), "True\n")

    def test_an_operator_of_torch_ops_is_shown_by_its_name(self):
        said = leased(f"import torch\nclass Call:\n    _schema = 1\n    def __str__(self): return 'aten.add.Tensor'\n"
                      f"    def __call__(self): raise torch.AcceleratorError('no kernel image is available')\ntry: Call()()\n{CATCH}")
        self.assertEqual(said, f"NotColored None aten.add.Tensor at <string>:7, on a tensor of tenant 'a': {CURE}\n")

    def test_it_is_an_error_of_pytorchs_kind_with_its_code(self):
        said = leased(f"import torch\ntry: torch.kernel_of_aten()\nexcept torch.AcceleratorError as e: print(e.error_code, type(e).__name__)")
        self.assertEqual(said, "209 NotColored\n")

    def test_other_errors_stay_as_they_are(self):
        said = leased("import torch\ntry: torch.kernel_of_aten('CUDA error: an illegal memory access')\n"
                      "except torch.AcceleratorError as e: print(type(e).__name__, e)")
        self.assertEqual(said, "AcceleratorError CUDA error: an illegal memory access\n")
        self.assertEqual(leased("import torch\nprint(str(torch.AcceleratorError()))"), "\n")

    def test_nothing_is_said_of_kernels_that_are_replaced(self):
        path, ended = self.program("print('quiet')")
        self.assertEqual((ended.stdout, ended.stderr), ("quiet\n", ""))


DRIVER = """
import torch
from demarc.torch import _fill
class Driver:
    def __getattr__(self, name):
        return lambda *a: print(name, *(x.value for x in a)) or int(name == self.__dict__.get("fails"))
driver = Driver()
_fill._driver = lambda: driver
def fill(value, dtype, size=(4,), stride=(1,)):
    made = torch.Tensor([0], size, stride, dtype, "cuda")
    assert _fill.fill(made, value) is made
"""


WIDE = """
import torch, types
from demarc.torch import _fill
class Driver:
    def __getattr__(self, name): return lambda *a: print(name, *(x.value for x in a)) or 0
_fill._driver = lambda: Driver()
torch.cuda.current_stream = lambda where: print("stream of", where) or types.SimpleNamespace(cuda_stream=77)
def fill(elements):
    torch.tensor = lambda value, dtype, device: types.SimpleNamespace(reshape=lambda _: types.SimpleNamespace(view=lambda _: types.SimpleNamespace(
        tolist=lambda: list(elements))))
    _fill.fill(torch.Tensor([0], (4,), (1,), types.SimpleNamespace(itemsize=16), "cuda"), 0)
"""


class Fills(unittest.TestCase):
    def test_elements_of_sixteen_bytes(self):
        self.assertEqual(leased(WIDE + "fill([0] * 16)"), "stream of cuda\ncuMemsetD32Async 47278194688 0 16 77\n")
        self.assertEqual(leased(WIDE + "fill([1, 0, 0, 0] + [2, 0, 0, 0] * 3)"), "stream of cuda\n" + "".join(
            f"cuMemsetD2D32Async {47278194688 + 4 * i} 16 {value} 1 4 77\n" for i, value in enumerate((1, 2, 2, 2))))

    def test_tensors_without_gaps(self):
        show = "from demarc.torch import _fill\nprint(_fill.in_one_piece({}))"
        for shape in ("(2, 1, 3), (3, 9, 1)", "(3, 0), (7, 7)", "(0,), (1,)", "(), ()", "(2, 3), (1, 2)"):
            self.assertEqual(leased(show.format(shape)), "True\n", shape)

    def test_the_driver_fills_with_the_bytes_of_an_element_in_the_streams_order(self):
        for arguments, said in (("1, torch.float32", "cuMemsetD32Async 47278194688 1065353216 4 77"),
                                ("1, torch.float16", "cuMemsetD16Async 47278194688 15360 4 77"),
                                ("True, torch.bool", "cuMemsetD8Async 47278194688 1 4 77"),
                                ("0, torch.int64", "cuMemsetD32Async 47278194688 0 8 77"),
                                ("-1, torch.int64, (2, 3), (1, 2)", "cuMemsetD32Async 47278194688 4294967295 12 77"),
                                ("1, torch.float16, (2, 1, 3), (3, 9, 1)", "cuMemsetD16Async 47278194688 15360 6 77")):
            self.assertEqual(leased(DRIVER + f"fill({arguments})"), said + "\n")

    def test_elements_of_other_words_are_filled_a_word_at_a_time(self):
        for arguments, first, second in (("1, torch.int64", 1, 0), ("1.5, torch.float64", 0, 0x3ff80000),
                                         ("-2, torch.int64, (2, 2), (1, 2)", 0xfffffffe, 0xffffffff)):
            self.assertEqual(leased(DRIVER + f"fill({arguments})"), f"cuMemsetD2D32Async 47278194688 8 {first} 1 4 77\n"
                                                                    f"cuMemsetD2D32Async 47278194692 8 {second} 1 4 77\n")

    def test_each_thread_has_a_context_before_its_first_fill(self):
        said = leased(DRIVER + "import threading\nfill(1, torch.float32)\nfill(1, torch.float32)\n"
                      "t = threading.Thread(target=fill, args=(1, torch.float32))\nt.start(); t.join()\nprint(torch.said)")
        self.assertEqual(said.splitlines()[-1], "['context of cuda', 'context of cuda']")

    def test_an_empty_tensor_needs_no_fill(self):
        self.assertEqual(leased(DRIVER + "fill(1, torch.float32, (3, 0), (7, 7))"), "")

    def test_tensors_with_gaps_are_not_filled_by_the_driver(self):
        show = "from demarc.torch import _fill\nprint(_fill.in_one_piece({}))"
        for shape in ("(4,), (2,)", "(2, 2), (3, 1)", "(2, 2), (1, 1)", "(2,), (0,)"):
            self.assertEqual(leased(show.format(shape)), "False\n")

    def test_an_error_of_the_driver_is_one(self):
        said = leased(DRIVER + "driver.__dict__['fails'] = 'cuMemsetD8Async'\ntry: fill(1, torch.uint8)\n"
                      "except demarc.torch.Error as e: print(e.code, e)")
        self.assertIn("3 cuMemsetD8Async of 4 elements returned the error 1", said)

    def test_the_driver_is_the_one_that_is_named(self):
        show = "import ctypes\nfrom demarc.torch import _fill\nctypes.CDLL = print\n_fill._driver()"
        self.assertEqual(python(show, DEMARC_LIBCUDA="/none/cuda.so"), "/none/cuda.so\n")
        self.assertEqual(python(show), "libcuda.so.1\n")


if __name__ == "__main__":
    unittest.main()
