"""demarc.torch.enable(): where it is refused, the hook, Inductor's settings, workers and caches, on the stand-ins."""
import os
import tempfile
import unittest

from support import CAPTURE, LEASE, leased, python

ENABLE = "import demarc.torch\ntry: print(demarc.torch.enable())\nexcept demarc.torch.Error as e: print(e.code, e)\n"


class Lease(unittest.TestCase):
    def test_enable_names_the_tenant_and_does_it_once(self):
        self.assertEqual(python(ENABLE + "import torch\nfirst = torch.AcceleratorError.__init__\nprint(demarc.torch.enable(), "
                                "torch.AcceleratorError.__init__ is first)", **LEASE), "a\na True\n")

    def test_outside_of_a_lease_it_is_refused_with_the_command_that_makes_one(self):
        words = "2 this process is in no tenant's lease: start it with demarc exec --tenant {} -- python3 PROGRAM\n"
        self.assertEqual(python(ENABLE), words.format("NAME"))
        self.assertEqual(python(ENABLE, DEMARC_TENANT="b"), words.format("b"))
        self.assertEqual(python(ENABLE, **(LEASE | {"DEMARC_CONTROL": None})), words.format("a"))
        self.assertEqual(python(ENABLE, **(LEASE | {"CUDA_INJECTION64_PATH": "/none/other.so"})), words.format("a"))

    def test_under_exec_without_a_tenant_it_is_refused(self):
        self.assertEqual(python(ENABLE, **(LEASE | {"DEMARC_TENANT": ""})),
                         "2 this process is under demarc exec without --tenant: it has TPCs of its own and no memory colours\n")

    def test_a_pytorch_without_the_class_of_such_errors_is_refused(self):
        self.assertEqual(python("import torch\ndel torch.AcceleratorError\n" + ENABLE, **LEASE),
                         "2 PyTorch 2.11.0 has no torch.AcceleratorError; 2.11 is what was tried\n")

    def test_importing_it_imports_neither_pytorch_nor_triton(self):
        self.assertEqual(python("import sys, demarc.torch\nprint('torch' in sys.modules, 'triton' in sys.modules)"), "False False\n")
        self.assertEqual(python("import demarc.torch\ntry: demarc.torch.nothing\nexcept AttributeError as e: print(e)"),
                         "module 'demarc.torch' has no attribute 'nothing'\n")


class Hook(unittest.TestCase):
    def compiled(self, arguments, before=""):
        return leased(f"{before}\nfrom triton.compiler import compile\ntry: print(compile('k', {arguments}))\n"
                      "except demarc.torch.Error as e: print(e.code, e)")

    def test_a_kernels_binary_is_its_ptx(self):
        self.assertEqual(self.compiled("'add.f32 x;'"), "b'add.f32 x;\\x00'\n")
        self.assertEqual(self.compiled("'x'", before="import triton.knobs"), "b'x\\x00'\n")

    def test_the_key_is_asked_for_without_arguments_and_computed_once(self):
        self.assertEqual(leased("from triton import knobs\nh = knobs.runtime.add_stages_inspection_hook\n"
                                "print(h() is h(), h()[0], len(h()[1]))"), "True demarc-ptx-1 64\n")

    def test_options_for_ptxas_are_refused(self):
        self.assertEqual(self.compiled("'x', ptx_options='-O1'"),
                         "2 kernel 'k': ptx_options='-O1' is for ptxas, which does not compile it here\n")
        self.assertIn("2 DISABLE_PTXAS_OPT is for ptxas, which does not compile kernels here: unset it",
                      python("import triton.knobs\ntriton.knobs.nvidia.disable_ptxas_opt = True\n" + ENABLE, **LEASE))

    def test_without_fusion_only_ptx_that_cannot_be_fused_is_taken(self):
        for ptx in ("mul.rn.f32 a;", "add.rn.ftz.f16x2 a;", "mul.wide.s32 a;", "add.s64 a;", "fma.rn.f32 a;", "mul.lo.u32 a;"):
            self.assertEqual(self.compiled(f"'{ptx}', enable_fp_fusion=False"), f"b'{ptx}\\x00'\n")
        for found in ("mul.f32", "add.ftz.f32", "sub.f64", "add.f16x2", "mul.bf16", "add.ftz.sat.f32", "mul.sat.f16"):
            self.assertEqual(self.compiled(f"'a; {found} b;', enable_fp_fusion=False"),
                             f"2 kernel 'k': enable_fp_fusion=False, but its PTX has '{found}' without a rounding mode, "
                             "which the driver's compiler may fuse\n")

    def test_other_gpus_are_refused(self):
        self.assertEqual(self.compiled("'x', last='hsaco'"), "2 Triton compiles for a GPU without cubins here (stages ptx, hsaco): "
                         "only NVIDIA's are coloured\n")

    def test_a_triton_without_the_hook_and_the_hook_of_somebody_else_are_refused(self):
        for needed in ("add_stages_inspection_hook", "kernel_load_end_hook"):
            self.assertEqual(python(f"import triton.knobs\ndel triton.knobs.runtime.{needed}\n" + ENABLE, **LEASE),
                             f"2 this Triton has no knobs.runtime.{needed}: 3.6 or later is needed\n")
        self.assertEqual(python("import triton.knobs\ntriton.knobs.runtime.add_stages_inspection_hook = print\n" + ENABLE, **LEASE),
                         "2 knobs.runtime.add_stages_inspection_hook of Triton is set already: Demarc needs it\n")


