#!/usr/bin/env bash
# Writes what is installed beside the program and printed by it: completion for bash, zsh and fish, a manual page of the program and one per verb.
#   tools/show-program.sh build/release/demarc FOLDER
set -euo pipefail
[ $# = 2 ] || { sed -n '2,3s/^# *//p' "$0" >&2; exit 1; }
demarc=$1 folder=$2
mkdir -p "$folder/man1"
"$demarc" completion bash >"$folder/demarc"
"$demarc" completion zsh >"$folder/_demarc"
"$demarc" completion fish >"$folder/demarc.fish"
"$demarc" help --man >"$folder/man1/demarc.1"
for verb in $("$demarc" completion --words ""); do
  "$demarc" help "$verb" --man >"$folder/man1/demarc-$verb.1"
done
touch "$folder/done"
