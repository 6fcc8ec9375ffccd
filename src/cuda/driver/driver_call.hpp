// A call of one of the driver's functions, as its callback shows it (callback_table.hpp): whatever
// way a program got to the function, its callback comes first. At the entry a call can be answered
// in the driver's place. Undocumented; seen on CUDA 13.0.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>

#include "demarc/cuda/driver_types.hpp"

namespace demarc::cuda {

class DriverCall {
 public:
  // Nothing where the parameters are not laid out as known.
  static std::optional<DriverCall> read(const void* params);

  [[nodiscard]] bool leaving() const { return leaving_; }
  // Of the version that was called: "cuMemAlloc_v2", "cuLaunchKernel_ptsz".
  [[nodiscard]] std::string_view name() const { return name_; }
  // Without what says which default stream is meant: "cuMemAlloc_v2", "cuLaunchKernel".
  [[nodiscard]] std::string_view versioned_name() const {
    return name_.substr(0, name_.size() - (per_thread() ? 5 : 0));
  }
  // Whether the default stream is the calling thread's own.
  [[nodiscard]] bool per_thread() const {
    return name_.ends_with("_ptds") || name_.ends_with("_ptsz");
  }
  // Without what tells versions apart: "cuMemAlloc".
  [[nodiscard]] std::string_view base_name() const { return name_.substr(0, name_.find('_')); }

  // The argument that lies `offset` bytes behind the first one: they are laid out as the members of
  // a struct are. Not of a function that takes none.
  template <class T>
  [[nodiscard]] T argument(std::size_t offset) const {
    T value;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a handle, which is a pointer
    std::memcpy(&value, arguments_ + offset, sizeof(T));
    return value;
  }

  // When leaving: what the function returns.
  [[nodiscard]] CuResult result() const { return *result_; }
  // Not when leaving: the driver carries nothing out, and its function returns `code`.
  void answer(CuResult code) const;
  [[nodiscard]] bool answered() const { return *answered_ != 0; }

 private:
  DriverCall() = default;
  const char* arguments_ = nullptr;
  std::string_view name_;
  CuResult* result_ = nullptr;
  int* answered_ = nullptr;
  bool leaving_ = false;
};

}  // namespace demarc::cuda
