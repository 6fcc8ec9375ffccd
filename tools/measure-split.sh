#!/usr/bin/env bash
# Runs the launches of docs/measurements/translation.md, "On real cards", split over cards: one line of CSV each.
#   tools/measure-split.sh build/release/demarc h200-x2 cuda:0,cuda:1
set -euo pipefail
[ $# = 3 ] || { sed -n '2,3s/^# *//p' "$0" >&2; exit 1; }
demarc=$1 machine=$2 cards=$3
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
launches='region_read examples/translation/region_read.json
region_write examples/translation/region_write.json
region_copy examples/translation/region_copy.json
region_stride examples/translation/region_stride.json
region_random examples/translation/region_random.json
region_chase examples/translation/region_chase.json
RL bundled:relu --scale large
FIR bundled:fir --param n=33554432
MP bundled:maxpool --param planes=16 --param height=1024 --param width=1024
MT bundled:transpose_4x4 --scale large
KM bundled:kmeans_full --param points=1048576 --param iterations=2
FFT bundled:fft --param transforms=65536
ST bundled:stencil9 --param rows=8192 --param columns=8192 --param iterations=2
PR bundled:pagerank --param rows=262144 --param per_row=64 --param iterations=2
AES bundled:aes --scale 64mb'
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
done <<<"$launches"
