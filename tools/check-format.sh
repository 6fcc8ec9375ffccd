#!/usr/bin/env bash
# Refuses sources that clang-format 14 would change. usage: check-format.sh (from anywhere in the checkout)
set -euo pipefail
cd "$(git -C "$(dirname "$0")" rev-parse --show-toplevel)"
formatter=$(command -v clang-format-14 || command -v clang-format)
"$formatter" --version | grep -q 'version 14\.' || { echo "check-format: clang-format 14 is needed" >&2; exit 2; }
mapfile -t files < <(git ls-files '*.cpp' '*.hpp' '*.h' '*.cu' '*.cuh')
[ ${#files[@]} -gt 0 ] || { echo "check-format: no source files found" >&2; exit 1; }
if ! "$formatter" --dry-run --Werror "${files[@]}" 2>&1 | head -n 40 >&2 || [ "${PIPESTATUS[0]}" -ne 0 ]; then
  echo "check-format: run $formatter -i on the files above" >&2
  exit 1
fi
echo "check-format: ${#files[@]} files are formatted"
