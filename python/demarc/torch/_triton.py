"""Triton's binary is its PTX: the last stage of its compiler, ptxas, is left to the driver, where Demarc rewrites the PTX.

The hook is knobs.runtime.add_stages_inspection_hook, of Triton 3.6 and later. Later ones than 3.6 also call it without
arguments, on every launch, for a key of what it does; it is computed once.
"""
from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .._errors import Error
from ._later import when_imported

KEY = "demarc-ptx-1"  # of what becomes of a kernel here; changes with it
_KEY_AND_HASH = (KEY, hashlib.sha256(KEY.encode()).hexdigest())
# Multiplications and additions without a rounding mode: ptxas may make one instruction of two of them (PTX ISA, `add`).
_MAY_FUSE = re.compile(r"\b(?:add|sub|mul)(?:\.ftz)?(?:\.sat)?\.(?:bf16|f16|f32|f64)(?:x2)?\b")

loaded: dict[str, None] = {}  # names of the kernels that Triton's own launcher loaded, in that order


def ptx_as_binary(ptx: str, name: str, options: Any) -> bytes:
    """What the driver is given for a kernel: its PTX, with the zero that ends a text there.

    An Error where Triton would have told ptxas what the driver's compiler is not told.
    """
    if getattr(options, "ptx_options", None):
        raise Error(f"kernel '{name}': ptx_options='{options.ptx_options}' is for ptxas, which does not compile it here", 2)
    if not getattr(options, "enable_fp_fusion", True):
        found = _MAY_FUSE.search(ptx)
        if found:
            raise Error(f"kernel '{name}': enable_fp_fusion=False, but its PTX has '{found.group()}' without a rounding "
                        "mode, which the driver's compiler may fuse", 2)
    return ptx.encode() + b"\0"


def hook(backend: Any = None, stages: dict[str, Callable[..., Any]] | None = None, options: Any = None,
         language: Any = None, capability: Any = None) -> tuple[str, str] | None:
    """What Triton calls for each kernel that it compiles, or without arguments for a key and its hash."""
    if stages is None:
        return _KEY_AND_HASH
    if "cubin" not in stages:
        raise Error(f"Triton compiles for a GPU without cubins here (stages {', '.join(stages)}): only NVIDIA's are coloured", 2)
    stages["cubin"] = lambda ptx, metadata: ptx_as_binary(ptx, metadata.get("name", "?"), options)
    return None


def _note_load(module: Any, function: Any, name: str, metadata_group: Any, hash: str) -> None:
    loaded[name] = None


def set_hook(knobs: ModuleType) -> None:
    """Sets the hook in `triton.knobs`; an Error where there is none to set, or somebody else's is set."""
    runtime = knobs.runtime
    for needed in ("add_stages_inspection_hook", "kernel_load_end_hook"):
        if not hasattr(runtime, needed):
            raise Error(f"this Triton has no knobs.runtime.{needed}: 3.6 or later is needed", 2)
    if runtime.add_stages_inspection_hook not in (None, hook):
        raise Error("knobs.runtime.add_stages_inspection_hook of Triton is set already: Demarc needs it", 2)
    if getattr(knobs.nvidia, "disable_ptxas_opt", False):
        raise Error("DISABLE_PTXAS_OPT is for ptxas, which does not compile kernels here: unset it", 2)
    runtime.add_stages_inspection_hook = hook
    runtime.kernel_load_end_hook.add(_note_load)


def install() -> None:
    when_imported("triton.knobs", set_hook)
