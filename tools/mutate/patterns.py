"""The faults: a table of patterns, each of which changes one place of one line."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Site:
    """Characters [start, end) of a line become `text`."""
    kind: str
    start: int
    end: int
    text: str


def _swap(regex, others):
    """What `regex` finds becomes each of those that `others` has for it."""
    pattern = re.compile(regex)

    def sites(kind, lines, at):
        for match in pattern.finditer(lines[at]):
            for other in others(match.group(1)):
                yield Site(kind, match.start(1), match.end(1), other)
    return sites


def _table(*rows):
    def others(text):
        return [row[1 - row.index(text)] for row in rows if text in row]
    return others


_RELATIONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
_WORDS = _table(("true", "false"), ("min", "max"), ("min_element", "max_element"), ("&&", "||"), ("+", "-"),
                ("+=", "-="), ("*", "/"), ("&", "|"), ("&=", "|="), ("<<", ">>"), ("any_of", "all_of"))


def _arithmetic(text):
    return _WORDS(text) or {"%": ["/"], "^": ["&"], "^=": ["&="]}[text]


def _around(text):
    """A number, one less and one more, with its suffix; from 100 on half and twice as much: the thousandth part of a
    limit on work or of a time is nothing that a test should see."""
    number, suffix = re.fullmatch(r"([\d.]+)(\w*)", text).groups()
    if "." in number:
        return [f"{float(number) + 1}{suffix}"]
    if int(number) >= 100:
        return [f"{int(number) // 2}{suffix}", f"{int(number) * 2}{suffix}"]
    return [f"{int(number) + step}{suffix}" for step in (-1, 1) if int(number) + step >= 0]


def _statement(lines, at):
    """Number of the line after the statement that begins at line `at`: that after its brackets close."""
    depth = 0
    for line in range(at, min(at + 30, len(lines))):
        depth += sum(lines[line].count(c) for c in "([{") - sum(lines[line].count(c) for c in ")]}")
        if depth <= 0:
            return line + 1
    return at + 1


def _ends_function(lines, after):
    return after >= len(lines) or lines[after].startswith("}") or lines[after].strip() == "};"


_REFUSAL = re.compile(r"return (?:check_failed|invalid_input|missing_capability|failure|error_at|refuse\w*|"
                      r"tl::unexpected|std::nullopt|false)\b")


def _never(kind, lines, at, regex):
    """The statement that begins with `regex` is not reached."""
    match = re.match(r"(\s*)" + regex, lines[at])
    if match and not _ends_function(lines, _statement(lines, at)):
        yield Site(kind, match.end(1), match.end(1), "if (false) ")


def _refusal(kind, lines, at):
    yield from _never(kind, lines, at, _REFUSAL.pattern)


def _check(kind, lines, at):
    yield from _never(kind, lines, at, r"DEMARC_CHECK\(")


def _guard(kind, lines, at):
    """`if (condition)` before a refusal: never true."""
    match = re.match(r"(\s*(?:\} else )?if \()(?:[^;]*; )?", lines[at])
    if not match or " constexpr" in lines[at]:
        return
    one_line = re.search(r"\)( \{)?$", lines[at])
    after = lines[at + 1] if at + 1 < len(lines) else ""
    if one_line and re.match(r"\s*" + _REFUSAL.pattern, after):
        yield Site(kind, match.end(), one_line.start(), "false && (" + lines[at][match.end():one_line.start()] + ")")
    inside = re.search(r"\) (?=return )", lines[at])
    if inside and _REFUSAL.match(lines[at], inside.end()):
        yield Site(kind, match.end(), inside.start(), "false && (" + lines[at][match.end():inside.start()] + ")")


# No fault that anybody could see: how text is laid out for the eye, how long something waits.
_UNSEEN = re.compile(r"\b(dump|sleep_for|yield|flush)\(")


def _erased(regex):
    """A statement on one line becomes an empty one."""
    pattern = re.compile(regex)

    def sites(kind, lines, at):
        match = pattern.match(lines[at])
        if match and _stands_alone(lines, at) and not _means_nothing(match.group(1), lines, at):
            yield Site(kind, match.start(1), match.end(1), "{}")
    return sites


def _stands_alone(lines, at):
    """A whole statement, and not the end of one."""
    before = next((lines[n].rstrip() for n in range(at - 1, -1, -1) if lines[n].strip()), ";")
    return before.endswith((";", "{", "}", ":", ")", "else")) and lines[at].count("(") == lines[at].count(")")


def _means_nothing(statement, lines, at):
    """What nobody could see, a break at the end of a switch, a return at the end of a function."""
    after = lines[at + 1].strip() if at + 1 < len(lines) else ""
    return bool(_UNSEEN.search(statement)
                or (statement == "break;" and after == "}")
                or (statement.startswith("return") and _ends_function(lines, at + 1)))


_PLACE = r"(?:\*?[A-Za-z_][\w.:]*(?:(?:->|\.)\w+|\[[^\[\]]*\]|\(\))*)"

# Name, what finds it. Binary operators stand between blanks (the formatter sees to it), templates' brackets do not.
TABLE = (
    ("relation", _swap(r" (<=|>=|==|!=|<|>)(?= |$)", lambda text: _RELATIONS[text])),
    ("and, or", _swap(r"(?:^| )(&&|\|\|)(?= |$)", _WORDS)),
    ("not", _swap(r"(?:^|[ (])(!)(?=[\w(*])", lambda text: [""])),
    ("arithmetic", _swap(r" (\+|-|\*|/|%|\+=|-=)(?= |$)", _arithmetic)),
    ("bits", _swap(r" (&|\||\^|<<|>>|&=|\|=|\^=)(?= |$)", _arithmetic)),
    ("constant", _swap(r"(?<![\w.'\"])(\d{1,9}(?:\.\d+)?(?:[uU][lL]{0,2}|[lL]{1,2}|F)?)(?![\w.'\"])", _around)),
    ("truth", _swap(r"\b(true|false)\b", _WORDS)),
    ("extreme", _swap(r"std::(min|max|min_element|max_element|any_of|all_of)\b", _WORDS)),
    ("refusal dropped", _refusal),
    ("guard never true", _guard),
    ("check dropped", _check),
    ("count dropped", _erased(r"\s*(?:if \(.*\) )?((?:(?:\+\+|--)" + _PLACE + r"|" + _PLACE +
                              r"(?:\+\+|--)|" + _PLACE + r"\.fetch_(?:add|sub|or|and)\(.*\)|" + _PLACE + r" [+|-]= .*);)$")),
    ("assignment erased", _erased(r"\s*(?:if \(.*\) )?(" + _PLACE + r" = [^;]*;)$")),
    ("call erased", _erased(r"\s*(?:if \(.*\) )?((?!return\b|DEMARC_|throw\b|delete\b)" + _PLACE + r"\(.*\);)$")),
    ("early end dropped", _erased(r"\s*(?:if \(.*\) )?((?:return \{\}|return|continue|break);)$")),
)


def sites_of_line(lines, at):
    """Every fault that a line can get; `lines` are code (source.code_lines)."""
    return [site for name, find in TABLE for site in find(name, lines, at)]
