#!/usr/bin/env bash
# Refuses what clang-tidy 14 finds in src/ and the headers it includes. Tests are left out: the macros of GoogleTest
# and RapidCheck trip checks that are not about our code. It looks at the translation units of a build: with a unity
# build that is a few dozen instead of a few hundred.
# A unit whose preprocessed text was clean before, on this machine, is not looked at again.
# usage: check-tidy.sh BUILD_DIR
set -euo pipefail
build=$(realpath "$1")
cd "$(git -C "$(dirname "$0")" rev-parse --show-toplevel)"
tidy=$(command -v clang-tidy-14 || command -v clang-tidy)
"$tidy" --version | grep -q 'version 14\.' || { echo "check-tidy: clang-tidy 14 is needed" >&2; exit 2; }
cache="${XDG_CACHE_HOME:-$HOME/.cache}/demarc-tidy"
mkdir -p "$cache"
export tidy build cache

check_unit() {
  local file=$1 command key
  # The compile command of this unit, turned into one that only preprocesses.
  command=$(grep -B 1 -F "\"file\": \"$file\"" "$build/compile_commands.json" | grep -m 1 '"command":' |
            sed -E -e 's/^ *"command": "//' -e 's/",$//' -e 's/\\"/"/g' \
                   -e 's/^.*ccache +//' -e 's/ -o [^ ]+ / /' -e 's/ -c / -E -P /')
  [ -n "$command" ] || { echo "check-tidy: $file has no compile command" >&2; return 1; }
  key=$( (cd "$build" && eval "$command") | cat - .clang-tidy | sha256sum | cut -d' ' -f1)
  [ -e "$cache/$key" ] && return 0
  if "$tidy" --quiet -p "$build" "$file" 2>/dev/null; then touch "$cache/$key"; else echo "check-tidy: $file" >&2; return 1; fi
}
export -f check_unit

mapfile -t units < <(sed -nE 's/^ *"file": "(.*)",?$/\1/p' "$build/compile_commands.json" |
                     grep -E "^($PWD|$build)/src/" | sort -u)
[ ${#units[@]} -gt 0 ] || { echo "check-tidy: $build compiles nothing of src/" >&2; exit 1; }
printf '%s\0' "${units[@]}" | xargs -0 -P "${DEMARC_JOBS:-$(nproc)}" -n 1 bash -c 'check_unit "$0"' ||
  { echo "check-tidy: findings above" >&2; exit 1; }
echo "check-tidy: ${#units[@]} translation units are clean"
