"""demarc.torch.report(): what Inductor's code calls, what Triton loaded, what Demarc's library counted."""
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from demarc.torch._report import read_graph
from support import leased, python

# In the form of the code that Inductor of PyTorch 2.11 writes.
GRAPH = """
aten = torch.ops.aten
inductor_ops = torch.ops.inductor
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
alloc_from_pool = torch.ops.inductor._alloc_from_pool
async_compile = AsyncCompile()
triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', '''
def triton_poi_fused_add_0(in_ptr0):
    torch.ops.aten.inside.a_string()
''', device_str='cuda')
triton_tem_fused_mm_1 = async_compile.triton('triton_tem_fused_mm_1', '', device_str='cuda')
cpp_fused_2 = async_compile.cpp_pybinding(['float*'], '')
async_compile.wait(globals())

class Runner:
    def call(self, args):
        buf0 = empty_strided_cuda((4, ), (1, ), torch.float32)
        buf1 = alloc_from_pool(buf0, 0, torch.float32, (4,), (1,))
        buf2 = torch.ops.inductor._reinterpret_tensor(buf0)
        buf0.zero_()
        triton_poi_fused_add_0.run(buf0, 4, stream=stream0)
        extern_kernels.mm(buf0, buf1, out=buf2)
        buf3 = torch.ops.aten.sort.stable(buf2, stable=False, dim=0, descending=False)
        buf4 = aten.topk.default(buf2)
        buf5 = torch.ops.aten.sort.stable(buf3)
        buf6 = inductor_ops.seeds(1)
        buf7 = torch.ops.mine.my_operator.default(buf6)

runner = Runner(partitions=[])
"""
OPERATORS = ("extern_kernels.mm", "aten.sort.stable", "aten.topk.default", "inductor.seeds", "mine.my_operator.default")


class Reading(unittest.TestCase):
    def test_kernels_and_operators_come_in_their_order_once_each(self):
        graph = read_graph("g.py", GRAPH)
        self.assertEqual(graph.kernels, ("triton_poi_fused_add_0", "triton_tem_fused_mm_1"))
        self.assertEqual(graph.operators, OPERATORS)

    def test_a_file_of_one_kernel_is_no_graph(self):
        self.assertIsNone(read_graph("k.py", "import triton\n@triton.jit\ndef k(x): pass\n"))

    def test_machine_code_of_other_compilers_falls_back(self):
        graph = read_graph("g.py", "k = async_compile.cuda('''code''', 'so')\nasync_compile.wait(globals())\n")
        self.assertEqual((graph.kernels, graph.operators), ((), ("async_compile.cuda",)))

    def test_operators_by_an_alias_of_their_own_in_the_order_of_lines(self):
        graph = read_graph("g.py", "sort = torch.ops.aten.sort.stable\ndef f():\n    sort(1)\ntorch.ops.a.second()\nasync_compile.triton(3)\n"
                                   "async_compile.cutedsl('k')\nasync_compile.rocm('k')\nasync_compile.wait(globals())\n")
        self.assertEqual(graph.operators, ("aten.sort.stable", "a.second", "async_compile.cutedsl", "async_compile.rocm"))
        self.assertEqual(graph.kernels, ())


