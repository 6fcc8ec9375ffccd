"""Operators outside of torch.compile, on the stand-in of PyTorch: which way each goes, and that it is right."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import LEASE, environment, leased

BEFORE = """
import torch, warnings
from demarc.torch import _operators
aten = torch.ops.aten
def show(result):
    print(result.data, result.device, torch.said)
    torch.said.clear()
"""
MACHINE_CODE = "its kernel exists as machine code only; use a build of it that has PTX"


def ran(code, **changes):
    return leased(BEFORE + code, **changes)


class Compiled(unittest.TestCase):
    def test_an_operator_is_compiled_alone_and_once_for_all_sizes(self):
        said = ran("show(aten.double.default(torch.numbers(1, 2)))\nshow(aten.double.default(torch.numbers(1, 2, 3)))\n"
                   "print(demarc.torch.report().operators)")
        self.assertEqual(said, "[2, 4] cuda ['compile aten.double.default aten_double_default True True', 'run aten.double.default']\n"
                               "[2, 4, 6] cuda ['run aten.double.default']\n(('aten.double.default', 'compiled'),)\n")

    def test_each_kind_of_arguments_is_looked_at(self):
        for other in ("torch.numbers(1)", "torch.numbers(1, 2, stride=2)", "torch.Tensor([1, 2], (2,), (1,), torch.float64, 'cuda')",
                      "torch.Tensor([1, 2], (2, 1), (1, 1), torch.float32, 'cuda')"):
            said = ran(f"aten.double.default(torch.numbers(1, 2))\naten.double.default({other})\n"
                       "print(sum(word.startswith('compile') for word in torch.said))")
            self.assertEqual(said, "2\n", other)

    def test_numbers_of_one_type_are_one_kind(self):
        said = ran("for by in (2, 3, 2.5, True, False):\n    show(aten.scale.Tensor(torch.numbers(1, 2), by))")
        self.assertEqual([line.count("compile") for line in said.splitlines()], [1, 0, 1, 1, 1])

    def test_what_is_written_to_is_returned(self):
        said = ran("x = torch.numbers(1, 2)\nprint(aten.double_.default(x) is x, x.data)\n"
                   "o = torch.numbers(0, 0)\nprint(aten.double.out(x, o) is o, o.data)")
        self.assertEqual(said, "True [2, 4]\nTrue [4, 8]\n")

    def test_versions_of_tensors_are_left_to_what_is_above(self):
        said = ran("x = torch.numbers(1, 2)\naten.double_.default(x)\nprint(x._version)")
        self.assertEqual(said, "0\n")

    def test_autograd_sees_no_tensor_of_its_own(self):
        said = ran("class Parameter(torch.Tensor): pass\nx = Parameter([1, 2], (2,), (1,), torch.float32, 'cuda')\n"
                   "y = torch.numbers(1, 2)\ny.requires_grad = True\nseen = []\nf = aten.double.default.function\n"
                   "def compute(arguments, named): seen.extend((type(a).__name__, a.requires_grad) for a in arguments); return arguments[0]\n"
                   "aten.double.default.compute = compute\naten.double.default(x); aten.double.default(y)\nprint(seen)")
        self.assertEqual(said, "[('Tensor', False), ('Tensor', False)]\n")

    def test_a_function_of_too_many_kinds_of_sizes_is_followed_by_another(self):
        said = ran("from torch._dynamo.exc import FailOnRecompileLimitHit\n"
                   "torch.compiles['aten.double.default'] = ['right', FailOnRecompileLimitHit('8'), 'right', 'right']\n"
                   "for _ in range(3): show(aten.double.default(torch.numbers(1, 2)))")
        self.assertEqual([line.count("'compile") for line in said.splitlines()], [1, 1, 0])
        self.assertNotIn("to cpu", said)

    def test_a_function_in_place_of_an_operator_has_fixed_sizes_of_its_weight(self):
        said = ran("from demarc.torch import _convolution\n_operators.FUNCTIONS['aten.convolution.default'] = (lambda x, w: x, 1)\n"
                   "_operators._library.clear()\n_operators.install()\n"
                   "for size in (2, 2, 3): aten.convolution.default(torch.numbers(1, 2), torch.numbers(*range(size)))\n"
                   "print([word for word in torch.said if word.startswith('compile')])")
        self.assertEqual(said.count("aten_convolution_default None True"), 2, said)

    def test_numbers_of_an_optimisers_step_do_not_compile_it_anew(self):
        said = ran("x = torch.numbers(8, 4)\nx.div_ = lambda by: torch.said.append(type(by).__name__ + str(by.data))\n"
                   "for step in (2.0, 4.0): aten._foreach_div_.ScalarList([x], [step])\nprint([w for w in torch.said if w != 'run'])")
        self.assertEqual(said.count("compile <function _divide"), 1, said)
        self.assertIn("'Tensor[2.0]'", said)
        self.assertIn("'Tensor[4.0]'", said)


class Host(unittest.TestCase):
    def test_where_inductor_calls_aten_the_host_computes_it_and_a_warning_says_so_once(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.py"
            path.write_text("import demarc.torch, torch\ndemarc.torch.enable()\n" + BEFORE + "torch.compiles['aten.double.default'] = 'ATen'\n"
                            "def f(): return aten.double.default(torch.numbers(1, 2))\nshow(f())\nshow(f())\nprint(demarc.torch.report())\n")
            ended = subprocess.run([sys.executable, path], env=environment(**LEASE), capture_output=True, text=True)
        self.assertEqual(ended.stdout, "[2, 4] cuda ['compile aten.double.default aten_double_default True True', 'run aten.double.default', "
                         "'own aten.double.default', 'to cpu', 'host aten.double.default', 'to cuda']\n"
                         "[2, 4] cuda ['to cpu', 'host aten.double.default', 'to cuda']\n"
                         "tenant a: 0 coloured kernels, 0 operators that fall back\n  operator  aten.double.default: on the host\n")
        self.assertEqual(ended.stderr.count("UserWarning"), 1)
        self.assertIn("program.py:11: UserWarning: aten.double.default runs on the host, because Inductor has no Triton kernel for it",
                      ended.stderr)

    def test_so_it_is_where_inductor_or_dynamo_fail(self):
        for name in ("InductorError", "LoweringException", "Unsupported", "TorchRuntimeError"):
            said = ran(f"torch.compiles['aten.double.default'] = type('{name}', (Exception,), {{}})('no')\n"
                       "show(aten.double.default(torch.numbers(1, 2)))\nshow(aten.double.default(torch.numbers(1, 2)))")
            self.assertEqual([line.split(" [")[0] for line in said.splitlines()], ["[2, 4] cuda", "[2, 4] cuda"])
            self.assertEqual(said.count("compile"), 1)

    def test_an_error_that_may_pass_is_not_kept_and_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.py"
            path.write_text("import demarc.torch, torch\ndemarc.torch.enable()\n" + BEFORE + "torch.compiles['aten.double.default'] = [OSError('full'), 'right']\n"
                            "for _ in range(2): show(aten.double.default(torch.numbers(1, 2)))\nprint(demarc.torch.report().operators)\n")
            ended = subprocess.run([sys.executable, path], env=environment(**LEASE), capture_output=True, text=True)
        self.assertEqual(ended.stdout.count("compile aten.double.default"), 2)
        self.assertTrue(ended.stdout.endswith("(('aten.double.default', 'host'), ('aten.double.default', 'compiled'))\n"), ended.stdout)
        self.assertIn("aten.double.default runs on the host, because it was not compiled (OSError)", ended.stderr)

    def test_other_sizes_of_a_kind_may_be_for_the_host_and_leave_the_rest_compiled(self):
        said = ran("torch.compiles['aten.double.default'] = ['right', 'ATen', 'right', 'right']\n"
                   "for size in (2, 3, 3, 2): show(aten.double.default(torch.numbers(*range(size))))\nprint(demarc.torch.report().operators)")
        self.assertEqual(["to cpu" in line for line in said.splitlines()[:4]], [False, True, True, False])
        self.assertEqual(said.splitlines()[-1], "(('aten.double.default', 'compiled'), ('aten.double.default', 'host'))")
        self.assertEqual(said.count("'compile aten"), 1)

    def test_what_is_written_to_in_a_known_kind_is_never_computed_twice(self):
        said = ran("torch.compiles['aten.double_.default'] = ['right', 'late']\nx = torch.numbers(1, 2)\naten.double_.default(x)\n"
                   "try: aten.double_.default(x)\nexcept RuntimeError as e: print(e, 'to cpu' in torch.said)")
        self.assertEqual(said, "late False\n")

    def test_indices_may_lie_on_the_host(self):
        said = ran("torch.compiles['aten.index.Tensor'] = 'found two different devices cuda:0, cpu'\n"
                   "o = torch.OpOverload('aten.index.Tensor', ('self', 'index'), lambda x, i: x)\n"
                   "f = _operators.Operator(o, torch._Kernel(o))\ntorch._Library.registered['index.Tensor', 'CUDA'] = f\n"
                   "print(f('keys', torch.numbers(1), torch.numbers(0, where='cpu')).device)")
        self.assertEqual(said.splitlines()[0], "cuda")

    def test_an_operator_of_no_kernel_at_all_is_refused_by_name(self):
        said = ran("torch.compiles['aten.double.default'] = 'none'\ndef f(x): raise NotImplementedError('CPU backend')\n"
                   "aten.double.default.function = f\ntry: aten.double.default(torch.numbers(1))\nexcept demarc.torch.NotColored as e: print(e)")
        self.assertIn("neither Inductor nor the host has a kernel for it", said)

    def test_atens_own_code_runs_where_it_starts_no_kernel(self):
        said = ran("torch.compiles['aten.double.default'] = 'ATen'\naten.double.default.own = lambda x: torch.numbers(7)\n"
                   "show(aten.double.default(torch.numbers(1)))")
        self.assertIn("[7] cuda", said)
        self.assertNotIn("host", said)

    def test_what_was_compiled_leaves_nothing_behind_where_it_failed(self):
        said = ran("torch.compiles['aten.double_.default'] = 'late'\nx = torch.numbers(1, 2)\nprint(aten.double_.default(x) is x, x.data)")
        self.assertEqual(said.splitlines()[0], "True [2, 4]")

    def test_an_output_that_was_empty_gets_the_size_of_the_result(self):
        said = ran("torch.compiles['aten.double.out'] = 'Shape mismatch'\nout = torch.numbers()\n"
                   "print(aten.double.out(torch.numbers(1, 2), out) is out, out.data, out.shape)")
        self.assertEqual(said.splitlines()[0], "True [2, 4] (2,)")

    def test_errors_of_memory_and_of_the_package_and_of_the_card_are_not_computed_away(self):
        for error in ("torch.OutOfMemoryError('full')", "demarc.torch.Error('ptxas', 2)", "torch.AcceleratorError('an illegal address')",
                      "RuntimeError('found two different devices cuda:0, cpu')"):
            said = ran(f"torch.compiles['aten.double.default'] = {error}\ntry: aten.double.default(torch.numbers(1))\n"
                       "except Exception as e: print(type(e).__name__, e, 'to cpu' in torch.said)")
            self.assertTrue(said.endswith(" False\n"), said)

    def test_no_capture_of_a_graph_waits_for_the_host(self):
        said = ran("torch.compiles['aten.double.default'] = 'none'\ntorch.capturing.append(1)\ntry: aten.double.default(torch.numbers(1))\n"
                   "except demarc.torch.NotColored as e: print(e)")
        self.assertRegex(said, r"aten\.double\.default at <string>:\d+, on a tensor of tenant 'a': runs on the host, which the capture of a "
                               "CUDA graph cannot wait for\n")

    def test_a_generator_of_the_card_is_not_left_out(self):
        said = ran("torch.compiles['aten.random.default'] = 'none'\ntry: aten.random.default(torch.numbers(1), generator=torch.Generator())\n"
                   "except demarc.torch.NotColored as e: print(e, torch.said)")
        self.assertIn("runs on the host, which cannot use a random number generator of the card", said)
        self.assertNotIn("'to cpu'", said)


class Aliases(unittest.TestCase):
    def test_what_shares_memory_with_what_is_written_to_is_copied_before(self):
        said = ran("a = torch.numbers(1, 2)\nb = a.detach()\nseen = []\n"
                   "def compute(arguments, named): seen.append([t.data is a.data for t in arguments]); arguments[0].data[:] = [7, 7]; return arguments[0]\n"
                   "o = torch.OpOverload('aten.made.default', ('self!', 'other'), print)\no.compute = compute\nf = _operators.Operator(o, None)\n"
                   "print(f('keys', a, b) is a, a.data, seen)\nprint(f('keys', a, a) is a, seen[1:])\nprint(f('keys', a, torch.numbers(3)) is a, seen[2:])")
        self.assertEqual(said, "True [7, 7] [[True, False]]\nTrue [[True, True]]\nTrue [[True, False]]\n")

    def test_empty_outputs_share_none(self):
        said = ran("a, b = torch.numbers(), torch.numbers()\nb.data = a.data\nseen = []\n"
                   "def compute(arguments, named): seen.extend(t.data is a.data for t in arguments); return arguments\n"
                   "o = torch.OpOverload('aten.made.default', ('a!', 'b!'), print, 2)\no.compute = compute\n_operators.Operator(o, None)('keys', a, b)\nprint(seen)")
        self.assertEqual(said, "[True, True]\n")

    def test_two_that_are_written_to_in_one_memory_get_their_own_values(self):
        said = ran("a = torch.numbers(1, 2)\nb = a.detach()\n"
                   "def compute(arguments, named): arguments[1].data[:] = [8, 8]; return arguments\n"
                   "o = torch.OpOverload('aten.made.default', ('a!', 'b!'), print, 2)\no.compute = compute\nf = _operators.Operator(o, None)\n"
                   "r = f('keys', a, b)\nprint(r[0] is a, r[1] is b, b.data)")
        self.assertEqual(said, "True True [8, 8]\n")


class Driver(unittest.TestCase):
    def copied(self, target, source):
        return ran("operator = aten.copy_.default\noperator.own = lambda target, source, *_: target\n"
                   f"aten.copy_.default({target}, {source})\nprint(torch.said)")

    def test_copies_of_one_layout_and_between_devices_are_the_drivers(self):
        for target, source in (("torch.numbers(1, 2)", "torch.numbers(3, 4)"), ("torch.numbers(1, 2, where='cpu')", "torch.numbers(3, 4)"),
                               ("torch.numbers(1, 2)", "torch.numbers(3, 4, stride=2, where='cpu')")):
            self.assertEqual(self.copied(target, source), "['own aten.copy_.default']\n")

    def test_other_copies_are_compiled(self):
        for target, source in (("torch.numbers(1, 2)", "torch.numbers(3, 4, stride=2)"), ("torch.numbers(1, 2, stride=2)", "torch.numbers(3, 4, stride=2)"),
                               ("torch.numbers(1, 2)", "torch.numbers(3)"),
                               ("torch.numbers(1, 2)", "torch.Tensor([3, 4], (2,), (1,), torch.float64, 'cuda')")):
            self.assertIn("'run aten.copy_.default'", self.copied(target, source))

    def test_complex_numbers_are_copied_as_their_parts(self):
        code = ("class Complex(torch.Tensor):\n    def is_complex(self): return True\n    def expand(self, shape): return self\n"
                "torch.view_as_real = lambda t: torch.numbers(*t.data)\n"
                "a, b = (Complex([1, 2], (2,), (2,), torch.float32, 'cuda') for _ in 'ab')\n")
        self.assertEqual(ran(code + "print(aten.copy_.default(a, b) is a, torch.said)"), "True ['copy_']\n")
        self.assertEqual(ran(code + "torch.Tensor.copy_ = lambda s, o, b=None: print(b)\naten.copy_.default(a, b)\naten.copy_.default(a, b, True)"),
                         "False\nTrue\n")
        for conjugate in "ab":
            self.assertIn("compile", ran(code + f"{conjugate}.is_conj = lambda: True\naten.copy_.default(a, b)\nprint(torch.said)"))
        for real in "ab":
            self.assertIn("compile", ran(code + f"{real}.is_complex = lambda: False\naten.copy_.default(a, b)\nprint(torch.said)"))

    def test_a_conjugate_is_not_copied_as_it_lies(self):
        for flag in ("is_conj", "is_neg"):
            said = ran(f"a, b = torch.numbers(1), torch.numbers(2)\nb.{flag} = lambda: True\naten.copy_.default(a, b)\nprint(torch.said)")
            self.assertIn("compile aten.copy_.default", said)

    def test_lists_of_copies_are_copied_one_by_one_if_the_driver_can(self):
        said = ran("aten._foreach_copy_.default([torch.numbers(1)], [torch.numbers(2)])\nprint(torch.said)")
        self.assertEqual(said, "['copy_']\n")
        said = ran("try: aten._foreach_copy_.default([torch.numbers(1, 2)], [torch.numbers(2, 3, stride=2)])\nexcept Exception: pass\n"
                   "print(torch.said[0])")
        self.assertIn("compile aten._foreach_copy_.default", said)

    def test_fills_without_gaps_are_the_drivers(self):
        fill = "_operators._fill._driver = lambda: type('D', (), {'__getattr__': lambda self, name: lambda *a: print(name, a[1].value) or 0})()\n"
        said = ran(fill + "aten.fill_.Scalar(torch.numbers(1, 2), 3)\nprint(torch.said)\naten.zero_.default(torch.numbers(1, 2))\nprint(torch.said)")
        self.assertEqual(said, "cuMemsetD32Async 1077936128\n['context of cuda']\ncuMemsetD32Async 0\n['context of cuda']\n")
        said = ran("show(aten.fill_.Scalar(torch.numbers(1, 2, stride=2), 3))\nshow(aten.zero_.default(torch.numbers(1, 2, stride=2)))")
        self.assertIn("[3, 3] cuda ['compile aten.fill_.Scalar", said)
        self.assertIn("[0, 0] cuda ['compile aten.zero_.default", said)


class Registered(unittest.TestCase):
    def test_all_operators_of_aten_on_the_card_but_views_and_allocations(self):
        said = ran("print(sorted(torch.library.Library.registered))")
        names = ["_foreach_copy_", "_foreach_div_.ScalarList", "convolution", "copy_", "double", "double.out", "double_", "fill_.Scalar",
                 "norm", "random", "scale.Tensor", "zero_"]
        self.assertEqual(said, str(sorted([(name, "CUDA") for name in [*names, "_fused_sdp_choice"]] + [
            (name, "CompositeImplicitAutograd") for name in ("lstm.input", "lstm.data", "gru.input", "gru.data")])) + "\n")

    def test_attention_is_made_of_products_whatever_is_asked_for(self):
        self.assertEqual(ran("print(torch.library.Library.registered['_fused_sdp_choice', 'CUDA'](1, 2, dropout_p=0.5))"), "0\n")

    def test_rnns_are_made_of_their_parts_on_the_card_alone(self):
        said = ran("lstm = torch.library.Library.registered['lstm.input', 'CompositeImplicitAutograd']\n"
                   "aten.lstm.input.own = lambda *_: 'own'\nprint(lstm('keys', torch.numbers(1)), lstm('keys', torch.numbers(1, where='cpu')))")
        self.assertEqual(said, "decomposed own\n")

    def test_a_pytorch_without_what_is_needed_is_refused(self):
        for remove in ("del torch.library.get_kernel", "del torch._C._dispatch_get_registrations_for_dispatch_key",
                       "del torch._C._autograd._unsafe_set_version_counter"):
            owner, name = remove.removeprefix("del ").rsplit(".", 1)
            said = leased("print('x')", **LEASE) and subprocess.run(
                [sys.executable, "-c", f"import torch\n{remove}\nimport demarc.torch\ndemarc.torch.enable()"],
                env=environment(**LEASE), capture_output=True, text=True).stderr
            self.assertIn(f"PyTorch 2.11.0 has no {owner}.{name}; 2.11 is what was tried", said)

    def test_where_machine_code_runs_nothing_is_changed(self):
        said = leased("import torch\nprint(torch.library.Library.registered, torch.switched, demarc.torch.enable())", DEMARC_WINDOWS="1")
        self.assertEqual(said, "{} {} a\n")


class Choices(unittest.TestCase):
    CODE = ("import types\nfrom torch._inductor.virtualized import V\nfrom torch._inductor.choices import FOUND\nfrom demarc.torch import _choices\n"
            "_choices.operators()\ndef tried(m, n):\n    inputs = types.SimpleNamespace(mnk_hinted=lambda: (m, n, 64))\n"
            "    return [choice.blocks for choice in V.choices._finalize_template_configs(FOUND, inputs, [], 'mm')]\n")

    def test_for_a_product_outside_of_torch_compile_three_kernels_are_tried(self):
        said = leased(self.CODE + "_choices.operators().add(1)\nprint(tried(64, 64))\nprint(tried(1, 64))\nprint(tried(4096, 4096))\n"
                      "print([f.blocks for f in V.choices.get_conv_configs()(1, 64, 64, dtype_size=4)])")
        self.assertEqual(said, "[(64, 64, 64, 2), (64, 64, 64, 3), (64, 32, 64, 2)]\n[(16, 64, 64, 2), (16, 16, 64, 2), (64, 64, 64, 2)]\n"
                               "[(128, 128, 64, 3), (128, 64, 64, 4), (64, 64, 64, 2)]\n[(16, 64, 64, 2), (16, 16, 64, 2), (64, 64, 64, 2)]\n")

    def test_a_program_of_torch_compile_has_them_all(self):
        said = leased(self.CODE + "print(len(tried(64, 64)), len(FOUND), len(V.choices.get_conv_configs()(1, 64, 64, dtype_size=4)))")
        self.assertEqual(said, "7 7 7\n")

    def test_so_it_is_in_each_thread(self):
        said = leased(self.CODE + "import threading\ndef work():\n    _choices.operators().add(1)\n    print(len(tried(64, 64)))\n"
                      "t = threading.Thread(target=work)\nt.start(); t.join()\nprint(len(tried(64, 64)))")
        self.assertEqual(said, "3\n7\n")


if __name__ == "__main__":
    unittest.main()
