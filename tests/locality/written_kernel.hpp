// Kernels written in a test, from their body alone.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "demarc/gpu/launch.hpp"
#include "demarc/ptx/parser.hpp"

namespace demarc::locality {

inline ptx::Module module_of(const std::string& body, const std::string& parameters) {
  const std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(" + parameters +
      ")\n{\n.reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n.reg .f32 %f<20>;\n" + body +
      "ret;\n}\n";
  ptx::ParseResult result = ptx::parse(text, "k.ptx");
  EXPECT_TRUE(result.diagnostics.ok());
  return std::move(result.module);
}

inline gpu::Launch launch_of(const std::string& grid, const std::string& block,
                             const std::string& arguments) {
  auto launch = gpu::parse_launch(
      {.ptx = "k.ptx", .kernel = "k", .grid = grid, .block = block, .arguments = arguments});
  EXPECT_TRUE(launch) << launch.error().message;
  return *launch;
}

inline constexpr const char* one_pointer = ".param .u64 p0, .param .u32 p1";

}  // namespace demarc::locality
