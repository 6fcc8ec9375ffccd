#!/bin/bash
# The exact commands with which these programs were built. SRC holds clones of
#   cuda-samples  (NVIDIA/cuda-samples)     c94ff366aed18c797b8a85dfaac7817b0228b420
#   gpu-rodinia   (yuhc/gpu-rodinia)        9c10d3ea16ddba2ba057cc3951a9efc4c2cc18a4
#   polybenchGpu  (sgrauerg/polybenchGpu)   5584aaa7d0be810ff5eb0b61c49fb64ecc81ba4c
#   HeCBench      (zjin-lcf/HeCBench)       f27000a5188f8ac79bd43fc95a1b3f890c18823d
# with nvcc 13.0.88. One line per program: B NAME COMMAND...; the command runs in SRC, "app" comes into $P/NAME.
# usage: SRC=FOLDER P=FOLDER build.sh [regex of names]; what is built already is left as it is. Then inputs.py $P, and to
# carry them (cd $P && tar c --sort=name --owner=0 --group=0 *) | xz -9e > progs.tar.xz, beside a copy of list.tsv.
set -u
HERE=$(dirname "$(realpath "$0")")
SRC=${SRC:?the folder of the clones} P=${P:?where programs go} W=${1:-.}; mkdir -p "$P"
export PATH=/usr/local/cuda/bin:$PATH
S=cuda-samples/Samples; R=gpu-rodinia/cuda; Y=polybenchGpu/CUDA; H=HeCBench/src
GC='-gencode arch=compute_90,code=[sm_90,compute_90]'
SF="-O3 -std=c++17 --extended-lambda $GC -Icuda-samples/Common"     # the samples' CMake flags, but without -lineinfo and -rdc=true
CM="-O3 -std=c++17 --extended-lambda -lineinfo -rdc=true $GC -Icuda-samples/Common" # with them, as their CMake has it
TS=-DcudaThreadSynchronize=cudaDeviceSynchronize # CUDA 13 has no cudaThreadSynchronize
RP='-Xlinker -rpath=/usr/local/cuda/lib64'
B() { # name, command
  local n=$1; shift
  [[ $n =~ $W ]] || return 0
  [ -x "$P/$n/app" ] && return 0
  mkdir -p "$P/$n"; local t=$SECONDS
  if (cd "$SRC" && eval "$*") >"$SRC/../log.$n" 2>&1 && [ -x "$P/$n/app" ]; then
    strip "$P/$n/app" 2>/dev/null; echo "built $n $((SECONDS - t))s $(stat -c %s "$P/$n/app")"
  else echo "FAILED $n (see $SRC/../log.$n)"; fi
}
# ---- CUDA samples
B vectorAdd 'nvcc $SF -o $P/vectorAdd/app $S/0_Introduction/vectorAdd/vectorAdd.cu'
B vectorAdd-rdc 'nvcc $CM -o $P/vectorAdd-rdc/app $S/0_Introduction/vectorAdd/vectorAdd.cu'
B asyncAPI 'nvcc $SF -o $P/asyncAPI/app $S/0_Introduction/asyncAPI/asyncAPI.cu'
B clock 'nvcc $SF -o $P/clock/app $S/0_Introduction/clock/clock.cu'
B fp16ScalarProduct 'nvcc $SF -o $P/fp16ScalarProduct/app $S/0_Introduction/fp16ScalarProduct/fp16ScalarProduct.cu'
B matrixMul 'nvcc $SF -o $P/matrixMul/app $S/0_Introduction/matrixMul/matrixMul.cu'
B matrixMulDrv 'nvcc $SF -o $P/matrixMulDrv/app $S/0_Introduction/matrixMulDrv/matrixMulDrv.cpp -lcuda && nvcc $GC -o $P/matrixMulDrv/matrixMul_kernel64.fatbin -fatbin $S/0_Introduction/matrixMulDrv/matrixMul_kernel.cu'
B vectorAddDrv 'nvcc $SF -o $P/vectorAddDrv/app $S/0_Introduction/vectorAddDrv/vectorAddDrv.cpp -lcuda && nvcc $GC -o $P/vectorAddDrv/vectorAdd_kernel64.fatbin -fatbin $S/0_Introduction/vectorAddDrv/vectorAdd_kernel.cu'
B simpleDrvRuntime 'nvcc $SF -o $P/simpleDrvRuntime/app $S/0_Introduction/simpleDrvRuntime/simpleDrvRuntime.cpp -lcuda && nvcc $GC -o $P/simpleDrvRuntime/vectorAdd_kernel64.fatbin -fatbin $S/0_Introduction/simpleDrvRuntime/vectorAdd_kernel.cu'
B vectorAdd_nvrtc 'nvcc $SF $RP -o $P/vectorAdd_nvrtc/app $S/0_Introduction/vectorAdd_nvrtc/vectorAdd.cpp -lnvrtc -lcuda && cp $S/0_Introduction/vectorAdd_nvrtc/vectorAdd_kernel.cu $P/vectorAdd_nvrtc/'
B mergeSort 'nvcc $SF -o $P/mergeSort/app $S/0_Introduction/mergeSort/{mergeSort.cu,main.cpp,mergeSort_host.cpp,mergeSort_validate.cpp,bitonic.cu}'
B simpleAWBarrier 'nvcc $SF -o $P/simpleAWBarrier/app $S/0_Introduction/simpleAWBarrier/simpleAWBarrier.cu'
B simpleAssert 'nvcc $SF -o $P/simpleAssert/app $S/0_Introduction/simpleAssert/simpleAssert.cu'
B simpleAtomicIntrinsics 'nvcc $SF -o $P/simpleAtomicIntrinsics/app $S/0_Introduction/simpleAtomicIntrinsics/{simpleAtomicIntrinsics.cu,simpleAtomicIntrinsics_cpu.cpp}'
B simpleCallback 'nvcc $SF -o $P/simpleCallback/app $S/0_Introduction/simpleCallback/{simpleCallback.cu,multithreading.cpp}'
B simpleCooperativeGroups 'nvcc $SF -o $P/simpleCooperativeGroups/app $S/0_Introduction/simpleCooperativeGroups/simpleCooperativeGroups.cu'
B simpleHyperQ 'nvcc $SF -o $P/simpleHyperQ/app $S/0_Introduction/simpleHyperQ/simpleHyperQ.cu'
B simpleMultiCopy 'nvcc $SF -o $P/simpleMultiCopy/app $S/0_Introduction/simpleMultiCopy/simpleMultiCopy.cu'
B simpleOccupancy 'nvcc $SF -o $P/simpleOccupancy/app $S/0_Introduction/simpleOccupancy/simpleOccupancy.cu'
B simplePrintf 'nvcc $SF -o $P/simplePrintf/app $S/0_Introduction/simplePrintf/simplePrintf.cu'
B simpleStreams 'nvcc $SF -o $P/simpleStreams/app $S/0_Introduction/simpleStreams/simpleStreams.cu'
B simpleTemplates 'nvcc $SF -o $P/simpleTemplates/app $S/0_Introduction/simpleTemplates/simpleTemplates.cu'
B simpleVoteIntrinsics 'nvcc $SF -o $P/simpleVoteIntrinsics/app $S/0_Introduction/simpleVoteIntrinsics/simpleVoteIntrinsics.cu'
B simpleZeroCopy 'nvcc $SF -o $P/simpleZeroCopy/app $S/0_Introduction/simpleZeroCopy/simpleZeroCopy.cu'
B template 'nvcc $SF -o $P/template/app $S/0_Introduction/template/{template.cu,template_cpu.cpp}'
B MC_EstimatePiInlineP 'nvcc $SF -o $P/MC_EstimatePiInlineP/app -I$S/2_Concepts_and_Techniques/MC_EstimatePiInlineP/inc $S/2_Concepts_and_Techniques/MC_EstimatePiInlineP/src/{main.cpp,piestimator.cu,test.cpp}'
B MC_SingleAsianOptionP 'nvcc $SF -o $P/MC_SingleAsianOptionP/app -I$S/2_Concepts_and_Techniques/MC_SingleAsianOptionP/inc $S/2_Concepts_and_Techniques/MC_SingleAsianOptionP/src/{main.cpp,pricingengine.cu,test.cpp}'
B convolutionSeparable 'nvcc $SF -o $P/convolutionSeparable/app $S/2_Concepts_and_Techniques/convolutionSeparable/{convolutionSeparable.cu,convolutionSeparable_gold.cpp,main.cpp}'
B eigenvalues 'nvcc $SF -o $P/eigenvalues/app $S/2_Concepts_and_Techniques/eigenvalues/{bisect_large.cu,bisect_small.cu,bisect_util.cu,gerschgorin.cpp,main.cu,matlab.cpp} && cp $S/2_Concepts_and_Techniques/eigenvalues/data/*.dat $P/eigenvalues/'
B histogram 'nvcc $SF -o $P/histogram/app $S/2_Concepts_and_Techniques/histogram/{histogram256.cu,histogram64.cu,histogram_gold.cpp,main.cpp}'
B inlinePTX 'nvcc $SF -o $P/inlinePTX/app $S/2_Concepts_and_Techniques/inlinePTX/inlinePTX.cu'
B interval 'nvcc $SF -o $P/interval/app $S/2_Concepts_and_Techniques/interval/interval.cu'
B radixSortThrust 'nvcc $SF -o $P/radixSortThrust/app $S/2_Concepts_and_Techniques/radixSortThrust/radixSortThrust.cu'
B reduction 'nvcc $SF -o $P/reduction/app $S/2_Concepts_and_Techniques/reduction/{reduction.cpp,reduction_kernel.cu}'
B reductionMultiBlockCG 'nvcc $SF -o $P/reductionMultiBlockCG/app $S/2_Concepts_and_Techniques/reductionMultiBlockCG/reductionMultiBlockCG.cu'
B scalarProd 'nvcc $SF -o $P/scalarProd/app $S/2_Concepts_and_Techniques/scalarProd/{scalarProd_cpu.cpp,scalarProd.cu}'
B scan 'nvcc $SF -o $P/scan/app $S/2_Concepts_and_Techniques/scan/{main.cpp,scan_gold.cpp,scan.cu}'
B shfl_scan 'nvcc $SF -o $P/shfl_scan/app $S/2_Concepts_and_Techniques/shfl_scan/shfl_scan.cu'
B sortingNetworks 'nvcc $SF -o $P/sortingNetworks/app $S/2_Concepts_and_Techniques/sortingNetworks/{main.cpp,bitonicSort.cu,oddEvenMergeSort.cu,sortingNetworks_validate.cpp}'
B streamOrderedAllocation 'nvcc $SF -o $P/streamOrderedAllocation/app $S/2_Concepts_and_Techniques/streamOrderedAllocation/streamOrderedAllocation.cu'
B threadFenceReduction 'nvcc $SF -o $P/threadFenceReduction/app $S/2_Concepts_and_Techniques/threadFenceReduction/threadFenceReduction.cu'
B StreamPriorities 'nvcc $SF -o $P/StreamPriorities/app $S/3_CUDA_Features/StreamPriorities/StreamPriorities.cu'
B bf16TensorCoreGemm 'sed -E "s/(define [MN]_TILES +)[0-9]+/\164/; s/(define K_TILES +)[0-9]+/\164/" $S/3_CUDA_Features/bf16TensorCoreGemm/bf16TensorCoreGemm.cu > $S/3_CUDA_Features/bf16TensorCoreGemm/small.cu && nvcc $SF -DCPU_DEBUG=1 -o $P/bf16TensorCoreGemm/app $S/3_CUDA_Features/bf16TensorCoreGemm/small.cu'
B binaryPartitionCG 'nvcc $SF -o $P/binaryPartitionCG/app $S/3_CUDA_Features/binaryPartitionCG/binaryPartitionCG.cu'
B cdpSimplePrint 'nvcc $CM -o $P/cdpSimplePrint/app $S/3_CUDA_Features/cdpSimplePrint/cdpSimplePrint.cu'
B cudaTensorCoreGemm 'sed -E "s/(define [MN]_TILES +)[0-9]+/\164/; s/(define K_TILES +)[0-9]+/\164/" $S/3_CUDA_Features/cudaTensorCoreGemm/cudaTensorCoreGemm.cu > $S/3_CUDA_Features/cudaTensorCoreGemm/small.cu && nvcc $SF -DCPU_DEBUG=1 -o $P/cudaTensorCoreGemm/app $S/3_CUDA_Features/cudaTensorCoreGemm/small.cu'
B dmmaTensorCoreGemm 'sed -E "s/(define [MN]_TILES +)[0-9]+/\1128/; s/(define K_TILES +)[0-9]+/\1256/" $S/3_CUDA_Features/dmmaTensorCoreGemm/dmmaTensorCoreGemm.cu > $S/3_CUDA_Features/dmmaTensorCoreGemm/small.cu && nvcc $SF -DCPU_DEBUG=1 -o $P/dmmaTensorCoreGemm/app $S/3_CUDA_Features/dmmaTensorCoreGemm/small.cu'
B globalToShmemAsyncCopy 'nvcc $SF -o $P/globalToShmemAsyncCopy/app $S/3_CUDA_Features/globalToShmemAsyncCopy/globalToShmemAsyncCopy.cu'
B jacobiCudaGraphs 'nvcc $SF -o $P/jacobiCudaGraphs/app $S/3_CUDA_Features/jacobiCudaGraphs/{jacobi.cu,main.cpp}'
B jacobiCudaGraphs-capture 'cp $P/jacobiCudaGraphs/app $P/jacobiCudaGraphs-capture/app'
B simpleCudaGraphs 'nvcc $SF -o $P/simpleCudaGraphs/app $S/3_CUDA_Features/simpleCudaGraphs/simpleCudaGraphs.cu'
B tf32TensorCoreGemm 'sed -E "s/(define [MN]_TILES +)[0-9]+/\164/; s/(define K_TILES +)[0-9]+/\1128/" $S/3_CUDA_Features/tf32TensorCoreGemm/tf32TensorCoreGemm.cu > $S/3_CUDA_Features/tf32TensorCoreGemm/small.cu && nvcc $SF -DCPU_DEBUG=1 -o $P/tf32TensorCoreGemm/app $S/3_CUDA_Features/tf32TensorCoreGemm/small.cu'
B warpAggregatedAtomicsCG 'nvcc $SF -o $P/warpAggregatedAtomicsCG/app $S/3_CUDA_Features/warpAggregatedAtomicsCG/warpAggregatedAtomicsCG.cu'
B BlackScholes 'nvcc $SF -o $P/BlackScholes/app $S/5_Domain_Specific/BlackScholes/{BlackScholes.cu,BlackScholes_gold.cpp}'
B FDTD3d 'nvcc $SF -o $P/FDTD3d/app -I$S/5_Domain_Specific/FDTD3d/inc $S/5_Domain_Specific/FDTD3d/src/{FDTD3d.cpp,FDTD3dGPU.cu,FDTD3dReference.cpp}'
B SobolQRNG 'nvcc $SF -o $P/SobolQRNG/app $S/5_Domain_Specific/SobolQRNG/{sobol_gold.cpp,sobol_gpu.cu,sobol_primitives.cpp,sobol.cpp}'
B binomialOptions 'nvcc $SF -o $P/binomialOptions/app $S/5_Domain_Specific/binomialOptions/{binomialOptions.cpp,binomialOptions_gold.cpp,binomialOptions_kernel.cu}'
B fastWalshTransform 'nvcc $SF -o $P/fastWalshTransform/app $S/5_Domain_Specific/fastWalshTransform/{fastWalshTransform.cu,fastWalshTransform_gold.cpp}'
B quasirandomGenerator 'nvcc $SF -o $P/quasirandomGenerator/app $S/5_Domain_Specific/quasirandomGenerator/{quasirandomGenerator.cpp,quasirandomGenerator_gold.cpp,quasirandomGenerator_kernel.cu}'
B alignedTypes 'nvcc $SF -o $P/alignedTypes/app $S/6_Performance/alignedTypes/alignedTypes.cu'
B transpose 'nvcc $SF -o $P/transpose/app $S/6_Performance/transpose/transpose.cu'
# ---- PolyBench-GPU 1.0: CUDA/common.mk has nvcc -O3; -arch=sm_90 and $TS added
for n in 2DCONV:2DConvolution 3DCONV:3DConvolution ATAX:atax BICG:bicg FDTD-2D:fdtd2d GEMM:gemm GEMVER:gemver GESUMMV:gesummv JACOBI1D:jacobi1D JACOBI2D:jacobi2D MVT:mvt SYR2K:syr2k SYRK:syrk; do
  B poly-${n%:*} "nvcc -O3 -arch=sm_90 $TS -o \$P/poly-${n%:*}/app \$Y/${n%:*}/${n#*:}.cu"
