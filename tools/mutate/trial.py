"""Runs test programs on a fault until one test fails: a GoogleTest program, suite by suite, the likely ones first."""

import os
import re
import resource
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

MEMORY_LIMIT = 16 << 30  # bytes that one process may map


@dataclass
class Suite:
    name: str
    seconds: float


@dataclass
class Program:
    """One command of the room's tests, and what its run without a fault took."""
    command: list
    environment: dict = field(default_factory=dict)
    leave_out: str = ""  # as in --gtest_filter, after the minus
    suites: list = field(default_factory=list)
    processor_s: float = 0.0
    clock_s: float = 0.0


@dataclass
class Run:
    code: int
    output: str
    processor_s: float
    clock_s: float
    too_long: bool


def run(program, arguments, processor_limit, clock_limit):
    """Runs a command in a group of processes of its own, which is gone when this returns."""
    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (int(processor_limit) + 1, int(processor_limit) + 2))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    begin = time.monotonic()
    used = _children_s()
    too_long = False
    # A file and no pipe: a child that left the group may hold its end open long after the tests.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryDirectory() as folder:
        # GoogleTest keeps this file while tests are under way: a program that ends meanwhile has failed.
        under_way = os.path.join(folder, "tests")
        process = subprocess.Popen(program.command + arguments, stdout=output, stderr=subprocess.STDOUT,
                                   env={**os.environ, **program.environment, "TEST_PREMATURE_EXIT_FILE": under_way},
                                   start_new_session=True, preexec_fn=limits)
        try:
            process.wait(timeout=clock_limit)
        except subprocess.TimeoutExpired:
            too_long = True
        _end(process)
        process.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
        early = os.path.exists(under_way)
    too_long = too_long or process.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
    code = process.returncode or (1 if early else 0)
    return Run(code, text, _children_s() - used, time.monotonic() - begin, too_long)


def _children_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_clean(program, clock_limit=3600):
    """Without a fault: learns suites and times. Returns what was wrong, or nothing."""
    arguments = [f"--gtest_filter=-{program.leave_out}"] if program.leave_out else []
    result = run(program, arguments, clock_limit, clock_limit)
    program.processor_s = result.processor_s
    program.clock_s = result.clock_s
    times = re.findall(r"^\[-+\] \d+ tests? from (\S+)(?:, where .*)? \((\d+) ms total\)$", result.output, re.MULTILINE)
    program.suites = sorted((Suite(name, int(ms) / 1000) for name, ms in times), key=lambda suite: suite.seconds)
    if result.code == 0:
        return None
    return f"{' '.join(program.command)} fails without a fault: {failed_test(result)}\n{result.output[-2000:]}"


def failed_test(result):
    """The test that noticed, in words."""
    failed = re.search(r"^\[  FAILED  \] ([^\s,]+)", result.output, re.MULTILINE)
    begun = re.findall(r"^\[ RUN      \] (\S+)", result.output, re.MULTILINE)
    where = begun[-1] if begun else "the program"
    if result.too_long:
        return f"{where} (time limit)"
    if failed:
        return failed.group(1)
    if result.code < 0:
        return f"{where} (signal {-result.code})"
    return f"{where} (exit code {result.code})"


def groups(program, likely):
    """Names of suites that run in one process each time: the likely ones, the cheap half, the rest."""
    if len(program.suites) < 2:
        return [None]
    first = [suite.name for suite in program.suites if suite.name in likely]
    rest = [suite for suite in program.suites if suite.name not in likely]
    half = sum(suite.seconds for suite in rest) / 4
    cheap, dear, seconds = [], [], 0.0
    for suite in rest:
        seconds += suite.seconds
        (cheap if seconds <= half else dear).append(suite.name)
    return [group for group in (first, cheap, dear) if group]


@dataclass(frozen=True)
class Kill:
    test: str
    asserted: bool  # a test failed; else the tests only hung or crashed


def killer(programs, likely):
    """The test that fails; where none does, the first that hangs or crashes; None where all pass. The limit is one of
    processor time, five times what these tests take without a fault; that by the clock is for those that wait, and far
    off, since others may have the processors."""
    broken = None
    for program in programs:
        for group in groups(program, likely):
            for result in _runs(program, group):
                kill = Kill(failed_test(result), _asserted(program, result))
                if kill.asserted:
                    return kill
                broken = broken or kill
    return broken


def _runs(program, group):
    """Failing runs of a group. A test that hangs or crashes hides those behind it, so the group is run again without
    it, and after another one of its suite without that. Hangs take long, so after three of them nothing more is tried."""
    hidden, hangs = [], 0
    every = sum(suite.seconds for suite in program.suites)
    taken = sum(suite.seconds for suite in program.suites if group is None or suite.name in group)
    part = taken / every if every else 1.0
    while len(hidden) < 8 and hangs < 3:
        arguments = ["--gtest_fail_fast"] if program.suites else []
        if group is not None:
            names = ":".join(name + ".*" for name in group)
            arguments.append(f"--gtest_filter={names}-" + ":".join(filter(None, [program.leave_out, *hidden])))
        result = run(program, arguments, 5 * program.processor_s * part + 20, 30 * program.clock_s * part + 60)
        if result.code == 0 and not result.too_long:
            return
        yield result
        test = failed_test(result).split(" ")[0]
        if group is None or "." not in test:
            return
        suite = test.rsplit(".", 1)[0] + "."
        hidden.append(suite + "*" if any(one.startswith(suite) for one in hidden) else test)
        hangs += result.too_long


def _asserted(program, result):
    """A program that is not GoogleTest's asserts by its exit code."""
    if result.too_long or result.code < 0:
        return False
    return not program.suites or "[  FAILED  ] " in result.output
