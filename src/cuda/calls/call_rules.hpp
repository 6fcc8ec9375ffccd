// Of the driver's functions that a coloured program calls: which the driver carries out as they
// are. All others are answered in its place (colored_calls.hpp) or refused.
#pragma once

#include <span>
#include <string_view>

namespace demarc::cuda {

// By DriverCall::versioned_name(), for all known versions of a function alike. A version that CUDA
// 13.0 has not got may take other arguments, and does not pass.
[[nodiscard]] bool passes_colored(std::string_view versioned_name);

// Of those that pass: it makes a context, or gets the primary one.
[[nodiscard]] bool makes_context(std::string_view base_name);

// Of those that pass: kernels get memory of the host by it.
[[nodiscard]] bool pins_host_memory(std::string_view base_name);

// Of those that are answered: the driver carries them out in a program that has nothing in coloured
// memory yet, and none is mapped for their sake.
[[nodiscard]] bool passes_unmapped(std::string_view base_name);

// In words, of one that neither passes nor is answered.
[[nodiscard]] const char* why_refused(std::string_view base_name);

// The tables of these two, each in the order of the alphabet.
struct RefusedCalls {
  std::span<const std::string_view> names;
  const char* why;
};
[[nodiscard]] std::span<const std::string_view> passing_calls();
[[nodiscard]] std::span<const RefusedCalls> refused_calls();

}  // namespace demarc::cuda
