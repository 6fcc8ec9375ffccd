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
KEPT = frozenset(("_fused_sdp_choice", "_local_scalar_dense", "_reshape_alias", "as_strided", "is_set_to", "record_stream",
                  "resize_", "set_", "unfold", "view"))
# Operators that start kernels although they have none that is registered for the card alone.
COMPOSITE = ("copy_", "convolution")
# Operators that reach libraries or ATen's fused kernels where their parts would do: registered as their decompositions.
DECOMPOSED = ("lstm.input", "gru.input")


def _divide(each: Sequence[Any], by: Sequence[Any]) -> None:
    for x, divisor in zip(each, by):
        x.div_(divisor)


def _add_quotients(each: Sequence[Any], dividends: Sequence[Any], divisors: Sequence[Any], factors: Sequence[Any]) -> None:
    for x, dividend, divisor, factor in zip(each, dividends, divisors, factors):
        x.add_(factor * dividend / divisor)


# What is compiled in place of an operator for which Inductor calls ATen, and the index of an argument whose sizes are fixed.
FUNCTIONS: dict[str, tuple[Callable[..., Any], int | None]] = {
    "aten.convolution.default": (_convolution.convolution, 1),
    "aten.convolution_backward.default": (_convolution.convolution_backward, 2),
    "aten._foreach_div_.ScalarList": (_divide, None),
    "aten._foreach_addcdiv_.ScalarList": (_add_quotients, None),
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
    return value if value is None or isinstance(value, (bool, str)) else str(value)


def _copies(target: Any, source: Any, *_: Any) -> bool:
    """Whether the driver copies. Between host and card ATen's code calls aten.copy_ again for what is to be done on the card."""
    return target.device != source.device or (
        target.dtype == source.dtype and target.shape == source.shape and target.stride() == source.stride()
        and _fill.in_one_piece(target.shape, target.stride()))


def _all_copy(targets: Any, sources: Any, *_: Any) -> bool:
    return all(map(_copies, targets, sources))


def _copy_each(targets: Any, sources: Any, non_blocking: bool = False) -> None:
    for target, source in zip(targets, sources):
        target.copy_(source, non_blocking)


def _fills(tensor: Any, *_: Any) -> bool:
    return _fill.in_one_piece(tensor.shape, tensor.stride())


# What the driver does without a kernel: whether it can, and what is called then; None is ATen's own code.
DRIVER: dict[str, tuple[Callable[..., bool], Any]] = {
    "aten.copy_.default": (_copies, None),
    "aten._foreach_copy_.default": (_all_copy, _copy_each),
    "aten.fill_.Scalar": (_fills, _fill.fill),
    "aten.zero_.default": (_fills, lambda tensor: _fill.fill(tensor, 0)),
}


class Operator:
    """An overload of an operator of ATen on the card. `own`: ATen's code for it."""

    def __init__(self, overload: Any, own: Any) -> None:
        schema = overload._schema
        self.overload = overload
        self.name = str(overload)
        self._schema = schema  # by which the text of a NotColored knows an operator
        self._own = own
        self._driver = DRIVER.get(self.name)
        self._function, self._fixed = FUNCTIONS.get(self.name, (overload, None))
        self._names = [argument.name for argument in schema.arguments]
        self._written = [argument.name for argument in schema.arguments
                         if argument.alias_info is not None and argument.alias_info.is_write]
        self._returns = len(schema.returns)
        self._ways: dict[Any, Call] = {}

    def __str__(self) -> str:
        return self.name

    def __call__(self, keys: Any, *arguments: Any, **named: Any) -> Any:
        if self._driver is not None:
            can, do = self._driver
            if can(*arguments):
                return self._run_own(keys, arguments, named) if do is None else do(*arguments)
        if self in _choices.operators():
            return self._run_own(keys, arguments, named)
        kind = _kind([*arguments, *named.items()])
        if self._fixed is not None:
            kind = (*kind, tuple(arguments[self._fixed].shape))
        way = self._ways.get(kind)
        if way is not None:
            try:
                return self._go(way, arguments, named)
            except torch._dynamo.exc.FailOnRecompileLimitHit:  # Dynamo compiles one function for 8 kinds of sizes
                pass
        return self._find(kind, arguments, named)

    def _go(self, way: Call, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
        """The result by this way. What calls the operator meanwhile gets ATen's own code."""
        operators = _choices.operators()
        operators.add(self)
        try:
            return way(list(arguments), named)
        finally:
            operators.discard(self)

    def _run_own(self, keys: Any, arguments: Any, named: Any) -> Any:
        return self._own.call_boxed(keys, *arguments, **named)

    def _find(self, kind: Any, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
        """The result by the first way that the operator can go; later calls of this kind go it at once."""
        way, name = self._compiled(), "compiled"
        written = [tensor for argument in self._given(arguments, named, self._written) for tensor in _each(argument)]
        before = [tensor.detach().clone() for tensor in written]
        try:
            result = self._go(way, arguments, named)
        except (torch.OutOfMemoryError, Error):
            raise
        except Exception as error:  # Dynamo and Inductor raise many kinds, and a call of ATen is NotColored
            if isinstance(error, torch.AcceleratorError) and not isinstance(error, _eager.not_colored()):
                raise
            with torch.no_grad():
                for tensor, kept in zip(written, before):  # what was compiled may have written before it failed
                    if tensor.shape == kept.shape:
                        tensor.copy_(kept)
            way, name = self._on_the_host, "host"
            result = self._go(way, arguments, named)
            place = _eager.place(sys._getframe(1))
            warnings.warn_explicit(f"{self.name} runs on the host, because Inductor has no Triton kernel for it", UserWarning,
                                   place.f_code.co_filename, place.f_lineno)
        self._ways[kind] = way
        used[self.name, name] = None
        return result

    def _compiled(self) -> Call:
        """The operator alone under torch.compile."""
        operator = self._function
        listed = self.name.endswith(".ScalarList")  # a step of an optimiser: Dynamo would compile it anew for other numbers

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
                return [torch.tensor(element, dtype=torch.float64) if listed and isinstance(element, float) else given(element)
                        for element in value]
            return value

        def run(arguments: list[Any], named: dict[str, Any]) -> Any:
            # Versions are counted by what is above this, also where ATen writes and does not say so (running means).
            versions = [(tensor, tensor._version) for tensor in _each([*arguments, *named.values()]) if not tensor.is_inference()]
            with torch.no_grad():
                result = function(*map(given, arguments), **{name: given(value) for name, value in named.items()})
            changed = [(tensor, version) for tensor, version in versions if tensor._version != version]
            if changed:
                torch._C._autograd._unsafe_set_version_counter(*zip(*changed))
            return self._result(arguments, named, result)

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
            result = self.overload(*host, **host_named)
            if not self._written:
                return _with(result, lambda tensor: tensor.to(device))
            for targets, sources in zip(self._given(arguments, named, self._written), self._given(host, host_named, self._written)):
                for target, source in zip(_each(targets), _each(sources)):
                    if target.shape != source.shape:
                        target.resize_(source.shape)
                    target.copy_(source)
        return self._result(arguments, named, result)

    def _given(self, arguments: Sequence[Any], named: dict[str, Any], names: list[str]) -> list[Any]:
        """The arguments of these names."""
        given = dict(zip(self._names, arguments)) | named
        return [given[name] for name in names]

    def _result(self, arguments: list[Any], named: dict[str, Any], result: Any) -> Any:
        """What is returned: for an operator that writes to arguments these, as ATen does."""
        if not self._written or self._returns == 0:
            return result
        written = self._given(arguments, named, self._written)
        return written[0] if self._returns == 1 else tuple(written)


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
            if packet in KEPT or packet.startswith("empty"):
                continue
            operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
            own = torch.library.get_kernel(operator, "CUDA")
            library.impl(name, Operator(operator, own), "CUDA", with_keyset=True)
        for name in DECOMPOSED:
            packet, _, overload = name.partition(".")
            operator = getattr(getattr(torch.ops.aten, packet), overload)
            library.impl(name, _decomposed(operator, torch.library.get_kernel(operator, "CPU")),
                         "CompositeImplicitAutograd", with_keyset=True)
    _library.append(library)
