"""Operators made for a test alone: what the operators of the stand-in do not show."""
import subprocess
import sys
import unittest

from support import LEASE, environment, leased

MADE = """
import contextlib, torch
from demarc.torch import _choices, _operators
said = torch.said
def made(names, compute, returns=1, way=None, name="aten.made.default"):
    overload = torch.OpOverload(name, names, print, returns)
    overload.compute = compute
    torch.compiles[name] = way or "right"
    operator = _operators.Operator(overload, torch._Kernel(overload))
    torch._Library.registered["made", "CUDA"] = operator
    return lambda *arguments, **named: operator("keys", *arguments, **named)
def compiles(): return sum(word.startswith("compile") for word in said)
x, host = torch.numbers(1, 2), torch.numbers(3, 4, where="cpu")
class Parameter(torch.Tensor): pass
p = Parameter([1, 2], (2,), (1,), torch.float32, "cuda")
"""


def ran(code):
    return leased(MADE + code).strip()


class Kinds(unittest.TestCase):
    def test_named_arguments_and_what_is_no_tensor_count(self):
        for calls in ("x, by=2|x, by=2.5", "x, a=1|x, b=1", "x, torch.device('cuda')|x, torch.device('cpu')", "x, x|x, host"):
            first, second = calls.split("|")
            self.assertEqual(ran(f"f = made(('self',), lambda a, n: x)\nf({first}); f({second})\nprint(compiles())"), "2", calls)


class Compiled(unittest.TestCase):
    def test_named_tensors_are_given_and_keep_their_versions(self):
        said = ran("def compute(a, n):\n    n['out'].version[0] += 1\n    said.append(type(n['out']).__name__)\n    return n['out']\n"
                   "f = made(('self', 'out!'), compute)\nprint(f(x, out=p) is p, p._version, said[-1])")
        self.assertEqual(said, "True 0 Tensor")

    def test_what_is_returned_is_what_was_written_to_none_or_the_result(self):
        self.assertEqual(ran("print(made(('self!',), lambda a, n: None, 0)(x))"), "None")
        self.assertEqual(ran("f = made(('a!', 'b!'), lambda a, n: (host, host), 2)\nr = f(x, p)\nprint(r[0] is x, r[1] is p, len(r))"), "True True 2")
        self.assertEqual(ran("o = torch.OpOverload('aten.v.default', ('self!',), print)\no._schema.arguments[0].alias_info.is_write = False\n"
                             "print(_operators.Operator(o, None)._written)"), "[]")

    def test_numbers_of_lists_become_tensors_in_an_optimisers_step_alone(self):
        show = "f = made(('self', 'by'), lambda a, n: said.append([getattr(getattr(e, 'dtype', e), 'name', e) for e in a[1]]), name='{}')\n" \
               "f(x, [2.5, 3])\nprint(said[-1])"
        self.assertEqual(ran(show.format("aten.made.default")), "[2.5, 3]")
        self.assertEqual(ran("_operators.STEPS['aten.made.default'] = (None, None)\nkeep = torch.compile\n"
                             "class Step(torch.OpOverload): pass\n_operators.STEPS['aten.made.default'] = (torch.OpOverload('aten.made.default', ('self', "
                             "'by'), print), None)\n_operators.STEPS['aten.made.default'][0].compute = lambda a, n: said.append([e if isinstance(e, int) else "
                             "(e.dtype.name, e.device.type, e.data) for e in [*a[1], n['alpha']]])\n"
                             "made(('self', 'by'), None)(x, [2.5, 3], alpha=0.5)\nprint(said[-1])"),
                         "[('float64', 'cpu', [2.5]), 3, ('float64', 'cpu', [0.5])]")

    def test_it_runs_without_autograd_and_so_does_the_host(self):
        quiet = "depth = []\n@contextlib.contextmanager\ndef no_grad():\n    depth.append(1)\n    try: yield\n    finally: depth.pop()\ntorch.no_grad = no_grad\n"
        for way in ("right", "none"):
            self.assertEqual(ran(quiet + f"f = made(('self',), lambda a, n: said.append(len(depth)) or x, way='{way}')\nf(x)\n"
                                 "print([w for w in said if isinstance(w, int)])"), "[1]", way)
        self.assertEqual(ran(quiet + "c = torch.Tensor.copy_\ntorch.Tensor.copy_ = lambda s, o, b=False: said.append(len(depth)) or c(s, o)\n"
                             "f = made(('self!',), lambda a, n: a[0], way='none')\nf(x)\nprint([w for w in said if isinstance(w, int)])"), "[1, 1]")

    def test_tensors_of_inference_have_no_version(self):
        self.assertEqual(ran("class Inference(torch.Tensor):\n    _version = property(lambda self: 1 / 0)\n    def is_inference(self): return True\n"
                             "i = Inference([1], (1,), (1,), torch.float32, 'cuda')\nprint(made(('self',), lambda a, n: x)(i) is x, 'to cpu' in said)"), "True False")

    def test_another_operator_on_the_way_is_compiled_too_and_none_is_left_under_way(self):
        self.assertEqual(ran("f = made(('self',), lambda a, n: torch.ops.aten.scale.Tensor(x, 2))\nf(x)\nprint(compiles())"), "2")
        self.assertEqual(ran("f = made(('self',), None, way=torch.OutOfMemoryError('full'))\ntry: f(x)\nexcept torch.OutOfMemoryError: pass\n"
                             "print(_choices.operators())"), "set()")


