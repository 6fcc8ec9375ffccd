"""aten.fill_ on the card, and with it zeros, ones, full and zero_, without a kernel: a fill by the driver.

Inductor's code zeroes workspaces with it, its trials the L2, and the backward pass of a compiled model begins with a one.
It goes to the driver, whose fills Demarc answers with a kernel in the tenant's colours.
"""
from __future__ import annotations

import ctypes
import functools
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from .._errors import Error
from . import _eager

_FUNCTIONS = {1: "cuMemsetD8Async", 2: "cuMemsetD16Async", 4: "cuMemsetD32Async"}  # by bytes of an element
_library: list[Any] = []  # the registration lives as long as it


@functools.lru_cache(maxsize=None)
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL(os.environ.get("DEMARC_LIBCUDA") or "libcuda.so.1")


def _in_one_piece(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements of these sizes and strides fill their memory, in whatever order, each once."""
    expected = 1
    for stride, size in sorted((stride, size) for stride, size in zip(strides, sizes) if size != 1):
        if stride != expected:
            return 0 in sizes
        expected *= size
    return True


def _pattern(value: Any, tensor: Any) -> tuple[int, int] | None:
    """Bytes of a step and the value of each, that fill `tensor` with `value`; None where no fill of the driver can."""
    import torch
    element = torch.tensor(value, dtype=tensor.dtype).reshape(1).view(torch.uint8).tolist()
    while len(element) > 4 and element[:len(element) // 2] == element[len(element) // 2:]:
        element = element[:len(element) // 2]
    return (len(element), int.from_bytes(bytes(element), "little")) if len(element) in _FUNCTIONS else None


def fill(tensor: Any, value: Any) -> Any:
    """aten.fill_.Scalar of a tensor on the card, in the order of its current stream. NotColored where it has gaps."""
    import torch
    pattern = _pattern(value, tensor)
    if pattern is None or not _in_one_piece(tensor.shape, tensor.stride()):
        _eager.refuse("aten.fill_.Scalar of a tensor with gaps, or of 8 bytes that are not the same 4 twice,",
                      sys._getframe(1))
    step, bits = pattern
    count = tensor.numel() * tensor.element_size() // step
    if count == 0:
        return tensor
    stream = torch.cuda.current_stream(tensor.device).cuda_stream
    result = getattr(_driver(), _FUNCTIONS[step])(ctypes.c_uint64(tensor.data_ptr()), ctypes.c_uint(bits),
                                                  ctypes.c_size_t(count), ctypes.c_void_p(stream))
    if result != 0:
        raise Error(f"{_FUNCTIONS[step]} of {count} elements returned the error {result}", 3)
    return tensor


def install() -> None:
    import torch
    with warnings.catch_warnings():  # that a kernel of PyTorch's own is replaced is what is wanted
        warnings.simplefilter("ignore", UserWarning)
        library = torch.library.Library("aten", "IMPL")
        library.impl("fill_.Scalar", fill, "CUDA")
        _eager.refuse_libraries(library)
    _library.append(library)
