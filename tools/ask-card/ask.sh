#!/usr/bin/env bash
# Asks a card what exec and serve rely on, first without Demarc and then under it: docs/measurements/assumptions.md.
# usage: ask.sh BUILD_DIR [BEFORE]     needs nvcc and a card; BEFORE: another build, whose launches are timed in turns
set -euo pipefail
build=$(realpath "$1"); before=${2:+$(realpath "$2")}
here=$(cd "$(dirname "$0")" && pwd); work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
nvcc -o "$work/driver" "$here/driver.cpp" -lcuda
nvcc -ptx -arch=sm_90 -o "$work/kernels.ptx" "$here/kernels.cu"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1
ask() { timeout 60 "$@" 2>&1 || echo "exit $?"; }
driver=("$work/driver"); ptx=$work/kernels.ptx

echo "== callbacks"; ask "${driver[@]}" ids
echo "== stacks"; ask "${driver[@]}" stack "$ptx"
echo "== a folder of MPS without a daemon"; mkdir "$work/nothing"; CUDA_MPS_PIPE_DIRECTORY=$work/nothing ask "${driver[@]}" runs "$ptx" 0
echo "== a daemon of MPS that is killed beside its client"
export CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/mps; mkdir "$work/mps"
nvidia-cuda-mps-control -d; sleep 1
ask "${driver[@]}" runs "$ptx" 5 & sleep 2
pkill -9 -f "^nvidia-cuda-mps" || true
ask "${driver[@]}" runs "$ptx" 0; wait; unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
echo "== a cooperative grid of the whole card under a mask"; ask "$build/demarc" exec --tpcs 0-3 -- "${driver[@]}" cooperative "$ptx"
echo "== launches: alone, under exec before, under exec"
middle() { grep 'ns per' | sort -n | sed -n 3p; }
for _ in 1 2 3; do
  "${driver[@]}" costs "$ptx" | middle
  if [ -n "$before" ]; then "$before/demarc" exec --tpcs 0-7 -- "${driver[@]}" costs "$ptx" | middle; fi
  "$build/demarc" exec --tpcs 0-7 -- "${driver[@]}" costs "$ptx" | middle
done
