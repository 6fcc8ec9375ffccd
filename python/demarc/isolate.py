"""Results of `demarc isolate` as data: its JSON, and the tables of cells in docs/measurements/*.csv.

    study = demarc.isolate.read("study.json")
    study.slowdown("mask+color", "mm", "va")   # 1.08: takes 1.08x as long on average
"""
from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ._errors import Error

SCHEMA = "demarc.isolate/4"
COLUMNS = ("mode", "victim", "aggressor", "runs", "kernels_mean_us", "kernels_p50_us", "kernels_p99_us",
           "kernels_worst_us", "run_mean_us", "run_p99_us", "run_worst_us")
_OPTIONAL = ("kernels_p99_us", "run_p99_us")  # below 1000 runs there is none; old tables lack the column


@dataclass(frozen=True)
class Cell:
    """Times of a victim next to an aggressor (None: next to idle neighbours) under a mode, in microseconds.

    `kernels_...`: the kernels of a run by the GPU's clock, added up; `run_...`: the whole run, gaps with it.
    """

    mode: str
    victim: str
    aggressor: str | None
    runs: int
    kernels_mean_us: float
    kernels_p50_us: float
    kernels_p99_us: float | None
    kernels_worst_us: float
    run_mean_us: float
    run_p99_us: float | None
    run_worst_us: float


@dataclass(frozen=True)
class Study:
    """All cells of a file, in its order, and what the study could not say."""

    path: str
    cells: tuple[Cell, ...]
    errors: tuple[str, ...] = ()  # wrong outputs, cells whose check failed
    unavailable: dict[str, str] = field(default_factory=dict)  # mode: what the machine lacked for it
    impossible: tuple[str, ...] = ()  # figures of a simulated card that cannot be right

    def cell(self, mode: str, victim: str, aggressor: str | None = None) -> Cell:
        """That cell; an Error that names it where the study has none."""
        for found in self.cells:
            if (found.mode, found.victim, found.aggressor) == (mode, victim, aggressor):
                return found
        raise Error(f"{self.path}: there is no cell of {victim} next to {aggressor or 'idle neighbours'} under {mode}")

    def slowdown(self, mode: str, victim: str, aggressor: str) -> float:
        """Mean time of the victim's kernels next to `aggressor` over that next to idle neighbours; 1 is not slowed."""
        idle = self.cell(mode, victim).kernels_mean_us
        return self.cell(mode, victim, aggressor).kernels_mean_us / idle


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _cell_of_row(place: str, row: dict[str, str]) -> Cell:
    def number(column: str, kind: type) -> Any:
        value = row.get(column, "")
        if value == "" and column in _OPTIONAL:
            return None
        try:
            return kind(value)
        except ValueError:
            raise Error(f"{place}: {column}: '{value}' is not a number") from None

    aggressor = None if row["aggressor"] == "-" else row["aggressor"]
    return Cell(row["mode"], row["victim"], aggressor, number("runs", int),
                *(number(column, float) for column in COLUMNS[4:]))


def _read_csv(path: Path) -> Study:
    rows = csv.reader(_text(path).splitlines())
    head = next(rows, [])
    for column in COLUMNS:
        if column not in head and column not in _OPTIONAL:
            raise Error(f"{path}:1: there is no column '{column}': this is no table of cells")
    for column in head:
        if column not in COLUMNS:
            raise Error(f"{path}:1: the column '{column}' is not known")
    cells = []
    for row in rows:
        if len(row) != len(head):
            raise Error(f"{path}:{rows.line_num}: {len(row)} columns instead of {len(head)}")
        cells.append(_cell_of_row(f"{path}:{rows.line_num}", dict(zip(head, row))))
    return Study(str(path), tuple(cells))


def _cell_of_json(place: str, given: dict[str, Any]) -> Cell:
    def microseconds(times: str, what: str) -> Any:
        value = given[times][what]
        if value is None and what == "p99":
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Error(f"{place}: {times}.{what}: {value!r} is not a number")
        return value / 1e3

    try:
        kernels = [microseconds("times_ns", what) for what in ("mean", "p50", "p99", "worst")]
        run = [microseconds("run_times_ns", what) for what in ("mean", "p99", "worst")]
        return Cell(given["mode"], given["victim"], given["aggressor"], given["times_ns"]["count"], *kernels, *run)
    except KeyError as error:
        raise Error(f"{place}: {error} is missing") from None
    except TypeError:
        raise Error(f"{place}: an object was expected") from None


def _read_json(path: Path) -> Study:
    try:
        given = json.loads(_text(path))
    except json.JSONDecodeError as error:
        raise Error(f"{path}:{error.lineno}: {error.msg}") from error
    if not isinstance(given, dict) or given.get("schema") != SCHEMA:
        raise Error(f"{path}: the schema is not {SCHEMA}, which demarc isolate --json writes")
    for key in ("cells", "errors", "modes"):
        if not isinstance(given.get(key), list):
            raise Error(f"{path}: '{key}' is missing, or no list")
    cells, errors = [], [str(error) for error in given["errors"]]
    for index, cell in enumerate(given["cells"]):
        place = f"{path}: cells[{index}]"
        if isinstance(cell, dict) and "error" in cell:
            errors.append(f"{place}: {cell['error']}")
            continue
        cells.append(_cell_of_json(place, cell))
    unavailable = {mode["mode"]: mode["unavailable"] for mode in given["modes"] if "unavailable" in mode}
    return Study(str(path), tuple(cells), tuple(errors), unavailable, tuple(map(str, given.get("impossible", ()))))


def read(path: str | Path) -> Study:
    """A file of `demarc isolate --json`, or a table of cells (tools/isolate-tables.py --cells) that ends in .csv.

    What is wrong with it is an Error that names the file and its line, or the place in the JSON.
    """
    path = Path(path)
    return _read_csv(path) if path.suffix == ".csv" else _read_json(path)
