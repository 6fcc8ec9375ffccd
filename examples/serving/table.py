"""Two inference servers on one GPU: how the load on one slows the other, in each way of sharing the GPU. Prints Markdown.

    python3 table.py --demarc demarc --memory 40GiB -- llama-server -m llama-3b.gguf -c 16384 -np 4 -fa on

Both servers are the command behind `--`, at ports of their own. The first server gets an open load,
next to a second server that is idle, that has the same load, or that reads long prompts without end
(four at once). The GPU is shared by

  timeslice  nothing: the driver gives the GPU to one process at a time
  mps        MPS; nothing is divided
  percent    MPS, half of the threads for each (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE)
  mask       MPS and `demarc exec --sms 50%`: half of the SMs for each
  part       `demarc exec --part K/2`: half of the SMs, of the L2 and of the memory for each

A gap is the time between two tokens of a request. The columns at the end compare with the idle second
server in the same way, and gaps at equal load with those of as many requests under way (load.py).
A way that fails is named, and the others are measured. Exit code 0; 1: wrong arguments; 2: the machine lacks something; 3: a way
failed, because a server ended early or did not answer.
"""

import argparse
import asyncio
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import load

HERE = pathlib.Path(__file__).resolve().parent
WAYS = ["timeslice", "mps", "percent", "mask", "part"]
NEIGHBOURS = ["idle", "same", "prompts"]


class Failed(Exception):
    """What did not hold."""


class Server:
    """One server, which stops with the object's context."""

    def __init__(self, command, port, environment, folder):
        self.url, self.name = f"http://127.0.0.1:{port}", " ".join(command[:6])
        self.log = open(folder / f"{port}.log", "w", encoding="utf-8")
        self.started = time.monotonic()
        self.process = subprocess.Popen([*command, "--host", "127.0.0.1", "--port", str(port)], stdout=self.log, stderr=subprocess.STDOUT,
                                        env=environment, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self.log.close()

    def said(self):
        return pathlib.Path(self.log.name).read_text(errors="replace")[-2000:]

    def wait(self, seconds):
        """Waits until the server answers. Returns the seconds since its start."""
        while time.monotonic() < self.started + seconds:
            if self.process.poll() is not None:
                raise Failed(f"{self.name} ended with {self.process.returncode}:\n{self.said()}")
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                    if answer.status == 200:
                        return time.monotonic() - self.started
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.1)
        raise Failed(f"{self.name} did not answer within {seconds} s:\n{self.said()}")

    def answer(self, asked):
        """The answers to a load, or the reason why there are none."""
        try:
            return asyncio.run(load.run(self.url, asked))
        except (load.Refused, OSError, json.JSONDecodeError) as error:
            raise Failed(f"{error}\n{self.said()}") from error


def commands(way, options):
    """The commands of both servers, and what their environment gets."""
    demarc = [options.demarc, "exec"]
    if way == "mask":
        return [[*demarc, "--sms", "50%", "--", *options.command]] * 2, {}
    if way == "part":
        return [[*demarc, "--part", f"{part}/2", "--memory", options.memory, "--", *options.command] for part in (1, 2)], {}
    return [options.command] * 2, {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50"} if way == "percent" else {}


class Daemon:
    """MPS in a folder of its own, for the ways that need it; `demarc exec --part` has its own."""

    def __init__(self, way, folder):
        self.environment = dict(os.environ)
        self.on = way in ("mps", "percent", "mask")
        if self.on:
            self.environment |= {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}

    def __enter__(self):
        if self.on:
            subprocess.run(["nvidia-cuda-mps-control", "-d"], env=self.environment, check=True)
        return self.environment

    def __exit__(self, *_):
        if self.on:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env=self.environment, check=False)


def neighbour(kind, url, options):
    """The process that loads the second server, or None."""
    script = [sys.executable, str(HERE / "load.py"), url, "--requests", "0", "--seed", str(options.seed + 1)]
    if kind == "same":
        script += ["--rate", str(options.rate), "--prompt", str(options.prompt), "--output", str(options.output)]
    if kind == "prompts":
        script += ["--at-once", "4", "--prompt", str(4 * options.prompt), "--output", "1"]
    return None if kind == "idle" else subprocess.Popen(script, stdout=subprocess.DEVNULL)


