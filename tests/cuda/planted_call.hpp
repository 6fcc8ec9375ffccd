// A call of one of the driver's functions as its callback shows it, of a function that the stand-in
// need not have.
#pragma once

#include <array>
#include <cstdint>

#include "demarc/driver/driver_call.hpp"
#include "fake/laid_out.hpp"

namespace demarc::test {

class PlantedCall {
 public:
  template <class... Arguments>
  explicit PlantedCall(const char* name, Arguments... arguments)
      : arguments_(fake::laid_out(arguments...)) {
    params_[0] = 104;  // bytes of the parameters
    params_[5] = reinterpret_cast<std::uint64_t>(&result_);
    params_[6] = reinterpret_cast<std::uint64_t>(name);
    params_[7] = reinterpret_cast<std::uint64_t>(arguments_.data());
    params_[10] = 39;
    params_[11] = reinterpret_cast<std::uint64_t>(&answered_);
  }
  PlantedCall(const PlantedCall&) = delete;
  PlantedCall& operator=(const PlantedCall&) = delete;

  [[nodiscard]] cuda::DriverCall read() const { return *cuda::DriverCall::read(params_.data()); }
  // As the function is left with this result.
  [[nodiscard]] cuda::DriverCall read_leaving(cuda::CuResult result) {
    result_ = result;
    params_[10] |= std::uint64_t{1} << 32;
    return read();
  }
  // Nothing where the call passes.
  [[nodiscard]] std::optional<cuda::CuResult> answer() const {
    return answered_ != 0 ? std::optional(result_) : std::nullopt;
  }

 private:
  std::array<std::byte, 128> arguments_;
  cuda::CuResult result_ = 999;
  int answered_ = 0;
  std::array<std::uint64_t, 13> params_ = {};
};

}  // namespace demarc::test
