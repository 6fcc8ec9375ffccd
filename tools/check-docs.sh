#!/usr/bin/env bash
# Every relative link in the Markdown files, and every path in backticks that looks like one of ours, must exist.
set -euo pipefail
cd "$(git -C "$(dirname "$0")" rev-parse --show-toplevel)"
status=0; checked=0
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
done < <(git ls-files '*.md')
[ "$checked" -gt 0 ] || { echo "check-docs: found nothing to check" >&2; exit 1; }
[ $status = 0 ] && echo "check-docs: $checked references hold"
exit $status
