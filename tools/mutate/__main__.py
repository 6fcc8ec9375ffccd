"""Puts one-line faults into a room, one at a time, in a copy of the tree, and sees whether the room's tests notice.

usage: python3 tools/mutate --room ROOM [--count N] [--seed N] [--files TEXT] [--without TEXT] [--jobs N] [--with-cli]
A fault at which the tests only hang or crash counts as not noticed, because no assertion names what is wrong.
Exit codes: 0 done, 1 wrong input or the tests fail without a fault, 3 fewer were noticed than the room's bar.
"""

import argparse
import queue
import re
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

sys.dont_write_bytecode = True  # the tree stays as it is

from bench import Bench, copy_tree
from rooms import ROOMS
from sample import choose
from switches import VARIABLE
from trial import Program, killer, run_clean

NOT_COMPILED, KILLED, SURVIVED = "did not compile", "killed", "survived"
BROKE = "only hung or crashed"


def words():
    parser = argparse.ArgumentParser(prog="mutate", description=__doc__.split("\n\n")[0])
    parser.add_argument("--room", required=True, choices=sorted(ROOMS))
    parser.add_argument("--count", type=int, default=40, help="faults that are tried (40)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed chooses the same faults (1)")
    parser.add_argument("--files", default="", help="only files whose path holds one of these texts, comma between")
    parser.add_argument("--without", default="", help="no files whose path holds one of these texts, comma between")
    parser.add_argument("--jobs", type=int, default=1, help="builds side by side (1)")
    parser.add_argument("--together", action="store_true",
                        help="all faults in one build, each behind a switch; those that cannot have one are left out")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="of --together: judge the K-th of N parts (1/1)")
    parser.add_argument("--with-cli", action="store_true", help="the tests of the program that run the room's verbs too")
    parser.add_argument("--list", action="store_true", help="print the faults, build nothing")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="more for CMake, as after -D")
    return parser.parse_args()


def texts_of(tree, room, files, without):
    """The room's sources. A fault in a header would need most of the room compiled anew: they are left out."""
    inside = [part for part in ROOMS[room].files.split(",") if part] if room in ROOMS else []
    wanted = [part for part in files.split(",") if part]
    unwanted = [part for part in without.split(",") if part]
    top = tree / "src" / (room if not inside else tests_of(room))
    names = [str(path.relative_to(tree)) for path in top.rglob("*.cpp")]
    names = [name for name in names if not inside or any(part in name for part in inside)]
    return {name: (tree / name).read_text() for name in names
            if (not wanted or any(part in name for part in wanted)) and not any(part in name for part in unwanted)}


def tests_of(room):
    """The room whose tests are run."""
    return ROOMS[room].of or room if room in ROOMS else room


def suites_named_like(tree, room):
    """{stem of a test file: its suites}."""
    found = {}
    for path in (tree / "tests" / room).rglob("*_test.cpp"):
        stem = path.stem.removesuffix("_test")
        found.setdefault(stem, set()).update(
            re.findall(r"^\w*TEST\w*\(\s*(\w+)|^RC_GTEST\w*\(\s*(\w+)", path.read_text(), re.MULTILINE))
    return {stem: {name for pair in names for name in pair if name} for stem, names in found.items()}


def likely(file, named, killers):
    """Suites that may notice a fault of this file first: those that did before, and those named as it or its folder is."""
    stem, folder = Path(file).stem, Path(file).parent.name + "_"
    close = {name for other, names in named.items()
             if other in stem or stem in other or other.startswith(folder) for name in names}
    return close | killers.get(file, set())


def targets_of(room, with_cli):
    names = [] if room == "cli" else [f"demarc_{tests_of(room)}_tests"]
    names += [program[0] for program in ROOMS[room].programs]
    if with_cli or room == "cli":
        names += ["demarc_cli_tests", "demarc_program"]
    return sorted(set(names))


def programs_of(bench, room, with_cli):
    environment = {"TMPDIR": str(bench.build / "tmp"), "RC_PARAMS": "seed=1 max_success=20",
                   "DEMARC_LIBCUDA": str(bench.build / "libdemarc_fake_libcuda.so"),
                   "DEMARC_CACHE": str(bench.build / "tmp" / "cache")}
    plain = {name: environment[name] for name in ("TMPDIR", "RC_PARAMS")}
    commands = []
    if room != "cli":
        tests = bench.build / "tests" / tests_of(room) / f"demarc_{tests_of(room)}_tests"
        commands.append(Program([str(tests)], plain, ROOMS[room].leave_out))
    for _, path, arguments in ROOMS[room].programs:
        commands.append(Program([str(bench.build / path), *arguments], environment, ROOMS[room].leave_out))
    if with_cli or room == "cli":
        program = str(bench.build / "tests" / "cli" / "demarc_cli_tests")
        commands.append(Program([program, f"--gtest_filter={ROOMS[room].verbs}"], plain))
    return commands


