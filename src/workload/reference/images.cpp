// Computes what convolutions and stencils must give.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "references.hpp"

namespace demarc::workload {
namespace {

constexpr std::array<double, 17> separable_taps{1,  2,  3, 4, 6, 8, 12, 16, 24,
                                                16, 12, 8, 6, 4, 3, 2,  1};  // / 128

// Convolves along one direction: `count` lines of `length` elements, `step` apart within a line.
void convolve_lines(std::span<const float> in, std::span<float> out, std::size_t count,
                    std::size_t line_step, std::size_t length, std::size_t step) {
  for (std::size_t line = 0; line < count; ++line) {
    for (std::size_t i = 0; i < length; ++i) {
      double sum = 0;
      for (std::size_t tap = 0; tap < separable_taps.size(); ++tap) {
        const std::size_t at = i + tap;  // eight too far
        if (at >= 8 && at < length + 8)
          sum += separable_taps[tap] / 128 * in[line * line_step + (at - 8) * step];
      }
      out[line * line_step + i * step] = static_cast<float>(sum);
    }
  }
}

// The result of an even number of steps is in `a`, of an odd number in `b`; the other holds the
// step before.
template <class Step>
void ping_pong(const ReferenceCall& call, std::size_t steps, Step step) {
  const auto a = call.floats("a");
  const auto b = call.floats("b");
  for (std::size_t i = 0; i < steps; ++i) {
    if (i % 2 == 0) {
      step(a, b);
    } else {
      step(b, a);
    }
  }
}

}  // namespace

void convsep_reference(const ReferenceCall& call) {
  const std::size_t width = call.parameter("width");
  const std::size_t height = call.parameter("height");
  convolve_lines(call.floats("image"), call.floats("rows"), height, width, width, 1);
  convolve_lines(call.floats("rows"), call.floats("result"), width, 1, height, width);
}

void conv2d_reference(const ReferenceCall& call) {
  const std::size_t rows = call.parameter("rows");
  const std::size_t columns = call.parameter("columns");
  const auto in = call.floats("in");
  const auto out = call.floats("out");
  constexpr std::array<double, 9> taps{0.2, -0.3, 0.4, 0.5, 0.6, 0.7, -0.8, -0.9, 0.1};
  for (std::size_t i = 1; i + 1 < rows; ++i) {
    for (std::size_t j = 1; j + 1 < columns; ++j) {
      double sum = 0;
      for (std::size_t tap = 0; tap < 9; ++tap) {
        sum += taps[tap] * in[(i + tap / 3 - 1) * columns + j + tap % 3 - 1];
      }
      out[i * columns + j] = static_cast<float>(sum);
    }
  }
}

void stencil2d_reference(const ReferenceCall& call) {
  const std::size_t width = call.parameter("width");
  const std::size_t height = call.parameter("height");
  ping_pong(call, call.parameter("steps"), [&](std::span<const float> in, std::span<float> out) {
    std::copy(in.begin(), in.end(), out.begin());
    for (std::size_t y = 1; y + 1 < height; ++y) {
      for (std::size_t x = 1; x + 1 < width; ++x) {
        const std::size_t at = y * width + x;
        const double around = double{in[at - 1]} + in[at + 1] + in[at - width] + in[at + width];
        out[at] = static_cast<float>(0.5 * in[at] + 0.125 * around);
      }
    }
  });
}

void stencil3d_reference(const ReferenceCall& call) {
  const std::size_t width = call.parameter("width");
  const std::size_t height = call.parameter("height");
  const std::size_t depth = call.parameter("depth");
  const std::size_t plane = width * height;
  ping_pong(call, call.parameter("steps"), [&](std::span<const float> in, std::span<float> out) {
    std::copy(in.begin(), in.end(), out.begin());
    for (std::size_t z = 1; z + 1 < depth; ++z) {
      for (std::size_t y = 1; y + 1 < height; ++y) {
        for (std::size_t x = 1; x + 1 < width; ++x) {
          const std::size_t at = z * plane + y * width + x;
          const double around = double{in[at - 1]} + in[at + 1] + in[at - width] + in[at + width] +
                                in[at - plane] + in[at + plane];
          out[at] = static_cast<float>(0.4 * in[at] + 0.1 * around);
        }
      }
    }
  });
}

// Every launch makes two steps and writes the whole chip once.
void hotspot_reference(const ReferenceCall& call) {
  const std::size_t side = call.parameter("side");
  const auto power = call.floats("power");
  const auto one_step = [&](const std::vector<double>& now) {
    std::vector<double> next(now.size());
    for (std::size_t y = 0; y < side; ++y) {
      for (std::size_t x = 0; x < side; ++x) {
        const std::size_t at = y * side + x;
        const double here = now[at];
        const double north = y == 0 ? here : now[at - side];
        const double south = y + 1 == side ? here : now[at + side];
        const double west = x == 0 ? here : now[at - 1];
        const double east = x + 1 == side ? here : now[at + 1];
        next[at] = here + 0.5 * (power[at] + (south + north - 2 * here) * 0.1 +
                                 (east + west - 2 * here) * 0.1 + (80 - here) * 0.0125);
      }
    }
    return next;
  };
  ping_pong(call, call.parameter("launches"), [&](std::span<const float> in, std::span<float> out) {
    const auto after = one_step(one_step({in.begin(), in.end()}));
    std::transform(after.begin(), after.end(), out.begin(),
                   [](double value) { return static_cast<float>(value); });
  });
}

// One cell after the other; the elements of a pass of 320 change together.
void leukocyte_reference(const ReferenceCall& call) {
  constexpr std::size_t pass = 320;
  const std::size_t rows = call.parameter("rows");
  const std::size_t columns = call.parameter("columns");
  const std::size_t elements = rows * columns;
  for (std::size_t cell = 0; cell < call.parameter("cells"); ++cell) {
    const auto matrix = call.floats("matrix").subspan(cell * elements, elements);
    const auto image = call.floats("image").subspan(cell * elements, elements);
    for (std::size_t step = 0; step < call.parameter("steps"); ++step) {
      double change = 0;
      for (std::size_t begin = 0; begin < elements; begin += pass) {
        const std::size_t end = std::min(elements, begin + pass);
        std::vector<float> updated;
        for (std::size_t at = begin; at < end; ++at) {
          const std::size_t row = at / columns;
          const std::size_t column = at % columns;
          const double old = matrix[at];
          double pull = 0;
          for (std::size_t i = 0; i < 9; ++i) {
            const std::size_t y = std::min(std::max<std::size_t>(row + i / 3, 1) - 1, rows - 1);
            const std::size_t x =
                std::min(std::max<std::size_t>(column + i % 3, 1) - 1, columns - 1);
            pull += matrix[y * columns + x] - old;
          }
          const double gradient = image[at];
          updated.push_back(
              static_cast<float>(old + 0.0625 * pull - 0.25 * gradient * (old - gradient)));
          change += std::abs(updated.back() - old);
        }
        std::copy(updated.begin(), updated.end(),
                  matrix.begin() + static_cast<std::ptrdiff_t>(begin));
      }
      if (change < 0.0001 * static_cast<double>(elements)) break;
    }
  }
}

}  // namespace demarc::workload
