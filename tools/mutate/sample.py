"""Which faults are tried: spread evenly over the lines of all files, the same for the same seed."""

import random
from dataclasses import dataclass

from patterns import sites_of_line
from source import code_lines


@dataclass(frozen=True)
class Fault:
    file: str  # from the root of the tree
    line: int  # from 1
    kind: str
    before: str
    after: str

    def apply(self, text):
        lines = text.split("\n")
        assert lines[self.line - 1] == self.before
        lines[self.line - 1] = self.after
        return "\n".join(lines)


def faults_of_line(file, text_lines, code, at):
    for site in sites_of_line(code, at):
        before = text_lines[at]
        after = before[:site.start] + site.text + before[site.end:]
        yield Fault(file, at + 1, site.kind, before, after)


def faults_by_line(file, text):
    """For every line that can get a fault, its faults."""
    code = code_lines(text)
    found = (list(faults_of_line(file, text.split("\n"), code, at)) for at in range(len(code)))
    return [faults for faults in found if faults]


def choose(texts, count, seed):
    """`count` faults (or one of each line, where there are fewer lines) of {file: text}."""
    rng = random.Random(seed)
    lines = [faults for file in sorted(texts) for faults in faults_by_line(file, texts[file])]
    if not lines:
        return []
    count = min(count, len(lines))
    step = len(lines) / count
    start = rng.random() * step
    return [_one_of(lines[min(int(start + n * step), len(lines) - 1)], rng) for n in range(count)]


def _one_of(faults, rng):
    """Any pattern that fits, then any place where it fits: most lines have more numbers than checks."""
    kind = rng.choice(sorted({fault.kind for fault in faults}))
    return rng.choice([fault for fault in faults if fault.kind == kind])
