#!/usr/bin/env bash
# Runs every libFuzzer program from its kept corpus: that of PTX, the largest language, for SECONDS; beside it the others,
# which share half as many. usage: run-fuzzers.sh BUILD_DIR SECONDS
# Inputs are drawn without libFuzzer's entropic weights: counting how rare each feature is took four fifths of the time,
# and in as many seconds a third of the inputs was tried.
set -euo pipefail
build=$(realpath "$1"); seconds=$2
[[ "$seconds" =~ ^[1-9][0-9]{0,5}$ ]] || { echo "run-fuzzers: '$seconds' is not a number of seconds from 1 on" >&2; exit 1; }
cd "$(git -C "$(dirname "$0")" rev-parse --show-toplevel)"
ptx=$(grep '/demarc_ptx_fuzz ' "$build/fuzzers.txt") || { echo "run-fuzzers: $build has no fuzzer of PTX" >&2; exit 1; }
mapfile -t others < <(grep -v '/demarc_ptx_fuzz ' "$build/fuzzers.txt")
[ ${#others[@]} -gt 0 ] || { echo "run-fuzzers: $build has the fuzzer of PTX alone" >&2; exit 1; }

run() {  # "PROGRAM CORPUS" SECONDS
  local program corpus name work
  read -r program corpus <<<"$1"
  name=$(basename "$program"); work="$build/fuzz-work/$name"; mkdir -p "$work"
  [ -n "$(ls -A "$corpus")" ] || { echo "run-fuzzers: the corpus $corpus is empty" >&2; return 1; }
  "$program" -entropic=0 -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$work/" "$work" "$corpus" > "$work.log" 2>&1 || { cat "$work.log" >&2; return 1; }
  echo "run-fuzzers: $name, $2 s: $(sed -nE 's/^stat::number_of_executed_units: +//p' "$work.log") inputs"
}
run_others() {
  local line share=$((seconds / 2 / ${#others[@]}))
  [ "$share" -gt 0 ] || share=1  # libFuzzer takes 0 for no limit
  for line in "${others[@]}"; do run "$line" "$share" || return 1; done
}
run_others & beside=$!
failed=no
run "$ptx" "$seconds" || failed=yes
wait "$beside" || failed=yes
[ $failed = no ] || { echo "run-fuzzers: a fuzzer found something, see above" >&2; exit 1; }
