"""Stands for PyTorch: what demarc.torch touches, and no more, as in the sources of PyTorch 2.11.

torch/csrc/Exceptions.cpp: AcceleratorError is made by PyErr_NewException and called with CUDA's words, then has error_code
set. torch/_ops.py: packets of torch.ops.aten have their overloads as attributes. torch/library.py: Library.impl(name,
function, key, with_keyset=...), get_kernel(overload, key), whose kernels have call_boxed(keys, ...).
Tensors are a dtype, sizes, strides and a list of elements, which tensors of one storage share.

torch.compile() gives a function that does what `compiles` says of its operator: "right" computes it, "ATen" calls ATen's own
code for it, as Inductor does for what it cannot compile, "late" fails after it has computed it, and any other text raises an
error of that text.
"""
import contextlib
import struct
import types

__version__ = "2.11.0"
AcceleratorError = type("AcceleratorError", (RuntimeError,), {"__module__": "torch"})
OutOfMemoryError = type("OutOfMemoryError", (RuntimeError,), {"__module__": "torch"})
said = []  # what was called, in order
compiles = {}  # operator: "right", "ATen" or an error; "right" where it has none


class Generator:
    pass


class dtype:
    def __init__(self, name, code):
        self.name, self.code, self.itemsize = name, code, struct.calcsize(code)


bool_ = bool
uint8, float16, float32, float64, int64, bool = (dtype(*of) for of in (
    ("uint8", "B"), ("float16", "e"), ("float32", "f"), ("float64", "d"), ("int64", "q"), ("bool", "?")))


class device:
    def __init__(self, name):
        self.type = name.type if isinstance(name, device) else str(name).split(":")[0]

    def __eq__(self, other):
        return self.type == other.type

    def __str__(self):
        return self.type


class Tensor:
    requires_grad = False

    def __init__(self, data, size, stride, kind, where="cpu"):
        self.data, self.shape, self.strides, self.dtype = data, tuple(size), tuple(stride), kind
        self.device, self.version = device(where), [0]

    def to(self, where):
        if device(where) == self.device:
            return self
        said.append(f"to {device(where)}")
        return Tensor(list(self.data), self.shape, self.strides, self.dtype, device(where).type)

    is_cuda = property(lambda self: self.device.type == "cuda")
    _version = property(lambda self: self.version[0])

    def is_inference(self):
        return False

    def is_complex(self):
        return False

    is_conj = is_neg = is_complex

    def is_contiguous(self):
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides)):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True

    def detach(self):
        alias = Tensor(self.data, self.shape, self.strides, self.dtype, self.device)
        alias.version = self.version
        return alias

    def clone(self):
        return Tensor(list(self.data), self.shape, self.strides, self.dtype, self.device)

    def copy_(self, source, non_blocking=False):
        said.append("copy_")
        self.data[:] = source.data
        self.version[0] += 1
        return self

    def resize_(self, size):
        self.shape = tuple(size)
        return self

    def stride(self):
        return self.strides

    def untyped_storage(self):
        return types.SimpleNamespace(nbytes=lambda: len(self.data) * self.dtype.itemsize, data_ptr=lambda: id(self.data))

    def as_strided(self, size, stride, offset):
        alias = self.detach()
        alias.shape, alias.strides = tuple(size), tuple(stride)
        return alias

    def storage_offset(self):
        return 0

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


def tensor(value, dtype, device="cpu"):
    return Tensor([value], (), (), dtype)


def numbers(*values, where="cuda", stride=1):
    """A tensor of these float32 numbers."""
    return Tensor(list(values), (len(values),), (stride,), float32, where)


def as_strided(made, size, stride):
    return Tensor(made.data, size, stride, made.dtype, made.device.type)


def kernel_of_aten(words="CUDA error: no kernel image is available for execution on the device\nSearch for ..."):
    """What THPVariable_add and its like do where the launch failed."""
    error = AcceleratorError(words)
    error.error_code = 209
    raise error


class OpOverload:
    """An operator whose arguments are `names`, those with "!" written to, that computes `function` of lists of elements."""

    def __init__(self, name, names=(), function=None, returns=1):
        self.name, self.function = name, function
        self._schema = types.SimpleNamespace(returns=[types.SimpleNamespace(alias_info='!' in ''.join(names) or None)] * returns, arguments=[
            types.SimpleNamespace(name=text.rstrip("!"), alias_info=types.SimpleNamespace(is_write=True) if "!" in text else None)
            for text in names])

    def __str__(self):
        return self.name

    def compute(self, arguments, named):
        written = [value for value, argument in zip(arguments, self._schema.arguments) if argument.alias_info]
        lists = [value.data if isinstance(value, Tensor) else value for value in [*arguments, *named.values()]]
        result = self.function(*lists)
        for tensor in written:
            tensor.data[:] = result
            tensor.resize_((len(result),))
            tensor.version[0] += 1
        where = next((value.device for value in arguments if isinstance(value, Tensor)), device("cpu"))
        return written[0] if written else Tensor(result, (len(result),), (1,), float32, where)

    def __call__(self, /, *args, **kwargs):
        """What the dispatcher does: the function that was registered for the card, where a tensor lies there."""
        tensors = [tensor for value in args for tensor in (value if isinstance(value, list) else [value]) if isinstance(tensor, Tensor)]
        if self.function is None:
            return kernel_of_aten()
        if any(tensor.is_cuda for tensor in tensors):
            return _Library.registered[self.name.removeprefix("aten.").removesuffix(".default"), "CUDA"]("keys", *args, **kwargs)
        said.append(f"host {self.name}")
        return self.compute(args, kwargs)


