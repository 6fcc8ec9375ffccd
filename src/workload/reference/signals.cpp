// Computes what transforms and filters must give.
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "references.hpp"

namespace demarc::workload {
namespace {

// In place, natural order in and out; the size is a power of two (decimation in time, recursive).
void transform(std::vector<std::complex<double>>& values) {
  const std::size_t n = values.size();
  if (n == 1) return;
  std::vector<std::complex<double>> even(n / 2);
  std::vector<std::complex<double>> odd(n / 2);
  for (std::size_t i = 0; i < n; ++i) (i % 2 == 0 ? even : odd)[i / 2] = values[i];
  transform(even);
  transform(odd);
  for (std::size_t i = 0; i < n / 2; ++i) {
    const double angle = -2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
    const std::complex<double> turned = std::polar(1.0, angle) * odd[i];
    values[i] = even[i] + turned;
    values[i + n / 2] = even[i] - turned;
  }
}

}  // namespace

void fft_reference(const ReferenceCall& call) {
  constexpr std::size_t points = 512;
  const auto data = call.buffer<std::complex<float>>("data");
  for (std::size_t begin = 0; begin + points <= data.size(); begin += points) {
    const auto block = data.subspan(begin, points);
    std::vector<std::complex<double>> values(block.begin(), block.end());
    for (std::size_t pass = 0; pass < call.parameter("passes"); ++pass) transform(values);
    for (std::size_t i = 0; i < points; ++i) block[i] = std::complex<float>(values[i]);
  }
}

void fwt_reference(const ReferenceCall& call) {
  const auto data = call.floats("data");
  std::vector<double> values(data.begin(), data.end());
  for (std::size_t half = 1; half < values.size(); half *= 2) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if ((i & half) != 0) continue;
      const double a = values[i];
      const double b = values[i + half];
      values[i] = a + b;
      values[i + half] = a - b;
    }
  }
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(values[i]);
}

void fir_reference(const ReferenceCall& call) {
  const auto in = call.floats("in");
  const auto out = call.floats("out");
  const auto taps = call.floats("taps");
  const auto history = call.floats("history");
  for (std::size_t i = 0; i < out.size(); ++i) {
    double sum = 0;
    for (std::size_t t = 0; t < taps.size(); ++t)
      sum += double{taps[t]} * (i >= t ? in[i - t] : history[t - i - 1]);
    out[i] = static_cast<float>(sum);
  }
}

void relu_reference(const ReferenceCall& call) {
  const auto in = call.floats("in");
  const auto out = call.floats("out");
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] > 0 ? in[i] : 0.0F;
}

void maxpool_reference(const ReferenceCall& call) {
  const std::size_t width = call.parameter("width");
  const std::size_t height = call.parameter("height");
  const std::size_t pooled_width = call.parameter("pooled_width");
  const std::size_t pooled_height = call.parameter("pooled_height");
  const std::size_t stride = call.parameter("stride");
  const std::size_t window = call.parameter("window");
  const auto top = call.floats("top");
  const auto mask = call.buffer<std::int32_t>("mask");
  for (std::size_t i = 0; i < top.size(); ++i) {
    const std::size_t plane = i / (pooled_width * pooled_height);
    const auto image = call.floats("bottom").subspan(plane * width * height, width * height);
    const std::size_t corner =
        i / pooled_width % pooled_height * stride * width + i % pooled_width * stride;
    std::size_t best = corner;
    for (std::size_t at = 0; at < window * window; ++at) {
      const std::size_t place = corner + at / window * width + at % window;
      if (image[place] > image[best]) best = place;
    }
    top[i] = image[best];
    mask[i] = static_cast<std::int32_t>(best);
  }
}

void stencil9_reference(const ReferenceCall& call) {
  const std::size_t pitch = call.parameter("pitch");
  const std::size_t rows = call.parameter("rows");
  const std::size_t columns = call.parameter("columns");
  for (std::size_t i = 0; i < call.parameter("iterations"); ++i) {
    const auto in = call.floats(i % 2 == 0 ? "a" : "b");
    const auto out = call.floats(i % 2 == 0 ? "b" : "a");
    for (std::size_t y = 1; y <= rows; ++y) {
      for (std::size_t x = 1; x <= columns; ++x) {
        const std::size_t at = y * pitch + x;
        const double straight = double{in[at - pitch]} + in[at + pitch] + in[at - 1] + in[at + 1];
        const double slanted = double{in[at - pitch - 1]} + in[at - pitch + 1] +
                               in[at + pitch - 1] + in[at + pitch + 1];
        out[at] = static_cast<float>(0.25 * in[at] + 0.125 * straight + 0.0625 * slanted);
      }
    }
  }
}

}  // namespace demarc::workload
