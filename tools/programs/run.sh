#!/bin/bash
# Runs the programs of PROGS_DIR/list.tsv plainly, then behind a prefix, and compares.
# usage: [PREFIX="demarc exec --tenant a --socket S --"] run.sh PROGS_DIR OUT_DIR [MODE...]
#   MODE: plain, tenant (default: both). tenant compares with what an earlier plain run left in OUT_DIR.
# environment: ONLY   regex of names        JOBS   programs side by side in the tenant phase (4)
#              PREFIX command in front      PJOBS  the same in the plain phase (JOBS; 1 for quiet times)
#              LIMIT  seconds each (40)     WORK   where the programs are unpacked (a new folder in /tmp)
# OUT_DIR/{plain,tenant}/NAME.{out,err,code,secs} and, of a program that writes a result, NAME.file; OUT_DIR/summary.txt
set -u
# What the list calls @times: lines that differ from run to run.
times='/[Tt]ime|TIME|[Tt]hroughput|[Bb]andwidth|[GMk]i?B\/s|[Ff][Ll][Oo][Pp]|GOP|[Gg]samples|[Pp]er second|[Pp]er equation|msec|[Ee]lapsed|[Pp]erformance|[Ss]peedup|[0-9] ?(ms|us|ns|s)\b|Exec:|global memory/d'
[ $# -ge 2 ] || { sed -n '2,8p' "$0"; exit 2; }
PROGS=$(realpath "$1") || exit 2; mkdir -p "$2"; OUT=$(realpath "$2"); shift 2
[ $# -gt 0 ] || set -- plain tenant
ONLY=${ONLY:-.} JOBS=${JOBS:-4} PREFIX=${PREFIX:-} LIMIT=${LIMIT:-40}; PJOBS=${PJOBS:-$JOBS}
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/cuda/lib64
[ -s "$PROGS/list.tsv" ] || { echo "no $PROGS/list.tsv" >&2; exit 2; }
W=${WORK:-$(mktemp -d /tmp/progs.XXXXXX)}; mkdir -p "$W"
if [ -e "$PROGS/progs.tar.xz" ] && [ ! -e "$W/.unpacked" ]; then
  { tar -C "$W" -xJf "$PROGS/progs.tar.xz" 2>/dev/null ||
    python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1], "r:xz").extractall(sys.argv[2])' "$PROGS/progs.tar.xz" "$W"; } &&
    touch "$W/.unpacked" || { echo "cannot unpack progs.tar.xz: neither xz nor python3 does it" >&2; exit 2; }
fi
now() { local t=${EPOCHREALTIME/[.,]/}; echo $((t / 1000)); } # ms, without bc

one() { # MODE, row: runs it in a folder of its own
  local mode=$1 name suite path cmd pat cmp flt rest
  IFS=$'\t' read -r name suite path cmd pat cmp flt rest <<<"$2"
  local o=$OUT/$mode/$name d=$W/run.$mode/$name src=$W/$name t0 t1 c
  [ -d "$src" ] || src=$PROGS/$name
  rm -rf "$d" "$o".{out,err,code,secs,file}; mkdir -p "$W/run.$mode"
  cp -r "$src" "$d" 2>"$o.err" || { echo 127 >"$o.code"; echo 0 >"$o.secs"; return; }
  gunzip -f "$d"/*.gz 2>/dev/null
  case $cmp in file:*) rm -f "$d/${cmp#file:}" ;; esac
  [ $mode = tenant ] && [ -n "$PREFIX" ] && cmd="$PREFIX $cmd"
  t0=$(now)
  (cd "$d" && timeout -k 5 "$LIMIT" bash -c "$cmd" >"$o.out" 2>"$o.err" </dev/null) 2>/dev/null
  c=$?; t1=$(now)
  echo $c >"$o.code"; printf '%d.%02d\n' $(((t1 - t0) / 1000)) $(((t1 - t0) % 1000 / 10)) >"$o.secs"
  case $cmp in file:*) cp "$d/${cmp#file:}" "$o.file" 2>/dev/null ;; esac
  rm -rf "$d"
}
filtered() { if [ "$2" = - ]; then cat "$1"; else sed -E "${2//@times/$times}" "$1"; fi; }
rows=(); while IFS= read -r r; do
  [[ -z $r || $r == \#* ]] && continue; n=${r%%$'\t'*}; [[ $n =~ $ONLY ]] && rows+=("$r")
done <"$PROGS/list.tsv"

for mode; do
  case $mode in plain) j=$PJOBS ;; tenant) j=$JOBS ;; *) echo "unknown mode $mode" >&2; exit 2 ;; esac
  mkdir -p "$OUT/$mode"; t=$(now)
  for r in "${rows[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$j" ]; do wait -n 2>/dev/null; done
    one $mode "$r" &
  done
  wait
  echo "$mode: ${#rows[@]} programs, $j side by side, $((($(now) - t) / 1000)) s"
done

said() { case $1 in 124|137) echo timeout ;; 13[4-9]|14[0-9]) echo "exit $1 (signal $(($1 - 128)))" ;; *) echo "exit $1" ;; esac; }
verdict() { # reads the rows, prints one line each
  local r name suite path cmd pat cmp flt rest p t pl tn pc tc why
  for r in "${rows[@]}"; do
    IFS=$'\t' read -r name suite path cmd pat cmp flt rest <<<"$r"
    p=$OUT/plain/$name t=$OUT/tenant/$name pl=- tn=- why=
    if [ -e "$p.code" ]; then
      pc=$(<"$p.code"); pl=ok
      if [ "$pc" != 0 ]; then pl=$(said "$pc")
      elif [ "$pat" != - ] && ! grep -aqE -- "$pat" "$p.out"; then pl='no pattern'
      elif [[ $cmp == file:* && ! -e $p.file ]]; then pl='no file'; fi
    fi
    if [ -e "$t.code" ]; then
      tc=$(<"$t.code")
      if [ "$tc" != 0 ] && [ "$tc" != "${pc:-0}" ]; then tn=$(said "$tc")
      elif [ "$tc" = 124 ] || [ "$tc" = 137 ]; then tn=timeout
      elif [ "$pat" != - ] && [ "$pl" != 'no pattern' ] && ! grep -aqE -- "$pat" "$t.out"; then tn='no pattern'
      else
        tn=same
        case $cmp in
        file:*) cmp -s "$p.file" "$t.file" || tn=differs ;;
        stdout) cmp -s <(filtered "$p.out" "$flt") <(filtered "$t.out" "$flt") || tn=differs ;;
        esac
        [ -e "$p.code" ] || [ "$cmp" = pattern ] || tn='ran (nothing to compare with)'
      fi
      if [ "$tn" != same ]; then why=$(grep -am1 '^demarc' "$t.err"); [ -n "$why" ] || why=$(grep -av '^ *$' "$t.err" | head -1); fi
    fi
    printf '%-28s %-14s %-14s %6s %6s %s\n' "$name" "$pl" "$tn" "$(cat "$p.secs" 2>/dev/null || echo -)" "$(cat "$t.secs" 2>/dev/null || echo -)" "${why:0:200}"
    unset pc
  done
}
{
  printf '%-28s %-14s %-14s %6s %6s %s\n' program plain tenant s s "first line of stderr"
  verdict
} | tee "$OUT/summary.txt"
tail -n +2 "$OUT/summary.txt" | { a=0 b=0 c=0; while IFS= read -r l; do a=$((a + 1)); [[ ${l:29:14} == 'ok '* ]] && b=$((b + 1)); [[ ${l:29:14} == 'ok '* && ${l:44:14} == 'same '* ]] && c=$((c + 1)); done; echo "$a programs, $b ok plainly, $c of these the same in the tenant"; } | tee -a "$OUT/summary.txt"
[ -n "${WORK:-}" ] || rm -rf "$W"
