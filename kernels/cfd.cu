// Flux over the faces of an unstructured mesh (compressible Euler equations, finite volumes): every
// element has four neighbours; -1 is a solid wall, -2 the undisturbed flow. State: five variables,
// each an array over the elements (density, three momenta, energy). Normals:
// [component][face][element].
#include "demarc_kernel.cuh"

constexpr float gamma_air = 1.4f;
constexpr int variables = 5;
constexpr int faces = 4;
constexpr float viscosity = 0.2f;  // artificial

struct State {
  float density, mx, my, mz, energy;
};

struct Flow {
  float vx, vy, vz, pressure, speed, sound;
};

static __device__ __forceinline__ State load_state(const float* state, int element, int elements) {
  return {state[element], state[element + elements], state[element + 2 * elements],
          state[element + 3 * elements], state[element + 4 * elements]};
}

static __device__ __forceinline__ Flow flow_of(const State& s) {
  Flow f;
  f.vx = s.mx / s.density;
  f.vy = s.my / s.density;
  f.vz = s.mz / s.density;
  const float squared = f.vx * f.vx + f.vy * f.vy + f.vz * f.vz;
  f.pressure = (gamma_air - 1.0f) * (s.energy - 0.5f * s.density * squared);
  f.speed = sqrtf(squared);
  f.sound = sqrtf(gamma_air * f.pressure / s.density);
  return f;
}

// Adds the mean of the two fluxes through a face, and the damping of their difference.
static __device__ __forceinline__ void add_face(float* flux, const State& a, const Flow& fa,
                                                const State& b, const Flow& fb, float nx, float ny,
                                                float nz) {
  const float length = sqrtf(nx * nx + ny * ny + nz * nz);
  const float damping = -0.5f * viscosity * length * (fa.speed + fb.speed + fa.sound + fb.sound);
  const float through_a = nx * fa.vx + ny * fa.vy + nz * fa.vz;
  const float through_b = nx * fb.vx + ny * fb.vy + nz * fb.vz;
  const float pressure = fa.pressure + fb.pressure;
  flux[0] +=
      damping * (a.density - b.density) + 0.5f * (a.density * through_a + b.density * through_b);
  flux[1] += damping * (a.mx - b.mx) + 0.5f * (a.mx * through_a + b.mx * through_b + nx * pressure);
  flux[2] += damping * (a.my - b.my) + 0.5f * (a.my * through_a + b.my * through_b + ny * pressure);
  flux[3] += damping * (a.mz - b.mz) + 0.5f * (a.mz * through_a + b.mz * through_b + nz * pressure);
  flux[4] += damping * (a.energy - b.energy) +
             0.5f * ((a.energy + fa.pressure) * through_a + (b.energy + fb.pressure) * through_b);
}

DEMARC_KERNEL cfd_flux(const float* __restrict__ state, const int* __restrict__ neighbours,
                       const float* __restrict__ normals, float* __restrict__ fluxes,
                       int elements) {
  const int element = blockIdx.x * blockDim.x + threadIdx.x;
  if (element >= elements) return;
  const State here = load_state(state, element, elements);
  const Flow flow = flow_of(here);
  float flux[variables] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
  for (int face = 0; face < faces; ++face) {
    const int at = face * elements + element;
    const int neighbour = neighbours[at];
    const float nx = normals[at];
    const float ny = normals[at + faces * elements];
    const float nz = normals[at + 2 * faces * elements];
    if (neighbour >= 0) {
      const State there = load_state(state, neighbour, elements);
      add_face(flux, here, flow, there, flow_of(there), nx, ny, nz);
    } else if (neighbour == -1) {
      flux[1] += nx * flow.pressure;
      flux[2] += ny * flow.pressure;
      flux[3] += nz * flow.pressure;
    } else {
      const State far = {1.4f, 1.68f, 0.0f, 0.0f, 3.508f};  // Mach 1.2 along x, pressure 1
      add_face(flux, here, flow, far, flow_of(far), nx, ny, nz);
    }
  }
  for (int v = 0; v < variables; ++v) fluxes[element + v * elements] = flux[v];
}
