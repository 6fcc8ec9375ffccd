// Small modules for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "demarc/ptx/parser.hpp"

namespace demarc::ptx::test {

inline const std::string preamble = ".version 8.0\n.target sm_90\n.address_size 64\n";

// A kernel `k` with the registers most tests need; `body` begins on line 11.
inline std::string kernel(const std::string& body) {
  return preamble +
         ".visible .entry k(\n.param .u64 p,\n.param .u32 n\n)\n{\n"
         ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<20>;\n"
         ".shared .align 4 .b8 tile[256];\n" +
         body + "\n}\n";
}

inline std::string all_of(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics.list) out += format(diagnostic, "t.ptx") + "\n";
  return out;
}

// Parses what must be in order.
inline Module parsed(const std::string& text) {
  ParseResult result = parse(text, "t.ptx");
  EXPECT_EQ(all_of(result.diagnostics), "");
  return std::move(result.module);
}

}  // namespace demarc::ptx::test
