"""C++ text as the patterns see it: comments, strings and what the preprocessor reads are blanks."""

import platform
import re

_TOKEN = re.compile(
    r'//[^\n]*'
    r'|/\*.*?\*/'
    r'|R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'",
    re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
# What is told to the compiler, and not done.
_DECLARES = re.compile(r"^\s*(static_assert|assert|namespace|using|typedef|template|extern|friend|struct|class|enum)\b")


# Calls whose arguments no test can notice: how far something is (seen by people alone), how much room a container keeps.
_UNNOTICED = re.compile(r"\breport_progress\(|\.(?:reserve|shrink_to_fit)\(")


def _without_unnoticed(text):
    """Blanks these calls, which may go over several lines."""
    for match in _UNNOTICED.finditer(text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = text[:match.start()] + re.sub(r"[^\n]", " ", text[match.start():end]) + text[end:]
    return text


# A variable and its first value, of a line of its own.
_BEGINS_AS = re.compile(r"^\s*(?:std::)?\w+ \*?(\w+) = ([^;]*);$")


def _without_first_values_of_results(lines):
    """Blanks the first value of a variable whose address the next statements hand to a call: the call gives it its value."""
    for at, line in enumerate(lines):
        match = _BEGINS_AS.match(line)
        if match and re.search(r"&" + match.group(1) + r"\b", " ".join(lines[at + 1:at + 5])):
            lines[at] = line[:match.start(2)] + " " * len(match.group(2)) + line[match.end(2):]
    return lines


# The branch of this machine, then those that are compiled on another kind.
_BRANCHES = {"x86_64": re.compile(r"(^#if defined\(__x86_64__\)$.*?)(^#el.*?)(?=^#endif)", re.MULTILINE | re.DOTALL)}


def _without_other_machines(text, machine):
    if machine not in _BRANCHES:
        return text
    return _BRANCHES[machine].sub(lambda match: match.group(1) + re.sub(r"[^\n]", " ", match.group(2)), text)


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def code_lines(text, machine=platform.machine()):
    """The lines of `text`, as long as they are, with nothing in them that is no code."""
    text = _without_other_machines(text, machine)
    text = _without_unnoticed(_DIRECTIVE.sub(_blank, _TOKEN.sub(_blank, text)))
    lines = ["" if _DECLARES.match(line) else line for line in text.split("\n")]
    return _without_first_values_of_results(lines)
