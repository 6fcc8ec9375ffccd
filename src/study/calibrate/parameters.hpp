// The table of what is fitted: a number of a device description, its limits, and the figures that
// speak of it.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "demarc/device/device.hpp"

namespace demarc::study {

struct ParameterRow {
  std::string_view name;  // its key in a device file
  double (*get)(const gpu::Device& device) = nullptr;
  void (*set)(gpu::Device& device, double value) = nullptr;
  double low = 0;
  double high = 0;
  bool logarithmic = true;  // it is looked for by factors, else by differences
  bool whole = false;       // a whole number
  // It is fitted to the first of them that was measured; an empty one is none.
  std::array<std::string_view, 2> figures{};
  // Why it says nothing on that device; empty: it does.
  std::string_view (*idle)(const gpu::Device& device) = nullptr;
};

// In the order of the fit: who stands before depends least on who stands behind.
[[nodiscard]] std::span<const ParameterRow> parameter_rows();

}  // namespace demarc::study