class Inductor(unittest.TestCase):
    def test_settings_are_those_of_the_table_whenever_inductor_is_imported(self):
        check = "from torch._inductor import config as c\nfrom demarc.torch._inductor import SETTINGS\n"
        check += "print(len(SETTINGS), all(getattr(c, n) is v for n, v in SETTINGS.items()), c.max_autotune_gemm_backends)\n"
        self.assertEqual(leased(check), "10 True TRITON\n")
        self.assertEqual(python("import torch._inductor.config\n" + ENABLE + check, **LEASE), "a\n10 True TRITON\n")
        self.assertEqual(leased("import torch\nprint(torch.switched)"), "{'flash': False, 'mem_efficient': False, 'cudnn': False, 'fastpath': False}\n")
        self.assertEqual(leased("import torch\nprint(torch.backends.cudnn.enabled)"), "False\n")

    def test_graphs_are_not_taken_from_a_cache_that_mixes_numbers_up(self):
        self.assertEqual(leased("import torch._functorch.config as c\nprint(c.enable_autograd_cache)"), "False\n")
        said = leased("import sys, types\nfrom demarc.torch import _inductor\ntry: _inductor._keep_no_graphs(types.ModuleType('config'))\n"
                      "except demarc.torch.Error as e: print(e.code, e)")
        self.assertIn("2 this PyTorch has no torch._functorch.config.enable_autograd_cache", said)

    def test_a_pytorch_without_a_setting_is_refused_and_changed_in_nothing(self):
        self.assertEqual(python("import torch._inductor.config as c\ndel c.cpp_wrapper\n" + ENABLE + "print(c.max_autotune_gemm)",
                                **LEASE), "2 this PyTorch has no torch._inductor.config.cpp_wrapper; 2.11 is what was tried\nFalse\n")

    def test_data_for_trials_is_made_on_the_host(self):
        show = "m = rand_strided((2, 3), (4, 1), torch.float16, 'cuda:0', 5)\n"
        show += "print(m.device.type, m.shape, m.strides, m.dtype.name, len(m.data))\nprint(rand_strided((2,), (1,)).device.type)\n"
        show += "print(rand_strided((2,), (1,), device='cuda').dtype.name, len(rand_strided((0,), (1,), device='cuda').data))\n"
        said = "cuda (2, 3) (4, 1) float16 12\ncpu\nfloat32 0\n"
        self.assertEqual(leased("import torch\nfrom torch._inductor.select_algorithm import rand_strided\n" + show), said)
        self.assertEqual(python("import torch, torch._inductor.select_algorithm as s\n" + ENABLE + "rand_strided = s.rand_strided\n"
                                + show, **LEASE), "a\n" + said)
        self.assertIn("2 this PyTorch has no torch._dynamo.testing.rand_strided; 2.11", python(
            "import torch._dynamo.testing as t\ndel t.rand_strided\n" + ENABLE, **LEASE))

    def test_workers_compile_with_the_hook(self):
        submit = "from torch._inductor.async_compile import submit\nprint(submit(('k', 'text'), {}, {}))"
        self.assertEqual(leased(submit), "(b'text\\x00', {}, {})\n")
        self.assertEqual(python(submit.replace("('k', 'text')", "('k', 't')")), "(b'\\x7fELF', {}, {})\n")  # as without it
        self.assertEqual(python("import torch._inductor.async_compile\n" + ENABLE + submit, **LEASE), "a\n(b'text\\x00', {}, {})\n")

    def test_a_pytorch_whose_workers_cannot_be_given_it_is_refused(self):
        for place in ("async_compile", "runtime.compile_tasks"):
            said = python("import torch._inductor.async_compile\nimport sys\n"
                          f"del sys.modules['torch._inductor.{place}']._worker_compile_triton\n" + ENABLE, **LEASE)
            self.assertIn("2 this PyTorch has no torch._inductor.async_compile._worker_compile_triton", said)


