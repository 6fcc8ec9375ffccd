"""`demarc emulate`, `locality` and `schedule` from Python: NumPy's arrays in, arrays and data classes out.

    x = numpy.arange(64, dtype=numpy.float32)
    ran = demarc.emulate("k.ptx", "scale", [x, numpy.zeros_like(x), numpy.int32(64)], grid=2, block=32,
                         variables={"gain": numpy.float32(2.5)})
    ran.arrays[1]  # the second array as it is after the launch

The program does the work; arrays go through .npy files in a temporary folder. NumPy is imported when a function is called.
"""
from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._errors import Error
from ._lease import _members
from ._library import find_program
from ._numpy import need_numpy

if TYPE_CHECKING:
    import numpy

EMULATE_SCHEMA = "demarc.emulate/1"
LOCALITY_SCHEMA = "demarc.locality/1"
SCHEDULE_SCHEMA = "demarc.schedule/1"
CHECK_FAILED = 3  # exit code of a run whose findings or outputs are told
_LETTERS = {"i": "i", "u": "u", "f": "f", "b": "u"}  # of NumPy's kinds; a boolean is a u8


@dataclass(frozen=True)
class Kernel:
    """What a kernel of a launch did, over all of its blocks."""

    kernel: str
    blocks: int
    warps: int
    thread_instructions: int
    warp_instructions: int
    memory_accesses: int
    divergent_branches: int
    barriers: int
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Finding:
    """What a check found, where it was seen first."""

    kind: str
    kernel: str
    block: tuple[int, ...]
    thread: tuple[int, ...]
    line: int  # of the PTX
    source: str
    instruction: str
    detail: str
    count: int


@dataclass(frozen=True)
class Emulation:
    """A launch that was run by the emulator."""

    arrays: tuple[numpy.ndarray, ...]  # those of the arguments, in order, as they are after the launch
    outputs: dict[str, numpy.ndarray]  # the buffers of a launch file that were asked for
    kernels: tuple[Kernel, ...]
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]
    printed: str  # by printf
    check: str  # of the outputs against the reference: "passed", "failed" or "none"


@dataclass(frozen=True)
class Sharing:
    """How much is shared between blocks, or between the threads of one, and with whom.

    `cells` has a row per pair: two blocks (or threads), and the number of addresses that both use.
    """

    degree_of_sharing: float
    appearance_frequency: float
    cells: numpy.ndarray


@dataclass(frozen=True)
class Locality:
    """The locality of a kernel; `details` is all that the program says."""

    kernel: str
    method: str  # "symbolic" or "emulated"
    between_blocks: Sharing
    within_block: Sharing
    l1_hit_rate: float | None  # predicted with the whole L2; None: there is no prediction
    l2_hit_rate: float | None
    details: dict[str, Any]


@dataclass(frozen=True)
class Policy:
    """What a dispatch policy made of a workload. The arrays have an element per kernel, NaN where one did not end."""

    policy: str
    finished_share: float
    antt: float  # average normalised turnaround time
    stp: float  # system throughput
    fairness: float
    start: numpy.ndarray  # ticks
    end: numpy.ndarray
    slowdown: numpy.ndarray
    details: dict[str, Any]


