"""Whether this process belongs to a tenant's lease, by what `demarc exec` puts into its environment."""
from __future__ import annotations

import os
from pathlib import Path

from .._errors import Error

PRELOAD = "libdemarc_preload.so"


def inside_exec() -> bool:
    """Whether the driver will load Demarc's library into this process, and it has a `demarc exec` to speak to."""
    injected = Path(os.environ.get("CUDA_INJECTION64_PATH", ""))
    return injected.name == PRELOAD and bool(os.environ.get("DEMARC_CONTROL"))


def tenant() -> str:
    """The tenant's name; an Error outside of a lease. `demarc exec` sets DEMARC_TENANT, and empties it without --tenant."""
    name = os.environ.get("DEMARC_TENANT", "")
    if not inside_exec():
        raise Error("this process is in no tenant's lease: start it with "
                    f"demarc exec --tenant {name or 'NAME'} -- python3 PROGRAM", 2)
    if not name:
        raise Error("this process is under demarc exec without --tenant: it has TPCs of its own and no memory colours", 2)
    return name
