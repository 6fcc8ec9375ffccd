"""Stands for PyTorch: what demarc.torch touches, and no more, as in the sources of PyTorch 2.11.

torch/csrc/Exceptions.cpp: AcceleratorError is made by PyErr_NewException and called with CUDA's words, then has error_code
set. torch/_ops.py: packets of torch.ops.aten know their overloads. torch/library.py: Library.impl(name, function, key).
Tensors are a dtype, sizes, strides and a list of elements.
"""
import struct
import types

__version__ = "2.11.0"
AcceleratorError = type("AcceleratorError", (RuntimeError,), {"__module__": "torch"})


class dtype:
    def __init__(self, name, code):
        self.name, self.code, self.itemsize = name, code, struct.calcsize(code)


uint8, float16, float32, float64, int64, bool = (dtype(*of) for of in (
    ("uint8", "B"), ("float16", "e"), ("float32", "f"), ("float64", "d"), ("int64", "q"), ("bool", "?")))


class device:
    def __init__(self, name):
        self.type = name.type if isinstance(name, device) else str(name).split(":")[0]


class Tensor:
    def __init__(self, data, size, stride, kind, where="cpu"):
        self.data, self.shape, self.strides, self.dtype = data, tuple(size), tuple(stride), kind
        self.device = device(where)

    def to(self, where):
        return Tensor(list(self.data), self.shape, self.strides, self.dtype, device(where).type)

    def stride(self):
        return self.strides

    def untyped_storage(self):
        return types.SimpleNamespace(nbytes=lambda: len(self.data) * self.dtype.itemsize)

    def element_size(self):
        return self.dtype.itemsize

    def numel(self):
        count = 1
        for n in self.shape:
            count *= n
        return count

    def data_ptr(self):
        return 0xb02000000

    def reshape(self, *_):
        return self

    def view(self, kind):
        raw = struct.pack("<" + self.dtype.code * len(self.data), *self.data)
        return Tensor(list(raw), (len(raw),), (1,), kind)

    def tolist(self):
        return self.data


def tensor(value, dtype):
    return Tensor([value], (), (), dtype)


def as_strided(made, size, stride):
    return Tensor(made.data, size, stride, made.dtype, made.device.type)


def kernel_of_aten(words="CUDA error: no kernel image is available for execution on the device\nSearch for ..."):
    """What THPVariable_add and its like do where the launch failed."""
    error = AcceleratorError(words)
    error.error_code = 209
    raise error


class OpOverload:
    def __init__(self, name):
        self.name, self._schema = name, object()

    def __str__(self):
        return self.name

    def __call__(self, /, *args, **kwargs):
        return kernel_of_aten()


class _Packet:
    def __init__(self, *names):
        self._names = names

    def overloads(self):
        return list(self._names)


ops = types.SimpleNamespace(aten=types.SimpleNamespace(
    mm=_Packet("default", "out"), addmm=_Packet("default", "out"), sort=_Packet("stable", "values_stable")))


class _Library:
    registered = {}  # (name, key): function

    def __init__(self, namespace, kind):
        assert (namespace, kind) == ("aten", "IMPL")

    def impl(self, name, function, key):
        import warnings
        warnings.warn("Overriding a previously registered kernel", UserWarning, stacklevel=2)
        _Library.registered[name, key] = function

    def __del__(self):  # torch/library.py: what it registered goes with it
        _Library.registered.clear()


library = types.SimpleNamespace(Library=_Library)
switched = {}
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(
    enable_flash_sdp=lambda on: switched.update(flash=on),
    enable_mem_efficient_sdp=lambda on: switched.update(mem_efficient=on),
    enable_cudnn_sdp=lambda on: switched.update(cudnn=on)))
cuda = types.SimpleNamespace(current_stream=lambda where: types.SimpleNamespace(cuda_stream=77))
