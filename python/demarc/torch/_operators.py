"""Operators outside of torch.compile: Inductor compiles each as a graph of its own; where it cannot, the host computes it.

ATen's kernels are machine code. So each operator with kernels for the card is registered anew, but for those that only
allocate, make views or read: an Operator looks for a way when it meets arguments of a new kind, and keeps it.

- "compiled": a function of that operator alone under torch.compile, with dynamic shapes;
- "host": arguments are copied to the host and results back. Operators whose results have sizes that depend on data, and
  those for which Inductor calls ATen: sorts, top-k, products of float64. A warning names each once;
- "driver": copies and fills that need no kernel.

Inductor calls ATen for what it cannot compile. Such a call arrives at the Operator that is being compiled, which then
lets ATen's own code run: it is refused (NotColored) if it starts a kernel, and works if it only calls other operators.
"""
from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch._dynamo.exc

from .._errors import Error
from . import _choices, _convolution, _eager, _fill

# Operators that start no kernel, or only copy a number to the host, by the name before the first dot.
KEPT = frozenset(("_local_scalar_dense", "_reshape_alias", "as_strided", "is_set_to", "record_stream", "resize_", "set_", "unfold",
                  "view", "view_as_complex", "view_as_real"))
# Operators that start kernels although they have none that is registered for the card alone.
COMPOSITE = ("copy_", "convolution")
# Operators that reach libraries or ATen's fused kernels where their parts would do: registered as their decompositions.
DECOMPOSED = ("lstm.input", "lstm.data", "gru.input", "gru.data")
# Arguments that are written to although their schema does not say so.
WRITTEN = {"aten.native_batch_norm.default": ["running_mean", "running_var"]}
# Errors that say that an operator cannot be compiled; others may pass.
CANNOT = frozenset(("InductorError", "LoweringException", "NotColored", "TorchRuntimeError", "Unsupported"))


def _divide(each: Sequence[Any], by: Sequence[Any]) -> None:
    for x, divisor in zip(each, by):
        x.div_(divisor)


def _add_quotients(each: Sequence[Any], dividends: Sequence[Any], divisors: Sequence[Any], factors: Sequence[Any]) -> None:
    for x, dividend, divisor, factor in zip(each, dividends, divisors, factors):
        x.add_(factor * dividend / divisor)


def _multiply(each: Sequence[Any], by: Any) -> None:
    for x in each:
        x.mul_(by)


def _add(each: Sequence[Any], others: Sequence[Any], alpha: Any = 1) -> None:
    for x, other in zip(each, others):
        x.add_(other * alpha)


def _norms(each: Sequence[Any], order: Any = 2, dtype: Any = None) -> list[Any]:
    return [torch.linalg.vector_norm(x, order, dtype=dtype) for x in each]


def _unscale(each: Sequence[Any], found: Any, inverse: Any) -> None:
    for x in each:
        found.copy_(torch.where(torch.isfinite(x).all(), found, 1.0))
        x.mul_(inverse)


# What is compiled in place of an operator for which Inductor calls ATen, and the index of an argument whose sizes are fixed.
FUNCTIONS: dict[str, tuple[Callable[..., Any], int | None]] = {
    "aten.convolution.default": (_convolution.convolution, 1),
    "aten.convolution_backward.default": (_convolution.convolution_backward, 2),
    "aten._foreach_norm.Scalar": (_norms, None),
    "aten._amp_foreach_non_finite_check_and_unscale_.default": (_unscale, None),
}
# The same for steps of optimisers, whose numbers change: they are given as tensors, because Dynamo would compile them anew.
STEPS: dict[str, tuple[Callable[..., Any], int | None]] = {
    "aten._foreach_add_.List": (_add, None),
    "aten._foreach_addcdiv_.ScalarList": (_add_quotients, None),
    "aten._foreach_div_.ScalarList": (_divide, None),
    "aten._foreach_mul_.Scalar": (_multiply, None),
}

used: dict[tuple[str, str], None] = {}  # (operator, way), in the order of their first use
_library: list[Any] = []  # the registration lives as long as it

Call = Callable[[list[Any], dict[str, Any]], Any]


def _each(value: Any) -> Iterator[Any]:
    """All tensors of an argument or result."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for element in value:
            yield from _each(element)


def _with(value: Any, function: Callable[[Any], Any]) -> Any:
    """The argument or result with function(tensor) for each of its tensors."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return [_with(element, function) for element in value]
    return value


def _span(tensor: Any) -> Any:
    """The memory from the first to the last element in one piece, which the driver copies."""
    count = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0
    return tensor.detach().as_strided((count,), (1,), tensor.storage_offset())


