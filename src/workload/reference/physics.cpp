// Computes what the kernels of flows, bodies and distances must give.
#include <array>
#include <cmath>

#include "references.hpp"

namespace demarc::workload {
namespace {

struct CfdElement {
  std::array<double, 5> state{};  // density, momenta, energy
  std::array<double, 3> velocity{};
  double pressure = 0;
  double speed = 0;
  double sound = 0;
};

CfdElement cfd_element(const std::array<double, 5>& state) {
  CfdElement element;
  element.state = state;
  double squared = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    element.velocity[axis] = state[axis + 1] / state[0];
    squared += element.velocity[axis] * element.velocity[axis];
  }
  element.pressure = 0.4 * (state[4] - 0.5 * state[0] * squared);
  element.speed = std::sqrt(squared);
  element.sound = std::sqrt(1.4 * element.pressure / state[0]);
  return element;
}

// The flux of the Euler equations along a normal.
std::array<double, 5> cfd_flux_through(const CfdElement& element,
                                       const std::array<double, 3>& normal) {
  double through = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) through += normal[axis] * element.velocity[axis];
  std::array<double, 5> flux{};
  for (std::size_t v = 0; v < 5; ++v) flux[v] = element.state[v] * through;
  for (std::size_t axis = 0; axis < 3; ++axis) flux[axis + 1] += normal[axis] * element.pressure;
  flux[4] += element.pressure * through;
  return flux;
}

}  // namespace

void cfd_reference(const ReferenceCall& call) {
  const std::size_t elements = call.parameter("elements");
  const auto state = call.floats("state");
  const auto neighbours = call.buffer<std::int32_t>("neighbours");
  const auto normals = call.floats("normals");
  const auto fluxes = call.floats("fluxes");
  const auto load = [&](std::size_t element) {
    std::array<double, 5> values{};
    for (std::size_t v = 0; v < 5; ++v) values[v] = state[element + v * elements];
    return cfd_element(values);
  };
  const CfdElement far = cfd_element({1.4F, 1.68F, 0, 0, 3.508F});
  for (std::size_t element = 0; element < elements; ++element) {
    const CfdElement here = load(element);
    std::array<double, 5> flux{};
    for (std::size_t face = 0; face < 4; ++face) {
      const std::size_t at = face * elements + element;
      const std::array<double, 3> normal{normals[at], normals[at + 4 * elements],
                                         normals[at + 8 * elements]};
      const std::int32_t neighbour = neighbours[at];
      if (neighbour == -1) {
        for (std::size_t axis = 0; axis < 3; ++axis) flux[axis + 1] += normal[axis] * here.pressure;
        continue;
      }
      const CfdElement there = neighbour < 0 ? far : load(static_cast<std::size_t>(neighbour));
      const double area = std::hypot(normal[0], normal[1], normal[2]);
      const double damping = -0.1 * area * (here.speed + there.speed + here.sound + there.sound);
      const auto a = cfd_flux_through(here, normal);
      const auto b = cfd_flux_through(there, normal);
      for (std::size_t v = 0; v < 5; ++v)
        flux[v] += damping * (here.state[v] - there.state[v]) + 0.5 * (a[v] + b[v]);
    }
    for (std::size_t v = 0; v < 5; ++v)
      fluxes[element + v * elements] = static_cast<float>(flux[v]);
  }
}

void nbody_reference(const ReferenceCall& call) {
  const auto bodies = call.floats("bodies");
  const auto accelerations = call.floats("accelerations");
  for (std::size_t i = 0; i < bodies.size(); i += 4) {
    std::array<double, 3> sum{};
    for (std::size_t j = 0; j < bodies.size(); j += 4) {
      std::array<double, 3> distance{};
      double squared = 0.01;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        distance[axis] = double{bodies[j + axis]} - bodies[i + axis];
        squared += distance[axis] * distance[axis];
      }
      const double pull = bodies[j + 3] / (squared * std::sqrt(squared));
      for (std::size_t axis = 0; axis < 3; ++axis) sum[axis] += pull * distance[axis];
    }
    for (std::size_t axis = 0; axis < 3; ++axis)
      accelerations[i + axis] = static_cast<float>(sum[axis]);
    accelerations[i + 3] = 0;
  }
}

void nn_reference(const ReferenceCall& call) {
  const auto records = call.floats("records");
  const auto distances = call.floats("distances");
  for (std::size_t i = 0; i < distances.size(); ++i) {
    distances[i] = static_cast<float>(std::hypot(30.0 - records[2 * i], 60.0 - records[2 * i + 1]));
  }
}

void gaussian_reference(const ReferenceCall& call) {
  const std::size_t n = call.parameter("n");
  const auto a = call.floats("a");
  const auto b = call.floats("b");
  const auto multipliers = call.floats("multipliers");
  for (std::size_t t = 0; t + 1 < n; ++t) {
    for (std::size_t row = t + 1; row < n; ++row) {
      const float multiplier = a[row * n + t] / a[t * n + t];
      multipliers[row * n + t] = multiplier;
      for (std::size_t column = t; column < n; ++column) {
        a[row * n + column] = std::fma(-multiplier, a[t * n + column], a[row * n + column]);
      }
      b[row] = std::fma(-multiplier, b[t], b[row]);
    }
  }
}

}  // namespace demarc::workload
