// Reads the parameters of the callback at the entry and the exit of the driver's functions.
#include "demarc/driver/driver_call.hpp"

#include "callback_params.hpp"

namespace demarc::cuda {
namespace {

// What the result and the answer point to is the driver's own variable: the function does nothing
// and returns the result where the answer is not 0 after the callback.
constexpr std::size_t name_index = 6;
constexpr std::size_t answer_index = 11;
constexpr std::uint32_t least_call_params_bytes = (answer_index + 1) * 8;

}  // namespace

std::optional<DriverCall> DriverCall::read(const void* params) {
  if (params == nullptr || params_bytes(params) < least_call_params_bytes) return std::nullopt;
  const auto* elements = static_cast<void* const*>(params);
  DriverCall call;
  call.arguments_ = static_cast<const char*>(elements[arguments_index]);
  const auto* name = static_cast<const char*>(elements[name_index]);
  call.result_ = static_cast<CuResult*>(elements[result_index]);
  call.answered_ = static_cast<int*>(elements[answer_index]);
  if (name == nullptr || call.result_ == nullptr || call.answered_ == nullptr) return std::nullopt;
  const auto site = static_cast<const std::uint64_t*>(params)[site_index];
  call.name_ = name;
  call.facts_ = facts_of(call.name_, static_cast<std::uint32_t>(site));
  if (call.arguments_ == nullptr && call.facts_.shows_parameters) return std::nullopt;
  call.leaving_ = (site >> 32U) != 0;
  return call;
}

void DriverCall::answer(CuResult code) const {
  *result_ = code;
  *answered_ = 1;
}

}  // namespace demarc::cuda
