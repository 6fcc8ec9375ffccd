"""PyTorch in the colours of a tenant: `enable()`, `report()`, `NotColored`. For `demarc capture`: `keep_ptx()`.

A program runs under `demarc exec --tenant NAME -- python3 program.py`. All of its memory on the card lies in the tenant's
colours then, and a kernel is taken only as PTX, which Demarc rewrites when it is loaded. PyTorch's own kernels are machine
code; those that Triton compiles need not be. enable() makes Triton hand its PTX over, Inductor choose no other kernels, and
operators outside of torch.compile be compiled by Inductor, too. Where the tenant has windows, machine code runs as it is.
Tried with PyTorch 2.11 and Triton 3.6; a version that lacks what is needed here is refused by the name of that.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._errors import Error
from . import _caches, _eager, _inductor, _lease, _triton, _workers
from ._report import Graph, Report, report

if TYPE_CHECKING:
    from ._eager import NotColored

__all__ = ["Error", "Graph", "NotColored", "Report", "enable", "keep_ptx", "report"]
_enabled: str | None = None


def enable() -> str:
    """Makes PyTorch and Triton of this process, and Inductor's workers, work in the tenant's colours; its name.

    Once a process; later calls change nothing. An Error of code 2 outside of a lease, and where PyTorch or Triton lack
    what is needed. What is wrong with a module of theirs that is not imported yet is said when it is imported.
    """
    global _enabled
    if _enabled is not None:
        return _enabled
    tenant = _lease.tenant()
    if _lease.windows():
        _enabled = tenant
        return tenant
    _eager.check()
    _caches.separate()
    _triton.install()
    _inductor.install()
    _workers.install()
    from . import _operators  # imports torch
    _operators.install()
    _eager.install(tenant)
    _enabled = tenant
    return tenant


def keep_ptx() -> None:
    """Makes Triton of this process, and of Inductor's workers, give the driver PTX, so that `demarc capture` can take kernels.

    What is computed, and by which kernels, stays as it is. Later calls change nothing. An Error of code 2 where no
    `demarc capture` is around the process, and where Triton lacks what is needed.
    """
    if not _lease.inside_capture():
        raise Error("this process is in no capture: start it with demarc capture -- python3 PROGRAM", 2)
    _caches.separate()
    _triton.install()
    _workers.install()


def __getattr__(name: str) -> Any:
    # A class of PyTorch's is its base: it is there once PyTorch is.
    if name == "NotColored":
        return _eager.not_colored()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