done
# smaller, since the comparison on the CPU takes long at the authors' 2048 (2MM: 1024)
for n in 2MM:2mm:512 CORR:correlation:1024 COVAR:covariance:1024 LU:lu:1024; do IFS=: read -r d s z <<<"$n"
  B poly-$d "rm -rf \$Y/$d-small && cp -r \$Y/$d \$Y/$d-small && sed -i -E 's/(define +[MN][IJKL]? +)(2048|1024)/\\1$z/' \$Y/$d-small/*.cuh && nvcc -O3 -arch=sm_90 $TS -o \$P/poly-$d/app \$Y/$d-small/$s.cu"
done
# the first two find nothing to complain of even without a card, in ADI fused multiplications likely make differences: without RUN_ON_CPU,
# so that they print the card's results (to stdout, not stderr)
for n in 3MM:3mm:512 GRAMSCHM:gramschmidt:512 ADI:adi:512; do IFS=: read -r d s z <<<"$n"
  B poly-$d "rm -rf \$Y/$d-small && cp -r \$Y/$d \$Y/$d-small && sed -i -E 's/(define +[MN][IJKLM]? +)(2048|1024)/\\1$z/; s/^#define RUN_ON_CPU//; s/fprintf *\(stderr/fprintf(stdout/' \$Y/$d-small/*.cu* && nvcc -O3 -arch=sm_90 $TS -o \$P/poly-$d/app \$Y/$d-small/$s.cu"
