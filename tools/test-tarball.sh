#!/usr/bin/env bash
# Unpacks the tarball of `make tarball` in root file systems of Linux distributions, and runs it there, where no library of this
# machine helps. A root file system is a folder, such as debootstrap or an image unpacked by tar makes; / is this machine's.
# usage: tools/test-tarball.sh [--tarball FILE] ROOT...   default: build/static/demarc-*-linux-*.tar.gz
# Exit code 3 if a check of any root file system fails.
set -euo pipefail
[ $# -gt 0 ] || { sed -n '2,5s/^# *//p' "$0" >&2; exit 1; }
if [ "$1" = --tarball ]; then
  tarball=${2:?--tarball needs a file}; shift 2
else
  tarball=$(ls "$(dirname "$0")"/../build/static/demarc-*-linux-*.tar.gz 2>/dev/null) || { echo "test-tarball.sh: there is no tarball in build/static: make tarball" >&2; exit 2; }
fi
[ -f "$tarball" ] || { echo "test-tarball.sh: '$tarball': there is no such file" >&2; exit 1; }
[ $# -gt 0 ] || { echo "test-tarball.sh: a root file system was expected" >&2; exit 1; }
# A user who is not root becomes root of a namespace.
as_root=(--mount --pid --fork)
[ "$(id -u)" = 0 ] || as_root+=(--map-root-user)

# What runs in the root file system, in the folder of the tarball: each line that it prints is a check that failed.
checks='
fail() { echo "$1"; }
said=$(bin/demarc --version 2>&1) || fail "bin/demarc --version ends with $?: $said"
case $said in "demarc "*) ;; *) fail "bin/demarc --version prints: $said" ;; esac
said=$(bin/demarc isolate --device sim:gtx1080 --victims va --aggressors va 2>&1) || fail "bin/demarc isolate ends with $?: $said"
case $said in *mask+color*) ;; *) fail "bin/demarc isolate prints no row of mask+color: $said" ;; esac
code=0; said=$(bin/demarc doctor 2>&1) || code=$?
case $code in 0 | 2) ;; *) fail "bin/demarc doctor ends with $code: $said" ;; esac  # 2: there is no GPU
for part in preload compilers cuBLAS; do
  case $said in *"$part works"* | *"$part   works"* | *"$part    works"*) ;; *) fail "bin/demarc doctor does not find the library of $part: $said" ;; esac
done
for library in lib/*.so; do
  said=$(LD_PRELOAD=$PWD/$library /bin/true 2>&1) || fail "$library ends /bin/true with $?: $said"
  [ -z "$said" ] || fail "$library is not loaded: $said"
done
'

passed=0 failed=0
for root in "$@"; do
  [ -x "$root/bin/sh" ] || { echo "$root: failed: this is not a root file system, because it has no bin/sh"; failed=$((failed + 1)); continue; }
  name=$(sed -nE 's/^PRETTY_NAME="?([^"]*)"?$/\1/p' "$root/etc/os-release" 2>/dev/null || true)
  folder=$(mktemp -d "$root/tmp/demarc-tarball.XXXXXX")
  tar -xzf "$tarball" -C "$folder" --strip-components=1
  inside=/${folder#"$root"}
  said=$(unshare "${as_root[@]}" sh -c 'mount -t proc proc "$1/proc" && exec chroot "$1" /bin/sh -c "cd \"\$0\" && $3" "$2"' \
    sh "$root" "$inside" "$checks" 2>&1) || said="${said:+$said$'\n'}the checks did not run to their end"
  rm -rf "$folder"
  if [ -z "$said" ]; then
    echo "$root: ${name:-unknown}: passed"; passed=$((passed + 1))
  else
    echo "$root: ${name:-unknown}: failed"; sed 's/^/  /' <<<"$said"; failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] || exit 3
