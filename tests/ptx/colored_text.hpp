// Kernels in the parity 1 of the mask 0xc4000, and what is said of those that are refused.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "demarc/ptx/colored.hpp"
#include "rewritten_by_colors.hpp"
#include "text.hpp"

namespace demarc::ptx::test {

inline const color::Parities by_parity{{0xc4000}, 1};
inline const ColoredOptions with_places{.places = ColoredPlaces{0x100000, 0x200000, 64}};

inline constexpr const char* plain_store = "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 1;";

inline ColoredModule colored(const std::string& text, const ColoredOptions& options = {}) {
  auto made = color::rewrite_parities(parsed(text), by_parity, options);
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : ColoredModule{};
}

// "accepted", or the reasons of the first kernel.
inline std::string verdict(const std::string& text, const ColoredOptions& options = {}) {
  const ColoredModule made = colored(text, options);
  if (made.kernels.empty()) return "no kernel";
  return made.kernels[0].accepted() ? "accepted" : describe_refusals(made.kernels[0], "t.ptx");
}

inline std::string colored_kernel(const std::string& name, const std::string& body) {
  return ".visible .entry " + name +
         "(.param .u64 p)\n{\n.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n" + body +
         "\nret;\n}\n";
}

}  // namespace demarc::ptx::test