done
# ---- HeCBench: the authors' makefiles with ARCH=sm_90
for n in adam asmooth atomicReduction bitonic-sort concurrentKernels eigenvalue entropy floydwarshall fwt graphExecution heat2d hwt1d jenkins-hash kalman md5hash murmurhash3 nqueen ntt pnpoly popcount projectile rng-wallace romberg scan secp256k1 shuffle streamPriority threadfence topk wyllie pitch convolution1D d3q19-bgk overlap atomicIntrinsics bmf; do
  B hec-$n "make -C \$H/$n-cuda ARCH=sm_90 && cp \$H/$n-cuda/main \$P/hec-$n/app"
done
# with fewer elements, since the authors' 600 copies of 3 x 128 MiB likely take too long
B hec-streamOrderedAllocation 'cd $H/streamOrderedAllocation-cuda && sed -i "s/nelem = 33554432/nelem = 1048576/" main.cu && make ARCH=sm_90 && cp main $P/hec-streamOrderedAllocation/app'
# ---- Rodinia 3.1: the makefiles' lines with -arch=sm_90, linked by nvcc with its static runtime, and $TS. Inputs: inputs.py
RF="-arch=sm_90 $TS"
rod() { (cd "$SRC/$R/$1" && shift && eval "$@"); } # DIR, command run there
B rod-gaussian 'rod gaussian "sed -E \"/clockRate|deviceOverlap/d; s/int verbose = 0/int verbose = 1/\" gaussian.cu > mended.cu && nvcc \$RF mended.cu -o \$P/rod-gaussian/app"'
B rod-nw 'rod nw "nvcc \$RF -DTRACEBACK needle.cu -o \$P/rod-nw/app"'
B rod-pathfinder 'rod pathfinder "nvcc \$RF -DBENCH_PRINT pathfinder.cu -o \$P/rod-pathfinder/app"'
B rod-srad_v2 'rod srad/srad_v2 "nvcc \$RF -DOUTPUT srad.cu -o \$P/rod-srad_v2/app"'
B rod-lud 'rod lud/cuda "nvcc -I../common -O3 -use_fast_math -DGPU_TIMER \$RF lud.cu lud_kernel.cu ../common/common.c -lm -o \$P/rod-lud/app"'
B rod-hotspot 'rod hotspot "nvcc \$RF hotspot.cu -o \$P/rod-hotspot/app"'
B rod-hotspot3D 'rod hotspot3D "nvcc -g -G \$RF 3D.cu -o \$P/rod-hotspot3D/app"'
B rod-backprop 'rod backprop "nvcc -O2 \$RF backprop.c facetrain.c imagenet.c backprop_cuda.cu -lm -o \$P/rod-backprop/app"'
B rod-bfs 'rod bfs "nvcc \$RF -I../util -DTIMING bfs.cu -o \$P/rod-bfs/app"'
B rod-nn 'rod nn "nvcc \$RF nn_cuda.cu -o \$P/rod-nn/app"'
B rod-lavaMD 'rod lavaMD "sed \"s/srand(time(NULL))/srand(7)/\" main.c > mended.c && nvcc -O3 -DOUTPUT \$RF -Xcompiler -fopenmp mended.c kernel/kernel_gpu_cuda_wrapper.cu util/num/num.c util/timer/timer.c util/device/device.cu -lm -o \$P/rod-lavaMD/app"'
B rod-streamcluster 'rod streamcluster "nvcc -O3 \$RF streamcluster_cuda_cpu.cpp streamcluster_cuda.cu streamcluster_header.cu -lcuda -o \$P/rod-streamcluster/app"'
B rod-particlefilter_float 'rod particlefilter "sed \"s/time(0)/7/\" ex_particle_CUDA_float_seq.cu > mended_float.cu && nvcc -lcuda -g -lm -O3 -use_fast_math \$RF mended_float.cu -o \$P/rod-particlefilter_float/app"'
B rod-particlefilter_naive 'rod particlefilter "sed \"s/time(0)/7/\" ex_particle_CUDA_naive_seq.cu > mended_naive.cu && nvcc -lcuda -g -lm -O3 -use_fast_math \$RF mended_naive.cu -o \$P/rod-particlefilter_naive/app"'
B rod-b+tree 'rod b+tree "nvcc -O3 \$RF main.c kernel/kernel_gpu_cuda_wrapper.cu kernel/kernel_gpu_cuda_wrapper_2.cu util/timer/timer.c util/num/num.c util/cuda/cuda.cu -lm -o \$P/rod-b+tree/app"'
B rod-dwt2d 'rod dwt2d "sed \"s#../../data/dwt2d/##\" main.cu > mended.cu && nvcc -O2 -I. -DOUTPUT \$RF mended.cu dwt.cu components.cu dwt_cuda/fdwt53.cu dwt_cuda/fdwt97.cu dwt_cuda/common.cu dwt_cuda/rdwt97.cu dwt_cuda/rdwt53.cu -o \$P/rod-dwt2d/app"'
# ---- Python, with what the card's machine has
B cupy_raw 'install -m 755 $HERE/python/cupy_raw.py $P/cupy_raw/app'
B numba_kernels 'install -m 755 $HERE/python/numba_kernels.py $P/numba_kernels/app'
