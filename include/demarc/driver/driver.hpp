// The CUDA driver, loaded at run time. Without a driver a program that uses this still runs, and
// says so.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/driver/driver_api.hpp"

namespace demarc::cuda {

class Driver {
 public:
  // Opens `path`. If it is empty, opens the library that the environment variable DEMARC_LIBCUDA
  // names, or else libcuda.so.1 from its usual places. Checks the required functions and calls
  // cuInit. missing_capability if there is no driver or no GPU. The library stays loaded for the
  // life of the process.
  static Result<std::shared_ptr<const Driver>> load(const std::string& path = {});
  // Takes a table that the caller has filled; `origin` stands for the library's path in messages.
  // While the server of MPS is not ready, cuInit is tried again, for `patience`. This happens when
  // a client of it was just ended with work on the card.
  static Result<std::shared_ptr<const Driver>> from_table(
      const DriverApi& api, std::string origin,
      std::chrono::milliseconds patience = std::chrono::seconds(10));

  // 13000 for CUDA 13.0, without starting the driver: a child process may still use it.
  static Result<int> peek_version();

  // The files that all who use a card of this machine have in common, for lease::CardClaim: the
  // library that load() opens by default and, where there is one, NVIDIA's library of management.
  // It fits the kernel's driver, so a container has the host's, whatever libcuda it brings. Does
  // not start the driver.
  static Result<std::vector<std::string>> files();

  [[nodiscard]] const DriverApi& api() const { return api_; }
  [[nodiscard]] int cuda_version() const { return cuda_version_; }  // 13000 is CUDA 13.0
  // "580.159.04", or "cuda-13.0" if the kernel driver does not tell.
  [[nodiscard]] const std::string& driver_version() const { return driver_version_; }
  [[nodiscard]] const std::string& origin() const { return origin_; }
  [[nodiscard]] Result<std::uint32_t> device_count() const;

  // `what` says what was tried: "cannot launch probe: CUDA_ERROR_... (...)". The kind is kind_of()
  // the error: a GPU that fails is check_failed.
  [[nodiscard]] Result<void> check(CuResult code, std::string_view what) const;
  // What a function of the driver writes to its first parameter; `what` as above.
  template <class T, class... Rest>
  [[nodiscard]] Result<T> ask(std::string_view what, CuResult (*function)(T*, Rest...),
                              std::type_identity_t<Rest>... rest) const {
    T value{};
    DEMARC_CHECK(check(function(&value, rest...), what));
    return value;
  }

 private:
  Driver() = default;
  DriverApi api_;
  int cuda_version_ = 0;
  std::string driver_version_;
  std::string origin_;
};

}  // namespace demarc::cuda
