"""The few things of NumPy that demarc and its tests use, for machines without it; flat lists and a shape."""
import math
import struct
from typing import NamedTuple

_FORMATS = {"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q",
            "f2": "e", "f4": "f", "f8": "d"}


class dtype(NamedTuple):
    kind: str
    itemsize: int

    @property
    def name(self):
        return f"{self.kind}{self.itemsize}"


class generic:
    def __init__(self, value):
        self.value = struct.unpack(_FORMATS[self.dtype.name], struct.pack(_FORMATS[self.dtype.name], value))[0]

    def __float__(self):
        return float(self.value)

    def __int__(self):
        return int(self.value)


class bool_(generic):
    dtype = dtype("b", 1)


class int32(generic):
    dtype = dtype("i", 4)


class int64(generic):
    dtype = dtype("i", 8)


class uint8(generic):
    dtype = dtype("u", 1)


class uint32(generic):
    dtype = dtype("u", 4)


class float32(generic):
    dtype = dtype("f", 4)


class float64(generic):
    dtype = dtype("f", 8)


class complex64(generic):
    dtype = dtype("c", 8)

    def __init__(self, value):
        self.value = value


def _kind_of(given):
    return given if isinstance(given, dtype) else given.dtype


class ndarray:
    def __init__(self, data, kind, shape):
        self.data, self.dtype, self.shape = data, kind, shape
        self.nbytes = len(data)

    def reshape(self, *shape):
        return ndarray(self.data, self.dtype, shape[0] if isinstance(shape[0], tuple) else shape)

    def view(self, kind):
        return ndarray(self.data, _kind_of(kind), self.shape)

    def tolist(self):
        values = [one for (one,) in struct.iter_unpack("<" + _FORMATS[self.dtype.name], self.data)]
        for size in reversed(self.shape[1:]):
            values = [values[at:at + size] for at in range(0, len(values), size)]
        return values if self.shape else values[0]


def array(values, dtype):
    flat, shape = values, [len(values)]
    while flat and isinstance(flat[0], (list, tuple)):
        shape.append(len(flat[0]))
        flat = [one for row in flat for one in row]
    kind = _kind_of(dtype)
    return ndarray(struct.pack(f"<{len(flat)}{_FORMATS[kind.name]}", *flat), kind, tuple(shape))


def arange(count, dtype):
    return array(list(range(count)), dtype)


def zeros_like(other):
    return ndarray(bytes(other.nbytes), other.dtype, other.shape)


def ascontiguousarray(given):
    return given


def save(path, given):
    order = "|" if given.dtype.itemsize == 1 else "<"
    head = f"{{'descr': '{order}{given.dtype.name}', 'fortran_order': False, 'shape': {given.shape}, }}".ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + given.data)


def load(path):
    content = path.read_bytes()
    begin = 10 + struct.unpack("<H", content[8:10])[0]
    head = eval(content[10:begin], {"__builtins__": {}})  # of a file that the test's own program wrote
    kind = dtype(head["descr"][1], int(head["descr"][2:]))
    assert len(content) - begin == math.prod(head["shape"]) * kind.itemsize
    return ndarray(content[begin:], kind, head["shape"])
