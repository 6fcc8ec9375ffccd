"""Operators of PyTorch's outside of torch.compile: what fails, fails with one sentence, and costs nothing else.

A kernel of ATen's is refused when it is loaded, and PyTorch raises torch.AcceleratorError ("no kernel image ..."). That
class is made by PyErr_NewException and called for each error (torch/csrc/Exceptions.cpp of PyTorch 2.11), so what its
__init__ does is ours to say: the error becomes a NotColored. Operators of cuBLAS and cuDNN fail with other words, as a
RuntimeError; these are few and are replaced, for tensors on the card alone.

A TorchDispatchMode would see every operator's name, but Dynamo compiles nothing inside one.
"""
from __future__ import annotations

import functools
import itertools
import linecache
import os
import sys
from types import FrameType
from typing import Any, NoReturn

from .._errors import Error

REFUSED = "no kernel image is available"  # CUDA's words for CUDA_ERROR_NO_BINARY_FOR_GPU
# ATen's names of what libraries carry out; those that a PyTorch lacks are passed over.
LIBRARY_OPERATORS = (
    "mm", "mm.out", "mm.dtype", "mm.dtype_out", "addmm", "addmm.out", "addmm_", "addmm.dtype", "addmm.dtype_out",
    "_addmm_activation", "_addmm_activation.out", "bmm", "bmm.out", "bmm.dtype", "bmm.dtype_out", "baddbmm",
    "baddbmm.out", "baddbmm_", "baddbmm.dtype", "baddbmm.dtype_out", "addmv", "addmv.out", "addmv_", "dot", "vdot",
    "_int_mm", "_int_mm.out", "_scaled_mm", "_scaled_mm.out", "cudnn_convolution", "cudnn_convolution.out",
    "cudnn_convolution_transpose", "cudnn_convolution_relu", "cudnn_convolution_add_relu", "cudnn_batch_norm",
    "_cudnn_rnn", "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention", "sort.stable", "sort.values_stable",
)
_tenant = ""


def check() -> None:
    """An Error where this PyTorch has no class for such an error."""
    import torch
    if not isinstance(getattr(torch, "AcceleratorError", None), type):
        raise Error(f"PyTorch {torch.__version__} has no torch.AcceleratorError; 2.11 is what was tried", 2)


@functools.lru_cache(maxsize=None)
def not_colored() -> Any:
    """The class NotColored."""
    import torch

    class NotColored(torch.AcceleratorError):  # type: ignore[misc, name-defined]
        """An operator whose kernel exists as machine code only, on a tensor of a tenant. Work goes on after it."""

    NotColored.__module__, NotColored.__qualname__ = __package__, "NotColored"
    return NotColored


def _text(frame: FrameType) -> str:
    """What a frame is about to call: the name of an operator of torch.ops, else its source as far as it is known."""
    called = frame.f_locals.get("self")
    if hasattr(called, "_schema"):
        return str(called)
    positions = getattr(frame.f_code, "co_positions", None)  # Python 3.11 and later
    if positions is None:
        return f"`{linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()}`"
    first, last, begin, end = next(itertools.islice(positions(), frame.f_lasti // 2, None))
    line = linecache.getline(frame.f_code.co_filename, first or frame.f_lineno).encode()
    text = line[begin:end if first == last else None].decode(errors="replace").strip()
    return f"`{text}`" if text else f"an operator in {frame.f_code.co_name}()"


def _place(frame: FrameType) -> FrameType:
    """The innermost frame that is not PyTorch's own, from `frame` on outwards."""
    import torch
    own = os.path.join(os.path.dirname(os.path.abspath(torch.__file__)), "")
    outer: FrameType | None = frame
    while outer is not None and outer.f_code.co_filename.startswith(own):
        outer = outer.f_back
    return outer or frame


def sentence(what: str, frame: FrameType) -> str:
    """What is said of the operator `what`, called in `frame`."""
    place = _place(frame)
    file = place.f_code.co_filename
    compiled = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    cure = "put the operator into a function under torch.compile"
    if compiled and file.startswith(os.path.join(compiled, "")):
        cure = "Inductor has none of its own for it, and demarc.torch.report() lists such operators"
    return (f"{what} at {file}:{place.f_lineno}, on a tensor of tenant '{_tenant}': "
            f"its kernel exists as machine code only; {cure}")


def refuse(what: str, frame: FrameType) -> NoReturn:
    raise not_colored()(sentence(what, frame))


def refuse_libraries(library: Any) -> None:
    """Registers, with a torch.library.Library of aten, kernels that refuse the operators of cuBLAS and cuDNN on the card."""
    import torch
    for name in LIBRARY_OPERATORS:
        packet, _, overload = name.partition(".")
        if (overload or "default") not in getattr(getattr(torch.ops.aten, packet, None), "overloads", list)():
            continue

        def refused(*_: Any, _name: str = name, **__: Any) -> NoReturn:
            refuse(f"aten.{_name}", sys._getframe(1))

        library.impl(name, refused, "CUDA")


def install(tenant: str) -> None:
    """From now on an error of that kind is a NotColored that names `tenant`."""
    global _tenant
    import torch
    _tenant = tenant
    kind = not_colored()
    original = torch.AcceleratorError.__init__

    def translated(error: Any, *arguments: Any) -> None:
        if arguments and REFUSED in str(arguments[0]):
            error.__class__ = kind
            frame = sys._getframe(1)
            arguments = (sentence(_text(frame), frame),)
        original(error, *arguments)

    torch.AcceleratorError.__init__ = translated