def _kept(tensor: Any) -> Any:
    """A copy of the memory of a tensor, on the host where the card has no room."""
    try:
        return _span(tensor).clone()
    except torch.OutOfMemoryError:
        return _span(tensor).to("cpu")


def _apart(values: Any, written: Any) -> dict[int, Any]:
    """Copies, by identity, of tensors that share memory with another one that is written to: AOTAutograd keeps their offsets."""
    first: dict[int, Any] = {}  # the tensor of each memory that is written to in place
    for tensor in _each(written):
        if tensor.numel():  # empty outputs have no memory, and get their sizes later
            first.setdefault(tensor.untyped_storage().data_ptr(), tensor)
    return {id(tensor): tensor.detach().clone() for tensor in _each(values) if tensor.is_cuda and tensor.numel()
            and first.get(tensor.untyped_storage().data_ptr(), tensor) is not tensor}


def _sizes(value: Any) -> Any:
    """What an argument has beside its kind: sizes, strides and numbers."""
    if isinstance(value, torch.Tensor):
        return (*value.shape, *value.stride())
    return tuple([_sizes(element) for element in value]) if isinstance(value, (list, tuple)) else str(value)


def _down(tensor: Any) -> Any:
    return tensor.detach().to("cpu")


def _kind(value: Any) -> Any:
    """What decides of an argument which way its operator goes. Sizes do not, but for whether there is at most one element."""
    if isinstance(value, torch.Tensor):
        return (value.dtype, value.is_contiguous(), value.is_cuda, *[size > 1 for size in value.shape])
    if isinstance(value, (list, tuple)):
        return tuple([_kind(element) for element in value])
    if isinstance(value, (int, float, complex)) and not isinstance(value, bool):
        return type(value)
    if value is None or isinstance(value, (bool, str)):
        return value
    return type(value) if isinstance(value, torch.Generator) else str(value)


def _copies(target: Any, source: Any, *_: Any) -> bool:
    """Whether the driver copies. Between host and card ATen's code calls aten.copy_ again for what is to be done on the card."""
    return target.device != source.device or (
        target.dtype == source.dtype and target.shape == source.shape and target.stride() == source.stride()
        and target.is_conj() == source.is_conj() and target.is_neg() == source.is_neg()
        and _fill.in_one_piece(target.shape, target.stride()))


def _complex(target: Any, source: Any, *_: Any) -> bool:
    return target.is_complex() and source.is_complex() and not source.is_conj() and not target.is_conj()


def _copy_parts(target: Any, source: Any, non_blocking: bool = False) -> Any:
    """A copy of complex numbers, for which Inductor has no kernel, as one of real numbers."""
    torch.view_as_real(target).copy_(torch.view_as_real(source.expand(target.shape)), non_blocking)
    return target


def _all_copy(targets: Any, sources: Any, *_: Any) -> bool:
    return all(map(_copies, targets, sources))


def _copy_each(targets: Any, sources: Any, non_blocking: bool = False) -> None:
    for target, source in zip(targets, sources):
        target.copy_(source, non_blocking)


def _fills(tensor: Any, *_: Any) -> bool:
    return _fill.in_one_piece(tensor.shape, tensor.stride())


# What needs no kernel of its own: whether it can be done so, and what is called then; None is ATen's own code.
DRIVER: dict[str, tuple[tuple[Callable[..., bool], Any], ...]] = {
    "aten.copy_.default": ((_copies, None), (_complex, _copy_parts)),
    "aten._foreach_copy_.default": ((_all_copy, _copy_each),),
    "aten.fill_.Scalar": ((_fills, _fill.fill),),
    "aten.zero_.default": ((_fills, lambda tensor: _fill.fill(tensor, 0)),),
}


