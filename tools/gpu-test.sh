#!/usr/bin/env bash
# What needs a GPU, against a build that is there; nothing is configured or built, so that a build may be carried to the
# machine with the card. Every check is run and has a line: "passed", "FAILED" or "not run" (the card or the machine lacks
# what it needs, by the program's own words). Exit code 0; 3 when a check failed; 2 when none could be run. Without a GPU it says so and succeeds.
# usage: gpu-test.sh [BUILD_DIR]     (default: $BUILD, else build/release)
# Environment: DEVICE (cuda:0), PEER (another card that it reaches; none), TPCS (a partition, 0-3), LAUNCHES (of the conformance suite, under random masks: 1000000),
# DEMARC_LIBCUDA (another libcuda: a stand-in counts as a GPU).
set -euo pipefail
build=$(realpath "${1:-${BUILD:-build/release}}")
device=${DEVICE:-cuda:0}; tpcs=${TPCS:-0-3}; launches=${LAUNCHES:-1000000}
if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null && [ -z "${DEMARC_LIBCUDA:-}" ]; then
  echo "gpu-test: not run: no NVIDIA GPU on this machine"; exit 0
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/demarc-gpu-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
export DEMARC_CACHE="$work/cache"
demarc="$build/demarc"
passed=0; failed=0; lacking=0

# check WHAT EXIT_CODE PATTERN COMMAND...: it ends with that code, and its output has the pattern.
check() {
  local what=$1 wanted=$2 pattern=$3 code=0 begin=$SECONDS; shift 3
  if [ ! -x "$1" ]; then
    echo "FAILED   $what: $1 is not there"; failed=$((failed + 1)); return 0
  fi
  "$@" >"$work/out" 2>&1 </dev/null || code=$?
  if [ $code = 2 ] && [ "$wanted" != 2 ]; then
    echo "not run  $what: $(grep -v '^ *$' "$work/out" | tail -n 1)"; lacking=$((lacking + 1))
  elif [ $code != "$wanted" ]; then
    echo "FAILED   $what: exit code $code instead of $wanted:"; failed=$((failed + 1)); tail -n 15 "$work/out" | sed 's/^/           /'
  elif ! grep -qE -e "$pattern" "$work/out"; then
    echo "FAILED   $what: no '$pattern' in what it printed:"; failed=$((failed + 1)); tail -n 15 "$work/out" | sed 's/^/           /'
  else
    echo "passed   $what ($((SECONDS - begin)) s)"; passed=$((passed + 1))
  fi
}

check "topo: two ways of finding the topology agree" 0 'agree' "$demarc" topo --device "$device" --refresh

# A partition, proved from inside the card, for each mechanism that needs no other process; and that of a program which is
# in none is not called one.
for mode in green mask affinity; do
  check "verify: a partition by $mode holds" 0 'partition HOLDS' "$demarc" verify --device "$device" --tpcs "$tpcs" --mode $mode
done
check "verify: a program without a partition is in none" 3 'is in no partition' "$demarc" verify --device "$device" --tpcs "$tpcs"
check "verify: memory of colour 0 is kept apart" 0 'colours HOLD' "$demarc" verify --device "$device" --colors 0

# Another program inside a partition: audited from outside, and proved from inside; one that a launcher lets out is noticed.
check "exec: a confined program stays inside, by the audit" 0 '[1-9][0-9]* process(es)? confined' \
  "$demarc" exec --device "$device" --tpcs "$tpcs" --audit -- "$demarc" run bundled:vecadd
check "exec: a confined program stays inside, by its own probe" 0 'partition HOLDS' \
  "$demarc" exec --device "$device" --tpcs "$tpcs" -- "$demarc" verify --tpcs "$tpcs"
check "exec: a program whose launcher drops the environment is not called confined" 3 '.' \
  "$demarc" exec --device "$device" --tpcs "$tpcs" -- \
  env -i "PATH=$PATH" "HOME=$work" "DEMARC_CACHE=$DEMARC_CACHE" "DEMARC_LIBCUDA=${DEMARC_LIBCUDA:-libcuda.so.1}" \
  "$demarc" run bundled:vecadd

# TLBs by timing, in 8 GiB: an L2 hit takes hundreds of cycles, and more pages than the first levels hold are felt. With
# PEER=cuda:1 memory of that card too, which is further away than the own L2.
check "probe translation: the card's TLBs are felt" 0 'local memory in pieces of 2 MiB, read every 2 MiB: [1-9][0-9][0-9] cycles, [1-9] TLB level' \
  "$demarc" probe translation --device "$device" --memory-gib 8 --host-gib 0.5
if [ -n "${PEER:-}" ]; then
  check "probe translation: a peer's memory is reached, at more cycles than the own L2" 0 \
    'peer memory in pieces of 2 MiB, read every 2 MiB: ([6-9][0-9][0-9]|[1-9][0-9]{3}) cycles' \
    "$demarc" probe translation --device "$device" --peer "$PEER" --memory-gib 8 --host-gib 0.5
fi

# The main job, short: both modes have a table.
for mode in mask mask+color; do
  check "isolate: $mode, a few samples" 0 "^${mode/+/[+]}( \(|$)" "$demarc" isolate --device "$device" --modes $mode --victims va,chase \
    --aggressors dram_read --samples 5 --max-samples 10 --rounds 1 --warm-up 1 --longest 2 --seed 1
done

# Bundled launches against their references; all of them, and each instruction, beside the emulator.
for name in vecadd hotspot bfs matmul_tiled histogram reduction; do
  check "run: $name meets its reference" 0 'outputs meet the reference' "$demarc" run --device "$device" "bundled:$name"
done
check "emulator: every bundled launch and every instruction gives what the card gives" 0 '^launches: ' \
  "$build/tests/emulate/demarc_emulate_gpu"

# The contract of every mechanism, MPS included.
check "conformance: every mechanism keeps its contract" 0 'conforms' "$build/tests/card/demarc_conformance" --launches "$launches"
if grep -q 'NOT RUN' "$work/out"; then echo "not run  conformance: $(grep 'NOT RUN' "$work/out" | head -n 1)"; lacking=$((lacking + 1)); fi

echo "gpu-test: $passed passed, $failed failed, $lacking not run"
[ $failed = 0 ] || exit 3
[ $passed != 0 ] || exit 2
