#!/usr/bin/env bash
# The table of docs/measurements/workload.md: the time of each bundled launch on a real GPU, its kernels' times added up, the
# least of some runs; each run starts from fresh buffers and meets its reference.
# usage: measure-workloads.sh [NAME...]     (default: every bundled launch)
# Environment: DEMARC (the program, build/release/demarc), SCALE (large), RUNS (4), DEVICE (cuda:0).
# Exit code 3 when a launch failed or did not meet its reference; 2 without a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
demarc=${DEMARC:-build/release/demarc}; scale=${SCALE:-large}; runs=${RUNS:-4}; device=${DEVICE:-cuda:0}
[[ "$runs" =~ ^[1-9][0-9]{0,3}$ ]] || { echo "measure-workloads: RUNS=$runs is not a number from 1 on" >&2; exit 1; }
if [ $# -eq 0 ]; then for file in kernels/launch/*.json; do set -- "$@" "$(basename "$file" .json)"; done; fi
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
status=0
echo "| workload | kernels | time, ms |"
echo "|---|---|---|"
for name in "$@"; do
  options=(); ! grep -q "\"$scale\"" "kernels/launch/$name.json" || options=(--scale "$scale")
  for ((run = 0; run < runs; ++run)); do
    code=0
    "$demarc" run "bundled:$name" --device "$device" "${options[@]}" --json >"$work/$run" 2>"$work/error" || code=$?
    [ $code -ne 2 ] || { cat "$work/error" >&2; exit 2; }
    if [ $code -ne 0 ]; then
      echo "| \`$name\` | failed: $(tail -n 1 "$work/error") | |"; status=3; continue 2
    fi
    awk -F: '/"milliseconds"/ { sum += $2; ++kernels } END { print sum, kernels }' "$work/$run" >>"$work/$name"
  done
  sort -g "$work/$name" | awk -v name="$name" 'NR == 1 { printf "| `%s` | %d | %.3f |\n", name, $2, $1 }'
done
exit $status
