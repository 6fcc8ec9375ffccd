// The kernel of the files in this folder: no managed variable.
__device__ int counter;
__global__ void counted(int* a) {
  atomicAdd(&counter, a[threadIdx.x]);
}
