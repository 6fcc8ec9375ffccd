"""aten.fill_ on the card, and with it zeros, ones, full and zero_, without a kernel: a fill by the driver.

Inductor's code zeroes workspaces with it, its trials the L2, and the backward pass of a compiled model begins with a one.
It goes to the driver, whose fills Demarc answers with a kernel in the tenant's colours. A tensor with gaps needs a kernel
(_operators.py).
"""
from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Sequence
from typing import Any

from .._errors import Error

_FUNCTIONS = {1: "cuMemsetD8Async", 2: "cuMemsetD16Async", 4: "cuMemsetD32Async"}  # by bytes of an element


class _Current(threading.local):
    """The cards of which this thread has a context: the driver's calls need one, and CUDA's runtime makes it at its first call."""

    def __init__(self) -> None:
        self.devices: set[str] = set()


_current = _Current()


@functools.lru_cache(maxsize=None)
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL(os.environ.get("DEMARC_LIBCUDA") or "libcuda.so.1")


def in_one_piece(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements of these sizes and strides fill their memory, in whatever order, each once."""
    expected = 1
    for stride, size in sorted((stride, size) for stride, size in zip(strides, sizes) if size != 1):
        if stride != expected:
            return 0 in sizes
        expected *= size
    return True


def _bytes_of(value: Any, tensor: Any) -> list[int]:
    """The bytes of one element of `tensor` that is `value`; of the half that it consists of, where it is that twice."""
    import torch
    element = torch.tensor(value, dtype=tensor.dtype, device="cpu").reshape(1).view(torch.uint8).tolist()
    while len(element) > 4 and element[:len(element) // 2] == element[len(element) // 2:]:
        element = element[:len(element) // 2]
    return element  # type: ignore[no-any-return]


def _call(function: str, count: int, *arguments: Any) -> None:
    """A fill of `count` elements, which come last but for the stream."""
    *before, stream = arguments
    result = getattr(_driver(), function)(*before, ctypes.c_size_t(count), stream)
    if result != 0:
        raise Error(f"{function} of {count} elements returned the error {result}", 3)


def fill(tensor: Any, value: Any) -> Any:
    """aten.fill_.Scalar of a tensor on the card without gaps (in_one_piece()), in the order of its current stream."""
    import torch
    element = _bytes_of(value, tensor)
    step = len(element)
    count = tensor.numel() * tensor.element_size() // step
    if count == 0:
        return tensor
    if str(tensor.device) not in _current.devices:
        torch.cuda.mem_get_info(tensor.device)  # a call of CUDA's runtime
        _current.devices.add(str(tensor.device))
    stream = ctypes.c_void_p(torch.cuda.current_stream(tensor.device).cuda_stream)
    address = tensor.data_ptr()
    with torch.cuda.device(tensor.device):
        if step in _FUNCTIONS:
            _call(_FUNCTIONS[step], count, ctypes.c_uint64(address), ctypes.c_uint(int.from_bytes(bytes(element), "little")), stream)
            return tensor
        for first in range(0, step, 4):  # each word of the elements as a column that is one word wide
            _call("cuMemsetD2D32Async", count, ctypes.c_uint64(address + first), ctypes.c_size_t(step),
                  ctypes.c_uint(int.from_bytes(bytes(element[first:first + 4]), "little")), ctypes.c_size_t(1), stream)
    return tensor
