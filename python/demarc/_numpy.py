"""NumPy, which only the functions on arrays import, and the sentence of a Python that lacks it."""
from __future__ import annotations

import sys
from types import ModuleType


def need_numpy() -> ModuleType:
    """NumPy; an ImportError that says what to do if this Python cannot import it."""
    try:
        import numpy
    except ImportError as missing:
        raise ImportError(f"demarc.emulate(), locality() and schedule() work on arrays of NumPy, but {sys.executable} cannot import "
                          f"it ({missing}): install NumPy (python3 -m pip install numpy, or the package python3-numpy)",
                          name="numpy") from missing
    return numpy
