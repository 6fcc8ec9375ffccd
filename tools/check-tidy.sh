#!/usr/bin/env bash
# Refuses what clang-tidy 14 finds in src/ (and the headers it includes). Tests are left out: the macros of
# GoogleTest and RapidCheck trip checks that are not about our code.
# A file whose preprocessed text was clean before, on this machine, is not looked at again.
# usage: check-tidy.sh BUILD_DIR [FILE...]
set -euo pipefail
build=$(realpath "$1"); shift
cd "$(git -C "$(dirname "$0")" rev-parse --show-toplevel)"
export tidy=$(command -v clang-tidy-14 || command -v clang-tidy)
"$tidy" --version | grep -q 'version 14\.' || { echo "check-tidy: clang-tidy 14 is needed" >&2; exit 2; }
export build cache="${XDG_CACHE_HOME:-$HOME/.cache}/demarc-tidy"
mkdir -p "$cache"

check_one() {
  local file=$1 command key
  # The compile command of this file, turned into one that only preprocesses.
  command=$(awk -v want="\"file\": \"$PWD/$file\"" '/"command":/ {c=$0} index($0, want) {print c; exit}' \
            "$build/compile_commands.json" | sed -e 's/^ *"command": "//' -e 's/",$//' -e 's/\\"/"/g')
  [ -n "$command" ] || { echo "check-tidy: $file is not compiled in $build" >&2; return 1; }
  command=$(sed -E 's/^.*(ccache|env [^ ]+) ([^ ]*(g\+\+|c\+\+|clang\+\+)[^ ]*) /\2 /; s/ -o [^ ]+ / /; s/ -c / -E -P /' <<<"$command")
  key=$( (cd "$build" && eval "$command") | cat - .clang-tidy | sha256sum | cut -d' ' -f1)
  [ -e "$cache/$key" ] && return 0
  if "$tidy" --quiet -p "$build" "$file" 2>/dev/null; then touch "$cache/$key"; else echo "check-tidy: $file" >&2; return 1; fi
}
export -f check_one

if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(git ls-files 'src/*.cpp'); fi
[ ${#files[@]} -gt 0 ] || { echo "check-tidy: no source files found" >&2; exit 1; }
printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 1 bash -c 'check_one "$0"' ||
  { echo "check-tidy: findings above" >&2; exit 1; }
echo "check-tidy: ${#files[@]} files are clean"
