#!/usr/bin/env python3
"""Compares libdemarc_blas.so with NVIDIA's cuBLAS on a card: results and times, as a table of Markdown and as CSV.

  tools/measure-blas.py build/release/demarc build/release/bench/card/demarc_blas_bench [--csv FILE] [--word WORD] [--keep FOLDER]

Columns: the time of NVIDIA's library on the whole card (whole), in half of the SMs (theirs) and of ours in the same SMs without
colours (ours), and of ours in half of the card (part), in microseconds. "ideal" is part over twice the whole card's time, "theirs"
part over NVIDIA's in half of the SMs, and "limit" the share of what half of an H200 can do at all, of its memory or its arithmetic.
"""
import argparse
import csv
import subprocess
import sys
from pathlib import Path

HALF_BYTES_PER_SECOND = 4.8e12 / 2
HALF_OPERATIONS_PER_SECOND = {"bf16": 989e12 / 2, "tf32": 494e12 / 2, "f16": 989e12 / 2, "f32": 67e12 / 2, "f64": 34e12 / 2}


def rows_of(name, command, options):
    kept = Path(options.keep or ".") / f"{name}.csv"
    if options.keep and kept.exists():
        text = kept.read_text()
    else:
        ran = subprocess.run([*command, *([options.word] if options.word else [])], capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            print(f"{name} ends with {ran.returncode}: {ran.stderr.strip()[-1500:]}", file=sys.stderr)
        text = ran.stdout
        if options.keep:
            kept.write_text(text)
    return {row[0]: row for row in csv.reader(text.splitlines()) if len(row) == 6}


def number(row, column):
    return float(row[column]) if row and row[column] else None


def rate_of(case):
    return next(rate for kind, rate in HALF_OPERATIONS_PER_SECOND.items() if kind in case.split())


def shown(value, form):
    return "-" if value is None else format(value, form)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("demarc")
    parser.add_argument("bench")
    parser.add_argument("--csv")
    parser.add_argument("--word", default="")
    parser.add_argument("--keep", metavar="FOLDER", help="keep what each run prints there, and do not run again what is there")
    parser.add_argument("--library", help="path of libdemarc_blas.so (default: next to demarc)")
    options = parser.parse_args()
    library = Path(options.library or Path(options.demarc).with_name("libdemarc_blas.so")).resolve()
    half = [options.demarc, "exec", "--sms", "50%", "--"]
    runs = {"whole": rows_of("whole", [options.bench], options),
            "theirs": rows_of("theirs", [*half, options.bench], options),
            "ours": rows_of("ours", [*half, "env", f"LD_PRELOAD={library}", options.bench], options),
            "part": rows_of("part", [options.demarc, "exec", "--part", "1/2", "--", options.bench], options)}
    lines = []
    for case, row in runs["whole"].items():
        times = {name: number(run.get(case), 1) for name, run in runs.items()}
        part = times["part"]
        limit = max(float(row[3]) / HALF_BYTES_PER_SECOND, float(row[4]) / rate_of(case)) * 1e6
        lines.append([case, *(shown(times[name], ".1f") for name in runs),
                      shown(part and part / (2 * times["whole"]), ".2f"),
                      shown(part and times["theirs"] and part / times["theirs"], ".2f"), shown(part and limit / part, ".2f"),
                      *(shown(number(runs[name].get(case), 2), ".1e") for name in ("whole", "part"))])
    head = ["case", "whole", "theirs", "ours", "part", "ideal", "theirs", "limit", "error", "error of part"]
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            csv.writer(file).writerows([head, *lines])
    print("| " + " | ".join(head) + " |\n|---|" + "---:|" * (len(head) - 1))
    for line in lines:
        print("| " + " | ".join(line) + " |")


if __name__ == "__main__":
    main()