def compile(function, dynamic, fullgraph, options):
    operator = next(cell.cell_contents for cell in function.__closure__)
    said.append(f"compile {operator} {function.__code__.co_name} {dynamic} {fullgraph}")

    def run(*arguments, **named):
        how = compiles.get(str(operator), "right")
        if isinstance(how, list):
            how = how.pop(0)
        said.append(f"run {operator}")
        if isinstance(how, Exception):
            raise how
        if how == "ATen":
            return operator(*arguments, **named)
        if how not in ("right", "late"):
            raise RuntimeError(how)
        result = operator.compute(arguments, named) if isinstance(operator, OpOverload) else operator(*arguments, **named)
        if how == "late":
            raise RuntimeError(how)
        return result

    return run


@contextlib.contextmanager
def no_grad():
    yield


class _Kernel:
    """ATen's own code: machine code, unless the operator has `own`."""

    def __init__(self, overload):
        self.overload = overload

    def call_boxed(self, keys, *arguments, **named):
        said.append(f"own {self.overload}")
        return self.overload.own(*arguments, **named) if hasattr(self.overload, "own") else kernel_of_aten()


def _packets(*overloads):
    """torch.ops.aten with these overloads."""
    aten = types.SimpleNamespace()
    for overload in overloads:
        _, packet, name = overload.name.split(".")
        if not hasattr(aten, packet):
            setattr(aten, packet, types.SimpleNamespace())
        setattr(getattr(aten, packet), name, overload)
    return aten


def _copied(target, source, non_blocking=False):
    return source.data if isinstance(source, Tensor) else source


ops = types.SimpleNamespace(aten=_packets(
    OpOverload("aten.double.default", ("self",), lambda x: [2 * e for e in x]),
    OpOverload("aten.scale.Tensor", ("self", "other"), lambda x, by: [e * (by if isinstance(by, (int, float)) else by[0]) for e in x]),
    OpOverload("aten.double_.default", ("self!",), lambda x: [2 * e for e in x]),
    OpOverload("aten.double.out", ("self", "out!"), lambda x, out: [2 * e for e in x]),
    OpOverload("aten.random.default", ("self", "generator"), lambda x, generator=None: list(x)),
    OpOverload("aten.norm.default", ("self", "running"), lambda x, running: list(x)),
    OpOverload("aten.copy_.default", ("self!", "src", "non_blocking"), _copied),
    OpOverload("aten._foreach_copy_.default", ("self!", "src"), _copied, 0),
    OpOverload("aten._foreach_div_.ScalarList", ("self!", "scalars"), _copied, 0),
    OpOverload("aten.convolution.default", ("input", "weight"), lambda x, w: list(x)),
    OpOverload("aten.fill_.Scalar", ("self!", "value"), lambda x, value: [value] * len(x)),
    OpOverload("aten.zero_.default", ("self!",), lambda x: [0] * len(x)),
    OpOverload("aten.view.default", ("self",)), OpOverload("aten.empty.memory_format", ("size",)),
    *[OpOverload(f"aten.{name}", ("input",)) for name in ("lstm.input", "lstm.data", "gru.input", "gru.data")],
    OpOverload("aten._fused_sdp_choice.default", ("query",))))
_C = types.SimpleNamespace(
    __name__="torch._C",
    _dispatch_get_registrations_for_dispatch_key=lambda key: [
        "aten::double", "aten::scale.Tensor", "aten::double_", "aten::double.out", "aten::random", "aten::norm", "aten::_foreach_copy_",
        "aten::_foreach_div_.ScalarList", "aten::fill_.Scalar", "aten::zero_", "aten::view", "aten::_fused_sdp_choice", "aten::empty.memory_format", "quantized::x"],
    _autograd=types.SimpleNamespace(__name__="torch._C._autograd", _unsafe_set_version_counter=lambda tensors, versions: [
        tensor.version.__setitem__(0, version) for tensor, version in zip(tensors, versions)]))
_decomp = types.SimpleNamespace(decomposition_table={
    overload: lambda *_: "decomposed" for packet in (ops.aten.lstm, ops.aten.gru) for overload in (packet.input, packet.data)})


class _Library:
    registered = {}  # (name, key): function

    def __init__(self, namespace, kind):
        assert (namespace, kind) == ("aten", "IMPL")

    def impl(self, name, function, key, with_keyset=False):
        import warnings
        warnings.warn("Overriding a previously registered kernel", UserWarning, stacklevel=2)
        _Library.registered[name, key] = function

    def __del__(self):  # torch/library.py: what it registered goes with it
        _Library.registered.clear()


library = types.SimpleNamespace(__name__="torch.library", Library=_Library, get_kernel=lambda overload, key: _Kernel(overload))
switched = {}
backends = types.SimpleNamespace(
    cuda=types.SimpleNamespace(
        enable_flash_sdp=lambda on: switched.update(flash=on),
        enable_mem_efficient_sdp=lambda on: switched.update(mem_efficient=on),
        enable_cudnn_sdp=lambda on: switched.update(cudnn=on)),
    cudnn=types.SimpleNamespace(enabled=True),
    mha=types.SimpleNamespace(set_fastpath_enabled=lambda on: switched.update(fastpath=on)))
capturing = []
cuda = types.SimpleNamespace(current_stream=lambda where: types.SimpleNamespace(cuda_stream=77), device=contextlib.nullcontext,
                             mem_get_info=lambda where: said.append(f"context of {where}"),
                             is_current_stream_capturing=lambda: bool_(capturing))
