"""Makes the wheel of this folder, with the standard library alone: a back end of PEP 517, and a program.

    python3 -m pip wheel --no-deps python      # or
    python3 python/wheel_of_demarc.py FOLDER   # the same, without pip; prints the wheel's path
"""
from __future__ import annotations

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
EARLIEST = (1980, 1, 1, 0, 0, 0)  # of a file in an archive: the same sources give the same bytes


def version() -> str:
    """Of the package: demarc/__init__.py says it."""
    found = re.search(r'^__version__ = "([0-9.]+)"$', (HERE / "demarc/__init__.py").read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit("demarc/__init__.py: there is no __version__")
    return found.group(1)


def files() -> dict[str, bytes]:
    """What the wheel holds but for its list, by name in it."""
    kept = [path for path in sorted((HERE / "demarc").rglob("*")) if path.suffix == ".py" or path.name == "py.typed"]
    found = {path.relative_to(HERE).as_posix(): path.read_bytes() for path in [HERE / "demarc.pth", *kept]}
    about = f"demarc-{version()}.dist-info"
    found[f"{about}/METADATA"] = (f"Metadata-Version: 2.1\nName: demarc\nVersion: {version()}\n"
                                  "Requires-Python: >=3.10\nLicense: Apache-2.0\n").encode()
    found[f"{about}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: demarc\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    return found


def _line(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """Writes the wheel into that folder; its name. The interface of PEP 517."""
    held = files()
    record = f"demarc-{version()}.dist-info/RECORD"
    held[record] = ("".join(_line(name, data) for name, data in held.items()) + f"{record},,\n").encode()
    name = f"demarc-{version()}-py3-none-any.whl"
    Path(wheel_directory).mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for member, data in held.items():
            wheel.writestr(zipfile.ZipInfo(member, EARLIEST), data, zipfile.ZIP_DEFLATED)
    return name


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: wheel_of_demarc.py FOLDER")
    print(Path(sys.argv[1]) / build_wheel(sys.argv[1]))
