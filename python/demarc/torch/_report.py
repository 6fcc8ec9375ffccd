"""Which kernels of this process are coloured, and which operators Inductor left to PyTorch's own: from what it wrote."""
from __future__ import annotations

import ast
import ctypes
import json
import os
import sys
from dataclasses import dataclass
from typing import Any

from .._errors import Error
from . import _lease, _triton

# What Inductor's code calls that starts no kernel of ATen's: views, and pieces of an allocation.
_NO_KERNEL = ("inductor._alloc_from_pool", "inductor._reinterpret_tensor")


@dataclass(frozen=True)
class Graph:
    """One graph that Inductor compiled and this process loaded."""

    path: str  # of the Python that Inductor wrote for it
    kernels: tuple[str, ...]  # Triton's; they were loaded, so they are coloured
    operators: tuple[str, ...]  # that fall back to ATen, as "aten.sort.stable"; on tensors of the card they run on the host


@dataclass(frozen=True)
class Report:
    """What report() gives; str() of it is for people."""

    tenant: str
    graphs: tuple[Graph, ...]
    kernels: tuple[str, ...]  # that Triton's own launcher loaded: kernels called from Python
    operators: tuple[tuple[str, str], ...]  # outside of torch.compile, each with its way: "compiled" or "host"
    process: dict[str, Any] | None  # what Demarc's library in this process counted; None where it does not say

    @property
    def colored(self) -> tuple[str, ...]:
        """Names of all coloured kernels, once each."""
        return tuple(dict.fromkeys([*self.kernels, *(name for graph in self.graphs for name in graph.kernels)]))

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """Names of all operators that fall back, once each."""
        return tuple(dict.fromkeys(name for graph in self.graphs for name in graph.operators))

    def __str__(self) -> str:
        lines = [f"tenant {self.tenant}: {len(self.colored)} coloured kernels, "
                 f"{len(self.fallbacks)} operators that fall back"]
        lines += [f"  kernel    {name}" for name in self.kernels]
        lines += [f"  operator  {name}: {'on the host' if way == 'host' else way}" for name, way in self.operators]
        for graph in self.graphs:
            lines.append(f"  graph     {graph.path}")
            lines += [f"    kernel    {name}" for name in graph.kernels]
            lines += [f"    falls back: {name}" for name in graph.operators]
        return "\n".join(lines)


def _dotted(node: ast.expr) -> str:
    """"a.b.c" of such an expression; "" of any other."""
    if isinstance(node, ast.Name):
        return node.id
    outer = _dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{outer}.{node.attr}" if outer and isinstance(node, ast.Attribute) else ""


def _operator(call: str, aliases: dict[str, str]) -> str | None:
    """The operator that a call in Inductor's code is of, or None. `aliases`: names of parts of torch.ops there."""
    first, _, rest = call.partition(".")
    full = f"{aliases[first]}.{rest}" if first in aliases and rest else aliases.get(first, call)
    if full.startswith("extern_kernels."):
        return full
    if not full.startswith("torch.ops."):
        return None
    name = full.removeprefix("torch.ops.")
    return None if name in _NO_KERNEL else name


def read_graph(path: str, source: str) -> Graph | None:
    """What a file of Inductor's calls; None where it is of one kernel and not of a graph."""
    tree = ast.parse(source, path)
    aliases: dict[str, str] = {}
    kernels: dict[str, None] = {}
    operators: dict[str, None] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and _dotted(node.value).startswith("torch.ops."):
            aliases.update({target.id: _dotted(node.value) for target in node.targets if isinstance(target, ast.Name)})
    calls = sorted((node for node in ast.walk(tree) if isinstance(node, ast.Call)), key=lambda call: (call.lineno, call.col_offset))
    if not any(_dotted(call.func) == "async_compile.wait" for call in calls):
        return None
    for call in calls:
        name = _dotted(call.func)
        operator = _operator(name, aliases)
        first = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
        if operator is not None:
            operators[operator] = None
        elif name == "async_compile.triton" and isinstance(first, str):
            kernels[first] = None
        elif name in ("async_compile.cuda", "async_compile.rocm", "async_compile.cutedsl"):
            operators[name] = None  # another compiler's machine code
    return Graph(path, tuple(kernels), tuple(operators))


def _graphs() -> tuple[Graph, ...]:
    codecache = sys.modules.get("torch._inductor.codecache")
    if codecache is None:
        return ()
    found: dict[str, Graph] = {}
    for module in codecache.PyCodeCache.modules:
        path = str(module.__file__)
        try:
            with open(path, encoding="utf-8") as file:
                graph = read_graph(path, file.read())
        except OSError as error:
            raise Error(f"{path}: what Inductor wrote there cannot be read: {error.strerror}", 3) from error
        if graph is not None:
            found[path] = graph
    return tuple(found.values())


def _process() -> dict[str, Any] | None:
    """demarc_tenant_report() of libdemarc_preload.so, where the driver has loaded it and it has that function."""
    try:
        library = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"], mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        function = library.demarc_tenant_report
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_char_p
    text = function()
    return None if text is None else json.loads(text)


def report() -> Report:
    """What this process has compiled and loaded until now. An Error outside of a lease.

    Operators are all that Inductor's code calls, those on tensors of the host too: it does not say where a tensor lies.
    """
    operators = sys.modules.get(f"{__package__}._operators")  # imported by enable()
    return Report(_lease.tenant(), _graphs(), tuple(_triton.loaded), tuple(operators.used) if operators else (), _process())
