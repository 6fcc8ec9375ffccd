#!/usr/bin/env bash
# Runs every libFuzzer program for SECONDS in all, each from its kept corpus. usage: run-fuzzers.sh BUILD_DIR SECONDS
set -euo pipefail
build=$(realpath "$1"); seconds=$2
cd "$(git -C "$(dirname "$0")" rev-parse --show-toplevel)"
mapfile -t lines < "$build/fuzzers.txt"
[ ${#lines[@]} -gt 0 ] || { echo "run-fuzzers: no fuzzer was built" >&2; exit 1; }
each=$((seconds / ${#lines[@]}))
for line in "${lines[@]}"; do
  read -r program corpus <<<"$line"
  name=$(basename "$program"); work="$build/fuzz-work/$name"; mkdir -p "$work"
  [ -n "$(ls -A "$corpus")" ] || { echo "run-fuzzers: the corpus $corpus is empty" >&2; exit 1; }
  echo "run-fuzzers: $name for $each s"
  "$program" -max_total_time="$each" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$work/" "$work" "$corpus"
done
