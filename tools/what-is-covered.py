#!/usr/bin/env python3
"""Writes what the tests say that holds: room by room, and file by file, the names of the tests as sentences.

usage: what-is-covered.py [-o FILE]     Markdown; standard output without -o
"""

import argparse
import re
import sys
from pathlib import Path

TEST = re.compile(r"^\s*(?:TYPED_TEST|TEST|TEST_F|TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\(\s*(\w+),\s*(\w+)", re.MULTILINE)
PYTHON_CLASS = re.compile(r"^class (\w+)\(.*TestCase\):|^    def test_(\w+)\(", re.MULTILINE)


def spaced(name):
    """The name of a suite as words: WholeServers is "Whole servers"."""
    words = re.findall(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+", name)
    return " ".join([words[0]] + [word if word.isupper() else word.lower() for word in words[1:]]) if words else name


def tests_of(text, python=False):
    """[(suite, test)] of one source, in its order."""
    if not python:
        return TEST.findall(text)
    found, suite = [], None
    for name, test in PYTHON_CLASS.findall(text):
        suite = name or suite
        if test and suite:
            found.append((suite, test))
    return found


def rooms_of(tests):
    """{room: {file: [(suite, test)]}} of a folder of tests."""
    rooms = {}
    for path in sorted(tests.rglob("*_test.*")):
        if path.suffix in (".cpp", ".py"):
            found = tests_of(path.read_text(), path.suffix == ".py")
            if found:
                below = path.relative_to(tests)
                rooms.setdefault(below.parts[0], {})[str(below)] = found
    return rooms


def page(rooms):
    count = sum(len(found) for files in rooms.values() for found in files.values())
    lines = ["# What is covered", "", f"The tests say that the following holds, in {count} sentences.", ""]
    for room, files in rooms.items():
        lines += [f"- [{room}](#{room}): {sum(map(len, files.values()))}"]
    for room, files in rooms.items():
        lines += ["", f"## {room}"]
        for file, found in files.items():
            lines += ["", f"### `tests/{file}`"]
            lines += [f"- {spaced(suite)} {test.replace('_', ' ')}." for suite, test in found]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("-o", metavar="FILE", help="the page's file; standard output without it")
    options = parser.parse_args()
    text = page(rooms_of(Path(__file__).resolve().parents[1] / "tests"))
    if options.o:
        try:
            Path(options.o).write_text(text)
        except OSError as error:
            sys.exit(f"what-is-covered: {options.o}: {error.strerror}")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