class Host(unittest.TestCase):
    def test_named_tensors_and_the_device_go_to_the_host_and_all_results_to_the_card(self):
        said = ran("f = made(('size',), lambda a, n: (host, [host], str(n['device']), n['out'].device.type), way='none')\n"
                   "r = f(2, device=torch.device('cuda'), out=host)\nprint(r[0].device, r[1][0].device, *r[2:])")
        self.assertEqual(said, "cuda cuda cpu cpu")
        self.assertEqual(ran("f = made(('a', 'b'), lambda a, n: said.append([t.device.type for t in (a[0], *a[1], n['c'])]) or host, way='none')\n"
                             "print(f(host, (x, x), c=x).device, [w for w in said if isinstance(w, list)])"), "cuda [['cpu', 'cpu', 'cpu', 'cpu']]")

    def test_autograd_is_left_before_the_copy(self):
        self.assertEqual(ran("torch.Tensor.detach = lambda self: said.append('detach') or self\n_operators._down(x)\nprint(said)"),
                         "['detach', 'to cpu']")

    def test_what_has_another_size_now_is_not_restored(self):
        said = ran("c = torch.Tensor.copy_\ndef copy_(self, source, b=False):\n    assert self.shape == source.shape\n    return c(self, source)\n"
                   "torch.Tensor.copy_ = copy_\ndef compute(a, n): return a[0].resize_((3,))\n"
                   "f = made(('self!',), compute, way='late')\nprint(f(torch.numbers()).shape)")
        self.assertIn("(3,)", said)


class Driver(unittest.TestCase):
    def test_lists_of_copies_need_the_driver_for_all_and_say_whether_they_block(self):
        code = "f = torch.ops.aten._foreach_copy_.default\nn = torch.numbers\n"
        self.assertIn("compile", ran(code + "try: f([n(1), n(1, 2)], [n(1), n(2, 3, stride=2)])\nexcept Exception: pass\nprint(said[0])"))
        self.assertEqual(ran(code + "torch.Tensor.copy_ = lambda s, o, b=False: print(b)\nf([n(1)], [n(2)], True)"), "True")

    def test_atens_own_copy_gets_named_arguments(self):
        self.assertEqual(ran("torch.ops.aten.copy_.default.own = lambda t, s, non_blocking=False: print(non_blocking)\n"
                             "torch.ops.aten.copy_.default(x, x, non_blocking=True)"), "True")

    def test_zeroing_is_a_fill_with_zero(self):
        self.assertEqual(ran("_operators._fill.fill = lambda tensor, value: print(value)\ntorch.ops.aten.zero_.default(x)"), "0")