class Judge:
    """What became of each fault; benches take faults from one queue."""

    def __init__(self, faults, named, show=print):
        self.pending = queue.SimpleQueue()
        for fault in faults:
            self.pending.put(fault)
        self.named = named
        self.show = show
        self.killers = {}
        self.results = []
        self.trouble = []
        self.lock = threading.Lock()

    def work(self, bench, programs):
        try:
            while not self.trouble:
                try:
                    fault = self.pending.get_nowait()
                except queue.Empty:
                    break
                begin = time.monotonic()
                self.note(fault, *self.judge(bench, programs, fault), time.monotonic() - begin)
        except Exception as error:  # told by the caller, in whose thread it belongs
            self.trouble.append(error)
        finally:
            bench.restore()

    def judge(self, bench, programs, fault):
        if not bench.put(fault):
            return NOT_COMPILED, None
        kill = killer(programs, likely(fault.file, self.named, self.killers))
        if not kill:
            return SURVIVED, None
        return KILLED if kill.asserted else BROKE, kill.test

    def work_together(self, bench, programs, part):
        """All faults from one build; only tests run for each."""
        numbered = {}
        while not self.pending.empty():
            numbered[len(numbered) + 1] = self.pending.get()
        placed = sorted(bench.put_together(numbered))
        for number in placed[part[0] - 1::part[1]]:
            begin = time.monotonic()
            fault = numbered[number]
            on = [replace(one, environment={**one.environment, VARIABLE: str(number)}) for one in programs]
            kill = killer(on, likely(fault.file, self.named, self.killers))
            state = SURVIVED if not kill else KILLED if kill.asserted else BROKE
            self.note(fault, state, kill.test if kill else None, time.monotonic() - begin)
        return len(numbered) - len(placed)

    def note(self, fault, state, test, seconds):
        with self.lock:
            self.results.append((fault, state, test))
            if test and "." in test:
                self.killers.setdefault(fault.file, set()).add(test.split(" ")[0].rsplit(".", 1)[0])
            by = f" by {test}" if test else ""
            self.show(f"{state}{by}: {fault.file}:{fault.line}: {fault.kind} ({seconds:.0f} s)\n"
                      f"  - {fault.before.strip()}\n  + {fault.after.strip()}", flush=True)


def summary(results, room):
    """The last lines, and whether the bar is reached."""
    number = {state: sum(1 for result in results if result[1] == state)
              for state in (KILLED, BROKE, SURVIVED, NOT_COMPILED)}
    counted = number[KILLED] + number[BROKE] + number[SURVIVED]
    share = 100 * number[KILLED] / counted if counted else 0
    lines = [f"{state}: {fault.file}:{fault.line}: {fault.kind}: {fault.after.strip()}"
             for fault, state, _ in sorted(results, key=lambda result: (result[0].file, result[0].line))
             if state in (BROKE, SURVIVED)]
    lines.append(f"{room}: {number[KILLED]} of {counted} faults killed ({share:.1f} %, to reach: {ROOMS[room].bar} %), "
                 f"{number[NOT_COMPILED]} did not compile")
    return lines, counted > 0 and share >= ROOMS[room].bar


def benches_of(tree, options):
    settings = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g0", "-DDEMARC_BUILD_BENCH=OFF",
                "-DDEMARC_PTX_COMPILER=kept",
                "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld", "-DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld"]
    settings += [f"-D{setting}" for setting in options.set]
    return [Bench(tree, f"dev{n}", tests_of(options.room), targets_of(options.room, options.with_cli), settings)
            for n in range(options.jobs)]


def prepare(benches, options):
    """Builds without faults, runs the tests once. Gives each bench its programs."""
    prepared = []
    for bench in benches:
        wrong = bench.prepare()
        programs = programs_of(bench, options.room, options.with_cli)
        for program in programs:
            wrong = wrong or run_clean(program)
        if wrong:
            sys.exit(f"mutate: {wrong}")
        prepared.append((bench, programs))
    return prepared


def main():
    options = words()
    root = Path(__file__).resolve().parents[2]
    tree = root / "build" / "mutate" / options.room / "tree"
    if options.count < 1 or options.jobs < 1:
        sys.exit("mutate: --count and --jobs are 1 or more")
    copy_tree(root, tree)
    faults = choose(texts_of(tree, options.room, options.files, options.without), options.count, options.seed)
    if not faults:
        sys.exit(f"mutate: no file of room {options.room} can get a fault (--files {options.files})")
    if options.list:
        for fault in faults:
            print(f"{fault.file}:{fault.line}: {fault.kind}\n  - {fault.before.strip()}\n  + {fault.after.strip()}")
        return 0
    judge = Judge(faults, suites_named_like(tree, tests_of(options.room)))
    if options.together:
        part = [int(number) for number in options.part.split("/")]
        (bench, programs), = prepare(benches_of(tree, options), options)
        left_out = judge.work_together(bench, programs, part)
        lines, reached = summary(judge.results, options.room)
        print("\n".join(lines + [f"{left_out} faults of {len(faults)} have lines without room for a switch"]))
        return 0 if reached else 3
    workers = [threading.Thread(target=judge.work, args=pair) for pair in prepare(benches_of(tree, options), options)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if judge.trouble:
        sys.exit(f"mutate: {judge.trouble[0]}")
    lines, reached = summary(judge.results, options.room)
    print("\n".join(lines))
    return 0 if reached else 3


if __name__ == "__main__":
    sys.exit(main())
