#!/bin/bash
# On a machine with a card: two tenants of half of it each, and programs by other authors in them. Prints what held.
# usage: card.sh DEMARC PROGS_DIR OUT_DIR [STEP...]
#   STEP: programs  each program of PROGS_DIR/list.tsv plainly, then in tenant a (run.sh)
#         beside    the same in tenant a while NEIGHBOUR works in tenant b
#         killed    STEPS is killed in tenant a: its memory comes back, and what comes next computes the same
#         python    the scripts of PYTHON in tenant a
#   (default: all). ONLY and LIMIT are run.sh's.
# environment: CONFIG     of the server (examples/tenants/two_halves.toml)
#              STEPS      examples/tenants/steps.cu, compiled (PROGS_DIR/steps)
#              NEIGHBOUR  command ("$STEPS copies")
#              PYTHON     scripts, one a word (examples/python's that need a card)
# Exit code 0: every step held; 3: one did not; 2: the server did not start.
set -u
[ $# -ge 3 ] || { sed -n '2,16p' "$0"; exit 2; }
HERE=$(dirname "$(realpath "$0")"); ROOT=$(realpath "$HERE/../..")
DEMARC=$(realpath "$1") PROGS=$(realpath "$2"); mkdir -p "$3"; OUT=$(realpath "$3"); shift 3
[ $# -gt 0 ] || set -- programs beside killed python
CONFIG=${CONFIG:-$ROOT/examples/tenants/two_halves.toml} STEPS=${STEPS:-$PROGS/steps}
NEIGHBOUR=${NEIGHBOUR:-$STEPS copies}
PYTHON=${PYTHON:-$ROOT/examples/python/triton_kernel.py $ROOT/examples/python/compiled_model.py}
SOCKET=$OUT/demarc.sock code=0
IN_A="$DEMARC exec --socket $SOCKET --tenant a --report --" IN_B="$DEMARC exec --socket $SOCKET --tenant b --report --"
say() { printf '%-10s %s\n' "$1" "$2" | tee -a "$OUT/card.txt"; }
fail() { say "$1" "DID NOT HOLD: $2"; code=3; }
listed() { # FIELD of tenant a
  "$DEMARC" lease list --socket "$SOCKET" --json | python3 -c \
    'import json, sys; print([t for t in json.load(sys.stdin)["tenants"] if t["name"] == "a"][0][sys.argv[1]])' "$1"
}
until_true() { # SECONDS, command...
  local end=$((SECONDS + $1)); shift
  until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.05; done
}

begin=$SECONDS
: >"$OUT/serve.log"  # an earlier server's words say nothing about this one
"$DEMARC" serve --config "$CONFIG" --socket "$SOCKET" 2>"$OUT/serve.log" & server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null' EXIT
listens() { grep -q 'bytes in the colours' "$OUT/serve.log" || ! kill -0 $server 2>/dev/null; }
until_true 180 listens && kill -0 $server 2>/dev/null || { say serve "did not start: $(tail -n 1 "$OUT/serve.log")"; exit 2; }
say serve "listens after $((SECONDS - begin)) s: $(tail -n 1 "$OUT/serve.log")"

programs() { # NAME of the step, modes...
  local name=$1 all same; shift
  PREFIX=$IN_A JOBS=${JOBS:-1} bash "$HERE/run.sh" "$PROGS" "$OUT/$name" "$@" >"$OUT/$name.log" 2>&1
  say "$name" "$(tail -n 1 "$OUT/$name.log")"
}
step_programs() { programs programs plain tenant; }
step_beside() {
  local neighbour
  [ -d "$OUT/programs/plain" ] || { fail beside "run the step programs first"; return; }
  mkdir -p "$OUT/beside"; cp -r "$OUT/programs/plain" "$OUT/beside/"
  $IN_B $NEIGHBOUR >"$OUT/neighbour.out" 2>"$OUT/neighbour.err" & neighbour=$!
  works() { grep -q '^at ' "$OUT/neighbour.out" || ! kill -0 $neighbour 2>/dev/null; }
  until_true 60 works && kill -0 $neighbour 2>/dev/null || { fail beside "the neighbour does not work: $(tail -n 1 "$OUT/neighbour.err")"; return; }
  programs beside tenant
  kill -0 $neighbour 2>/dev/null || fail beside "the neighbour has ended: $(tail -n 1 "$OUT/neighbour.err")"
  kill $neighbour 2>/dev/null; wait $neighbour 2>/dev/null
}
sum_of_steps() { echo '50 60' | $IN_A "$STEPS" 2>>"$OUT/killed.err" | grep -o '"sha256": "[^"]*"'; }
step_killed() {
  local first program
  first=$(sum_of_steps); [ -n "$first" ] || { fail killed "STEPS said nothing: $(tail -n 1 "$OUT/killed.err")"; return; }
  rm -f "$OUT/killed.in"; mkfifo "$OUT/killed.in"; exec 9<>"$OUT/killed.in"  # an input without an end
  $IN_A "$STEPS" <"$OUT/killed.in" >"$OUT/killed.out" 2>>"$OUT/killed.err" 9>&- &
  ready() { grep -q '^ready ' "$OUT/killed.out"; }
  until_true 60 ready || { fail killed "STEPS is not ready: $(tail -n 1 "$OUT/killed.err")"; return; }
  local had; had=$(listed given_bytes)
  program=$(sed -n 's/^ready //p' "$OUT/killed.out"); kill -9 "$program"
  nobody() { [ "$(listed given_bytes)" = 0 ] && [ "$(listed unclean_bytes)" = 0 ]; }
  local killed=$EPOCHREALTIME
  if [ "$had" = 0 ]; then fail killed "STEPS had no memory"
  elif ! until_true 60 nobody; then fail killed "$(listed given_bytes) bytes are given and $(listed unclean_bytes) unclean after 60 s"
  elif [ "$(sum_of_steps)" != "$first" ]; then fail killed "what came next computed something else"
  else say killed "$had bytes came back, filled with zeros; $first again"; fi
  exec 9>&-
}
step_python() {
  local script name
  for script in $PYTHON; do
    name=$(basename "$script" .py)
    if PYTHONPATH=$ROOT/python${PYTHONPATH:+:$PYTHONPATH} timeout 300 $IN_A python3 "$script" >"$OUT/$name.out" 2>"$OUT/$name.err"; then
      say python "$name: $(tail -n 1 "$OUT/$name.out")"
    else fail python "$name: $(grep -v '^ *$' "$OUT/$name.err" | tail -n 1)"; fi
  done
}
for step; do
  begin=$SECONDS
  declare -F "step_$step" >/dev/null || { fail "$step" "there is no such step"; continue; }
  kill -0 $server 2>/dev/null || { fail "$step" "the server has ended: $(tail -n 1 "$OUT/serve.log")"; break; }
  "step_$step"
  say "$step" "took $((SECONDS - begin)) s"
done
exit $code