class Operator:
    """An overload of an operator of ATen on the card. `own`: ATen's code for it."""

    def __init__(self, overload: Any, own: Any) -> None:
        schema = overload._schema
        self.overload = overload
        self.name = str(overload)
        self._schema = schema  # by which the text of a NotColored knows an operator
        self._own = own
        self._driver = DRIVER.get(self.name, ())
        self._function, self._fixed = (FUNCTIONS | STEPS).get(self.name, (overload, None))
        self._names = [argument.name for argument in schema.arguments]
        self._written = [argument.name for argument in schema.arguments
                         if argument.alias_info is not None and argument.alias_info.is_write] + WRITTEN.get(self.name, [])
        self._returns = len(schema.returns)
        self._aliased = [each.alias_info is not None for each in schema.returns]
        self._ways: dict[Any, Call] = {}
        self._exceptions: dict[Any, Call] = {}  # for these sizes and numbers

    def __str__(self) -> str:
        return self.name

    def __call__(self, keys: Any, *arguments: Any, **named: Any) -> Any:
        for can, do in self._driver:
            if can(*arguments):
                return self._run_own(keys, arguments, named) if do is None else do(*arguments, **named)
        if self in _choices.operators():
            return self._run_own(keys, arguments, named)
        kind = _kind([*arguments, *named.items()])
        if self._fixed is not None:
            kind = (*kind, tuple(arguments[self._fixed].shape))
        way = self._exceptions.get((kind, _sizes([*arguments, *named.values()]))) if self._exceptions else None
        way = way or self._ways.get(kind)
        if way is None:
            return self._find(kind, arguments, named)
        try:
            return self._go(way, arguments, named)
        except torch._dynamo.exc.FailOnRecompileLimitHit:  # Dynamo compiles one function for 8 kinds of sizes
            return self._find(kind, arguments, named)
        except Exception as error:
            # Other sizes or numbers of a kind may be what Inductor cannot compile. What is written to may be half written.
            if self._written or not self._may_run_on_the_host(error):
                raise
            result = self._go(self._on_the_host, arguments, named)
            self._tell_of_the_host(error)
            self._exceptions[kind, _sizes([*arguments, *named.values()])] = self._on_the_host
            return result

    def _go(self, way: Call, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
        """The result by this way. What calls the operator meanwhile gets ATen's own code."""
        written = self._given(arguments, named, self._written)
        apart = _apart([*arguments, *named.values()], written) if written else {}
        given, given_named = list(arguments), named
        if apart:
            given = _with(given, lambda tensor: apart.get(id(tensor), tensor))
            given_named = {name: _with(value, lambda tensor: apart.get(id(tensor), tensor)) for name, value in named.items()}
        operators = _choices.operators()
        operators.add(self)
        try:
            result = way(given, given_named)
        finally:
            operators.discard(self)
        for tensor in _each(written):
            if id(tensor) in apart:
                tensor.detach().copy_(apart[id(tensor)])
        # For an operator that writes to arguments these are returned, as by ATen.
        if not any(self._aliased):
            return result
        return written[0] if self._returns == 1 else tuple(written)

    def _run_own(self, keys: Any, arguments: Any, named: Any) -> Any:
        return self._own.call_boxed(keys, *arguments, **named)

    def _find(self, kind: Any, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
        """The result by the first way that the operator can go; later calls of this kind go it at once."""
        way = self._compiled()
        written = [tensor for argument in self._given(arguments, named, self._written) for tensor in _each(argument)]
        before = [(tensor.shape, _kept(tensor)) for tensor in written]
        try:
            result = self._go(way, arguments, named)
        except Exception as error:
            if not self._may_run_on_the_host(error):
                raise
            with torch.no_grad():
                for tensor, (shape, kept) in zip(written, before):  # what was compiled may have written before it failed
                    if tensor.shape == shape:
                        _span(tensor).copy_(kept)
            result = self._go(self._on_the_host, arguments, named)
            self._tell_of_the_host(error)
            if type(error).__name__ in CANNOT:
                self._ways[kind] = self._on_the_host
            return result
        self._ways[kind] = way
        used[self.name, "compiled"] = None
        return result

    def _may_run_on_the_host(self, error: Exception) -> bool:
        """Whether an error says that the operator cannot be compiled, and not that it is wrong or that the card fails."""
        if isinstance(error, (torch.OutOfMemoryError, Error)):
            return False
        if isinstance(error, torch.AcceleratorError):
            return isinstance(error, _eager.not_colored())
        # Indices may lie on the host, other tensors may not.
        return "found two different devices" not in str(error) or "index" in self.name

    def _tell_of_the_host(self, error: Exception) -> None:
        used[self.name, "host"] = None
        place = _eager.place(sys._getframe(1))
        why = "Inductor has no Triton kernel for it" if type(error).__name__ in CANNOT else f"it was not compiled ({type(error).__name__})"
        warnings.warn_explicit(f"{self.name} runs on the host, because {why}", UserWarning, place.f_code.co_filename, place.f_lineno)

    def _compiled(self) -> Call:
        """The operator alone under torch.compile."""
        operator = self._function
        as_tensors = self.name in STEPS

        def call(*arguments: Any, **named: Any) -> Any:
            return operator(*arguments, **named)

        # Dynamo counts compilations by code object, so each function has one of its own.
        code = call.__code__.replace(co_name=self.name.replace(".", "_"))
        own = types.FunctionType(code, call.__globals__, code.co_name, None, call.__closure__)
        function = torch.compile(own, dynamic=True if self._fixed is None else None, fullgraph=True,
                                 options={"autotune_num_choices_displayed": 0})

        def given(value: Any) -> Any:
            if isinstance(value, torch.Tensor):  # autograd is above this; a Parameter would have fixed sizes
                return value.detach() if value.requires_grad or type(value) is not torch.Tensor else value
            if isinstance(value, (list, tuple)):
                return [given(element) for element in value]
            if as_tensors and isinstance(value, float):
                return torch.tensor(value, dtype=torch.float64, device="cpu")
            return value

        def run(arguments: list[Any], named: dict[str, Any]) -> Any:
            # Versions are counted by what is above this, also where ATen writes and does not say so (running means).
            values = [*arguments, *named.values()]
            versions = [(tensor, tensor._version) for tensor in _each(values) if not tensor.is_inference()]
            with torch.no_grad():
                result = function(*map(given, arguments), **{name: given(value) for name, value in named.items()})
            changed = [(tensor, version) for tensor, version in versions if tensor._version != version]
            if changed:
                torch._C._autograd._unsafe_set_version_counter(*zip(*changed))
            return result

        return run

    def _on_the_host(self, arguments: list[Any], named: dict[str, Any]) -> Any:
        given = [*arguments, *named.values()]
        if torch.cuda.is_current_stream_capturing():
            _eager.refuse(self.name, sys._getframe(1), "runs on the host, which the capture of a CUDA graph cannot wait for")
        if any(isinstance(value, torch.Generator) for value in given):
            _eager.refuse(self.name, sys._getframe(1), "runs on the host, which cannot use a random number generator of the card")
        device = next((tensor.device for value in given for tensor in _each(value) if tensor.is_cuda), named.get("device"))
        host, host_named = _with(arguments, _down), {name: _with(value, _down) for name, value in named.items()}
        if "device" in host_named:
            host_named["device"] = torch.device("cpu")
        with torch.no_grad():
            try:
                result = self.overload(*host, **host_named)
            except NotImplementedError:
                _eager.refuse(self.name, sys._getframe(1), "neither Inductor nor the host has a kernel for it")
            for targets, sources in zip(self._given(arguments, named, self._written), self._given(host, host_named, self._written)):
                for target, source in zip(_each(targets), _each(sources)):
                    if target.shape != source.shape:
                        target.resize_(source.shape)
                    target.copy_(source)
            return None if any(self._aliased) else _with(result, lambda tensor: tensor.to(device))

    def _given(self, arguments: Sequence[Any], named: dict[str, Any], names: list[str]) -> list[Any]:
        """The arguments of these names."""
        given = dict(zip(self._names, arguments)) | named
        return [given[name] for name in names]


def _decomposed(operator: Any, own: Any) -> Any:
    """The operator of an RNN, on the card as its decomposition."""
    function = torch._decomp.decomposition_table[operator]

    def run(keys: Any, *arguments: Any, **named: Any) -> Any:
        if arguments[0].is_cuda:
            return function(*arguments, **named)
        return own.call_boxed(keys, *arguments, **named)

    return run


def install() -> None:
    """Registers an Operator for each operator of ATen with kernels for the card, but for KEPT ones; an Error where PyTorch cannot."""
    for owner, name in ((torch.library, "get_kernel"), (torch._C, "_dispatch_get_registrations_for_dispatch_key"),
                        (torch._C._autograd, "_unsafe_set_version_counter"), (torch._dynamo.exc, "FailOnRecompileLimitHit")):
        if not hasattr(owner, name):
            raise Error(f"PyTorch {torch.__version__} has no {owner.__name__}.{name}; 2.11 is what was tried", 2)
    library = torch.library.Library("aten", "IMPL")
    names = [name.removeprefix("aten::") for name in torch._C._dispatch_get_registrations_for_dispatch_key("CUDA")
             if name.startswith("aten::")]
    with warnings.catch_warnings():  # that kernels of PyTorch's own are replaced is what is wanted
        warnings.simplefilter("ignore", UserWarning)
        for name in dict.fromkeys([*names, *COMPOSITE]):
            packet, _, overload = name.partition(".")
            if packet in KEPT or packet.startswith("empty") or packet == "_fused_sdp_choice":
                continue
            operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
            own = torch.library.get_kernel(operator, "CUDA")
            library.impl(name, Operator(operator, own), "CUDA", with_keyset=True)
        library.impl("_fused_sdp_choice", lambda *_, **__: 0, "CUDA")  # attention is made of products, whatever is asked for
        for name in DECOMPOSED:
            packet, _, overload = name.partition(".")
            operator = getattr(getattr(torch.ops.aten, packet), overload)
            library.impl(name, _decomposed(operator, torch.library.get_kernel(operator, "CPU")),
                         "CompositeImplicitAutograd", with_keyset=True)
    _library.append(library)