def _asked(command: list[str], schema: str, folder: str | None = None) -> dict[str, Any]:
    """What the program says as JSON; an Error where it says none."""
    ended = subprocess.run([Path(find_program()).absolute(), *command, "--json"], cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode not in (0, CHECK_FAILED) or not ended.stdout:
        raise Error(ended.stderr.strip() or f"demarc {command[0]} ended with {ended.returncode}", ended.returncode)
    given = json.loads(ended.stdout)
    if given.get("schema") != schema:
        raise Error(f"demarc {command[0]} --json: schema {given.get('schema')!r}; {schema!r} was expected", 3)
    return given


def _element(dtype: numpy.dtype) -> str:
    if dtype.kind not in _LETTERS:
        raise Error(f"an array or a number of {dtype}: booleans, integers and floats are known")
    return f"{_LETTERS[dtype.kind]}{8 * dtype.itemsize}"


def _number(value: Any) -> str:
    """A NumPy scalar as the command line has it."""
    element = _element(value.dtype)
    return f"{element}:{float(value)!r}" if element[0] == "f" else f"{element}:{int(value)}"


def _shape(value: int | Sequence[int]) -> str:
    return str(value) if isinstance(value, int) else ",".join(map(str, value))


class _Launch:
    """The options of a launch, whose arrays are files in a folder."""

    def __init__(self, folder: str) -> None:
        self.numpy = need_numpy()
        self.folder = Path(folder)
        self.options: list[str] = []
        self.arrays: list[tuple[str, numpy.ndarray]] = []  # by the names of their buffers

    def _save(self, name: str, array: numpy.ndarray) -> str:
        self.numpy.save(self.folder / f"{name}.npy", self.numpy.ascontiguousarray(array))
        return f"@{name}.npy:{_element(array.dtype)}"

    def _argument(self, place: str, value: Any) -> str:
        if isinstance(value, self.numpy.ndarray):
            name = f"arg{len(self.arrays)}"
            self.arrays.append((name, value))
            return f"buf:{value.nbytes}:{self._save(name, value)}"
        if isinstance(value, bytes):
            return f"hex:{value.hex()}"
        if not isinstance(value, self.numpy.generic):
            raise Error(f"{place}: {value!r} has no type of its own; an array, bytes or a number of NumPy was expected, "
                        "such as numpy.int32(7)")
        return _number(value)

    def by_hand(self, ptx: str | Path, arguments: Sequence[Any], grid: int | Sequence[int], block: int | Sequence[int],
                cluster: int | Sequence[int] | None, shared: int) -> None:
        """A kernel of a PTX file."""
        specs = [self._argument(f"argument {i + 1}", value) for i, value in enumerate(arguments)]
        self.options += [str(Path(ptx).absolute()), "--grid", _shape(grid), "--block", _shape(block),
                         "--shared", str(shared), "--args", ",".join(specs)]
        self.options += ["--cluster", _shape(cluster)] if cluster is not None else []

    def of_file(self, file: str | Path) -> None:
        """A launch file, or a bundled launch."""
        self.options += ["--launch", str(file) if str(file).startswith("bundled:") else str(Path(file).absolute())]

    def choose(self, kernel: str, scale: str, parameters: Mapping[str, int], variables: Mapping[str, Any]) -> None:
        """What may be said of both; the program refuses what does not go together."""
        self.options += ["--kernel", kernel] if kernel else []
        self.options += ["--scale", scale] if scale else []
        for parameter, value in parameters.items():
            self.options += ["--param", f"{parameter}={value}"]
        for i, (name, value) in enumerate(variables.items()):
            is_array = isinstance(value, self.numpy.ndarray)
            spec = self._save(f"variable{i}", value) if is_array else self._argument(f"variable '{name}'", value)
            self.options += ["--variable", f"{name}={spec}"]


def _described(folder: str, ptx: str | Path | None, kernel: str, arguments: Sequence[Any], grid: int | Sequence[int],
               block: int | Sequence[int], cluster: int | Sequence[int] | None, shared: int, launch: str | Path | None, scale: str,
               parameters: Mapping[str, int] | None, variables: Mapping[str, Any] | None) -> _Launch:
    if (ptx is None) == (launch is None):
        raise Error("a PTX file or launch=FILE was expected, one of the two")
    described = _Launch(folder)
    if launch is None:
        described.by_hand(ptx, arguments, grid, block, cluster, shared)
    elif (len(arguments), grid, block, cluster, shared) != (0, 1, 1, None, 0):
        raise Error(f"{launch} says arguments, grid, block, cluster and shared itself; leave them out")
    else:
        described.of_file(launch)
    described.choose(kernel, scale, parameters or {}, variables or {})
    return described


def emulate(ptx: str | Path | None = None, kernel: str = "", arguments: Sequence[Any] = (), *,
            grid: int | Sequence[int] = 1, block: int | Sequence[int] = 1, cluster: int | Sequence[int] | None = None,
            shared: int = 0, launch: str | Path | None = None, scale: str = "", parameters: Mapping[str, int] | None = None,
            variables: Mapping[str, Any] | None = None, outputs: Sequence[str] = ()) -> Emulation:
    """Runs a kernel of a PTX file, or a launch file, on the CPU.

    Arguments are arrays (buffers, which keep what they hold), numbers of NumPy, and bytes (structures); `kernel` may be
    left out where the file has one. `cluster` is as many blocks as a cluster has, where the kernel leaves that to its launch.
    Of a launch file, `outputs` names the buffers to give back.
    Findings and outputs that miss their reference are in the result; what cannot be run is an Error.
    """
    with tempfile.TemporaryDirectory() as folder:
        described = _described(folder, ptx, kernel, arguments, grid, block, cluster, shared, launch, scale, parameters,
                               variables)
        numpy = described.numpy
        files = {name: f"out{i}.npy" for i, name in enumerate([name for name, _ in described.arrays] + list(outputs))}
        options = [word for name, file in files.items() for word in ("--save", f"{name}={file}")]
        given = _asked(["emulate", *described.options, *options], EMULATE_SCHEMA, folder)
        after = {name: numpy.load(Path(folder) / file) for name, file in files.items()}
    return Emulation(
        arrays=tuple(after[name].view(before.dtype).reshape(before.shape) for name, before in described.arrays),
        outputs={name: after[name] for name in outputs},
        kernels=tuple(Kernel(**_members(one, Kernel, f"kernels[{i}]")) for i, one in enumerate(given["kernels"])),
        findings=tuple(Finding(**_members(one, Finding, f"findings[{i}]")) for i, one in enumerate(given["findings"])),
        warnings=tuple(one["detail"] for one in given["warnings"]), printed=given["printed"], check=given["check"])


def locality(ptx: str | Path | None = None, kernel: str = "", arguments: Sequence[Any] = (), *,
             grid: int | Sequence[int] = 1, block: int | Sequence[int] = 1, cluster: int | Sequence[int] | None = None,
             shared: int = 0, launch: str | Path | None = None, scale: str = "", parameters: Mapping[str, int] | None = None,
             variables: Mapping[str, Any] | None = None, granularity: str = "element") -> Locality:
    """What the blocks and the threads of a kernel share, and the hit rates that follow. The launch is that of emulate()."""
    with tempfile.TemporaryDirectory() as folder:
        described = _described(folder, ptx, kernel, arguments, grid, block, cluster, shared, launch, scale, parameters,
                               variables)
        numpy = described.numpy
        given = _asked(["locality", *described.options, "--maps", "--granularity", granularity], LOCALITY_SCHEMA, folder)

    def sharing(part: dict[str, Any]) -> Sharing:
        cells = part["map"]["cells"]
        rows = numpy.array(cells, dtype=numpy.int64).reshape(len(cells), 3)
        return Sharing(part["degree_of_sharing"], part["appearance_frequency"], rows)

    predicted = given.get("prediction", {}).get("whole_l2", {})
    return Locality(given["kernel"], given["method"], sharing(given["inter"]), sharing(given["intra"]),
                    predicted.get("l1_hit_rate"), predicted.get("l2_hit_rate"), given)


def schedule(config: str | Path, policy: str = "all", *, model: str = "simtbs") -> tuple[Policy, ...]:
    """Simulates the dispatch of a SimTBS configuration under one policy, or under all."""
    numpy = need_numpy()
    given = _asked(["schedule", str(config), "--policy", policy, "--model", model, "--verbose"], SCHEDULE_SCHEMA)

    def column(entry: dict[str, Any], name: str) -> numpy.ndarray:
        return numpy.array([one.get(name, float("nan")) for one in entry["kernel"]], dtype=numpy.float64)

    return tuple(Policy(one["policy"], one["finished_share"], one["antt"], one["stp"], one["fairness"],
                        column(one, "start"), column(one, "end"), column(one, "slowdown"), one)
                 for one in given["policies"])
