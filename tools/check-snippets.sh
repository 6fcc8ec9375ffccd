#!/usr/bin/env bash
# Runs every command of demarc that stands in a ```console block of the documentation, in a scratch folder that looks
# like the checkout. A line "$ demarc ..." or "$ build/release/demarc ..." is a command and must exit with 0; the lines
# below it must come in its output, in that order ("..." stands for any lines). A command whose comment says
# "on a GPU" must say what is missing and end with exit code 2 where there is no GPU; it is not run where there is one.
# usage: check-snippets.sh PROGRAM SCRATCH_FOLDER PAGE...
set -euo pipefail
program=$(realpath "$1"); scratch=$2; shift 2
source=$(cd "$(dirname "$0")/.." && pwd)
pages=(); for page in "$@"; do pages+=("$(realpath "$page")"); done
rm -rf "$scratch"; mkdir -p "$scratch/build/release"; cd "$scratch"
ln -s "$program" build/release/demarc
for folder in kernels devices examples tests; do if [ -e "$source/$folder" ]; then ln -s "$source/$folder" "$folder"; fi; done
has_gpu=no; if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then has_gpu=yes; fi
ran=0; failed=0; command_line=""; output=""; position=1

complain() { echo "check-snippets: $1" >&2; failed=1; }

run_command() {  # page:line, the text behind "$ "
  local place=$1 text=$2 code=0 wanted=0
  command_line=${text%% #*}
  read -r first _ <<<"$command_line"
  command_line_runs=no; output=""; position=1
  case "$first" in
    demarc | build/release/demarc) ;;
    make) return 0 ;;  # runs this very check
    *) complain "$place: '$first' is not run here; such a block is no console block"; return 0 ;;
  esac
  if [[ $text == *"# on a GPU"* ]]; then
    [ $has_gpu = no ] || { echo "not run: command of the documentation, $place: a GPU is here"; return 0; }
    wanted=2
  fi
  # It takes a minute; the tests that open its page in a browser run it.
  [ "${command_line%% --*}" != "demarc demo" ] || return 0
  command_line_runs=yes
  output=$(PATH="$PWD/build/release:$PATH" bash -c "$command_line" 2>&1 </dev/null) || code=$?
  ran=$((ran + 1))
  if [ $code -ne $wanted ]; then
    complain "$place: '$command_line' ended with exit code $code instead of $wanted:"$'\n'"${output:0:2000}"
    command_line_runs=no
  elif [ $wanted = 2 ] && [ -z "$output" ]; then
    complain "$place: '$command_line' does not say what is missing"
  fi
}

expect_line() {  # page:line, a line that has to come in the output
  [ "$command_line_runs" = yes ] && [ "$2" != ... ] && [ -n "$2" ] || return 0
  local found
  found=$(tail -n "+$position" <<<"$output" | grep -nxF -m 1 -- "$2" | cut -d: -f1) || true
  if [ -z "$found" ]; then complain "$1: '$command_line' does not print '$2'"; else position=$((position + found)); fi
}

for page in "${pages[@]}"; do
  in_block=no; number=0; command_line_runs=no; before=$ran
  while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    case "$in_block,$line" in
      no,'```console') in_block=yes ;;
      yes,'```') in_block=no; command_line_runs=no ;;
      yes,'$ '*) run_command "$page:$number" "${line#'$ '}" ;;
      yes,*) expect_line "$page:$number" "$line" ;;
    esac
  done < "$page"
  [ $ran -gt $before ] || complain "$page: holds no command that could be run"
done
[ $failed = 0 ] && echo "check-snippets: $ran commands do what the documentation says"
exit $failed
