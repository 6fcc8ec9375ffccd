#!/usr/bin/env bash
# Prolog of Slurm (slurm.conf: Prolog=), which slurmd runs as root before a job begins on a node. A job that says
# `--comment=demarc=NAME` gets the tenant NAME of this node's `demarc serve` for itself: the tenant has to exist and to be
# free, and is claimed for the job until epilog.sh gives it back. Other jobs are none of its business.
#
# What a user can do wrong (no such tenant, a tenant in use) cancels the job: a prolog that fails would drain the node.
# What is wrong with the node (no server, no place for claims, no scancel) fails, so that Slurm drains it.
#
# Set by slurmd: SLURM_JOB_ID, SLURM_JOB_COMMENT. For tests and odd places: DEMARC, SCANCEL (programs), DEMARC_CLAIMS (folder),
# DEMARC_SOCKET (else the unit's socket: no other server may say what is free). Slurm hands no variable of a user's over but with SPANK_ before its name.
set -euo pipefail
PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin
export DEMARC_SOCKET=${DEMARC_SOCKET:-/run/demarc/demarc.sock}
demarc=${DEMARC:-demarc}
claims=${DEMARC_CLAIMS:-/run/demarc-slurm}

fail() { echo "demarc prolog: $1" >&2; exit 1; }
[[ ${SLURM_JOB_ID:-} =~ ^[0-9]+$ ]] || fail "SLURM_JOB_ID='${SLURM_JOB_ID:-}': the number of a job was expected"
[[ ${SLURM_JOB_COMMENT:-} == demarc* ]] || exit 0

cancel() {
  echo "demarc prolog: job $SLURM_JOB_ID is cancelled: $1" >&2
  "${SCANCEL:-scancel}" "$SLURM_JOB_ID" || fail "job $SLURM_JOB_ID could not be cancelled"
  exit 0
}
# It becomes the name of a file.
[[ $SLURM_JOB_COMMENT =~ ^demarc=([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)$ ]] ||
  cancel "--comment='$SLURM_JOB_COMMENT': demarc=NAME was expected, with the name of a tenant"
tenant=${BASH_REMATCH[1]}

[ -d "$claims" ] || mkdir -m 0700 "$claims" 2>/dev/null || [ -d "$claims" ] || fail "'$claims' cannot be made"
[ -O "$claims" ] || fail "'$claims' belongs to somebody else"
claim=$claims/$tenant
# Whole at once under its name, or not at all: two jobs may begin at the same time.
mine=$(mktemp "$claims/.claim.XXXXXX") || fail "nothing can be written in '$claims'"
trap 'rm -f "$mine"' EXIT
echo "$SLURM_JOB_ID" > "$mine"
if ! ln -T "$mine" "$claim" 2>/dev/null; then
  holder=$(cat "$claim") || fail "'$claim' cannot be read"
  [ "$holder" = "$SLURM_JOB_ID" ] || cancel "tenant '$tenant' is job $holder's ('$claim')"
fi

code=0
said=$("$demarc" lease check "$tenant" 2>&1) || code=$?
[ $code -eq 0 ] && exit 0
rm -f "$claim"
case $code in
  1 | 3) cancel "$said" ;;
  *) fail "$demarc lease check ends with $code: $said" ;;
esac
