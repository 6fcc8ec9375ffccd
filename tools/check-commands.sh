#!/usr/bin/env bash
# Tries every command of demarc that stands in backticks in a table of the pages given. A command runs, in a scratch
# folder that looks like the checkout, and must exit with 0. A command with a time or "on a card" in brackets behind it
# ("`demarc ...` (3 min)") does not run: its verb, its subcommand, its options and its files must exist.
# usage: check-commands.sh PROGRAM SCRATCH_FOLDER PAGE...
set -euo pipefail
program=$(realpath "$1"); scratch=$2; shift 2
source=$(cd "$(dirname "$0")/.." && pwd)
pages=(); for page in "$@"; do pages+=("$(realpath "$page")"); done
rm -rf "$scratch"; mkdir -p "$scratch"; cd "$scratch"
for folder in kernels devices examples tests; do if [ -e "$source/$folder" ]; then ln -s "$source/$folder" "$folder"; fi; done
ran=0; looked=0; failed=0
complain() { echo "check-commands: $1" >&2; failed=1; }

run_command() {  # page:line, the command
  local output code=0
  output=$(bash -c "\"$program\" ${2#demarc }" 2>&1 </dev/null) || code=$?
  ran=$((ran + 1))
  [ $code = 0 ] || complain "$1: '$2' ended with exit code $code:"$'\n'"${output:0:1000}"
}

# The help of the verb, and of its subcommand where the next word is one, must list each option.
look_at_command() {  # page:line, the command
  local place=$1 word words help part=""
  read -ra words <<<"$2"
  looked=$((looked + 1))
  if ! help=$("$program" "${words[1]}" --help 2>&1); then complain "$place: '$2': there is no verb '${words[1]}'"; return 0; fi
  for word in "${words[@]:2}"; do
    case "$word" in
      --) return 0 ;;
      --*)
        word=${word%%=*}
        grep -qE -e "(^|[ ,])$word([^a-z0-9-]|\$)" <<<"$help" || complain "$place: '$2': ${words[1]}$part has no option '$word'" ;;
      -*) ;;
      *)
        if [ -z "$part" ] && grep -qE "^  $word( |\$)" <<<"$help"; then
          part=" $word"; help=$("$program" "${words[1]}" "$word" --help 2>&1)
        fi
        if [[ $word == */* && $word != *[=:]* ]] && ! [ -e "$word" ]; then complain "$place: '$2': '$word' does not exist"; fi ;;
    esac
  done
}

for page in "${pages[@]}"; do
  before=$((ran + looked)); number=0
  while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    [[ $line == '|'* ]] || continue
    while [[ $line =~ \`(demarc\ [^\`]+)\`(\ \(([0-9.]+\ (s|min|h)|on\ a\ card)[^\)]*\))? ]]; do
      line=${line#*"${BASH_REMATCH[0]}"}
      if [ -n "${BASH_REMATCH[2]}" ]; then look_at_command "$page:$number" "${BASH_REMATCH[1]}"
      else run_command "$page:$number" "${BASH_REMATCH[1]}"; fi
    done
  done < "$page"
  [ $((ran + looked)) -gt "$before" ] || complain "$page: no table names a command of demarc"
done
[ $failed = 0 ] && echo "check-commands: $ran commands run, $looked name what there is"
exit $failed
