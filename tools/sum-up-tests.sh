#!/usr/bin/env bash
# The end of `make test`: what ctest said last of each part, and what was not run and why. A test that was skipped
# without saying why is refused, and so is a build whose tests left no log.
# usage: sum-up-tests.sh LOG_FOLDER BUILD_DIR...
# Of each build it reads LOG_FOLDER/<name of the build>.log (what ctest printed), not-run.txt (what was not registered) and
# ctest's LastTest.log (what the tests printed). In the last two a line "not run: WHAT: REASON" names what was not run:
# cmake/DemarcTest.cmake and tests/support/not_run.hpp write it.
set -euo pipefail
logs=$1; shift
[ $# -gt 0 ] || { echo "sum-up-tests: no build was named" >&2; exit 1; }
status=0; lines=""
complain() { echo "sum-up-tests: $1" >&2; status=3; }
for build in "$@"; do
  name=$(basename "$build"); log="$build/Testing/Temporary/LastTest.log"
  [ -s "$log" ] || { complain "$build has no log of tests"; continue; }
  closing=$(grep -E '^[0-9]+% tests passed' "$logs/$name.log" | tail -n 1) || { complain "$logs/$name.log has no closing line of ctest"; continue; }
  echo "$name: $closing"
  lines+=$(cat "$build/not-run.txt" "$log" | sed -nE 's/^not run: (.+): ([^:]+)$/\2\t\1/p')$'\n'
  # Skipped by GoogleTest without such a line, or by ctest.
  while read -r skipped; do
    grep -qF -e "not run: $skipped: " -e "not run: $skipped, " "$log" || complain "$name: $skipped was skipped and does not say why"
  done < <(sed -nE 's/^\[  SKIPPED \] ([^ ,]+\.[^ ,]+) \(.*/\1/p' "$log" | sort -u)
  ! grep -qE '\((Skipped|Disabled|Not Run)\)|\*\*\*(Skipped|Not Run)' "$logs/$name.log" || complain "$name: ctest left out tests of its own accord"
done
[ $status = 0 ] || exit $status

# The same in two builds is one; those of one reason stand in one line, where the cases of a suite are named once.
reasons=$(sed '/^$/d' <<<"$lines" | sort -u | awk -F'\t' '
  { count[$1]++; sub(/\..*/, "", $2); if (!seen[$1, $2]++) names[$1] = names[$1] (names[$1] == "" ? "" : ", ") $2 }
  END { for (reason in count) print count[reason] "\t" reason "\t" names[reason] }' | sort -t$'\t' -k2)
[ -n "$reasons" ] || { echo "everything was run and passed"; exit 0; }
while IFS=$'\t' read -r count reason names; do echo "not run, $reason: $count ($names)"; done <<<"$reasons"
awk -F'\t' '{ n += $1; list = list (NR > 1 ? ", " : "") $2 } END { print "what was run passed; " n " not run: " list }' <<<"$reasons"
