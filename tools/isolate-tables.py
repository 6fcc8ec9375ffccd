#!/usr/bin/env python3
"""Tables of docs/measurements from the JSON of `demarc isolate --json=FILE`.

usage: isolate-tables.py [--cells CELLS.csv] [--samples SAMPLES.csv] FILE.json ...

Prints Markdown: per victim and mode the slowdown next to its worst aggressor (mean, and p99 or the worst of how many
runs), the same of whole runs, and the overhead of each partition, next to idle neighbours. Several files, of
different modes or victims, become one set of tables. --cells writes one line per cell, --samples every run of the modes
of --samples-of, or of all.
"""
import argparse
import csv
import json
import sys

SCHEMA = "demarc.isolate/4"


def fail(message):
    sys.exit(f"isolate-tables.py: {message}")


class Study:
    """The rows of all files: modes and victims in the order in which they come."""

    def __init__(self):
        self.modes = []
        self.victims = []
        self.rows = {}  # (mode, victim) -> row of the JSON
        self.cells = []
        self.parts = set()
        self.notes = []

    def add(self, name):
        try:
            with open(name, encoding="utf-8") as file:
                result = json.load(file)
        except (OSError, ValueError) as error:
            fail(f"{name}: {error}")
        if result.get("schema") != SCHEMA:
            fail(f"{name}: the schema is not {SCHEMA}, which demarc isolate --json writes")
        self.parts.add(result["plan"]["parts"])
        for victim in result["plan"]["victims"]:
            if victim["name"] not in self.victims:
                self.victims.append(victim["name"])
        for mode in result["modes"]:
            if "unavailable" in mode:
                self.notes.append(f"{mode['mode']} was not run: {mode['unavailable']}")
                continue
            if mode["mode"] not in self.modes:
                self.modes.append(mode["mode"])
            for row in mode["victims"]:
                key = (mode["mode"], row["victim"])
                if key in self.rows:
                    fail(f"{name}: {row['victim']} under {mode['mode']} is in another file already")
                self.rows[key] = row
        self.notes += [f"wrong output: {error}" for error in result["errors"]]
        self.cells += result["cells"]


def tail_of(row, prefix=""):
    """What slow runs are judged by: (slowdown, None) of p99, (slowdown, runs) of the worst of so many."""
    p99 = row[prefix + "p99"]
    if p99 is not None:
        return p99["slowdown"]["value"], None
    worst = row[prefix + "worst"]
    return worst["slowdown"], worst["runs"]


def runs_text(runs):
    """"40", or "25 to 310"."""
    return f"{min(runs)}" if min(runs) == max(runs) else f"{min(runs)} to {max(runs)}"


def line(cells):
    return "| " + " | ".join(cells) + " |"


def head(names, right):
    return [line(names), "|---|" + "---:|" * right]


def summary_lines(study, mean_of, prefix):
    """Average and maximum over the victims of each mode: of the mean, and apart of p99 and of the worst run."""
    lines = []
    kinds = (
        ("mean", lambda row: mean_of(row)["value"]),
        ("p99", lambda row: tail_of(row, prefix)[0] if tail_of(row, prefix)[1] is None else None),
        ("worst run", lambda row: tail_of(row, prefix)[0] if tail_of(row, prefix)[1] is not None else None),
    )
    for kind, number in kinds:
        lists = {}
        for mode in study.modes:
            numbers = [number(study.rows[mode, v]) for v in study.victims if (mode, v) in study.rows]
            lists[mode] = [n for n in numbers if n is not None]
        if not any(lists.values()):
            continue
        victims = sorted({len(numbers) for numbers in lists.values() if numbers})
        of = "" if victims == [len(study.victims)] else f" (victims: {runs_text(victims)})"
        for name, over in (("average", lambda list: sum(list) / len(list)), ("maximum", max)):
            cells = [f"{over(lists[mode]):.3f}x" if lists[mode] else "" for mode in study.modes]
            lines.append(line([f"{name}, {kind}{of}"] + cells))
    return lines


