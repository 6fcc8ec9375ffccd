"""Measures PyTorch programs behind partitions of TPCs and prints Markdown: the tables of docs/measurements/cnn.md and of
masks.md, "PyTorch under demarc exec".

  detectors  a detector alone, beside a second one and beside a flood of products, with and without a partition of half the card
  memory     the same in its half beside neighbours that flood the memory, whose TPCs are taken away while they run
  moved      the detector with more and more whole GPCs while both programs run
  resnet     ResNet-50 unconfined and in a half: times and outputs
  pair       two of them, each in a half; the first is moved to one GPC and back
  cost       what `demarc exec` costs a program that keeps the whole card, in pairs whose order alternates

Programs of other processes run at once under MPS only: a daemon is started and stopped, in a folder of its own. Exit code 0;
2: the machine lacks something; 3: a program ended early, stood still or computed something else.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from timing import figures

HERE = pathlib.Path(__file__).resolve().parent
PARTS = ["detectors", "memory", "moved", "resnet", "pair", "cost"]


class Failed(Exception):
    """What did not hold."""


def fail_with_output(program, what):
    program.stop()
    raise Failed(f"{program.name}: {what}\n{program.output()}")


class Program:
    """A script of this folder, inside a partition when `tpcs` are given or `share` is; or `command`, whatever it is."""

    def __init__(self, bench, name, *arguments, tpcs=None, share=None, command=None, environment=None, seconds=120):
        self.bench, self.name = bench, f"{name} {' '.join(arguments)}"
        bench.programs.append(self)
        command = command or [sys.executable, str(HERE / name), *arguments]
        if tpcs is not None:
            command = [bench.demarc, "exec", "--tpcs", tpcs, "--", *command]
        if share is not None:
            command = [bench.demarc, "exec", "--sms", f"{share}%", "--", *command]
        self.errors = tempfile.NamedTemporaryFile(prefix="demarc-pytorch-", suffix=".txt")
        self.said = tempfile.NamedTemporaryFile(prefix="demarc-pytorch-", suffix=".txt")
        self.reader = open(self.said.name, encoding="utf-8")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=self.said, stderr=self.errors, text=True,
                                        env=bench.environment | (environment or {}), start_new_session=True)
        self.pid = int(self.line(seconds).split()[1])  # of the program itself, behind whatever confines it

    def output(self):
        return pathlib.Path(self.errors.name).read_text(errors="replace")[-2000:]

    def line(self, seconds):
        """The next line that it says."""
        text, end = "", time.monotonic() + seconds
        while not text.endswith("\n"):
            text += self.reader.readline()
            if text.endswith("\n"):
                break
            if self.process.poll() is not None:
                text += self.reader.read()
                if not text.endswith("\n"):
                    fail_with_output(self, f"ended with {self.process.returncode}")
            if time.monotonic() > end:
                fail_with_output(self, f"said nothing for {seconds} s")
            time.sleep(0.01)
        return text

    def ask(self, frames, seconds):
        self.process.stdin.write(f"{frames} {seconds}\n")
        self.process.stdin.flush()

    def answer(self, seconds=120):
        return json.loads(self.line(seconds))

    def time(self, frames, seconds=10):
        self.ask(frames, seconds)
        return self.answer(seconds + 120)

    def progress(self):
        """How far an endless program says that it has come."""
        whole_lines = pathlib.Path(self.said.name).read_text().split("\n")[:-1]  # the last may still be written
        last = [line for line in whole_lines if line.startswith("at ")]
        return int(last[-1].split()[1]) if last else 0

    def move(self, tpcs):
        run = subprocess.run([self.bench.demarc, "exec", "--pid", str(self.pid), "--tpcs", tpcs], env=self.bench.environment,
                             capture_output=True, text=True)
        if run.returncode != 0:
            fail_with_output(self, f"could not be moved to TPCs {tpcs}: {run.stderr}")
        time.sleep(0.2)  # what was launched before has ended

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Bench:
    def __init__(self, arguments):
        self.demarc = str(pathlib.Path(arguments.demarc).resolve())
        self.frames = arguments.frames
        self.programs = []
        self.environment = dict(os.environ)
        # Outside of MPS: the numbers of the SMs are the card's there.
        run = subprocess.run([self.demarc, "topo", "--json"], capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(fail(2, run.stderr.strip()))
        device = json.loads(run.stdout)["device"]
        self.card = device["name"]
        gpcs = {}
        for number, tpc in enumerate(device["topology"]["tpcs"]):
            gpcs.setdefault(tpc["gpc"], []).append(number)
        # The largest first: kernels with thread-block clusters need whole ones.
        self.gpcs = sorted(gpcs.values(), key=len, reverse=True)
        self.first, self.second = self.halves()
        self.mps = None

    def halves(self):
        """GPCs in two groups of as equal a number of TPCs as there is."""
        best = None
        for choice in range(1 << (len(self.gpcs) - 1)):
            groups = [[], []]
            for number, gpc in enumerate(self.gpcs):
                groups[choice >> number & 1] += gpc
            apart = abs(len(groups[0]) - len(groups[1]))
            if best is None or apart < best[0]:
                best = (apart, groups)
        return [listed(group) for group in best[1]]

    def start_mps(self):
        self.mps = tempfile.mkdtemp(prefix="demarc-pytorch-mps-")
        self.environment |= {"CUDA_MPS_PIPE_DIRECTORY": self.mps, "CUDA_MPS_LOG_DIRECTORY": self.mps}
        try:
            subprocess.run(["nvidia-cuda-mps-control", "-d"], env=self.environment, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            shutil.rmtree(self.mps, ignore_errors=True)
            sys.exit(fail(2, f"MPS does not start: {error}"))

    def stop(self):
        for program in self.programs:
            program.stop()
        if self.mps is None:
            return
        subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env=self.environment, capture_output=True)
        shutil.rmtree(self.mps, ignore_errors=True)


def listed(tpcs):
    return ",".join(str(tpc) for tpc in sorted(tpcs))


def count(tpcs):
    return len(tpcs.split(","))


def fail(code, text):
    print(text, file=sys.stderr)
    return code


def table(title, columns):
    print(f"\n## {title}\n\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns), flush=True)


def row(*cells):
    print("| " + " | ".join("-" if cell is None else f"{cell:.2f}" if isinstance(cell, float) else str(cell)
                            for cell in cells) + " |", flush=True)


def driver_version():
    try:
        text = pathlib.Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return "unknown"
    found = re.search(r"\b\d+\.\d+(\.\d+)?\b", text)
    return found.group() if found else "unknown"


def beside(victim, neighbour, frames, seconds=4):
    """The victim's answer while the neighbour works, which it must be seen to do."""
    before = neighbour.progress() if neighbour else 0
    answer = victim.time(frames, seconds)
    if neighbour:
        end = time.monotonic() + 10
        while neighbour.progress() <= before:
            if neighbour.process.poll() is not None or time.monotonic() > end:
                fail_with_output(neighbour, "did not work beside the victim")
            time.sleep(0.05)
    return answer


