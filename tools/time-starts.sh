#!/usr/bin/env bash
# On a machine with a card that nothing else uses: how long the first `demarc exec --part 1/2` takes until its program starts, with
# 16 GiB, 64 GiB and all of the card's memory. It starts a server each time, which measures the colours of that memory.
# usage: time-starts.sh DEMARC
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,4p' "$0"; exit 2; }
demarc=$(realpath "$1")
work=$(mktemp -d /tmp/starts.XXXXXX)
trap 'rm -rf "$work"' EXIT
now() { date +%s.%N; }
for memory in 16GiB 64GiB ""; do
  begin=$(now)
  # The program makes no context, which is exit code 3.
  "$demarc" exec --part 1/2 ${memory:+--memory "$memory"} -- bash -c "date +%s.%N >$work/started" 2>"$work/said" || true
  [ -e "$work/started" ] || { cat "$work/said"; exit 1; }
  awk -v begin="$begin" -v started="$(cat "$work/started")" -v memory="${memory:-all but 6 GiB}" \
    'BEGIN { printf "%s: %.1f s\n", memory, started - begin }'
  rm "$work/started"
  while pgrep -f "demarc.* serve --config .*demarc-cuda0-2" >/dev/null; do sleep 0.5; done  # it ends 5 s after its last program
done