class Reports(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def modules(self, *texts):
        """Code that makes Inductor's stand-in have loaded files of these texts."""
        code = "import types\nfrom torch._inductor.codecache import PyCodeCache\n"
        for index, text in enumerate(texts):
            (self.folder / f"{index}.py").write_text(text)
            code += f"PyCodeCache.modules.append(types.SimpleNamespace(__file__='{self.folder}/{index}.py'))\n"
        return code

    def test_all_that_was_compiled_and_loaded_is_told(self):
        said = leased(self.modules(GRAPH, "k = 1") + "from triton.compiler import compile\ncompile('mine', 'x')\ncompile('mine', 'x')\n"
                      "r = demarc.torch.report()\nprint(r.tenant, r.kernels, len(r.graphs), r.process)\nprint(r.colored)\nprint(len(r.fallbacks))")
        self.assertEqual(said, "a ('mine',) 1 None\n('mine', 'triton_poi_fused_add_0', 'triton_tem_fused_mm_1')\n5\n")

    def test_it_reads_for_people(self):
        said = leased(self.modules(GRAPH) + "from triton.compiler import compile\ncompile('mine', 'x')\nprint(demarc.torch.report())")
        said = said.splitlines()
        self.assertEqual(said[:4], ["tenant a: 3 coloured kernels, 5 operators that fall back", "  kernel    mine",
                                    f"  graph     {self.folder}/0.py", "    kernel    triton_poi_fused_add_0"])
        self.assertIn("    falls back: aten.sort.stable", said)

    def test_the_same_file_loaded_twice_is_one_graph(self):
        self.assertEqual(leased(self.modules(GRAPH) + "PyCodeCache.modules *= 2\nprint(len(demarc.torch.report().graphs))"), "1\n")

    def test_without_inductor_there_are_no_graphs(self):
        self.assertEqual(leased("print(demarc.torch.report())"), "tenant a: 0 coloured kernels, 0 operators that fall back\n")

    def test_operators_are_told_with_their_ways(self):
        self.assertEqual(leased("from demarc.torch import _operators\n_operators.used.update({('aten.mm', 'compiled'): None, ('aten.topk', 'host'): "
                                "None})\nprint(demarc.torch.report())"), "tenant a: 0 coloured kernels, 0 operators that fall back\n"
                                "  operator  aten.mm: compiled\n  operator  aten.topk: on the host\n")

    def test_where_machine_code_runs_there_are_no_operators(self):
        self.assertIn("0 coloured kernels", leased("print(demarc.torch.report())", DEMARC_WINDOWS="1"))

    @unittest.skipIf(shutil.which("cc") is None, "no cc")
    def test_a_library_that_does_not_say_counts_nothing(self):
        for text in ("int other;", "const char* demarc_tenant_report(void) { return 0; }"):
            with tempfile.TemporaryDirectory() as folder:
                library = Path(folder) / "libdemarc_preload.so"
                subprocess.run(["cc", "-shared", "-x", "c", "-o", library, "-"], check=True, text=True, input=text)
                self.assertEqual(leased(f"import ctypes\nctypes.CDLL('{library}')\nprint(demarc.torch.report().process)",
                                        CUDA_INJECTION64_PATH=library), "None\n")

    def test_a_file_that_is_gone_is_an_error(self):
        said = leased(self.modules(GRAPH) + f"import os\nos.remove('{self.folder}/0.py')\ntry: demarc.torch.report()\n"
                      "except demarc.torch.Error as e: print(e.code, e)")
        self.assertEqual(said, f"3 {self.folder}/0.py: what Inductor wrote there cannot be read: No such file or directory\n")

    def test_outside_of_a_lease_there_is_nothing_to_tell(self):
        self.assertIn("this process is in no tenant's lease", python("import demarc.torch\ndemarc.torch.report()"))

    def test_what_demarcs_library_counted_is_told_once_the_driver_has_loaded_it(self):
        if shutil.which("cc") is None:
            print("not run: report of the process: no cc")
            return
        library = self.folder / "libdemarc_preload.so"
        subprocess.run(["cc", "-shared", "-x", "c", "-o", library, "-"], check=True, text=True,
                       input='const char* demarc_tenant_report(void) { return "{\\"kernels\\": 3}"; }')
        show = "print(demarc.torch.report().process)\n"
        self.assertEqual(leased(f"{show}import ctypes\nctypes.CDLL('{library}')\n{show}", CUDA_INJECTION64_PATH=library),
                         "None\n{'kernels': 3}\n")


if __name__ == "__main__":
    unittest.main()
