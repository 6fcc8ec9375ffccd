#!/usr/bin/env bash
# Every relative link in the Markdown files, the heading that it names, and every path in backticks that looks like one of ours must exist, also one
# that begins with a room (`driver/gpu.hpp`); every
# C++ example must stand, but for its indentation, in a file that is compiled. Every command (in backticks, in a block or
# indented) must name a verb, a program, a target of make and files that there are; and every section of
# docs/measurements that has a table must have a command in docs/measurements/README.md. Pictures are what their scripts draw.
# In a table with a column "paper" each of its figures needs a "place", where the paper says it.
set -euo pipefail
cd "$(git -C "$(dirname "$0")" rev-parse --show-toplevel)"
status=0; checked=0
complain() { echo "$1" >&2; status=1; }

# Lines without indentation, trailing blanks and empty lines, joined by \x1f.
joined() { sed -E 's/^[ \t]+//; s/[ \t]+$//; /^$/d' "$@" | tr '\n' '\037'; }
compiled=$(git ls-files 'tests/*.cpp' 'tests/*.hpp' 'examples/*.cpp' 'src/*.cpp' 'include/*.hpp' | while IFS= read -r file; do joined "$file"; done)

tracked=$(git ls-files)
# "PAGE#ANCHOR" of each heading, as GitHub names them.
anchors=$(git ls-files '*.md' | xargs awk '
  FNR == 1 { inside = 0; split("", seen) }
  /^```/ { inside = !inside }
  !inside && /^#+ / {
    name = tolower($0); sub(/^#+ +/, "", name); gsub(/\]\([^)]*\)/, "", name); gsub(/[^a-z0-9_ -]/, "", name); gsub(/ /, "-", name)
    print FILENAME "#" name (seen[name]++ ? "-" (seen[name] - 1) : "") }')

while IFS= read -r page; do
  folder=$(dirname "$page")
  while IFS= read -r target; do
    checked=$((checked + 1))
    [ -e "$folder/$target" ] || { echo "$page: the link to '$target' leads nowhere" >&2; status=1; }
  done < <(grep -oE '\]\([^)#: ]+(#[^)]*)?\)' "$page" | sed -E 's/^\]\(//; s/[#)].*$//' || true)
  while IFS='#' read -r target anchor; do
    checked=$((checked + 1))
    [ -n "$target" ] && target=$(realpath -m --relative-to=. "$folder/$target") || target=$page
    [[ $target != *.md ]] || grep -qxF -e "$target#$anchor" <<<"$anchors" || complain "$page: $target has no heading '#$anchor'"
  done < <(grep -oE '\]\([^)#: ]*#[^) ]+\)' "$page" | sed -E 's/^\]\(//; s/\)$//' || true)
  while IFS= read -r target; do
    checked=$((checked + 1))
    compgen -G "$target" >/dev/null || { echo "$page: '$target' does not exist" >&2; status=1; }
  done < <(grep -oE '`(include|src|tests|bench|kernels|devices|docs|examples|tools|cmake)/[A-Za-z0-9_./*-]+`' "$page" | tr -d '`' || true)
  while IFS= read -r target; do
    checked=$((checked + 1))
    grep -qE "(^|/)${target//./\\.}\$" <<<"$tracked" || complain "$page: no file ends in '$target'"
  done < <(grep -oE '`[a-z_]+/[a-z_0-9/]+\.(hpp|cpp|cuh|cu|def)`' "$page" | tr -d '`' | sort -u || true)
  while IFS= read -r example; do
    checked=$((checked + 1))
    [[ $compiled == *"$example"* ]] || { echo "$page: this example is compiled nowhere:" >&2; tr '\037' '\n' <<<"$example" >&2; status=1; }
  done < <(awk '/^ *```cpp$/ { inside = 1; next } /^ *```$/ { if (inside) print text; inside = 0; text = "" }
                inside { gsub(/^[ \t]+|[ \t]+$/, ""); if ($0 != "") text = text $0 "\037" }' "$page")
done < <(git ls-files '*.md')

# What commands name: of what stands in backticks, in blocks and indented, "PAGE KIND NAME" once each.
named=$(git ls-files '*.md' | xargs awk '
  function words(text,   n, i, word, before, w) {
    n = split(text, w, /[ "();&|]+/); before = ""
    for (i = 1; i <= n; ++i) {
      word = w[i]
      if (word ~ /^(include|src|tests|bench|kernels|devices|docs|examples|tools|cmake)\// && word !~ /NAME|FILE|,/) print FILENAME, "file", word
      if (before ~ /^(build\/[a-z]+\/)?demarc$/ && word ~ /^[a-z]+$/) print FILENAME, "verb", word
      if (word ~ /(^|\/)demarc_([a-z_]+_bench|conformance|emulate_gpu)$/) { sub(/.*\//, "", word); print FILENAME, "program", word }
      if (before == "make" && word ~ /^[a-z-]+$/) print FILENAME, "target", word
      before = w[i]
    }
  }
  function command(text) { if (text ~ /^ *(\$ )?((build\/[a-z\/]+)?demarc[ _]|tools\/|python3 |make |nvcc |bash )/) words(text) }
  FNR == 1 { inside = 0 }
  /^ *```(console|sh|bash)?$/ { inside = !inside; next }
  inside || /^    [^ |]/ { command($0); next }
  { while (match($0, /`[^`]+`/)) { command(substr($0, RSTART + 1, RLENGTH - 2)); $0 = substr($0, RSTART + RLENGTH) } }' | sort -u)
programs=$(git ls-files '*CMakeLists.txt' | xargs -r sed -nE 's/^ *demarc_add_bench\([a-z]+ ([a-z_]+).*/demarc_\1_bench/p; s/^ *add_executable\(([a-z_]+) .*/\1/p')
goals=$(sed -nE 's/^([a-z][a-z -]*):.*/\1/p' Makefile 2>/dev/null | tr ' ' '\n' || true)
while read -r page kind name; do
  [ -n "$page" ] || continue
  checked=$((checked + 1))
  case "$kind" in
    file) compgen -G "${name%.}" >/dev/null ;;
    verb) [ -e "src/cli/$name.cpp" ] ;;
    program) grep -qx -e "$name" <<<"$programs" ;;
    target) grep -qx -e "$name" <<<"$goals" ;;
  esac || complain "$page: a command names the $kind '$name', which does not exist"
