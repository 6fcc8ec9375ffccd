// What a kernel is launched with: an address for each argument, or all of them in one buffer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "demarc/base/rounding.hpp"

namespace demarc::cuda {

struct KernelParameter {
  std::uint64_t bytes = 0;
  std::uint64_t alignment = 1;  // bytes
};

struct KernelArguments {
  void** each = nullptr;
  void** extra = nullptr;  // names and values: CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END

  // Calls `take` with each word of 8 bytes that may be an address: those that lie in an argument as
  // an address would, which an argument of a smaller alignment cannot hold.
  template <class Take>
  void for_each_word(std::span<const KernelParameter> parameters, Take take) const {
    const auto whole = buffer();
    std::uint64_t at = 0;  // in the buffer
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto [bytes, alignment] = parameters[i];
      at = round_up(at, alignment);
      if (alignment % sizeof(std::uint64_t) == 0) {
        if (each != nullptr) words({static_cast<const std::byte*>(each[i]), bytes}, take);
        if (at < whole.size()) words(whole.subspan(at, std::min(bytes, whole.size() - at)), take);
      }
      at += bytes;
    }
  }

  // Empty where each argument has its address.
  [[nodiscard]] std::span<const std::byte> buffer() const {
    if (extra == nullptr) return {};
    const void* begin = nullptr;
    std::uint64_t bytes = 0;
    for (void** one = extra; *one != nullptr; one += 2) {
      const auto name = reinterpret_cast<std::uintptr_t>(*one);
      if (name == of_buffer) begin = one[1];
      if (name == of_bytes) std::memcpy(&bytes, one[1], sizeof bytes);
    }
    if (begin == nullptr) return {};
    return {static_cast<const std::byte*>(begin), bytes};
  }

 private:
  static constexpr std::uintptr_t of_buffer = 1;
  static constexpr std::uintptr_t of_bytes = 2;
  template <class Take>
  static void words(std::span<const std::byte> data, Take take) {
    std::uint64_t word = 0;
    for (; data.size() >= sizeof word; data = data.subspan(sizeof word)) {
      std::memcpy(&word, data.data(), sizeof word);
      take(word);
    }
  }
};

}  // namespace demarc::cuda
