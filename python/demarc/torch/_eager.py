"""An error for kernels that exist as machine code only: one sentence with what was called, where, and why it cannot run.

Such a kernel is refused when it is loaded, and PyTorch raises torch.AcceleratorError ("no kernel image ..."). That class is
made by PyErr_NewException and called for each error (torch/csrc/Exceptions.cpp of PyTorch 2.11), so what its __init__ does
is ours to say: the error becomes a NotColored. ATen's operators do not come to that (_operators.py); kernels of other
libraries do.
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
MACHINE_CODE = "its kernel exists as machine code only; use a build of it that has PTX"
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


def place(frame: FrameType) -> FrameType:
    """The innermost frame that is neither PyTorch's own nor of this package, from `frame` on outwards."""
    import torch
    own = tuple(os.path.join(os.path.dirname(os.path.abspath(file)), "") for file in (torch.__file__, __file__))
    outer: FrameType | None = frame
    while outer is not None and outer.f_code.co_filename.startswith(own):
        outer = outer.f_back
    return outer or frame


def sentence(what: str, frame: FrameType, why: str) -> str:
    """What is said of `what`, called in `frame`."""
    at = place(frame)
    return f"{what} at {at.f_code.co_filename}:{at.f_lineno}, on a tensor of tenant '{_tenant}': {why}"


def refuse(what: str, frame: FrameType, why: str) -> NoReturn:
    raise not_colored()(sentence(what, frame, why))


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
            arguments = (sentence(_text(frame), frame, MACHINE_CODE),)
        original(error, *arguments)

    torch.AcceleratorError.__init__ = translated
