"""Many faults in one build: each behind a switch that the environment turns on, so that only tests run for each."""

import re

VARIABLE = "DEMARC_FAULT"
# Before a source with switches. The number of the fault that is on; 0: none.
PROLOGUE = f"""#include <cstdlib>
namespace {{
const int demarc_fault = [] {{
  const char* const on = std::getenv("{VARIABLE}");
  return on == nullptr ? 0 : std::atoi(on);
}}();
}}
"""

_NO_TYPE = r"(?!return\b|delete\b|throw\b|else\b|case\b|goto\b|using\b|if\b|for\b|while\b|do\b|switch\b)"
_DECLARES = re.compile(r"\s*" + _NO_TYPE + r"(?:(?:const|static|auto|struct|unsigned)\s+)*[A-Za-z_][\w:]*(?:<.*>)?"
                       r"(?:\s*[*&]+\s*|\s+)(?:const\s+)?(?:[A-Za-z_]\w*|\[[\w, ]+\])\s*(?:=|\{|;|\[|\(|$)")
_FIRST_VALUE = re.compile(r"(\s*" + _NO_TYPE + r"[A-Za-z_][^=;]*? = )(.*);$")
_CONDITION = re.compile(r"(\s*(?:\} else )?(?:if|while) \()(.*)(\)(?: \{| return .*;| continue;| break;)?)$")
_LOOP = re.compile(r"(\s*for \([^;]*; )([^;]*)(; [^;]*\)(?: \{)?)$")
_CONSTANT = re.compile(r"(\s*)(?:inline )?constexpr (?!auto\b)([\w:]+ \w+ = )(.*);(\s*//.*)?$")
_BRANCH = re.compile(r"\s*(?:case\b|default:|\}|else\b|DEMARC_TRY\()")


def switched(before, after, number, following=""):
    """The line with the fault behind its switch; None where a line of this form has no room for one. `following`: the next
    line that is not empty."""
    on = f"demarc_fault == {number}"
    for form in (_CONDITION, _LOOP):
        old, new = form.fullmatch(before), form.fullmatch(after)
        if old and new and (old[1], old[3]) == (new[1], new[3]) and _is_plain(old[2]) and _is_plain(new[2]):
            return f"{old[1]}{on} ? static_cast<bool>({new[2]}) : static_cast<bool>({old[2]}){old[3]}"
    old, new = _CONSTANT.fullmatch(before), _CONSTANT.fullmatch(after)
    if old and new and old[2] == new[2]:
        return f"{old[1]}const {old[2]}{on} ? ({new[3]}) : ({old[3]});"
    if not before.rstrip().endswith(";") or _BRANCH.match(before) or not _is_closed(before) or "constexpr" in before:
        return None
    if _DECLARES.match(before):
        old, new = _FIRST_VALUE.fullmatch(before), _FIRST_VALUE.fullmatch(after)
        if old and new and old[1] == new[1] and not old[2].startswith(("[", "{")):
            return f"{old[1]}{on} ? ({new[2]}) : ({old[2]});"
        return None
    if following.startswith("else"):
        return None
    return f"if ({on}) {{ {after.strip()} }} else {{ {before.strip()} }}"


def _is_plain(condition):
    """A condition without a declaration in it, whose brackets close."""
    return bool(condition) and ";" not in condition and _is_closed(condition) and not re.match(r"(?:const|auto)\b", condition)


def _is_closed(text):
    return all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}"))


def with_switches(text, faults):
    """A source with the faults of {number: fault} behind switches. Gives the text, and the numbers that are in it."""
    lines = text.split("\n")
    placed = set()
    for number, fault in faults.items():
        at = fault.line - 1
        if lines[at] != fault.before:
            continue  # another fault has the line
        after = next((line.strip() for line in lines[at + 1:] if line.strip()), "")
        stands = next((line.rstrip() for line in reversed(lines[:at]) if line.strip()), ";")
        if not stands.endswith((";", "{", "}", ":", ")", "else")) or (stands.endswith(")") and not _is_closed(stands)):
            continue
        line = switched(fault.before, fault.after, number, after)
        if line is not None:
            lines[at] = line
            placed.add(number)
    return "\n".join(lines), placed
