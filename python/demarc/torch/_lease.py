"""Whether this process is in a tenant's lease or a capture, by what `demarc exec` and `demarc capture` put into its environment."""
from __future__ import annotations

import os
from pathlib import Path

from .._errors import Error

PRELOAD = "libdemarc_preload.so"
CAPTURE = "libdemarc_capture.so"


def _injected() -> str:
    return Path(os.environ.get("CUDA_INJECTION64_PATH", "")).name


def inside_capture() -> bool:
    """Whether the driver will load the library of a `demarc capture` into this process."""
    return _injected() == CAPTURE and bool(os.environ.get("DEMARC_CAPTURE"))


def inside_exec() -> bool:
    """Whether the driver will load Demarc's library into this process, and it has a `demarc exec` to speak to."""
    return _injected() == PRELOAD and bool(os.environ.get("DEMARC_CONTROL"))


def tenant() -> str:
    """The tenant's name; an Error outside of a lease. `demarc exec` sets DEMARC_TENANT, and empties it without --tenant."""
    name = os.environ.get("DEMARC_TENANT", "")
    if not inside_exec():
        raise Error("this process is in no tenant's lease: start it with "
                    f"demarc exec --tenant {name or 'NAME'} -- python3 PROGRAM", 2)
    if not name:
        raise Error("this process is under demarc exec without --tenant: it has TPCs of its own and no memory colours", 2)
    return name


def windows() -> bool:
    """Whether machine code runs in this process, because the page table maps the tenant's memory; `demarc exec` says so."""
    return os.environ.get("DEMARC_WINDOWS") == "1"
