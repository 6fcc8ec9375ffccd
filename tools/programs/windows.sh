#!/bin/bash
# On a machine with a card: the programs of as_installed.py, plainly and as machine code in windows. Prints a line each.
# usage: windows.sh DEMARC LENDER OUT_DIR [MASK]
#   LENDER is demarc_lender, which lends pages by MASK (0xc4000) without a look at the card's colours: the programs compute
#   in windows on any card, and no card is divided. On a card whose colours are MASK take demarc serve for that.
# environment: ONLY, JOBS, PJOBS, LIMIT as run.sh's; WINDOWS auto or always (auto); PAGES of the card that are lent (10240)
# Exit code 0: all that ran plainly gave the same; 3: not all did; 2: the lender did not start.
set -u
[ $# -ge 3 ] || { sed -n '2,8p' "$0"; exit 2; }
HERE=$(dirname "$(realpath "$0")"); DEMARC=$(realpath "$1") LENDER=$(realpath "$2"); mkdir -p "$3"; OUT=$(realpath "$3")
W=$(mktemp -d /tmp/windows.XXXXXX); socket=$W/socket programs=$W/programs
"$LENDER" "$socket" "${PAGES:-10240}" "${4:-0xc4000}" 2>"$OUT/lender.log" & lender=$!
trap 'kill $lender 2>/dev/null; wait $lender 2>/dev/null; rm -rf "$W"' EXIT
until grep -q listens "$OUT/lender.log"; do kill -0 $lender 2>/dev/null || { cat "$OUT/lender.log" >&2; exit 2; }; sleep 0.1; done
mkdir -p "$programs"
for name in $(python3 "$HERE/python/as_installed.py" --list); do
  mkdir -p "$programs/$name"
  printf '%s\tas installed\t-\tpython3 %s %s\t^%s\tstdout\t-\t-\t-\n' "$name" "$HERE/python/as_installed.py" "$name" "$name"
done >"$programs/list.tsv"
export LIMIT=${LIMIT:-90} PREFIX="$DEMARC exec --socket $socket --tenant a --windows ${WINDOWS:-auto} --report --"
bash "$HERE/run.sh" "$programs" "$OUT" | tee "$OUT/windows.txt"
read -r plain same < <(sed -nE 's/^[0-9]+ programs, ([0-9]+) ok plainly, ([0-9]+) of these.*/\1 \2/p' "$OUT/windows.txt")
[ "${plain:-0}" = "${same:-1}" ] || exit 3
