"""Measures programs that know nothing of each other on one card, each in a half of it, and prints Markdown: the tables of
docs/measurements/programs.md, "Two programs, each in its half".

Victims: the decoder (one token a step, as a CUDA graph), the same for eight requests at once (batching.py) and reading prompts,
the detector, all compiled by Triton alone, a matrix product and an attention (kernels.py), and a CUDA program
(examples/tenants/steps.cu). Neighbours: a compiled PyTorch program that floods the memory, a CUDA program that copies, and
the decoder, its two other forms and the product without end. The card is shared by

  mps      MPS; nothing is divided
  percent  MPS, half of the threads for each (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE)
  green    MPS, and green contexts of half of the SMs, which the programs enter (examples/tenants/green_half.cpp)
  mask     demarc exec --tpcs: half of the TPCs for each
  tenant   demarc exec --tenant: half of the TPCs and of the memory's colours

Outputs of all ways have to be the same to the bit. Exit code 0; 2: the machine lacks something; 3: a program ended early, stood
still or computed something else.
"""
import argparse
import atexit
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from measure import HERE, Bench, Failed, Program, beside, driver_version, fail, listed, row, table
from timing import figures

WAYS = ["mps", "percent", "green", "mask", "tenant"]
VICTIMS = {"decoder": ("decoder.py", "--compile", "--graph"), "detector": ("detector.py", "--compile", "--graph"), "steps": ("steps",),
           "product": ("kernels.py",), "attention": ("kernels.py", "--attention", "--compile"),
           "prefill": ("decoder.py", "--compile", "--prefill"), "batch": ("batching.py", "--compile", "--graph")}
TRIED = ["detector"]  # of these Inductor tries kernels once, in a tenant's colours, where some of them are refused
NEIGHBOURS = {"idle": None, "flood": ("flood.py", "adds", "--compile"), "prefill": ("decoder.py", "--compile", "--prefill", "--endless"),
              "copies": ("steps", "copies"), "decoder": ("decoder.py", "--compile", "--graph", "--endless"),
              "batch": ("batching.py", "--compile", "--graph", "--endless"), "product": ("kernels.py", "--endless")}
# Frames after which outputs are compared: the same from the start of each program.
COMPARED = 20


class Clocks:
    """The SM clock and the power of the card while something runs: nothing divides them among parts."""

    def __init__(self):
        self.said = tempfile.NamedTemporaryFile(prefix="demarc-clocks-", suffix=".csv")
        self.process = None
        if shutil.which("nvidia-smi"):
            self.process = subprocess.Popen(["nvidia-smi", "--id=0", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits",
                                             "-lms", "100"], stdout=self.said, stderr=subprocess.DEVNULL)
            atexit.register(self.process.kill)

    def lines(self):
        return pathlib.Path(self.said.name).read_text().splitlines()

    def since(self, seen):
        """Means of the samples behind the first `seen`: MHz and W. None where nvidia-smi says nothing within two seconds."""
        end = time.monotonic() + 2
        while self.process and len(self.lines()) < seen + 2 and time.monotonic() < end:
            time.sleep(0.01)
        samples = [[float(cell) for cell in line.split(",")] for line in self.lines()[seen:-1]]
        if not samples:
            return {"clock": None, "power": None}
        return {name: sum(sample[i] for sample in samples) / len(samples) for i, name in enumerate(["clock", "power"])}


