"""Folders of their own for what Triton and Inductor keep.

Triton 3.6 keeps a kernel under a key that does not know its hook: a folder shared with programs outside of a lease would
hand out machine code here, and PTX there. Inductor keeps the kernels of its graphs in the same way.
"""
from __future__ import annotations

import getpass
import os
import re
import tempfile

from ._triton import KEY


def _default_inductor() -> str:
    """As torch/_inductor/runtime/cache_dir_utils.py of PyTorch 2.11 names it."""
    return os.path.join(tempfile.gettempdir(), "torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", getpass.getuser()))


def _default_triton() -> str:
    """As knobs.py of Triton 3.6 names it."""
    return os.path.join(os.environ.get("TRITON_HOME", os.path.expanduser("~")), ".triton", "cache")


def separate() -> None:
    """Sets TRITON_CACHE_DIR and TORCHINDUCTOR_CACHE_DIR, which processes below this one inherit, to folders in theirs."""
    for variable, default in (("TRITON_CACHE_DIR", _default_triton), ("TORCHINDUCTOR_CACHE_DIR", _default_inductor)):
        folder = os.environ.get(variable) or default()
        if os.path.basename(folder) != KEY:
            os.environ[variable] = os.path.join(folder, KEY)
