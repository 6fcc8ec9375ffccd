// A call of one of the driver's functions, as its callback shows it (callback_table.hpp): whatever
// way a program got to the function, its callback comes first. At the entry a call can be answered
// in the driver's place. Undocumented; seen on CUDA 13.0.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

#include "demarc/driver/call_parameters.hpp"
#include "demarc/driver/functions.hpp"

namespace demarc::cuda {

// Whether the default stream that a function means is the calling thread's own, by its name.
[[nodiscard]] inline bool means_per_thread(std::string_view name) {
  return name.ends_with("_ptds") || name.ends_with("_ptsz");
}
// The name without what says which default stream is meant: "cuMemAlloc_v2", "cuLaunchKernel".
[[nodiscard]] inline std::string_view without_stream(std::string_view name) {
  return name.substr(0, name.size() - (means_per_thread(name) ? 5 : 0));
}
// The name without what tells versions apart: "cuMemAlloc".
[[nodiscard]] inline std::string_view without_version(std::string_view name) {
  return name.substr(0, name.find('_'));
}

template <class Parameters>
[[nodiscard]] Parameters read_parameters(const void* arguments) {
  static_assert(!std::is_empty_v<Parameters>);
  Parameters given;
  std::memcpy(&given, arguments, sizeof given);
  return given;
}

class DriverCall {
 public:
  // Nothing where the parameters are not laid out as known.
  static std::optional<DriverCall> read(const void* params);

  [[nodiscard]] bool leaving() const { return leaving_; }
  // For the version that was called: "cuMemAlloc_v2", "cuLaunchKernel_ptsz".
  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] bool per_thread() const { return means_per_thread(name_); }
  // By functions.def.
  [[nodiscard]] DriverFunction function() const { return facts_.function; }
  [[nodiscard]] Rule rule() const { return facts_.rule; }
  [[nodiscard]] bool does(std::uint32_t one_of) const { return (facts_.does & one_of) != 0; }

  // The parameters, which must be those that functions.def names for this function, or their
  // beginning.
  template <class Parameters>
  [[nodiscard]] Parameters parameters() const {
    return read_parameters<Parameters>(arguments_);
  }

  // Where the arguments lie: the same at the entry and as the function is left.
  [[nodiscard]] const void* arguments() const { return arguments_; }

  // When leaving: what the function returns.
  [[nodiscard]] CuResult result() const { return *result_; }
  // Not when leaving: the driver carries nothing out, and its function returns `code`.
  void answer(CuResult code) const;
  [[nodiscard]] bool answered() const { return *answered_ != 0; }

 private:
  DriverCall() = default;
  const char* arguments_ = nullptr;
  std::string_view name_;
  CallFacts facts_;
  CuResult* result_ = nullptr;
  int* answered_ = nullptr;
  bool leaving_ = false;
};

}  // namespace demarc::cuda
