#!/usr/bin/env bash
# Prints a manual page that consists of what a program says of itself with --version and --help, of which the first line is its purpose.
#   tools/help-as-manual.sh build/release/demarc-device-plugin
set -euo pipefail
[ $# = 1 ] || { sed -n '2,3s/^# *//p' "$0" >&2; exit 1; }
name=$(basename "$1") version=$("$1" --version) help=$("$1" --help)
roff() { sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"; }
printf '.TH %s 1 "" "%s"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n%s\n.fi\n' \
  "$(roff <<<"${name^^}")" "$version" "$(roff <<<"$name")" "$(head -n 1 <<<"$help" | roff)" "$(roff <<<"$help")"
