#!/usr/bin/env python3
"""Refuses figures of README, the tutorial, docs/isolation.md and docs/measurements that differ from the tables that they come from:
the tables of docs/measurements/programs.md, and averages and extremes of the CSV files of docs/measurements.
usage: check-figures.py (from anywhere in the checkout)"""
import csv
import json
import pathlib
import re
import subprocess
import sys

FROM = "docs/measurements"
FIGURES = 173  # as many as the pages have
PROGRAMS = {"PyTorch decoder": "decoder", "convolutional detector": "detector", "eight stencils": "steps"}
NEIGHBOURS = {"streams through memory": "flood", "reads prompts": "prefill", "copies from and to the host": "copies"}
WAYS = ("MPS", "green contexts", "TPC masks", "Demarc")
MODES = {"none": "none", "MPS": "mps", "green contexts": "green", "TPC masks (`mask`)": "mask"}
STUDIES = {"H100": "isolate-h100-halves.csv", "H200": "isolate-h200-thousand.csv"}
PARTS = {"halves interleaved": "halves_interleaved", "halves of whole": "halves_whole", "quarters, interleaved": "quarters_interleaved",
         "quarters of whole": "quarters_whole"}
ROUNDED = 0.0005  # The mean of figures of three digits may be off by this.

root = pathlib.Path(subprocess.run(["git", "-C", pathlib.Path(__file__).resolve().parent, "rev-parse", "--show-toplevel"],
                                   check=True, capture_output=True, text=True).stdout.strip())
wrong = []
compared = 0


def rows_of(page, heading):
    """The cells of the table of the page whose first row has these headings first."""
    lines = (root / page).read_text(encoding="utf-8").split("\n")
    rows = [[re.sub(r"[*]", "", cell).strip() for cell in line.strip("|").split("|")] if line.startswith("|") else None for line in lines]
    for at, row in enumerate(rows):
        if row and row[:len(heading)] == heading:
            end = rows.index(None, at)
            return rows[at + 2:end]
    wrong.append(f"{page}: there is no table that begins with {' | '.join(heading)}")
    return []


def numbers_in(text):
    return re.findall(r"\d+\.\d+(?=x)", text)


def compare(place, text, values, slack=0.0):
    """Each number of the text that is a multiple is the value, rounded to its digits."""
    global compared
    found = numbers_in(text)
    if not values:
        wrong.append(f"{place}: {FROM} has no multiple to compare '{text}' with")
    if len(found) != len(values):
        wrong.append(f"{place}: '{text}' should have {len(values)} multiples")
    for written, value in zip(found, values):
        compared += 1
        half = 0.5 * 10.0 ** -len(written.split(".")[1])
        if abs(float(written) - value) > half + slack + 1e-9:
            wrong.append(f"{place}: {written}x, and {FROM} has {value:.4g}x")


def said(page, pattern, values, slack=0.0):
    """The groups of the pattern are these values."""
    text = " ".join((root / page).read_text(encoding="utf-8").split())
    match = re.search(pattern, text)
    if not match:
        wrong.append(f"{page}: nothing reads '{pattern}'")
        return
    for group, value in zip(match.groups(), values):
        compare(page, group + "x", [value], slack)


def study_of(name):
    """Mode -> (slowdown by victim next to the worst aggressor, time by victim next to an idle neighbour)."""
    idle, worst = {}, {}
    with open(root / FROM / name, encoding="utf-8") as file:
        cells = [(cell["mode"], cell["victim"], cell["aggressor"], float(cell["kernels_mean_us"])) for cell in csv.DictReader(file)]
    for mode, victim, aggressor, time in cells:
        if aggressor == "-":
            idle.setdefault(mode, {})[victim] = time
    for mode, victim, aggressor, time in cells:
        if aggressor != "-":
            slowdown = time / idle[mode][victim]
            victims = worst.setdefault(mode, {})
            victims[victim] = max(victims.get(victim, 0.0), slowdown)
    return {mode: (worst[mode], idle[mode]) for mode in worst}


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def overheads(study, mode):
    return [time / (2 * study["none"][1][victim]) for victim, time in study[mode][1].items()]


def check_programs():
    measured = {(row[0], row[1]): row[2:] for row in rows_of(f"{FROM}/programs.md", ["victim", "neighbour"])}
    times = {row[0]: [float(cell) for cell in row[1:5]] for row in rows_of(f"{FROM}/programs.md", ["victim", "whole card"])}
    program = ""
    for row in rows_of("README.md", ["program", "neighbour"]):
        program = next((name for words, name in PROGRAMS.items() if row[0].startswith(words)), program)
        place = f"README.md, {program}, {row[1]}"
        if row[1] in NEIGHBOURS:
            for way, written, cell in zip(WAYS, row[2:], measured[program, NEIGHBOURS[row[1]]]):
                compare(f"{place}, {way}", written, [float(number) for number in numbers_in(cell)])
        else:
            whole = times[program][0]
            for way, written, time in zip(WAYS, row[2:], [whole] + times[program][1:]):
                compare(f"{place}, {way}", written, [time / (2 * whole)], slack=0.01)
    means = [float(numbers_in(cell)[0]) for cell in measured["decoder", "flood"]]
    said("docs/tutorial.md", r"each token took \*\*([\d.]+)x as long\*\* .* SMs divided ([\d.]+)x remained\..* each token took ([\d.]+)x as long", [means[0], means[2], means[3]])


