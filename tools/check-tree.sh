#!/usr/bin/env bash
# Refuses what would make a build or a test depend on more than the checkout, and what would pass over a test:
#   - a path that leads out of the tree: ".." beyond its root, the parent of the source folder, somebody's home;
#   - a ".." that names nothing that exists;
#   - tl::expected outside of base/result.hpp, whose Result says so when the value of an error is taken;
#   - a .cpp or .cu file whose first line is not a comment that says what the file is for;
#   - typedef, where using says it, and assert(), which a release build leaves out;
#   - a test whose name is not words joined by underscores, which `make covered` prints as a sentence;
#   - a test that is skipped or disabled without a name for the reason (tests/support/not_run.hpp).
# usage: check-tree.sh (from anywhere in the checkout)
set -euo pipefail
root=$(git -C "$(dirname "$0")" rev-parse --show-toplevel); cd "$root"
status=0
complain() { echo "check-tree: $1" >&2; status=1; }
mapfile -t files < <(git ls-files '*.cpp' '*.hpp' '*.h' '*.c' '*.cu' '*.cuh' '*.sh' '*.cmake' '*.py' '*CMakeLists.txt' Makefile '*.json' .ci |
  grep -vE '^(tools/check-tree\.sh|tests/architecture/gates\.cmake)$')
[ ${#files[@]} -gt 0 ] || { echo "check-tree: no files found" >&2; exit 1; }

# A path that begins with ".." in quotes: from its file's folder it stays in the tree and exists.
while IFS=: read -r file line path; do
  target=$(realpath -m "$(dirname "$file")/${path#\"}")
  if [[ $target != "$root"/* ]]; then complain "$file:$line: '${path#\"}' leads out of the tree"
  elif [ ! -e "$target" ]; then complain "$file:$line: '${path#\"}' does not exist"; fi
done < <(grep -noE '"\.\./[A-Za-z0-9_./-]+' "${files[@]}" || true)
# A script's way up from its own folder ends at the root.
while IFS=: read -r file line path; do
  target=$(realpath -m "$(dirname "$file")${path#*)}")
  [[ $target/ == "$root"/* ]] || complain "$file:$line: '$path' leads out of the tree"
done < <(grep -noE 'dirname "\$0"\)(/\.\.)+' "${files[@]}" || true)
# The source folder has no parent for us.
refuse() {  # what is wrong, pattern, the file that may
  local found; found=$(grep -nE -e "$2" "${files[@]}" | grep -vF "${3:-/none/}:" || true)
  [ -z "$found" ] || { complain "$1:"; head -n 10 <<<"$found" >&2; }
}
refuse "this leads out of the tree" \
  '(source_dir|build_dir)\(\)(\.parent_path| */ *"\.\.)|(SOURCE_DIR|SOURCE)\}"?/\.\.|\$(source|root)"?/\.\.'
refuse "this is a folder of one machine" '["'"'"'= ]/(home|root|work|workspace|mnt|srv|Users)/[A-Za-z0-9_.]|["'"'"'](~|\$HOME)/'
refuse "this takes the value of an error without a word; demarc/base/result.hpp has Result" 'tl::expected<' include/demarc/base/result.hpp
# A source opens with what it is for. Headers have no such rule: their declarations follow a comment of their own.
while read -r file; do
  IFS= read -r first <"$file" || true
  [[ $first =~ ^//\ [^\ ] ]] || complain "$file: the first line does not say what the file is for; begin with a comment: // Parses ..."
done < <(printf '%s\n' "${files[@]}" | grep -E '\.(cpp|cu)$' || true)
mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -E '\.(cpp|hpp)$')
refuse "this is \`using\`, or a check that a release build makes too" '^[[:space:]]*typedef[[:space:]]|(^|[^_[:alnum:]])assert\('
mapfile -t files < <(printf '%s\n' "${files[@]}" | grep '^tests/' || true)
refuse "this test's name is not words joined by underscores" \
  '(TEST|TEST_F|TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\([A-Za-z0-9]+, *([A-Z][a-z]|[A-Za-z0-9_]*[a-z][A-Z][a-z])'
refuse "this test is skipped and does not say why; tests/support/not_run.hpp has DEMARC_NOT_RUN" \
  'GTEST_SKIP|DISABLED_[A-Za-z]|[^_]DISABLED TRUE|SKIP_RETURN_CODE|SKIP_REGULAR_EXPRESSION' tests/support/not_run.hpp
[ $status = 0 ] && echo "check-tree: nothing leads out of the tree, every source says what it is for, and no test is passed over"
exit $status