class Caches(unittest.TestCase):
    def test_kernels_are_kept_in_folders_of_their_own(self):
        show = "import os\nprint(os.environ['TRITON_CACHE_DIR'], os.environ['TORCHINDUCTOR_CACHE_DIR'])"
        self.assertEqual(leased(show, TRITON_CACHE_DIR="/c/t", TORCHINDUCTOR_CACHE_DIR="/c/i"), "/c/t/demarc-ptx-1 /c/i/demarc-ptx-1\n")
        self.assertEqual(leased(show, HOME="/h", TMPDIR=tempfile.gettempdir(), USER="d/e", LOGNAME="d/e"),
                         f"/h/.triton/cache/demarc-ptx-1 {tempfile.gettempdir()}/torchinductor_d_e/demarc-ptx-1\n")
        self.assertEqual(leased(show, TRITON_HOME="/t", TORCHINDUCTOR_CACHE_DIR="/i"), "/t/.triton/cache/demarc-ptx-1 /i/demarc-ptx-1\n")

    def test_a_process_below_has_the_same_folders(self):
        self.assertEqual(leased("import os\nprint(os.environ['TRITON_CACHE_DIR'])", TRITON_CACHE_DIR="/c/demarc-ptx-1"),
                         "/c/demarc-ptx-1\n")


class Later(unittest.TestCase):
    def test_an_action_runs_once_after_its_module_and_may_refuse_it(self):
        code = "from demarc.torch._later import when_imported\nimport sys\n"
        code += "when_imported('triton.knobs', lambda m: print(m.__name__, m.runtime is not None, m.__loader__.get_source(m.__name__)[:3]))\n"
        code += "import triton.knobs, importlib\nprint(triton.knobs.__spec__.loader is triton.knobs.__loader__)\n"
        self.assertEqual(python(code + "import triton.knobs"), 'triton.knobs True """\nTrue\n')
        self.assertEqual(python("from demarc.torch._later import when_imported\ndef no(m): raise ValueError('no')\n"
                                "when_imported('triton.knobs', no)\ntry: import triton.knobs\nexcept ValueError as e: print(e)\n"
                                "import sys; print('triton.knobs' in sys.modules)\ntry: import triton.knobs\n"
                                "except ValueError as e: print('again', e)"), "no\nFalse\nagain no\n")

    def test_looking_for_a_module_does_not_use_its_actions_up(self):
        self.assertEqual(python("from demarc.torch._later import when_imported\nimport importlib.util\n"
                                "when_imported('triton.knobs', lambda m: print('acted'))\n"
                                "print(importlib.util.find_spec('triton.knobs').name)\nimport triton.knobs\n"),
                         "triton.knobs\nacted\n")

    def test_several_actions_run_in_their_order_and_others_modules_are_left_alone(self):
        self.assertEqual(python("from demarc.torch._later import when_imported\n"
                                "for n in (1, 2): when_imported('triton', lambda m, n=n: print(n))\n"
                                "when_imported('missing', print)\n"
                                "try: import missing\nexcept ImportError as e: print(e)\nimport triton, json\n"), "No module named 'missing'\n1\n2\n")


