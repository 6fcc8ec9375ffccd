#!/usr/bin/env bash
# On a machine with a card that nothing else uses: how many starts of `demarc exec --tpcs` are refused, on a quiet card, just
# after another program, beside a program that streams through memory on all TPCs, and beside one that is confined to
# the other TPCs. With MPS, which the script starts and ends, and without. Prints a line each.
# usage: count-starts.sh DEMARC STARTS [ROWS]      ROWS, a regular expression, chooses lines such as "with MPS, beside"
# It needs a Python with CuPy, and MPS (nvidia-cuda-mps-control).
set -euo pipefail
[ $# -eq 2 ] || [ $# -eq 3 ] || { sed -n '2,7p' "$0"; exit 2; }
demarc=$(realpath "$1"); starts=$2; rows=${3:-.}
stream=$(dirname "$(realpath "$0")")/programs/python/stream.py
work=$(mktemp -d /tmp/starts.XXXXXX); neighbour=""
end_neighbour() { [ -z "$neighbour" ] || { pkill -P "$neighbour" 2>/dev/null || true; kill "$neighbour" 2>/dev/null || true; wait "$neighbour" 2>/dev/null || true; }; neighbour=""; }
trap 'end_neighbour; rm -rf "$work"' EXIT
"$demarc" topo --refresh >"$work/topo"  # before MPS runs, with nothing else on the card

count() {  # words of the line, a command before each start
  local refused=0
  [[ $1 =~ $rows ]] || return 0
  for ((i = 0; i < starts; ++i)); do
    ${2:-true} >/dev/null 2>&1
    rm -f "$work/started"
    # A program that makes no context is exit code 3, so that the code does not tell.
    "$demarc" exec --tpcs 0-15 -- touch "$work/started" >/dev/null 2>"$work/said" || true
    [ -e "$work/started" ] || { refused=$((refused + 1)); cp "$work/said" "$work/refused"; }
  done
  echo "$1: $starts starts, $refused refused"
  [ $refused -eq 0 ] || sed 's/^/  /' "$work/refused"
}
beside() {  # words of the line, the neighbour's command
  local words=$1; shift
  [[ $words =~ $rows ]] || return 0
  "$@" >/dev/null 2>&1 & neighbour=$!
  sleep 8
  count "$words"
  end_neighbour
}
for mps in without with; do
  if [ $mps = with ]; then
    export CUDA_MPS_PIPE_DIRECTORY=$work/pipe CUDA_MPS_LOG_DIRECTORY=$work/log
    mkdir -p "$work/pipe" "$work/log"; nvidia-cuda-mps-control -d; sleep 1
  fi
  count "$mps MPS, quiet"
  count "$mps MPS, after another program" "python3 $stream 0.2"
  beside "$mps MPS, beside a program on all TPCs" python3 "$stream" 600
  beside "$mps MPS, beside a program on the other TPCs" "$demarc" exec --tpcs 16-65 -- python3 "$stream" 600
done
echo quit | nvidia-cuda-mps-control