done <<<"$named"

# A column "paper (Table 2)" has its place. "published" does not say by whom; simulated.md still has such columns.
while IFS= read -r wrong; do
  [ -z "$wrong" ] || complain "$wrong"
done < <(git ls-files '*.md' ':!docs/measurements/simulated.md' | xargs -r awk -F'|' '
  function cell(i,   text) { text = $i; gsub(/^ +| +$/, "", text); return text }
  FNR == 1 { inside = 0 }
  !/^\|/ { inside = 0; next }
  !inside {
    inside = 1; paper = place = 0
    for (i = 2; i < NF; ++i) {
      if (cell(i) == "published") print FILENAME ":" FNR ": a column \"published\" does not say by whom; write \"paper\", or name the program"
      if (cell(i) == "paper") paper = i
      if (cell(i) == "place") place = i
    }
    if (paper && !place) print FILENAME ":" FNR ": a column \"paper\" needs a column \"place\""
    next
  }
  paper && place && cell(paper) !~ /^[-: ]*$/ && cell(place) == "" { print FILENAME ":" FNR ": \"" cell(paper) "\" has no place in the paper" }')

# Sections with a table, each with a row of its heading or of the whole page.
index=docs/measurements/README.md
while IFS=$'\t' read -r page heading; do
  checked=$((checked + 1))
  grep -qF -e "| [$page]($page) | $heading | " -e "| [$page]($page) | all | " "$index" || complain "docs/measurements/$page: '$heading' has a table and no command in $index"
done < <(for page in $(git ls-files 'docs/measurements/*.md'); do [ "$page" = $index ] || awk -v page="$(basename "$page")" '
  /^#+ / { heading = $0; sub(/^#+ /, "", heading); told = 0 } /^\|/ && !told { print page "\t" heading; told = 1 }' "$page"; done)
for script in $(git ls-files 'tools/*-picture.py'); do
  checked=$((checked + 1))
  picture=docs/pictures/$(basename "$script" -picture.py).svg
  python3 "$script" | cmp -s - "$picture" || complain "$picture is not what $script draws of today's tables"
done
[ "$checked" -gt 0 ] || { echo "check-docs: found nothing to check" >&2; exit 1; }
[ $status = 0 ] && echo "check-docs: $checked references hold"
exit $status
