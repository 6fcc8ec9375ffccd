"""Finds libdemarc.so and the program `demarc`, and calls the library's C interface (demarc/demarc.h)."""
from __future__ import annotations

import ctypes
import functools
import os
import shutil
from pathlib import Path

from ._errors import Error

LIBRARY = "libdemarc.so"
# Where an install has its libraries, below its prefix (GNUInstallDirs).
LIBRARY_FOLDERS = ("lib", "lib64", "lib/x86_64-linux-gnu")


def _prefix() -> Path | None:
    """The prefix of the install this file belongs to, whose package lies in <libraries>/demarc/python/demarc."""
    python = Path(__file__).resolve().parent.parent
    if python.name != "python" or python.parent.name != "demarc":
        return None
    libraries = python.parent.parent
    for folder in LIBRARY_FOLDERS:
        if libraries.parts[-len(Path(folder).parts):] == Path(folder).parts:
            return libraries.parents[len(Path(folder).parts) - 1]
    return None


def _beside(program: Path) -> list[Path]:
    """Where the library of a program lies: in the same folder of a build, in the folders of an install."""
    folder = program.resolve().parent
    return [folder / LIBRARY] + [folder.parent / name / LIBRARY for name in LIBRARY_FOLDERS]


def library_candidates() -> list[Path]:
    """Files to try, in this order. $DEMARC_LIBRARY is tried alone, so that no other is taken in its place."""
    named = os.environ.get("DEMARC_LIBRARY")
    if named:
        return [Path(named)]
    prefix = _prefix()
    candidates = [prefix / name / LIBRARY for name in LIBRARY_FOLDERS] if prefix else []
    found = shutil.which("demarc")
    return candidates + (_beside(Path(found)) if found else [])


def find_library() -> str:
    """Path of libdemarc.so, or its bare name, which leaves it to the loader's path."""
    for candidate in library_candidates():
        if candidate.is_file():
            return str(candidate)
    if os.environ.get("DEMARC_LIBRARY"):
        raise Error(f"DEMARC_LIBRARY={os.environ['DEMARC_LIBRARY']}: this library does not exist", 2)
    return LIBRARY


def program_candidates() -> list[Path]:
    """Files to try for the program `demarc`, in this order. $DEMARC_PROGRAM is tried alone."""
    named = os.environ.get("DEMARC_PROGRAM")
    if named:
        return [Path(named)]
    candidates = []
    prefix = _prefix()
    if prefix:
        candidates.append(prefix / "bin" / "demarc")
    library = os.environ.get("DEMARC_LIBRARY")
    if library:
        folder = Path(library).resolve().parent
        candidates += [folder / "demarc", folder.parent / "bin" / "demarc", folder.parent.parent / "bin" / "demarc"]
    found = shutil.which("demarc")
    return candidates + ([Path(found)] if found else [])


def find_program() -> str:
    """Path of the program `demarc`; the error names what was tried."""
    for candidate in program_candidates():
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    tried = ", ".join(map(str, program_candidates()))
    raise Error("the program demarc was not found"
                + (f" ({tried})" if tried else "") + "; put it into PATH or name it in DEMARC_PROGRAM", 2)


_CARD = ctypes.c_void_p
_TEXT = ctypes.c_char_p
_U32 = ctypes.c_uint32
# Of demarc.h: result and arguments of each function that is called here.
_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "demarc_version": (_TEXT, []),
    "demarc_error": (_TEXT, []),
    "demarc_open_observer": (ctypes.c_int, [_U32, ctypes.POINTER(_CARD)]),
    "demarc_slo_miss": (ctypes.c_int, []),
    "demarc_close": (None, [_CARD]),
    "demarc_tpc_count": (_U32, [_CARD]),
    "demarc_gpc_of_tpc": (ctypes.c_int, [_CARD, _U32, ctypes.POINTER(_U32)]),
    "demarc_side_of_tpc": (ctypes.c_int, [_CARD, _U32, ctypes.POINTER(ctypes.c_int32)]),
    "demarc_sms_of_tpc": (ctypes.c_int, [_CARD, _U32, ctypes.POINTER(_U32), _U32, ctypes.POINTER(_U32)]),
}


@functools.lru_cache(maxsize=None)
def load(path: str) -> ctypes.CDLL:
    """The library at `path`, its functions declared; an Error where it cannot be loaded or is too old."""
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        tried = ", ".join(map(str, library_candidates())) or "nothing beside it"
        raise Error(f"{LIBRARY} was not found ({tried}, and the loader's path: {error}); "
                    "name it in DEMARC_LIBRARY", 2) from error
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise Error(f"{path} has no {name}: it is older than this package", 2) from None
        function.restype, function.argtypes = result, arguments
    return library


def library() -> ctypes.CDLL:
    return load(find_library())


def check(code: int) -> None:
    """Raises the library's own sentence where a function of the C interface did not return 0."""
    if code != 0:
        raise Error(library().demarc_error().decode(), code)


def version() -> str:
    """Version of libdemarc.so, such as "0.1.0"."""
    return library().demarc_version().decode()
