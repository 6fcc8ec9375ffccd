"""The hook in the processes in which Inductor compiles: it travels with each job.

torch/_inductor/async_compile.py of PyTorch 2.11 hands `_worker_compile_triton` to its workers, by the name of its module.
Here it hands over `compile_triton` of this module, which workers find: they have the parent's sys.path and environment.
"""
from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from .._errors import Error
from ._later import when_imported

_JOB = "_worker_compile_triton"


def compile_triton(*arguments: Any) -> Any:
    """A job of Inductor's, in a worker: as PyTorch's own, with the hook set before."""
    from torch._inductor.runtime import compile_tasks
    from triton import knobs

    from ._triton import hook, set_hook
    if knobs.runtime.add_stages_inspection_hook is not hook:
        set_hook(knobs)
    return getattr(compile_tasks, _JOB)(*arguments)


def _replace_job(async_compile: ModuleType) -> None:
    compile_tasks = sys.modules["torch._inductor.runtime.compile_tasks"]
    if not callable(getattr(async_compile, _JOB, None)) or not hasattr(compile_tasks, _JOB):
        raise Error(f"this PyTorch has no torch._inductor.async_compile.{_JOB}: its workers would compile without "
                    "the hook; 2.11 is what was tried", 2)
    setattr(async_compile, _JOB, compile_triton)


def install() -> None:
    when_imported("torch._inductor.async_compile", _replace_job)
