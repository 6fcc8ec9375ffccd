#!/usr/bin/env bash
# Writes what is installed beside the program and printed by it: completion for bash, zsh and fish, a manual page of the program and one per verb.
# Pages of the laboratory's verbs, which the help lists under that heading, are in a folder of their own: another package has them.
#   tools/show-program.sh build/release/demarc FOLDER
set -euo pipefail
[ $# = 2 ] || { sed -n '2,4s/^# *//p' "$0" >&2; exit 1; }
demarc=$1 folder=$2
rm -rf "$folder/man1" "$folder/lab"
mkdir -p "$folder/man1" "$folder/lab/man1"
"$demarc" completion bash >"$folder/demarc"
"$demarc" completion zsh >"$folder/_demarc"
"$demarc" completion fish >"$folder/demarc.fish"
"$demarc" help --man >"$folder/man1/demarc.1"
laboratory=" $("$demarc" --help | sed -nE '/^Laboratory:/,/^$/s/^  ([a-z]+) .*/\1/p' | tr '\n' ' ')"
[ "$laboratory" != " " ] || { echo "show-program.sh: $demarc --help has no heading 'Laboratory' with verbs" >&2; exit 1; }
for verb in $("$demarc" completion --words ""); do
  group=; case $laboratory in *" $verb "*) group=lab/ ;; esac
  "$demarc" help "$verb" --man >"$folder/${group}man1/demarc-$verb.1"
done
touch "$folder/done"