class Tables(unittest.TestCase):
    def test_steps_of_optimisers_are_what_their_names_say(self):
        numbers = "class N:\n    add_ = div_ = mul_ = lambda self, v: print(v)\n"
        self.assertEqual(ran(numbers + "_operators._add_quotients([N()], [6.0], [3.0], [0.5])\n_operators._divide([N()], [4.0])\n"
                             "_operators._multiply([N()], 3.0)\n_operators._add([N()], [2.0], 5.0)\n_operators._add([N()], [2.0])"), "1.0\n4.0\n3.0\n10.0\n2.0")

    def test_norms_and_gradient_scales_are_made_of_their_parts(self):
        self.assertEqual(ran("torch.linalg = type('L', (), {'vector_norm': lambda *a, **n: (a, n)})\nprint(_operators._norms([1], 3, 4), _operators._norms([1]))"),
                         "[((1, 3), {'dtype': 4})] [((1, 2), {'dtype': None})]")
        self.assertEqual(ran("import types\ntorch.isfinite = lambda x: types.SimpleNamespace(all=lambda: x.data[0] < 9)\n"
                             "torch.where = lambda fine, found, one: found if fine else torch.numbers(one)\n"
                             "class N(torch.Tensor):\n    def mul_(self, by): print(self.data, by)\n"
                             "for value in (1, 9):\n    found = torch.numbers(0)\n"
                             "    _operators._unscale([N([value], (1,), (1,), torch.float32, 'cuda')], found, 0.5)\n    print(found.data)"),
                         "[1] 0.5\n[0]\n[9] 0.5\n[1.0]")

    def test_functions_have_the_index_of_their_weight(self):
        self.assertEqual(ran("print([(n, f.__name__, i) for n, (f, i) in (_operators.FUNCTIONS | _operators.STEPS).items()])"), str([
            ("aten.convolution.default", "convolution", 1), ("aten.convolution_backward.default", "convolution_backward", 2),
            ("aten._foreach_norm.Scalar", "_norms", None),
            ("aten._amp_foreach_non_finite_check_and_unscale_.default", "_unscale", None), ("aten._foreach_add_.List", "_add", None),
            ("aten._foreach_addcdiv_.ScalarList", "_add_quotients", None), ("aten._foreach_div_.ScalarList", "_divide", None),
            ("aten._foreach_mul_.Scalar", "_multiply", None)]))

    def test_running_means_are_written_to(self):
        self.assertEqual(ran("o = torch.OpOverload('aten.native_batch_norm.default', ('input', 'running_mean', 'running_var'), print)\n"
                             "print(_operators.Operator(o, None)._written)"), "['running_mean', 'running_var']")

    def test_a_result_that_is_no_written_argument_is_returned(self):
        self.assertEqual(ran("o = torch.OpOverload('aten.made.default', ('self', 'noise!'), print)\no._schema.returns[0].alias_info = None\n"
                             "o.compute = lambda a, n: host\nf = _operators.Operator(o, None)\nprint(f('keys', x, p) is host)"), "True")

    def test_an_error_of_the_card_is_not_hidden_once_a_way_is_found(self):
        self.assertEqual(ran("f = made(('self',), lambda a, n: x, way=['right', torch.OutOfMemoryError('full')])\nf(x)\n"
                             "try: print(f(x))\nexcept torch.OutOfMemoryError as error: print('raised', error)"), "raised full")

    def test_without_room_on_the_card_a_copy_is_kept_on_the_host(self):
        self.assertEqual(ran("def clone(self): raise torch.OutOfMemoryError('full')\ntorch.Tensor.clone = clone\n"
                             "print(_operators._kept(x).device)"), "cpu")

    def test_the_span_of_a_tensor_reaches_from_its_first_to_its_last_element(self):
        for shape, stride, count in (((2, 3), (8, 2), 13), ((), (), 1), ((0, 4), (4, 1), 0), ((3,), (1,), 3)):
            self.assertEqual(ran(f"t = torch.Tensor([], {shape}, {stride}, torch.float32, 'cuda')\nprint(_operators._span(t).shape, _operators._span(t).stride())"), f"({count},) (1,)")

    def test_the_text_of_a_refusal_names_the_operator(self):
        self.assertEqual(ran("import types\nfrom demarc.torch import _eager\n"
                             "print(_eager._text(types.SimpleNamespace(f_locals={'self': torch.ops.aten.scale.Tensor})))\n"
                             "made(('self',), None)\noperator = torch._Library.registered['made', 'CUDA']\n"
                             "print(_eager._text(types.SimpleNamespace(f_locals={'self': operator})))"), "aten.scale.Tensor\naten.made.default")

    def test_views_are_kept(self):
        self.assertEqual(ran("known = torch._C._dispatch_get_registrations_for_dispatch_key('CUDA')\n"
                             "torch._C._dispatch_get_registrations_for_dispatch_key = lambda key: known + ['aten::' + n for n in ('as_strided', "
                             "'set_.source_Tensor', 'resize_', 'unfold', '_reshape_alias', '_local_scalar_dense', 'record_stream')]\n"
                             "_operators._library.clear(); _operators.install(); print('ok')"), "ok")

    def test_own_code_is_that_of_the_card_and_an_rnns_that_of_the_host(self):
        self.assertEqual(ran("K, asked = torch._Kernel, []\ntorch.library.get_kernel = lambda o, k: asked.append((str(o), k)) or K(o)\n"
                             "_operators._library.clear(); _operators.install()\nprint({k for n, k in asked if 'lstm' not in n and 'gru' not in n}, "
                             "{k for n, k in asked if 'lstm' in n or 'gru' in n})\n"
                             "torch.ops.aten.lstm.input.own = lambda *a, **n: print(n)\n"
                             "torch.library.Library.registered['lstm.input', 'CompositeImplicitAutograd']('keys', host, a=1)"),
                         "{'CUDA'} {'CPU'}\n{'a': 1}")

    def test_no_operator_is_registered_twice(self):
        self.assertEqual(ran("known = torch._C._dispatch_get_registrations_for_dispatch_key('CUDA')\n"
                             "torch._C._dispatch_get_registrations_for_dispatch_key = lambda key: [*known, 'aten::_fused_sdp_choice', 'aten::copy_']\n"
                             "torch.ops.aten._fused_sdp_choice = torch.ops.aten.copy_\n"
                             "keep, given = torch.library.Library.impl, []\ndef impl(self, name, *rest, **named):\n"
                             "    given.append(name)\n    keep(self, name, *rest, **named)\ntorch.library.Library.impl = impl\n"
                             "_operators._library.clear(); _operators.install()\nprint(len(given) - len(set(given)))"), "0")

    def test_operators_get_the_keys_of_their_call_and_inductor_tells_of_no_choices(self):
        self.assertEqual(ran("keep, given = torch.library.Library.impl, {}\ndef impl(self, name, function, key, with_keyset=False):\n"
                             "    given[name] = with_keyset\n    keep(self, name, function, key)\ntorch.library.Library.impl = impl\n"
                             "_operators._library.clear(); _operators.install()\nprint([name for name in given if not given[name]])\n"
                             "how, options = torch.compile, []\ndef compile(function, **named):\n    options.append(named['options'])\n"
                             "    return how(function, **named)\ntorch.compile = compile\nmade(('self',), lambda a, n: x)(x)\nprint(options)"),
                         "['_fused_sdp_choice']\n[{'autotune_num_choices_displayed': 0}]")

    def test_a_dynamo_without_the_error_of_too_many_kinds_is_refused(self):
        ended = subprocess.run([sys.executable, "-c", "import torch._dynamo.exc\ndel torch._dynamo.exc.FailOnRecompileLimitHit\nimport demarc.torch\n"
                                "try: demarc.torch.enable()\nexcept demarc.Error as error: print(error.code, error)"], env=environment(**LEASE),
                               capture_output=True, text=True)
        self.assertIn("2 PyTorch 2.11.0 has no torch._dynamo.exc.FailOnRecompileLimitHit", ended.stdout, ended.stderr)

    def test_the_nearest_blocks(self):
        d = "from demarc.torch._choices import _distance as d\nb = lambda m, n, k=64: dict(BLOCK_M=m, BLOCK_N=n, BLOCK_K=k, num_stages=2)\n"
        self.assertEqual(ran(d + "print(d(b(16, 16), 1, 1), d(b(128, 128), 1024, 1024), d(b(64, 64), 1023, 4096), d(b(64, 64, 32), 64, 64), "
                             "d(dict(BLOCK_M=64, BLOCK_N=64), 64, 64))"), "0.02 0.02 0.02 1.02 6.01")


if __name__ == "__main__":
    unittest.main()
