// A kernel that launches another, and one that does not.
__global__ void child(int* p) {
  *p = 1;
}
extern "C" __global__ void parent(int* p) {
  child<<<1, 32>>>(p);
}
