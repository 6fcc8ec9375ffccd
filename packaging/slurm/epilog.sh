#!/usr/bin/env bash
# Epilog of Slurm (slurm.conf: Epilog=), which slurmd runs as root after a job has ended on a node. What is left of the job in
# the tenant that prolog.sh claimed for it is ended (`demarc lease revoke`), and the claim is given back once the tenant is free.
# Where it does not become free, or the server does not answer, the claim stays and the epilog fails, so that Slurm drains the
# node: programs may still run there that are not kept apart from those of the next job.
#
# Set by slurmd: SLURM_JOB_ID. The rest as in prolog.sh; DEMARC_PATIENCE: seconds until a tenant that was revoked has to be free.
set -euo pipefail
PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin
export DEMARC_SOCKET=${DEMARC_SOCKET:-/run/demarc/demarc.sock}
demarc=${DEMARC:-demarc}
claims=${DEMARC_CLAIMS:-/run/demarc-slurm}

fail() { echo "demarc epilog: $1" >&2; exit 1; }
[[ ${SLURM_JOB_ID:-} =~ ^[0-9]+$ ]] || fail "SLURM_JOB_ID='${SLURM_JOB_ID:-}': the number of a job was expected"
[ -e "$claims" ] || exit 0  # no job has claimed anything here

# The comment of the job is not asked again: not every way to an epilog hands it over.
give_back() {  # the file of a claim
  local tenant said code=0 deadline=$((SECONDS + ${DEMARC_PATIENCE:-30}))
  tenant=$(basename "$1")
  while true; do
    code=0; said=$("$demarc" lease check "$tenant" 2>&1) || code=$?
    case $code in
      0) break ;;
      1) [[ $said == *"there is no tenant '$tenant'"* ]] && break ;;&  # nothing can be left of what is gone
      3) [ $SECONDS -lt $deadline ] || fail "what was revoked has not ended: $said" ;;
      *) fail "$demarc lease check $tenant ends with $code: $said" ;;
    esac
    code=0; said=$("$demarc" lease revoke "$tenant" 2>&1) || code=$?
    [ $code -eq 0 ] || fail "$demarc lease revoke $tenant ends with $code: $said"
    sleep 0.2
  done
  rm -f "$1"
}

shopt -s nullglob
for claim in "$claims"/*; do
  holder=$(cat "$claim") || fail "'$claim' cannot be read"
  if [ "$holder" = "$SLURM_JOB_ID" ]; then give_back "$claim"; fi
done
