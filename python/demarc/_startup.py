"""What `demarc.pth` of the wheel does as Python starts, so that nothing has to stand in the program.

Where DEMARC_CAPTURE is set, demarc.torch.keep_ptx() is called, which waits for Triton to be imported. Where DEMARC_TENANT is:
inside a lease, demarc.torch.enable() is called when the program imports torch. Outside of one, the program is started
again under `demarc exec --tenant $DEMARC_TENANT`. What cannot be done ends the process with exit code 2: Python goes on
after an error of a .pth file, and a program that goes on here would not be in its colours.
"""
from __future__ import annotations

import os
import sys
from types import ModuleType


def _enable(_: ModuleType) -> None:
    from .torch import enable
    enable()


def start() -> None:
    """Once a process, from demarc.pth."""
    from ._errors import Error
    from ._library import find_program
    from .torch import _later, _lease, keep_ptx
    if _lease.inside_capture():
        keep_ptx()
        return
    if _lease.inside_exec():
        _later.when_imported("torch", _enable)
        return
    try:
        program = find_program()
        command = [program, "exec", "--tenant", os.environ["DEMARC_TENANT"], "--", *sys.orig_argv]
        os.execv(program, command)
    except (Error, OSError) as error:
        print(f"demarc: DEMARC_TENANT={os.environ['DEMARC_TENANT']}: {error}", file=sys.stderr, flush=True)
        os._exit(2)
