#!/usr/bin/env bash
# Runs the launches of tools/split-launches.txt (docs/measurements/translation.md, "On real cards") split over cards: one line of CSV each.
#   tools/measure-split.sh build/release/demarc h200-x2 cuda:0,cuda:1
set -euo pipefail
[ $# = 3 ] || { sed -n '2,3s/^# *//p' "$0" >&2; exit 1; }
demarc=$1 machine=$2 cards=$3
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "launch,placement,cards,measured_ms,fastest_ms,slowest_ms,simulated_ms,check"
while read -r name launch; do
  for placement in first-touch far; do
    # shellcheck disable=SC2086
    "$demarc" translate -q --launch $launch --device "sim:$machine" --placement $placement --arch distributed \
      --measure "$cards" --runs 7 --json="$folder/one.json" >/dev/null
    python3 - "$folder/one.json" "$name" "$placement" <<'PYTHON'
import json, sys
one = json.load(open(sys.argv[1]))
times = one["measured"]
print(*sys.argv[2:4], len(one["cards"]), *(f"{times[key]:.4f}" for key in ("milliseconds", "fastest", "slowest")),
      f"{one['simulated']['distributed']['milliseconds']:.4f}", one["check"], sep=",")
PYTHON
  done
done <tools/split-launches.txt
