// Every generator of cuRAND's device API.
#include <curand_kernel.h>

template <class State>
__global__ void draw(State* states, float* out, double* normal, unsigned* poisson) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  State state;
  curand_init(1234ULL, i, 0, &state);
  out[i] = curand_uniform(&state);
  normal[i] = curand_normal_double(&state);
  poisson[i] = curand_poisson(&state, 3.5);
  states[i] = state;
}
template __global__ void draw(curandStateXORWOW*, float*, double*, unsigned*);
template __global__ void draw(curandStatePhilox4_32_10*, float*, double*, unsigned*);
template __global__ void draw(curandStateMRG32k3a*, float*, double*, unsigned*);

__global__ void sobol(curandStateSobol64* states, curandDirectionVectors64_t* vectors,
                      double* out) {
  curandStateSobol64 state;
  curand_init(vectors[threadIdx.x], threadIdx.x, &state);
  out[threadIdx.x] = curand_log_normal_double(&state, 0.5, 1.5);
  states[threadIdx.x] = state;
}
