// The least of a function of one number within limits, without derivatives (NLopt).
#pragma once

#include <functional>

#include "demarc/base/result.hpp"

namespace demarc::study {

struct Axis {
  double low = 0;
  double high = 0;
  double start = 0;  // within them
  bool logarithmic = false;
  bool whole = false;
};

struct Optimum {
  double at = 0;
  double error = 0;
  unsigned evaluations = 0;
};

// `error` is asked for its value at whole numbers alone where the axis has no others, and once at
// each of them. It begins at `start` and ends as soon as an error is not above `enough`: a search
// nearby (subplex), then, where the function is flat there, one of the whole axis (DIRECT) and one
// nearby again. An `error` without a value ends it. missing_capability in a build without NLopt.
[[nodiscard]] Result<Optimum> least_error(const Axis& axis, double enough,
                                          const std::function<Result<double>(double)>& error);

}  // namespace demarc::study
