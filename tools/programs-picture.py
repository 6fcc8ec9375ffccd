#!/usr/bin/env python3
"""Draws docs/pictures/programs.svg from the table of docs/measurements/programs.md: the slowdown of each victim next to each
neighbour, under each way to share a card. Writes to standard output."""
import math
import pathlib
import re

HEADING = "| victim | neighbour | MPS | green contexts | TPC masks | tenants |"
WAYS = [("MPS", "#b0b7bf"), ("green contexts", "#7f8fa3"), ("TPC masks", "#4a5f7a"), ("Demarc: TPCs and memory colours", "#d9480f")]
MOST, LEFT, WIDTH, TOP, BAR, GAP = 80, 190, 560, 58, 8, 10
NAMES = {"flood": "memory stream", "prefill": "prompts", "copies": "host copies"}
VICTIMS = {"steps": "stencils"}


def rows():
    page = pathlib.Path(__file__).resolve().parent.parent / "docs" / "measurements" / "programs.md"
    lines = page.read_text(encoding="utf-8").split("\n")
    begin = lines.index(HEADING) + 2
    for line in lines[begin:]:
        if not line.startswith("|"):
            return
        victim, neighbour, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        yield victim, neighbour, [float(re.sub(r"[*x]", "", cell).split("/")[0]) for cell in cells]


def at(times):
    return LEFT + WIDTH * math.log(max(times, 1)) / math.log(MOST)


def main():
    table = list(rows())
    row = len(WAYS) * BAR + GAP
    height = TOP + len(table) * row + 12
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="880" height="{height}" viewBox="0 0 880 {height}" '
           'font-family="sans-serif" font-size="11">',
           "<!-- Made by tools/programs-picture.py of the table in docs/measurements/programs.md. -->",
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="4" y="16" font-size="13">Slowdown of a program next to a co-located one on an H200 (1 = no slowdown)</text>']
    x = LEFT
    for name, color in WAYS:
        out.append(f'<rect x="{x}" y="24" width="10" height="10" fill="{color}"/><text x="{x + 14}" y="33">{name}</text>')
        x += 34 + 6 * len(name)
    for tick in (1, 1.5, 2, 3, 5, 10, 20, 50):
        out.append(f'<line x1="{at(tick):.1f}" y1="{TOP - 4}" x2="{at(tick):.1f}" y2="{height - 12}" stroke="#ddd"/>'
                   f'<text x="{at(tick):.1f}" y="{TOP - 8}" text-anchor="middle">{tick}</text>')
    for number, (victim, neighbour, times) in enumerate(table):
        y = TOP + number * row
        if number == 0 or table[number - 1][0] != victim:
            out.append(f'<text x="4" y="{y + 12}" font-weight="bold">{VICTIMS.get(victim, victim)}</text>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 26}" text-anchor="end">next to: {NAMES[neighbour]}</text>')
        for (_, color), value in zip(WAYS, times):
            out.append(f'<rect x="{LEFT}" y="{y}" width="{max(at(value) - LEFT, 1):.1f}" height="{BAR - 1}" fill="{color}"/>'
                       f'<text x="{max(at(value), LEFT + 1) + 3:.1f}" y="{y + 7}" font-size="8">{value:.3g}</text>')
            y += BAR
    print("\n".join(out + ["</svg>"]))


if __name__ == "__main__":
    main()