def check_studies():
    studies = {card: study_of(name) for card, name in STUDIES.items()}
    for row in rows_of("docs/isolation.md", ["partition", "H100", "H200"]):
        for card, written in zip(STUDIES, row[1:]):
            # Under none a victim has the whole card, and on the H200 colours come from another study.
            if row[0] in MODES and row[0] != "none" or row[0] not in MODES and card == "H100":
                values = overheads(studies[card], MODES.get(row[0], "mask+color"))
                compare(f"docs/isolation.md, overhead, {row[0]}, {card}", written, [mean(values), min(values), max(values)])
    for row in rows_of("docs/isolation.md", ["partition", "mean"]):
        study, mode = (studies["H200"], MODES[row[0]]) if row[0] in MODES else (study_of("isolate-h200-domains.csv"), "mask+color")
        slowdowns = study[mode][0].values()
        compare(f"docs/isolation.md, {row[0]}", row[1], [mean(slowdowns), max(slowdowns)])
    for card, page in (("H100", f"{FROM}/isolate-h100.md"), ("H200", f"{FROM}/isolate-h200.md")):
        for row in rows_of(page, ["15 victims", "none", "mps"]):
            over = {"average": mean, "average, mean": mean, "maximum": max, "maximum, mean": max}.get(row[0])
            for mode, written in zip(studies[card], row[1:] if over else []):
                # The p99 behind the mean is not in the file of the study.
                compare(f"{page}, {row[0]}, {mode}", written.split(" / ")[0], [over(studies[card][mode][0].values())])
    with open(root / FROM / "colored-h200.csv", encoding="utf-8") as file:
        victims = list(csv.DictReader(file))
    column = {name: [float(victim[name]) for victim in victims] for name in victims[0] if name != "victim"}
    for row in rows_of("docs/isolation.md", ["H200, `mask+color`, today"]):
        part = next(name for words, name in PARTS.items() if row[0].startswith(words))
        for written, name in zip(row[1:], (f"{part}_slowdown", f"{part}_overhead")):
            compare(f"docs/isolation.md, {row[0]}", written, [mean(column[name]), max(column[name])], slack=ROUNDED)
    h100 = studies["H100"]["mask+color"][0].values()
    tenants = study_of("isolate-h200-tenants.csv")["tenant"]
    modes = study_of("isolate-h200-modes.csv")
    with open(root / FROM / "isolate-h200-baseline.json", encoding="utf-8") as file:
        alone = {row["victim"]: mean(row["samples_ns"]) / 1000 for row in json.load(file)["baselines"]}
    ends = [[of(study[0].values()) for of in (mean, max)] for study in (tenants, modes["mask"], modes["mps"])]
    said("README.md", r"have an average slowdown of ([\d.]+)x with `--part` and of ([\d.]+)x with MPS", [ends[0][0], ends[2][0]])
    for row in rows_of("docs/isolation.md", ["H200, a process for each program"]):
        mode = MODES.get(row[0], "tenant")
        slowdowns = (tenants if mode == "tenant" else modes[mode])[0].values()
        overhead = mean(time / (2 * alone[victim]) for victim, time in modes[mode][1].items())
        compare(f"docs/isolation.md, processes, {row[0]}", " ".join(row[1:]), [mean(slowdowns), max(slowdowns), overhead])
    for row in rows_of("docs/measurements/isolate-h200.md", ["slowdown of 15 victims next to the worst neighbour"]):
        if row[0] == "mean, average / maximum":
            compare("docs/measurements/isolate-h200.md, halves as tenants", " ".join(row[1:]), ends[2] + ends[1] + ends[0])
    said("docs/isolation.md", r"in the worst of 50 runs: ([\d.]+)x on average, ([\d.]+)x at most", [mean(h100), max(h100)])


def check_servers():
    rates = {row[0]: [float(row[column].split(" ")[0]) for column in (1, 3)]
             for row in rows_of(f"{FROM}/serving.md", ["`llama-1b`", "whole card"])}
    times = [rates[f"`q4_k_m`, {what}"] for what in ("prompt of 512", "single tokens")]
    said("README.md", r"prompts take \[([\d.]+)x and tokens of a single request ([\d.]+)x\]", [whole / part for whole, part in times])


check_programs()
check_studies()
check_servers()
for line in wrong:
    print(f"check-figures: {line}", file=sys.stderr)
# A row that is gone, or has another name, is not compared.
if compared != FIGURES:
    print(f"check-figures: {compared} figures were compared, and {FIGURES} should be", file=sys.stderr)
if wrong or compared != FIGURES:
    sys.exit(1)
print(f"check-figures: {compared} figures are those of their tables")
