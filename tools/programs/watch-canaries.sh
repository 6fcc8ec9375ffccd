#!/usr/bin/env bash
# On a machine with a card that nothing else uses: what the canaries of two tenants say while one of them writes, and how much longer a
# program's kernels take with canaries (docs/measurements/serve.md). Needs g++ and the header of CUDA's driver.
# usage: watch-canaries.sh DEMARC
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,4p' "$0"; exit 2; }
demarc=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d /tmp/canaries.XXXXXX)
server=
trap '[ -z "$server" ] || kill "$server"; wait; rm -rf "$work"' EXIT
g++ -O2 -std=c++20 -I"${CUDA_HOME:-/usr/local/cuda}/include" "$here/streams.cpp" -o "$work/streams" -lcuda
export DEMARC_SOCKET=$work/s
serve() {  # true or false: with canaries or without
  cat >"$work/t.toml" <<T
card = 0
memory = "16 GiB"
mps = "on"
metrics = 9464
canary = $1
[tenants.a]
tpcs = "1/2"
colors = "1/2"
[tenants.b]
tpcs = "2/2"
colors = "2/2"
T
  "$demarc" serve --config "$work/t.toml" --socket "$work/s" 2>"$work/log" &
  server=$!
  until grep -q "bytes in the colours" "$work/log"; do kill -0 "$server" 2>/dev/null || { cat "$work/log"; exit 1; }; sleep 0.2; done
  sleep 12  # the baseline is measured
}
stop() { kill "$server"; wait "$server" || true; server=; }
told() { echo "$1:"; curl -s http://127.0.0.1:9464/metrics | grep "^demarc_tenant_canary"; }
serve true
told "no program"
"$demarc" exec --tenant b -- "$work/streams" write & writer=$!
sleep 10; told "b writes"
kill "$writer"; wait "$writer" || true
sleep 4; told "b has ended"
"$demarc" exec --tenant a -- "$work/streams" read
stop
serve false
echo "without canaries:"
"$demarc" exec --tenant a -- "$work/streams" read
stop
