#!/bin/sh
# Runs a GoogleTest program. One that ends before its tests have, with exit code 0 too, has failed: GoogleTest keeps a file for as
# long as tests are under way.
# usage: run-suite.sh PROGRAM ARGUMENT...
TEST_PREMATURE_EXIT_FILE=$(mktemp -u "${TMPDIR:-/tmp}/demarc-suite.XXXXXX")
export TEST_PREMATURE_EXIT_FILE
"$@"
code=$?
if [ -e "$TEST_PREMATURE_EXIT_FILE" ]; then
  rm -f "$TEST_PREMATURE_EXIT_FILE"
  echo "run-suite: $1 ended with exit code $code before its tests had" >&2
  [ $code -ne 0 ] || code=1
fi
exit $code
