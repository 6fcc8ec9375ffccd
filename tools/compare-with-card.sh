#!/usr/bin/env bash
# Runs launch files on a card and in the emulator and compares every output to the byte.
#   tools/compare-with-card.sh DEMARC FILE.json... [-- OPTION...]
# Options go to both, such as --param x=8. Exit code 3: an output differs, or one of the two fails.
set -euo pipefail
if [ $# -lt 2 ]; then
  sed -n '2,4s/^# *//p' "$0" >&2
  exit 1
fi
demarc=$1
shift
files=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  files+=("$1")
  shift
done
[ $# -eq 0 ] || shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong=0
for file in "${files[@]}"; do
  outputs=$(sed -nE 's/.*"name": "([^"]+)".*"output": true.*/\1/p' "$file")
  if [ -z "$outputs" ]; then
    echo "$file: no buffer is an output" >&2
    exit 1
  fi
  on_card=() in_emulator=()
  for name in $outputs; do
    on_card+=(--save "$name=$work/card.$name")
    in_emulator+=(--save "$name=$work/emulator.$name")
  done
  rm -f "$work"/card.* "$work"/emulator.*
  said="the same bytes"
  if ! "$demarc" run --launch "$file" "$@" "${on_card[@]}" >"$work/log" 2>&1 ||
    ! "$demarc" emulate --launch "$file" "$@" "${in_emulator[@]}" >"$work/log" 2>&1; then
    said="fails: $(tail -1 "$work/log")"
    wrong=3
  else
    for name in $outputs; do
      cmp -s "$work/card.$name" "$work/emulator.$name" && continue
      said="$name differs"
      wrong=3
    done
  fi
  echo "$file $*: $said"
done
exit "$wrong"
