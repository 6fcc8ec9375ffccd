#!/usr/bin/env python3
"""Runs launch files on a card and in the emulator and compares every output.

usage: compare-with-card.py DEMARC [--captured] FILE.json ... [-- OPTION ...]

Launches are run on card 0. With --captured they are of `demarc capture`, and the files of their checks are what the card made
of them then: nothing is run on a card. For each launch: "the same bytes", or for each output that differs, how many of its elements do, by how much at most, as a part of the largest
number of that output, and what the emulator says it approximates. Options go to both, such as --param x=8. Needs NumPy.
Exit code 3: an output differs, or one of the two fails.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy

TYPES = {"f16": numpy.float16, "f32": numpy.float32, "f64": numpy.float64}


def run(command, made):
    """What it printed; RuntimeError with its last line where it fails. A check that does not hold is no failure: the files
    that are to be `made` are there."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    said = (ended.stdout + ended.stderr).strip()
    if ended.returncode not in (0, 3) or not all(path.exists() for path in made):
        raise RuntimeError(said.splitlines()[-1])
    return said


def outputs_on_card(demarc, file, launch, names, options, folder, captured):
    """File with the bytes of each output, by name."""
    if captured:
        kept = launch.get("check", {}).get("file")
        if kept is None:
            raise RuntimeError("its check has no files, so demarc capture did not make it")
        kept = kept if isinstance(kept, dict) else {names[0]: kept}
        return {name: file.parent / path for name, path in kept.items()}
    made = {name: folder / f"card.{name}" for name in names}
    run([demarc, "run", "--launch", file, *options, *(word for name in names for word in ("--save", f"{name}={made[name]}"))],
        made.values())
    return made


def difference(name, element, card, emulated):
    """What differs of an output; empty where nothing does."""
    if card == emulated:
        return ""
    if len(card) != len(emulated):
        return f"{name}: {len(card)} bytes on the card, {len(emulated)} in the emulator"
    width = int(element[1:]) // 8
    bits = [numpy.frombuffer(content, dtype=f"u{width}") for content in (card, emulated)]
    changed = bits[0] != bits[1]
    text = f"{name}: {changed.sum()} of {changed.size} {element} differ"
    if element not in TYPES:
        return text
    with numpy.errstate(invalid="ignore", over="ignore"):
        numbers = [numpy.frombuffer(content, dtype=TYPES[element]).astype(numpy.float64) for content in (card, emulated)]
        distance = numpy.abs(numbers[0] - numbers[1])[changed].max()
        largest = numpy.abs(numbers[0][numpy.isfinite(numbers[0])]).max(initial=0)
    return f"{text}, by {distance / largest if largest else distance:.1e} of the largest"


def compare(demarc, file, options, captured):
    """Whether they are the same, and a line about it."""
    try:
        launch = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"compare-with-card.py: {file}: {error}")
    elements = {buffer["name"]: buffer.get("element", "u32") for buffer in launch["buffers"] if buffer.get("output")}
    if not elements:
        sys.exit(f"compare-with-card.py: {file}: no buffer is an output")
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        try:
            on_card = outputs_on_card(demarc, file, launch, list(elements), options, folder, captured)
            said = run([demarc, "emulate", "--launch", file, *options,
                        *(word for name in elements for word in ("--save", f"{name}={folder / name}"))],
                       [folder / name for name in elements])
        except RuntimeError as error:
            return False, f"fails: {error}"
        differences = [difference(name, element, on_card[name].read_bytes(), (folder / name).read_bytes())
                       for name, element in elements.items()]
    found = [text for text in differences if text]
    if not found:
        return True, "the same bytes"
    why = sorted({line.split()[1] for line in said.splitlines() if line.startswith("approximated: ")})
    return False, "; ".join(found) + (f" ({', '.join(why)})" if why else "")


def main():
    words = sys.argv[1:]
    options = []
    if "--" in words:
        options = words[words.index("--") + 1:]
        words = words[:words.index("--")]
    captured = "--captured" in words
    words = [word for word in words if word != "--captured"]
    if len(words) < 2:
        sys.exit(__doc__.strip())
    demarc, *files = words
    same = 0
    for file in files:
        is_same, said = compare(demarc, pathlib.Path(file), options, captured)
        same += is_same
        print(" ".join([file, *options]) + ": " + said, flush=True)
    print(f"{same} of {len(files)} launches: the same bytes")
    sys.exit(0 if same == len(files) else 3)


if __name__ == "__main__":
    main()
