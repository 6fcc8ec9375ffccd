#!/usr/bin/env bash
# Every relative link in the Markdown files, and every path in backticks that looks like one of ours, must exist; every
# C++ example must stand, but for its indentation, in a file that is compiled.
set -euo pipefail
cd "$(git -C "$(dirname "$0")" rev-parse --show-toplevel)"
status=0; checked=0

# Lines without indentation, trailing blanks and empty lines, joined by \x1f.
joined() { sed -E 's/^[ \t]+//; s/[ \t]+$//; /^$/d' "$@" | tr '\n' '\037'; }
compiled=$(git ls-files 'tests/*.cpp' 'tests/*.hpp' 'examples/*.cpp' 'src/*.cpp' 'include/*.hpp' | while IFS= read -r file; do joined "$file"; done)

while IFS= read -r page; do
  folder=$(dirname "$page")
  while IFS= read -r target; do
    checked=$((checked + 1))
    [ -e "$folder/$target" ] || { echo "$page: the link to '$target' leads nowhere" >&2; status=1; }
  done < <(grep -oE '\]\([^)#: ]+(#[^)]*)?\)' "$page" | sed -E 's/^\]\(//; s/[#)].*$//' || true)
  while IFS= read -r target; do
    checked=$((checked + 1))
    compgen -G "$target" >/dev/null || { echo "$page: '$target' does not exist" >&2; status=1; }
  done < <(grep -oE '`(include|src|tests|bench|kernels|devices|docs|examples|tools|cmake)/[A-Za-z0-9_./*-]+`' "$page" | tr -d '`' || true)
  while IFS= read -r example; do
    checked=$((checked + 1))
    [[ $compiled == *"$example"* ]] || { echo "$page: this example is compiled nowhere:" >&2; tr '\037' '\n' <<<"$example" >&2; status=1; }
  done < <(awk '/^ *```cpp$/ { inside = 1; next } /^ *```$/ { if (inside) print text; inside = 0; text = "" }
                inside { gsub(/^[ \t]+|[ \t]+$/, ""); if ($0 != "") text = text $0 "\037" }' "$page")
done < <(git ls-files '*.md')
[ "$checked" -gt 0 ] || { echo "check-docs: found nothing to check" >&2; exit 1; }
[ $status = 0 ] && echo "check-docs: $checked references hold"
exit $status