class Halves(Bench):
    """The card in two halves, and a server of two tenants."""

    def __init__(self, arguments):
        super().__init__(arguments)
        if arguments.split == "distributed":
            dealt = [tpc for gpc in self.gpcs for tpc in gpc]
            self.first, self.second = listed(dealt[::2]), listed(dealt[1::2])
        self.steps, self.green_half = arguments.steps, arguments.green_half
        self.memory, self.description = arguments.memory, arguments.description
        self.folder = tempfile.TemporaryDirectory(prefix="demarc-tenants-")
        self.socket = str(pathlib.Path(self.folder.name) / "demarc.sock")
        self.server = None
        self.allow_spills, self.overlap = arguments.allow_spills, arguments.overlap_launches
        self.pick_seconds = arguments.pick_seconds
        self.counted = []  # what the server counted of each tenant, beside each neighbour
        self.clocks = Clocks()
        self.environment["PYTHONPATH"] = os.pathsep.join(
            [str(HERE.parent.parent / "python")] + [path for path in [os.environ.get("PYTHONPATH")] if path])

    def serve(self):
        config = pathlib.Path(self.folder.name) / "demarc.toml"
        description = f'description = "{self.description}"\n' if self.description else ""
        config.write_text(f'{description}memory = "{self.memory}"\nmps = "on"\nsocket = "{self.socket}"\n'
                          f'[tenants.a]\ntpcs = "{self.first}"\ncolors = "1/2"\n'
                          f'[tenants.b]\ntpcs = "{self.second}"\ncolors = "2/2"\n')
        said = open(pathlib.Path(self.folder.name) / "server.txt", "w+", encoding="utf-8")
        self.server = subprocess.Popen([self.demarc, "serve", "--config", str(config)], stderr=said, start_new_session=True)
        end = time.monotonic() + 120
        while "bytes in the colours" not in pathlib.Path(said.name).read_text():
            if self.server.poll() is not None or time.monotonic() > end:
                raise Failed("demarc serve: " + pathlib.Path(said.name).read_text())
            time.sleep(0.05)

    def stop(self):
        super().stop()
        self.mps = None
        for name in ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"):
            self.environment.pop(name, None)
        if self.server is not None:
            self.server.terminate()
            self.server.wait()
            self.server = None

    def picks(self, name):
        """Where a victim's kernels are kept that were the fastest."""
        return str(pathlib.Path(self.folder.name) / f"{name}.json")

    def pick(self, victims):
        """Has Inductor try the kernels of those victims that need it, in tenant a."""
        for name in [name for name in victims if name in TRIED]:
            script, *arguments = VICTIMS[name]
            try:
                with self.start(script, arguments + ["--note-picks", self.picks(name)], "tenant", 0, self.pick_seconds):
                    print(f"{name}: kernels picked", file=sys.stderr, flush=True)
            except Failed as error:
                if not os.path.exists(self.picks(name)):
                    raise
                print(f"{name}: not all kernels were tried: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)

    def count(self, beside_what):
        """Notes what the server counts of the programs that run now."""
        listed = subprocess.run([self.demarc, "lease", "list", "--socket", self.socket, "--json"], capture_output=True, text=True)
        if listed.returncode != 0:
            raise Failed("demarc lease list: " + listed.stderr)
        self.counted += [(beside_what, tenant) for tenant in json.loads(listed.stdout)["tenants"]]

    def start(self, name, arguments, way, part, seconds):
        """A program in part 0 or 1."""
        share, environment = [], {}
        if way == "percent":
            environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = "50"
        elif way == "green":
            environment |= {"LD_PRELOAD": self.green_half, "GREEN_HALF": str(part)}
        elif way == "mask":
            share = ["exec", "--tpcs", [self.first, self.second][part], "--"]
        elif way == "tenant":
            share = ["exec", "--socket", self.socket, "--tenant", "ab"[part], "--report",
                     *(["--overlap-launches"] if self.overlap else []), "--allow-spills", str(self.allow_spills), "--"]
        program = [self.steps] if name == "steps" else [sys.executable, str(HERE / name)]
        return Program(self, name, *arguments, command=([self.demarc] + share if share else []) + program + list(arguments),
                       environment=environment, seconds=seconds)


def measured(bench, way, victims, neighbours):
    """Figures of each victim beside each neighbour, the victims' outputs, and whether all of them ran."""
    found, outputs = {}, {}
    running = {}
    with ThreadPoolExecutor() as pool:
        starting = {}
        for name in victims:
            script, *arguments = VICTIMS[name]
            if os.path.exists(bench.picks(name)):
                arguments += ["--picks", bench.picks(name)]
            starting[name] = pool.submit(bench.start, script, arguments, way, 0, 600)
    for name, started in starting.items():
        try:
            running[name] = started.result()
        except Failed as error:
            fail(3, f"{way}: left out: {error}")
            continue
        outputs[name] = running[name].time(COMPARED, 60)["sha256"]
    for beside_what in neighbours:
        script = NEIGHBOURS[beside_what]
        neighbour = bench.start(script[0], script[1:], way, 1, 600) if script else None
        for name, victim in running.items():
            seen = len(bench.clocks.lines())
            cell = found[name, beside_what] = figures(beside(victim, neighbour, bench.frames, bench.seconds)["times"])
            cell |= bench.clocks.since(seen)
            print(f"{way}: {name} beside {beside_what}: mean {cell['mean']:.4f} ms, p99 or worst {tail(cell):.4f}, "
                  f"{cell['frames']} frames", file=sys.stderr, flush=True)
        if way == "tenant":
            bench.count(beside_what)
        if neighbour:
            neighbour.stop()
    for victim in running.values():
        victim.stop()
    return found, outputs, len(running) == len(victims)


def slower(value, idle):
    return None if value is None or idle is None else 100 * (value / idle - 1)


# The figures of a cell that was not measured.
NONE = {"mean": None, "p99": None, "worst": None, "frames": None, "clock": None, "power": None}


def tail(found):
    """p99, or where there is none the worst."""
    return found["p99"] if found["p99"] is not None else found["worst"]


def print_tables(bench, results, victims, neighbours):
    table("Slower than beside nobody, per cent: mean, p99 (worst below 1000 frames)",
          ["victim", "neighbour"] + [f"{way}: {what}" for way in results for what in ("mean", "p99", "frames")])
    for name in victims:
        for other in neighbours:
            if other == "idle":
                continue
            cells = []
            for found in results.values():
                idle, here = found.get((name, "idle"), NONE), found.get((name, other), NONE)
                cells += [slower(here["mean"], idle["mean"]), slower(tail(here), tail(idle)), here["frames"]]
            row(name, other, *cells)
    table("Beside nobody, ms a frame, and throughput over half of that of the whole card",
          ["victim"] + [f"{way}: {what}" for way in results for what in ("mean", "p99", "share")])
    for name in victims:
        whole = results.get("mps", {}).get((name, "idle"), NONE)["mean"]
        cells = []
        for found in results.values():
            idle = found.get((name, "idle"), NONE)
            cells += [idle["mean"], idle["p99"], None if None in (whole, idle["mean"]) else 2 * whole / idle["mean"]]
        row(name, *cells)


def print_clocks(results, victims, neighbours):
    table("The card meanwhile: SM clock, MHz, and power, W; parts share both",
          ["victim", "neighbour"] + [f"{way}: {what}" for way in results for what in ("clock", "power")])
    for name in victims:
        for other in neighbours:
            row(name, other, *(found.get((name, other), NONE)[what] for found in results.values() for what in ("clock", "power")))


def print_counted(counted):
    """The figures of victims (tenant a) and of each neighbour (tenant b) while it ran."""
    def total(of):
        return sum(of) if isinstance(of, list) else of  # launches are counted by path
    counts = ["unconfined_launches", "refused_launches", "refused_kernels", "refused_calls", "refused_bytes"]
    table("What the server counted", ["neighbour", "tenant", "bytes"] + [name.replace("_", " ") for name in counts])
    for beside_what, tenant in counted:
        if tenant["leases"]:
            row(beside_what, tenant["name"], tenant["given_bytes"], *(total(tenant[name]) for name in counts))


def check_outputs(outputs, victims):
    for name in victims:
        said = {way: of_way[name] for way, of_way in outputs.items() if name in of_way}
        if len(set(said.values())) > 1:
            raise Failed(f"{name} computes other outputs: " + ", ".join(f"{way} {digest[:16]}" for way, digest in said.items()))
    print("\nThe outputs of all ways are the same to the bit.", flush=True)


def chosen(parser, given, known, what):
    names = given.split(",") if given else list(known)
    for name in names:
        if name not in known:
            parser.error(f"--{what} {name}: there are {', '.join(known)}")
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ways", help="which of " + ",".join(WAYS) + " (all)")
    parser.add_argument("--victims", help="which of " + ",".join(VICTIMS) + " (all)")
    parser.add_argument("--neighbours", help="which of " + ",".join(NEIGHBOURS) + " (all; idle is always among them)")
    parser.add_argument("--frames", type=int, default=1000, help="frames of a cell at most; below 1000 there is no p99 (1000)")
    parser.add_argument("--seconds", type=float, default=20, help="of a cell at most (20)")
    parser.add_argument("--split", choices=["gpc-aligned", "distributed"], default="gpc-aligned",
                        help="whole GPCs for each half, or every second TPC of each GPC (gpc-aligned)")
    parser.add_argument("--memory", default="64 GiB", help="of the card that the tenants share (64 GiB)")
    parser.add_argument("--allow-spills", type=int, default=0, help="of demarc exec, for the way tenant (0)")
    parser.add_argument("--pick-seconds", type=float, default=240,
                        help="for the trial of the kernels of " + ",".join(TRIED) + "; the rest are taken untried (240)")
    parser.add_argument("--overlap-launches", action="store_true", help="of demarc exec, for the way tenant")
    parser.add_argument("--description", help="of the card's memory, as in the configuration of demarc serve (what is built in)")
    parser.add_argument("--steps", default="build/steps", help="examples/tenants/steps.cu, compiled (build/steps)")
    parser.add_argument("--green-half", default="build/green_half.so",
                        help="examples/tenants/green_half.cpp, compiled, for the way green (build/green_half.so)")
    parser.add_argument("--demarc", default="build/release/demarc", help="the program (build/release/demarc)")
    arguments = parser.parse_args()
    ways = chosen(parser, arguments.ways, WAYS, "ways")
    victims = chosen(parser, arguments.victims, VICTIMS, "victims")
    neighbours = chosen(parser, arguments.neighbours, NEIGHBOURS, "neighbours")
    neighbours = ["idle"] + [name for name in neighbours if name != "idle"]
    if arguments.frames < 1:
        parser.error(f"--frames {arguments.frames}: at least one is needed")
    needed = [("--demarc", arguments.demarc), ("--steps", arguments.steps)]
    if "green" in ways:
        needed.append(("--green-half", arguments.green_half))
    for name, path in needed:
        if not os.access(path, os.X_OK):
            return fail(1, f"{path}: there is no such program; make it, or name it with {name}")
    arguments.steps, arguments.green_half = (str(pathlib.Path(path).resolve()) for path in (arguments.steps, arguments.green_half))
    bench = Halves(arguments)
    bench.seconds = arguments.seconds
    print(f"{bench.card}, driver {driver_version()}; halves {bench.first} and {bench.second}; {time.strftime('%Y-%m-%d')}\n\n"
          f"    python3 {' '.join(sys.argv)}", flush=True)
    results, outputs, code = {}, {}, 0
    try:
        if "tenant" in ways and any(name in TRIED for name in victims):
            bench.serve()
            bench.pick(victims)
    except Failed as error:
        code = fail(3, f"kernels could not be picked: {error}")
    finally:
        bench.stop()
    for way in ways:
        try:
            bench.serve() if way == "tenant" else bench.start_mps()
            results[way], outputs[way], complete = measured(bench, way, victims, neighbours)
            code = code if complete else 3
        except Failed as error:
            code = fail(3, f"{way}: {error}")
        finally:
            bench.stop()
    if not results:
        return code
    print_tables(bench, results, victims, neighbours)
    print_clocks(results, victims, neighbours)
    if bench.counted:
        print_counted(bench.counted)
    try:
        check_outputs(outputs, victims)
    except Failed as error:
        code = fail(3, str(error))
    return code


if __name__ == "__main__":
    sys.exit(main())
