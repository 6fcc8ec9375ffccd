#!/usr/bin/env bash
# Reads textures and surfaces on a card and in the emulator and compares every output to the byte.
#   tools/compare-textures-with-card.sh DEMARC FOLDER
# FOLDER gets fetches and fetches.ptx by nvcc of examples/texture/fetches.cu, unless it has them.
# Exit code 3: an output differs, or the emulator fails; 2: there is no nvcc or no card.
set -euo pipefail
if [ $# -ne 2 ]; then
  sed -n '2,5s/^# *//p' "$0" >&2
  exit 1
fi
demarc=$1
folder=$2
source=$(dirname "$0")/../examples/texture/fetches.cu
mkdir -p "$folder"
if [ ! -x "$folder/fetches" ] || [ ! -f "$folder/fetches.ptx" ]; then
  nvcc=${NVCC:-nvcc}
  command -v "$nvcc" >/dev/null || { echo "there is no nvcc, and $folder has no fetches and fetches.ptx" >&2; exit 2; }
  "$nvcc" -arch=sm_90 -o "$folder/fetches" "$source"
  "$nvcc" -arch=sm_90 -ptx -o "$folder/fetches.ptx" "$source"
fi
rm -f "$folder"/*.card "$folder"/*.json
"$folder/fetches" "$folder" || exit 2
wrong=0
for file in "$folder"/*.json; do
  name=$(basename "$file" .json)
  rm -f "$folder/$name".{out,after}
  said="the same bytes"
  if ! "$demarc" emulate --launch "$file" --save "out=$folder/$name.out" --save "texels=$folder/$name.after" >"$folder/log" 2>&1; then
    said="fails: $(tail -1 "$folder/log")"
    wrong=3
  elif ! cat "$folder/$name.out" "$folder/$name.after" | cmp -s - "$folder/$name.card"; then
    words=$({ cmp -l <(cat "$folder/$name.out" "$folder/$name.after") "$folder/$name.card" || true; } | awk '{ print int(($1 - 1) / 4) }' | uniq)
    said="$(wc -l <<<"$words") words differ, the first at byte $((4 * $(head -1 <<<"$words")))"
    wrong=3
  fi
  echo "$name: $said"
done
exit "$wrong"
