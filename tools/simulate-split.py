#!/usr/bin/env python3
"""Simulates the launches of tools/split-launches.txt and compares them with docs/measurements/split-h200.csv.

    tools/simulate-split.py build/release/demarc h200-x2 [--only RL,MP] [--set NAME=VALUE]...

Prints a table with a row per launch: measured and simulated microseconds, near (first-touch) and far, and per cent between them.
Launches that were not measured on as many cards are left out.
"""
import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
placements = ("first-touch", "far")


def fail(why):
    sys.exit(f"simulate-split.py: {why}")


def measured(cards):
    with open(root / "docs/measurements/split-h200.csv", encoding="utf-8") as table:
        return {(row["launch"], row["placement"]): float(row["measured_ms"]) * 1000
                for row in csv.DictReader(table) if int(row["cards"]) == cards}


def simulated(demarc, machine, launch, placement, settings):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "one.json"
        try:
            subprocess.run([demarc, "translate", "-q", "--launch", *launch, "--device", machine, "--placement", placement,
                            "--arch", "distributed", *settings, f"--json={out}"], cwd=root, check=True, stdout=subprocess.DEVNULL)
        except (OSError, subprocess.CalledProcessError) as error:
            fail(error)
        document = json.loads(out.read_text(encoding="utf-8"))
    overhead = int(document["settings"]["kernel_overhead"])
    # The simulation has the overhead between its kernels; the events of a card see it once per kernel.
    return (document["apps"][0]["distributed"]["cycles"] + overhead) / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demarc", type=pathlib.Path)
    parser.add_argument("machine", help="a built-in machine, such as h200-x2, or the file of one")
    parser.add_argument("--cards", type=int, help="cards of the measured rows; otherwise as the name of the machine ends")
    parser.add_argument("--only", help="names of launches, separated by commas")
    parser.add_argument("--set", action="append", default=[], help="a setting of the machine to change")
    options = parser.parse_args()
    named = re.search(r"-x(\d+)(?:\.json)?$", options.machine)
    if options.cards is None and named is None:
        fail(f"{options.machine}: its name does not say how many cards it has; give --cards")
    cards = options.cards or int(named[1])
    settings = [word for one in options.set for word in ("--set", one)]
    figures = measured(cards)
    wanted = options.only.split(",") if options.only else [name for name, _ in figures]
    for name in wanted:
        if (name, placements[0]) not in figures:
            fail(f"{name}: not measured on {cards} cards")
    if not wanted:
        fail(f"nothing was measured on {cards} cards")
    print("| launch | near, us | simulated | off by | far, us | simulated | off by |\n|---|---:|---:|---:|---:|---:|---:|")
    for line in (root / "tools/split-launches.txt").read_text(encoding="utf-8").splitlines():
        name, *launch = line.split()
        if name not in wanted:
            continue
        cells = []
        for placement in placements:
            card = figures[name, placement]
            ours = simulated(options.demarc.resolve(), f"sim:{options.machine}", launch, placement, settings)
            cells += [f"{card:.1f}", f"{ours:.1f}", f"{100 * (ours / card - 1):+.1f} %"]
        print("|", " | ".join([name, *cells]), "|", flush=True)


main()
