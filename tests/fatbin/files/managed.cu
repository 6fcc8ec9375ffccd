// Managed variables with and without first contents, beside one that is not managed.
__managed__ int managed_total;
__managed__ int managed_table[2] = {1, 2};
__device__ int plain;
__global__ void counted(int* a) {
  atomicAdd(&managed_total, a[0] + managed_table[1] + plain);
}