def slowdown_table(study, mean_key, prefix):
    lines = head(["victim"] + study.modes, len(study.modes))
    for victim in study.victims:
        cells = []
        for mode in study.modes:
            row = study.rows.get((mode, victim))
            if row is None:
                cells.append("")
                continue
            slowest, runs = tail_of(row, prefix)
            of = "" if runs is None else f" of {runs}"
            cells.append(f"{row[mean_key]['value']:.3f}x / {slowest:.3f}x{of}")
        lines.append(line([victim] + cells))
    return lines + summary_lines(study, lambda row: row[mean_key], prefix)


def overhead_table(study):
    lines = head(["victim"] + study.modes, len(study.modes))
    overheads = {mode: [] for mode in study.modes}
    for victim in study.victims:
        cells = []
        for mode in study.modes:
            row = study.rows.get((mode, victim))
            if row is not None:
                overheads[mode].append(row["overhead"])
            cells.append("" if row is None else f"{row['overhead']:.2f}x")
        lines.append(line([victim] + cells))
    average = [f"{sum(overheads[mode]) / len(overheads[mode]):.2f}x" if overheads[mode] else "" for mode in study.modes]
    spread = [f"{min(overheads[mode]):.2f}x to {max(overheads[mode]):.2f}x" if overheads[mode] else "" for mode in study.modes]
    return lines + [line(["average"] + average), line(["least and most"] + spread)]


def microseconds(ns):
    return "" if ns is None else f"{ns / 1e3:.2f}"


def write_cells(study, name):
    with open(name, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["mode", "victim", "aggressor", "runs", "kernels_mean_us", "kernels_p50_us", "kernels_p99_us",
                      "kernels_worst_us", "run_mean_us", "run_p99_us", "run_worst_us"])
        for cell in study.cells:
            if "error" in cell:
                continue
            kernels, run = cell["times_ns"], cell["run_times_ns"]
            numbers = [kernels[key] for key in ("mean", "p50", "p99", "worst")]
            numbers += [run[key] for key in ("mean", "p99", "worst")]
            out.writerow([cell["mode"], cell["victim"], cell["aggressor"] or "-", kernels["count"]]
                         + [microseconds(ns) for ns in numbers])


def write_samples(study, name, modes):
    with open(name, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["mode", "victim", "aggressor", "what", "nanoseconds of each run in the order taken"])
        for cell in study.cells:
            if "error" in cell or (modes and cell["mode"] not in modes):
                continue
            for what, key in (("kernels", "samples_ns"), ("run", "run_samples_ns")):
                if cell[key]:
                    out.writerow([cell["mode"], cell["victim"], cell["aggressor"] or "-", what,
                                  " ".join(map(str, cell[key]))])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE.json")
    parser.add_argument("--cells", metavar="CELLS.csv")
    parser.add_argument("--samples", metavar="SAMPLES.csv")
    parser.add_argument("--samples-of", metavar="MODE", action="append", help="only those; may be repeated")
    options = parser.parse_args()
    study = Study()
    for name in options.files:
        study.add(name)
    if len(study.parts) != 1:
        fail(f"the files are of studies with {' and '.join(map(str, sorted(study.parts)))} parts; give those of one number")
    parts = study.parts.pop()
    print("Slowdown of kernels next to the worst aggressor: mean / p99; or, where it says so, mean / the worst of so many"
          "\nruns:\n")
    print("\n".join(slowdown_table(study, "mean_slowdown", "")))
    print("\nWhole runs, gaps between launches with them:\n")
    print("\n".join(slowdown_table(study, "run_slowdown", "run_")))
    print(f"\nOverhead, time next to idle neighbours / ({parts} times the time alone on the whole GPU); 1.00x: nothing is lost:\n")
    print("\n".join(overhead_table(study)))
    for note in study.notes:
        print(f"\n{note}")
    if options.cells:
        write_cells(study, options.cells)
    if options.samples:
        write_samples(study, options.samples, options.samples_of)


if __name__ == "__main__":
    main()
