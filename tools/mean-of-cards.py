#!/usr/bin/env python3
"""Times of several cards of one model, from one `demarc isolate --json=FILE` per card.

usage: mean-of-cards.py FILE.json ... > CELLS.csv

One line per cell: the mean over the cards of the mean time of the kernels, and that of the fastest and of the slowest
card. Lines of mode `none` beside `-` are workloads alone on the whole GPU.
"""
import csv
import json
import sys

SCHEMA = "demarc.isolate/4"


def fail(message):
    sys.exit(f"mean-of-cards.py: {message}")


def cells_of(name):
    """(mode, victim, aggressor) -> microseconds, in the order of the file."""
    try:
        with open(name, encoding="utf-8") as file:
            result = json.load(file)
    except (OSError, ValueError) as error:
        fail(f"{name}: {error}")
    if result.get("schema") != SCHEMA:
        fail(f"{name}: the schema is not {SCHEMA}, which demarc isolate --json writes")
    if result["errors"]:
        fail(f"{name}: {result['errors'][0]}")
    cells = {("none", row["victim"], "-"): row["times_ns"]["mean"] / 1e3 for row in result["baselines"]}
    for cell in result["cells"]:
        if "error" in cell:
            fail(f"{name}: {cell['victim']} beside {cell['aggressor']} under {cell['mode']}: {cell['error']}")
        cells[cell["mode"], cell["victim"], cell["aggressor"] or "-"] = cell["times_ns"]["mean"] / 1e3
    return cells


def main():
    names = sys.argv[1:]
    if not names or names[0].startswith("-"):
        sys.exit(__doc__.strip())
    cards = [cells_of(name) for name in names]
    for name, card in zip(names, cards):
        if card.keys() != cards[0].keys():
            fail(f"{name} has other cells than {names[0]}; measure all cards with one command line")
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["mode", "victim", "aggressor", "cards", "kernels_mean_us", "fastest_card_us", "slowest_card_us"])
    for cell in cards[0]:
        times = [card[cell] for card in cards]
        out.writerow([*cell, len(times)] + [f"{us:.2f}" for us in (sum(times) / len(times), min(times), max(times))])


if __name__ == "__main__":
    main()
