"""What the tests of the Python package share: Python in a process of its own, with the stand-ins for PyTorch and Triton."""
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGE = ROOT / "python"
BUILD = Path(os.environ["DEMARC_BUILD"])
CAPTURE = {"CUDA_INJECTION64_PATH": "/none/libdemarc_capture.so", "DEMARC_CAPTURE": "{}"}
LEASE = {"CUDA_INJECTION64_PATH": "/none/libdemarc_preload.so", "DEMARC_CONTROL": "/proc/1/fd/3#00", "DEMARC_TENANT": "a"}


def own_libcuda(folder):
    """The stand-in for libcuda in a copy of this test alone: claims of a card are locks of this file, and all stand-ins have one UUID."""
    copy = folder / "libdemarc_fake_libcuda.so"
    return copy if copy.exists() else shutil.copy(BUILD / copy.name, copy)


def environment(path=(PACKAGE, HERE / "fake"), **changes):
    """This process's environment without Demarc's and Triton's variables, then `changes`; None leaves one out."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("DEMARC_", "CUDA_", "TRITON_", "TORCHINDUCTOR_"))}
    kept["PYTHONPATH"] = os.pathsep.join(map(str, path))
    return kept | {name: str(value) for name, value in changes.items() if value is not None}


def python(code, *arguments, **options):
    """What `code` printed, in a Python of its own; stderr and "exit N" with it where that is not 0."""
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code), *arguments], env=environment(**options),
                           capture_output=True, text=True, check=False, timeout=60)
    return ended.stdout if ended.returncode == 0 else f"{ended.stdout}{ended.stderr}exit {ended.returncode}"


def leased(code, **changes):
    """The same inside a lease, after demarc.torch.enable()."""
    return python("import demarc.torch\ndemarc.torch.enable()\n" + textwrap.dedent(code), **(LEASE | changes))
