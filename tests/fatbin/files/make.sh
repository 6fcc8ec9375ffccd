#!/usr/bin/env bash
# Writes the files of this folder anew with nvcc 13.0; README.md says what each is for.
set -euo pipefail
cd "$(dirname "$0")"
fat() {  # name, source, options of nvcc
  local out=$1 source=$2; shift 2
  nvcc -fatbin "$@" "$source" -o "$out"
}
two=(-gencode arch=compute_75,code=sm_75 -gencode 'arch=compute_90,code=[sm_90,compute_90]')
fat none.fatbin counted.cu --compress-mode=none -gencode arch=compute_80,code=compute_80
fat lz4.fatbin counted.cu --compress-mode=speed -gencode arch=compute_80,code=compute_80
fat zstd.fatbin counted.cu --compress-mode=size "${two[@]}"
fat ptx_only.fatbin counted.cu -gencode arch=compute_80,code=compute_80 -gencode arch=compute_90a,code=compute_90a \
  -gencode arch=compute_100f,code=compute_100f
fat elf_only.fatbin counted.cu --compress-mode=size -gencode arch=compute_75,code=sm_75 \
  -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_100,code=sm_100
fat options.fatbin counted.cu -maxrregcount=32 -gencode arch=compute_80,code=compute_80
fat lto.fatbin counted.cu -rdc=true -gencode arch=compute_90,code=lto_90
fat managed.fatbin managed.cu --compress-mode=size "${two[@]}"
fat managed_elf.fatbin managed.cu --compress-mode=size -gencode arch=compute_75,code=sm_75
for target in 75 90 100; do nvcc -cubin -arch=sm_$target counted.cu -o counted_$target.cubin; done
for target in 75 90 100; do nvcc -cubin -arch=sm_$target managed.cu -o managed_$target.cubin; done
nvcc -cubin -rdc=true -arch=sm_90 managed.cu -o managed_rdc_90.cubin
nvcc -cubin -rdc=true -arch=sm_80 launching.cu -o launching_rdc_80.cubin
fat launching.fatbin launching.cu -rdc=true -gencode arch=compute_80,code=compute_80
