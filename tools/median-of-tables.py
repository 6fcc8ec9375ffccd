#!/usr/bin/env python3
"""Median of tables of the same shape, such as those that examples/causes/loaded_latency.cu writes on several cards.

usage: median-of-tables.py FILE.csv ... > MEDIAN.csv

A field that is the same in all tables stays; one that differs must be a number, and becomes the lower median.
"""
import csv
import sys


def main():
    names = sys.argv[1:]
    if not names or names[0].startswith("-"):
        sys.exit(__doc__.strip())
    tables = []
    for name in names:
        with open(name, encoding="utf-8", newline="") as file:
            tables.append(list(csv.reader(file)))
    if len({tuple(map(len, table)) for table in tables}) != 1:
        sys.exit("median-of-tables.py: the tables differ in lines or columns; measure all cards with one program")
    out = csv.writer(sys.stdout, lineterminator="\n")
    for number, rows in enumerate(zip(*tables), 1):
        fields = []
        for values in zip(*rows):
            if len(set(values)) > 1:
                try:
                    values = [sorted(values, key=float)[(len(values) - 1) // 2]]
                except ValueError:
                    sys.exit(f"median-of-tables.py: line {number} differs in text: {', '.join(sorted(set(values)))}")
            fields.append(values[0])
        out.writerow(fields)


if __name__ == "__main__":
    main()