def measure(way, options, folder):
    """The figures of the first server next to each neighbour, with the seconds of both starts."""
    (first, second), environment = commands(way, options)
    asked = load.Load(options.rate, 0, options.requests, options.prompt, options.output, options.seed)
    warm = load.Load(0, 4, 8, 4 * options.prompt, options.output, options.seed + 2)
    with Daemon(way, folder) as inherited:
        with Server(first, options.port, inherited | environment, folder) as a, Server(second, options.port + 1, inherited | environment, folder) as b:
            starts = [server.wait(options.start_seconds) for server in (a, b)]
            for server in (a, b):
                server.answer(warm)
            rows, alone = [], None
            for kind in NEIGHBOURS:
                beside = neighbour(kind, b.url, options)
                try:
                    time.sleep(1 if beside else 0)
                    answers = a.answer(asked)
                    if beside and beside.poll() is not None:
                        raise Failed(f"the load on the second server ended:\n{b.said()}")
                finally:
                    if beside:
                        beside.terminate()
                        beside.wait()
                alone = alone or answers
                rows.append({"way": way, "neighbour": kind, "starts_s": starts, **load.figures(answers),
                             "at_equal_load": load.at_equal_load(answers, alone), "answers": [load.asdict(answer) for answer in answers]})
            return rows


def show(rows):
    """One line for each neighbour. The last columns compare with the idle neighbour of the same way."""
    said = lambda value, form, unit="": "too few" if value is None else format(value, form) + unit
    for row in rows:
        first = row["first_ms_p50"] / rows[0]["first_ms_p50"]
        p50, p99 = row["at_equal_load"]
        print(f"| {row['way']} | {row['neighbour']} | {row['tokens_per_s']:.0f} | {said(row['gap_ms_p50'], '.2f')} | {said(row['gap_ms_p99'], '.2f')} "
              f"| {row['first_ms_p50']:.0f} | {said(p50, '.2f', 'x')} | {said(p99, '.2f', 'x')} | {first:.2f}x |", flush=True)


def card():
    said = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True, check=False)
    return said.stdout.strip() or "unknown card"


def main():
    parser = load.Arguments(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demarc", default="demarc", help="the program demarc (default: that of PATH)")
    parser.add_argument("--ways", default=",".join(WAYS), help=f"some of {','.join(WAYS)} (default: all)")
    parser.add_argument("--memory", default="64GiB", help="memory of both parts together (default: 64GiB)")
    parser.add_argument("--rate", type=load.number(float, 0.001), default=2, help="requests per second (default: 2)")
    parser.add_argument("--requests", type=load.number(int, 1), default=40, help="requests per measurement (default: 40)")
    parser.add_argument("--prompt", type=load.number(int, 1), default=512, help="tokens of a prompt (default: 512); long prompts have four times as many")
    parser.add_argument("--output", type=load.number(int, 1), default=128, help="tokens of an answer (default: 128)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=load.number(int, 1), default=8090, help="port of the first server; the second has the next one (default: 8090)")
    parser.add_argument("--start-seconds", type=float, default=600, help="longest time that a server may take to start (default: 600)")
    parser.add_argument("--json", metavar="FILE", help="write all figures and times to FILE")
    parser.add_argument("command", nargs="+", help="command of a server, after --")
    options = parser.parse_args()
    ways = options.ways.split(",")
    if unknown := [way for way in ways if way not in WAYS]:
        parser.exit(1, f"table.py: there is no way '{unknown[0]}': choose from {', '.join(WAYS)}\n")
    for tool in ("nvidia-smi", "nvidia-cuda-mps-control"):
        if shutil.which(tool) is None:
            parser.exit(2, f"table.py: {tool} is not installed\n")
    print(f"{card()}; {options.rate} requests per second, {options.requests} requests of {options.prompt} + {options.output} tokens, seed "
          f"{options.seed}; `{' '.join(options.command)}`\n")
    print("| way | neighbour | tokens/s | gap p50, ms | gap p99, ms | first token p50, ms | gap p50 at equal load | gap p99 at equal load "
          "| first token p50 |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    rows, failures = [], []
    with tempfile.TemporaryDirectory(prefix="demarc-serving-") as folder:
        for way in ways:
            try:
                found = measure(way, options, pathlib.Path(folder))
            except (Failed, OSError, subprocess.CalledProcessError) as error:
                print(f"| {way} | failed |" + 7 * " |", flush=True)
                failures.append(f"{way}: {error}")
                continue
            show(found)
            rows += found
            if options.json:
                load.write(options.json, {"card": card(), "options": vars(options), "rows": rows})
    if failures:
        parser.exit(3, "".join(f"table.py: {failure}\n" for failure in failures))


if __name__ == "__main__":
    main()
