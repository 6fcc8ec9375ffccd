// What the text of a traced instruction says: PTX as written, or machine code of an imported trace
// ("LDG.E R2, R4").
#pragma once

#include <string_view>
#include <vector>

namespace demarc::sim::memory {

// What an instruction says of the caches.
struct CacheUse {
  bool past_l1 = false;
  bool streams = false;
};

[[nodiscard]] bool is_machine_code(std::string_view text);
// Names of registers, the guard's among them.
[[nodiscard]] std::vector<std::string_view> registers_in(std::string_view text);
[[nodiscard]] std::string_view without_guard(std::string_view text);
// What a load, or an instruction that computes, writes: its first operand, which may be a vector in
// braces or two predicates.
[[nodiscard]] std::vector<std::string_view> written_by(std::string_view text);
// The threads of the block wait for each other. Text without guard, as below.
[[nodiscard]] bool is_barrier(std::string_view text);
// An atomic whose result is not used.
[[nodiscard]] bool is_reduction(std::string_view text);
// An addition, multiplication or multiply-add of 32-bit floating-point numbers: what the lanes of
// an SM do.
[[nodiscard]] bool is_float_arithmetic(std::string_view text);
[[nodiscard]] CacheUse cache_use(std::string_view text);

}  // namespace demarc::sim::memory
