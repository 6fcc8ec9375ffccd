#!/usr/bin/env python3
"""Refuses words that make a reader stop: comments that begin with "of", "memory of the host", "nobody" for a thing, "is no",
links whose text is a question, "most_" for a maximum. tools/words-left.txt has the number of each rule that the tree still
has. It may only fall, and --lower writes it down. Pages that a newcomer reads first have none, nor the words of PAGE_RULES.
usage: check-words.py [--lower] (from anywhere in the checkout)"""
import pathlib
import re
import subprocess
import sys

PAGES = {"README.md"} | {f"docs/{name}.md" for name in (
    "exec", "first-change", "isolation", "my-kernel", "research", "serve", "share-a-card", "tutorial", "windows")}
# The gate and its test name what they refuse.
LEFT_OUT = {"tools/check-words.py", "tests/architecture/gates.cmake"}
SLASHES = {".cpp", ".hpp", ".h", ".c", ".cu", ".cuh", ".inl", ".def"}
HASHES = {".py", ".sh", ".cmake", ".toml"}
NAMED = {"CMakeLists.txt", "Makefile"}
SHOWN = 20

# What is refused by its name in words-left.txt, and what is right.
RULES = [
    ("comment begins with 'of'", None, "its first word is its subject"),
    ("memory of the host", re.compile(r"memory\s+of\s+the\s+host", re.I), "say host memory"),
    ("nobody", re.compile(r"\b(nobody|everybody|somebody|whoever)\b", re.I), "name the program or the thing"),
    ("is no", re.compile(r"(?<!there\s)\bis no\b(?!\s+(longer|more|less|worse|better|faster|slower|larger|smaller)\b)", re.I), "say is not"),
    ("link is a question", re.compile(r"\[((why|how|which)\b[^\]\[]*|measured)\]\(", re.I), "a link's text is a noun phrase"),
    ("most_", re.compile(r"\bmost_\w*"), "say max_"),
]
PAGE_RULES = [
    ("beside", re.compile(r"\bbeside\b", re.I), "say next to, or name what runs at the same time"),
    ("price", re.compile(r"\bprices?\b", re.I), "say overhead"),
    ("hunt", re.compile(r"\b(hunt\w*|bred|planted|dealt out)\b", re.I), "say search, synthetic, interleaved"),
    ("plain", re.compile(r"\bplain(ly)?\b", re.I), "say uncoloured, or without Demarc"),
    ("line", re.compile(r"\b(behind its line|who (slows|disturbs) whom)\b", re.I), "name the partition, or the interference"),
    ("times slower", re.compile(r"\d( %| per cent| times) (slower|longer)\b"), "a slowdown is 1.08x"),
]


def suffix(name):
    return ".cmake" if pathlib.PurePath(name).name in NAMED else pathlib.PurePath(name).suffix


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def comments_with_of(text, mark):
    """The lines of comments whose first word is "of". A comment goes on in the next line that has nothing else."""
    begins = re.compile(r"^(?P<code>.*?)(?P<mark>%s)[!/<#]*\s*(?P<words>.*)$" % mark)
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        found = begins.match(line)
        if not found or (found["code"].strip() and not re.search(r"[;,{}()\w\"']\s*$", found["code"])):
            inside = False
            continue
        alone = not found["code"].strip()
        if not (inside and alone) and re.match(r"of\b", found["words"], re.I):
            yield number
        inside = True


def words_of_page(text):
    """The page with what stands in blocks, in backticks and behind links replaced by blanks: names and output of programs."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    text = re.sub(r"^ *```.*?^ *```", blank, text, flags=re.M | re.S)
    text = re.sub(r"^    [^ |].*$", blank, text, flags=re.M)
    text = re.sub(r"`[^`\n]*`", blank, text)
    return re.sub(r"\]\([^)]*\)", blank, text)


def found_in(name, text):
    for rule, pattern, _ in RULES:
        if pattern is not None:
            if rule == "link is a question" and suffix(name) != ".md":
                continue
            for match in pattern.finditer(text):
                yield rule, line_of(text, match.start())
        elif suffix(name) in SLASHES | HASHES:
            for line in comments_with_of(text, "//" if suffix(name) in SLASHES else "#"):
                yield rule, line
    if name in PAGES:
        words = words_of_page(text)
        for rule, pattern, _ in PAGE_RULES:
            for match in pattern.finditer(words):
                yield rule, line_of(words, match.start())


def main():
    root = pathlib.Path(subprocess.run(["git", "-C", pathlib.Path(__file__).resolve().parent, "rev-parse", "--show-toplevel"],
                                       check=True, capture_output=True, text=True).stdout.strip())
    names = subprocess.run(["git", "-C", root, "ls-files"], check=True, capture_output=True, text=True).stdout.split("\n")
    names = [name for name in names if suffix(name) in SLASHES | HASHES | {".md"} and name not in LEFT_OUT and (root / name).is_file()]
    if not names:
        print("check-words: no files found", file=sys.stderr)
        return 1
    gone = sorted(PAGES - set(names))
    if gone:
        print(f"check-words: not in the tree: {', '.join(gone)}; PAGES names the pages that newcomers read first", file=sys.stderr)
        return 1
    cures = {rule: cure for rule, _, cure in RULES + PAGE_RULES}
    places = {rule: [] for rule, _, _ in RULES}
    bad = []
    for name in names:
        for rule, line in found_in(name, (root / name).read_text(encoding="utf-8", errors="replace")):
            if name in PAGES:
                bad.append(f"{name}:{line}: {rule}: {cures[rule]}")
            else:
                places[rule].append(f"{name}:{line}")
    kept = root / "tools" / "words-left.txt"
    left = {}
    for row in kept.read_text(encoding="utf-8").splitlines():
        rule, _, number = row.rpartition(" ")
        left[rule] = int(number)
    if set(left) != set(places):
        print(f"check-words: {kept.name} does not have a row for each of: {', '.join(places)}", file=sys.stderr)
        return 1
    for rule, found in places.items():
        if len(found) > left[rule]:
            bad.append(f"{rule}: {cures[rule]}: {len(found)} places, and {left[rule]} were left; the new ones are among")
            changed = set(subprocess.run(["git", "-C", root, "diff", "--name-only", "HEAD~1"], capture_output=True, text=True).stdout.split())
            found.sort(key=lambda place: place.rsplit(":", 1)[0] not in changed)
            bad += [f"  {place}" for place in found[:SHOWN]]
    for row in bad:
        print(f"check-words: {row}", file=sys.stderr)
    if bad:
        return 1
    fewer = [rule for rule, found in places.items() if len(found) < left[rule]]
    if "--lower" in sys.argv[1:]:
        kept.write_text("".join(f"{rule} {len(found)}\n" for rule, found in places.items()), encoding="utf-8")
    elif fewer:
        print(f"check-words: fewer than were left of: {', '.join(fewer)}; tools/check-words.py --lower writes it down")
    print(f"check-words: {len(PAGES)} pages have none of these words, and {sum(map(len, places.values()))} places of the tree are left")
    return 0


sys.exit(main())