class Capture(unittest.TestCase):
    KEEP = "import demarc.torch\ntry: demarc.torch.keep_ptx()\nexcept demarc.torch.Error as e: print(e.code, e)\n"

    def test_a_kernels_binary_is_its_ptx_here_too_and_nothing_else_changes(self):
        self.assertEqual(python(self.KEEP + "from triton.compiler import compile\nprint(compile('k', 'add.f32 x;'))", **CAPTURE),
                         "b'add.f32 x;\\x00'\n")
        before = "import torch\nfrom torch._inductor import config as c\nkept = dict(vars(c)), torch.AcceleratorError.__init__\n"
        self.assertEqual(python(before + self.KEEP + "print(kept == (vars(c), torch.AcceleratorError.__init__))", **CAPTURE), "True\n")

    def test_the_hook_goes_to_inductors_workers_and_caches_are_apart(self):
        self.assertEqual(python(self.KEEP + "import os\nfrom torch._inductor import async_compile as a\n"
                                "from demarc.torch import _workers\nprint(a._worker_compile_triton is _workers.compile_triton)\n"
                                "print([os.path.basename(os.environ[n]) for n in ('TRITON_CACHE_DIR', 'TORCHINDUCTOR_CACHE_DIR')])",
                                **CAPTURE), "True\n['demarc-ptx-1', 'demarc-ptx-1']\n")

    def test_outside_of_a_capture_it_is_refused(self):
        words = "2 this process is in no capture: start it with demarc capture -- python3 PROGRAM\n"
        for around in ({}, LEASE, CAPTURE | {"DEMARC_CAPTURE": None}, CAPTURE | {"CUDA_INJECTION64_PATH": "/none/other.so"}):
            self.assertEqual(python(self.KEEP, **around), words)


class Startup(unittest.TestCase):
    START = "import demarc._startup\ndemarc._startup.start()\n"

    def test_inside_a_lease_pytorch_is_enabled_as_it_is_imported(self):
        self.assertEqual(python(self.START + "import sys\nprint('torch' in sys.modules)\nimport torch\n"
                                "import demarc.torch\nprint(demarc.torch._enabled)", **LEASE), "False\na\n")

    def test_inside_a_capture_ptx_is_kept_as_triton_is_imported(self):
        self.assertEqual(python(self.START + "import sys\nprint('triton' in sys.modules)\nfrom triton import knobs\n"
                                "print(knobs.runtime.add_stages_inspection_hook().__class__)", **CAPTURE),
                         "False\n<class 'tuple'>\n")

    def test_what_cannot_be_started_again_ends_with_two_and_says_why(self):
        said = python(self.START + "print('goes on')", DEMARC_TENANT="b", DEMARC_PROGRAM="/none/demarc")
        self.assertIn("demarc: DEMARC_TENANT=b: the program demarc was not found (/none/demarc)", said)
        self.assertTrue(said.endswith("exit 2"), said)
        self.assertNotIn("goes on", said)

    def test_without_the_variable_nothing_happens(self):
        from support import PACKAGE
        show = f"import site, sys\nsite.addsitedir({os.fspath(PACKAGE)!r})\nprint('demarc' in sys.modules)"
        self.assertEqual(python(show), "False\n")
        self.assertEqual(python(show, DEMARC_TENANT=""), "False\n")
        self.assertEqual(python(show, **CAPTURE), "True\n")


if __name__ == "__main__":
    unittest.main()
