// What a kernel is launched with: an address for each argument, or all of them in one buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace demarc::cuda {

struct KernelArguments {
  void** each = nullptr;
  void** extra = nullptr;  // names and values: CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END

  // Calls `take` with each word of 8 bytes that may be an address: those that lie in an argument as
  // an address would. `parameters`: bytes of each.
  template <class Take>
  void for_each_word(std::span<const std::uint64_t> parameters, Take take) const {
    if (each != nullptr) {
      for (std::size_t i = 0; i < parameters.size(); ++i) words(each[i], parameters[i], take);
    }
    const auto whole = buffer();
    words(whole.data(), whole.size(), take);
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
  static void words(const void* data, std::uint64_t bytes, Take take) {
    for (std::uint64_t at = 0; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, static_cast<const char*>(data) + at, sizeof word);
      take(word);
    }
  }
};

}  // namespace demarc::cuda