STATISTICS = ["mean", "deviation", "least", "p50", "p99", "worst", "frames"]


def detectors(bench):
    table("Two detectors share a GPU (ms a frame)", ["competitor", "partition"] + STATISTICS)
    for confined in (False, True):
        own = dict(tpcs=bench.first) if confined else {}
        other = dict(tpcs=bench.second) if confined else {}
        with Program(bench, "detector.py", **own) as victim:
            for name, script in [("none", None), ("well-behaved", ("detector.py", "--endless")),
                                 ("faulty", ("flood.py", "products"))]:
                neighbour = Program(bench, *script, **other) if script else None
                try:
                    found = figures(beside(victim, neighbour, bench.frames)["times"])
                finally:
                    if neighbour:
                        neighbour.stop()
                row(name, "yes" if confined else "no", *(found[key] for key in STATISTICS))


def memory(bench):
    table("A competitor that floods the memory (ms a frame)", ["competitor", "its TPCs"] + STATISTICS)
    mine = bench.second.split(",")
    with Program(bench, "detector.py", tpcs=bench.first) as victim:
        for name, script in [("well-behaved", ("detector.py", "--endless")), ("products of matrices", ("flood.py", "products")),
                             ("fills", ("flood.py", "fills")), ("adds", ("flood.py", "adds"))]:
            with Program(bench, *script, tpcs=bench.second) as neighbour:
                sizes = [len(mine)] + ([16, 8, 4, 2] if name == "adds" else [])
                for size in sizes:
                    if size != len(mine):
                        neighbour.move(",".join(mine[:size]))
                    found = figures(beside(victim, neighbour, bench.frames, 8)["times"])
                    row(name, size, *(found[key] for key in STATISTICS))


