#!/usr/bin/env bash
# Refuses what clang-tidy 14 finds in src/ and the headers it includes. Tests are left out: the macros of GoogleTest
# and RapidCheck trip checks that are not about our code.
# It looks at the translation units of a build, which must have made its generated sources. Most of its time goes into
# the headers of the standard library and of fmt, anew for each unit: so all units are put together into as many as
# there are processors. Units that do not go together are looked at one by one.
# A unit whose room, public headers and options were clean before, on this machine, is not looked at again.
# usage: check-tidy.sh BUILD_DIR
set -euo pipefail
build=$(realpath "$1")
cd "$(git -C "$(dirname "$0")" rev-parse --show-toplevel)"
tidy=$(command -v clang-tidy-14 || command -v clang-tidy)
"$tidy" --version | grep -q 'version 14\.' || { echo "check-tidy: clang-tidy 14 is needed" >&2; exit 2; }
cache="${XDG_CACHE_HOME:-$HOME/.cache}/demarc-tidy"
work="$build/tidy"
rm -rf "$work"; mkdir -p "$cache" "$work"

# Below, of a unit: options[unit] (one a line), key[unit] (of what it was made of), bytes[unit] (of its sources).
declare -A options key bytes folder_hash seen_in_unit
hash_of() { sha256sum | cut -d' ' -f1; }
hash_of_folder() {
  [ ! -e "$1" ] || find -L "$1" -type f -print0 | sort -z | xargs -0 sha256sum
}
common=$({ "$tidy" --version; cat .clang-tidy; hash_of_folder include; } | hash_of)

while IFS=$'\t' read -r file command; do
  [ -z "${options[$file]:-}" ] || continue
  eval "words=($command)"
  kept=""
  for ((i = 0; i < ${#words[@]}; ++i)); do
    case "${words[i]}" in
      -isystem) kept+="-isystem"$'\n'"${words[i + 1]}"$'\n' ;;
      -I* | -D* | -std=*) kept+="${words[i]}"$'\n' ;;
    esac
  done
  options[$file]=$kept
  rest=${file#"$build"/src/}; rest=${rest#"$PWD"/src/}; room=${rest%%/*}
  [ -n "${folder_hash[$room]:-}" ] || folder_hash[$room]=$(hash_of_folder "src/$room" | hash_of)
  key[$file]=$({ echo "$common ${folder_hash[$room]} $kept"; [[ $file != "$build"/* ]] || cat "$file"; } | hash_of)
  mapfile -t parts < <(sed -nE 's/^#include "(\/.*\.cpp)"$/\1/p' "$file")
  bytes[$file]=$(cat "$file" "${parts[@]}" | wc -c)
  for part in "${parts[@]}"; do seen_in_unit[$part]=1; done
done < <(sed -nE -e 's/^ *"command": "(.*)",?$/\1/; t keep' -e 's/^ *"file": "(.*)",?$/\1/; t print' -e d \
             -e ':keep' -e 's/\\(["\\])/\1/g; h; d' -e ':print' -e 'G; s/\n/\t/; p' "$build/compile_commands.json" |
         awk -F'\t' -v a="$PWD/src/" -v b="$build/src/" 'index($1, a) == 1 || index($1, b) == 1')
# What a library of its own compiles once more is looked at within its room's unit.
for part in "${!seen_in_unit[@]}"; do unset "options[$part]"; done
[ ${#options[@]} -gt 0 ] || { echo "check-tidy: $build compiles nothing of src/" >&2; exit 1; }

# The largest first, each into the group that has the least.
groups=${DEMARC_JOBS:-$(nproc)}; [ "$groups" -le 6 ] || groups=6
load=(); for ((g = 0; g < groups; ++g)); do load[g]=0; done
while read -r _ file; do
  [ ! -e "$cache/${key[$file]}" ] || continue
  least=0
  for ((g = 1; g < groups; ++g)); do [ "${load[g]}" -ge "${load[least]}" ] || least=$g; done
  load[least]=$((load[least] + bytes[$file]))
  echo "$file" >> "$work/group_$least.units"
done < <(for file in "${!options[@]}"; do echo "${bytes[$file]} $file"; done | sort -rn)

# NAME: one unit that includes the sources of NAME.units, each once (some belong to several libraries), with the options of
# all.
put_together() {
  local file
  while read -r file; do
    grep -E '^#include "/.*\.cpp"$' "$file" || echo "#include \"$file\""
  done < "$work/$1.units" | awk '!seen[$0]++' > "$work/$1.cpp"
  while read -r file; do printf '%s' "${options[$file]}"; done < "$work/$1.units" |
    awk '$0 == "-isystem" { getline path; $0 = $0 "\n" path } !seen[$0]++' > "$work/$1.options"
}
look_at() {  # NAME
  local given; mapfile -t given < "$work/$1.options"
  "$tidy" --quiet --config-file=.clang-tidy "$work/$1.cpp" -- "${given[@]}" > "$work/$1.found" 2>/dev/null
}
refused=no
declare -A running
for units in "$work"/group_*.units; do
  [ -e "$units" ] || continue
  name=$(basename "$units" .units)
  put_together "$name"
  look_at "$name" & running[$name]=$!
done
for name in "${!running[@]}"; do
  if wait "${running[$name]}"; then
    while read -r file; do touch "$cache/${key[$file]}"; done < "$work/$name.units"
  elif grep -q 'clang-diagnostic-error' "$work/$name.found"; then
    number=0
    while read -r file; do
      alone="${name}_$((number++))"
      echo "$file" > "$work/$alone.units"
      put_together "$alone"
      if look_at "$alone"; then touch "$cache/${key[$file]}"; else cat "$work/$alone.found"; refused=yes; fi
    done < "$work/$name.units"
  else
    cat "$work/$name.found"; refused=yes
  fi
done
[ $refused = no ] || { echo "check-tidy: findings above" >&2; exit 1; }
echo "check-tidy: ${#options[@]} translation units are clean"
