"""What goes wrong, with the exit code that the program `demarc` would end with."""
from __future__ import annotations


class Error(Exception):
    """A sentence that names what is wrong, and `code`: 1 wrong input, 2 the machine lacks it, 3 a check did not hold."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code