def moved(bench):
    table("Time against the number of TPCs, moved while both run (ms a frame)", ["TPCs", "competitor's"] + STATISTICS)
    whole = [gpc for gpc in bench.gpcs if len(gpc) > 1]
    rest = [tpc for gpc in bench.gpcs if len(gpc) == 1 for tpc in gpc]
    with Program(bench, "detector.py", tpcs=bench.first) as victim, \
            Program(bench, "detector.py", "--endless", tpcs=bench.second) as neighbour:
        for size in range(1, len(whole)):
            own = listed(sum(whole[:size], []))
            other = listed(sum(whole[size:], rest[:]))
            victim.move(own)
            neighbour.move(other)
            found = figures(beside(victim, neighbour, min(bench.frames, 300))["times"])
            row(count(own), count(other), *(found[key] for key in STATISTICS))


def same_output(answers):
    if len({answer["sha256"] for answer in answers}) != 1:
        raise Failed("the outputs of the same network differ: " + ", ".join(a["sha256"] for a in answers))


def resnet(bench):
    table("ResNet-50, batch of 8 (ms)", ["partition"] + STATISTICS + ["SHA-256 of the last output"])
    answers = []
    for name, own in [("unconfined", {}), (f"{count(bench.first)} TPCs", dict(tpcs=bench.first))]:
        with Program(bench, "resnet.py", **own) as program:
            answers.append(program.time(bench.frames, 20))
        found = figures(answers[-1]["times"])
        row(name, *(found[key] for key in STATISTICS), answers[-1]["sha256"][:16])
    same_output(answers)


def pair(bench):
    # A whole GPC of the first half: kernels with thread-block clusters need one.
    mine = set(bench.first.split(","))
    one = listed(next(gpc for gpc in bench.gpcs if {str(tpc) for tpc in gpc} <= mine))
    steps = [("1", None), ("2", None), ("3, moved", one), ("4", None), ("5, back", bench.first), ("6", None)]
    table("Two of them at once, median ms of each second", ["partition"] + [name for name, _ in steps])
    with Program(bench, "resnet.py", tpcs=bench.first) as first, Program(bench, "resnet.py", tpcs=bench.second) as second:
        medians, answers = ([], []), []
        for _, place in steps:
            if place:
                first.move(place)
            for program in (first, second):
                program.ask(100000, 1)
            for program, own in zip((first, second), medians):
                answers.append(program.answer())
                own.append(figures(answers[-1]["times"])["p50"])
        row(f"{count(bench.first)} TPCs, then {count(one)}, then back", *medians[0])
        row(f"{count(bench.second)} TPCs", *medians[1])
        same_output(answers)


def cost(bench):
    table("What exec costs ResNet-50 on the whole card (median ms)", ["", "plain", "under exec", "difference, %", "pairs", "frames"])
    pairs, frames, answers = 2, min(bench.frames, 300), []
    for name, arguments in [("CUDA graph", ["--graph"]), ("eager", [])]:
        medians = {None: [], 100: []}
        for number in range(pairs):
            for share in (None, 100) if number % 2 == 0 else (100, None):
                with Program(bench, "resnet.py", *arguments, share=share) as program:
                    answers.append(program.time(frames, 20))
                medians[share].append(figures(answers[-1]["times"])["p50"])
        differences = sorted(100 * (b / a - 1) for a, b in zip(medians[None], medians[100]))
        row(name, *(sum(medians[share]) / pairs for share in (None, 100)), sum(differences) / pairs, pairs, frames)
    same_output(answers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=[], metavar="PART", help="which tables (all): " + ", ".join(PARTS))
    parser.add_argument("--frames", type=int, default=1000, help="frames of a row at most; below 1000 there is no p99 (1000)")
    parser.add_argument("--demarc", default="build/release/demarc", help="the program (build/release/demarc)")
    arguments = parser.parse_args()
    for part in arguments.parts:
        if part not in PARTS:
            parser.error(f"'{part}' is not a part; there are {', '.join(PARTS)}")
    if arguments.frames < 1:
        parser.error(f"--frames {arguments.frames}: at least one is needed")
    if not os.access(arguments.demarc, os.X_OK):
        return fail(1, f"{arguments.demarc}: there is no such program; make build, or name it with --demarc")
    bench = Bench(arguments)
    bench.start_mps()
    try:
        print(f"{bench.card}, driver {driver_version()}; halves of {count(bench.first)} and "
              f"{count(bench.second)} TPCs; {time.strftime('%Y-%m-%d')}\n\n    python3 {' '.join(sys.argv)}", flush=True)
        for part in arguments.parts or PARTS:
            globals()[part](bench)
    except Failed as error:
        return fail(3, str(error))
    finally:
        bench.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
