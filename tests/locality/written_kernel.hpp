// Kernels written in a test, from their body alone.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "demarc/launch/launch.hpp"
#include "demarc/locality/analyse.hpp"
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

// in[i] under a guard i < n.
inline constexpr const char* guarded_load = R"(
ld.param.u64 %rd1, [p0];
ld.param.u32 %r1, [p1];
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mov.u32 %r4, %tid.x;
mad.lo.s32 %r5, %r2, %r3, %r4;
setp.ge.s32 %p1, %r5, %r1;
@%p1 bra done;
cvta.to.global.u64 %rd2, %rd1;
mul.wide.s32 %rd3, %r5, 4;
add.s64 %rd4, %rd2, %rd3;
ld.global.f32 %f1, [%rd4];
done:
)";

inline Analysis analysed(const ptx::Module& module, const gpu::Launch& launch,
                         const Options& options = {}) {
  auto analysis = analyse(module, launch, options);
  EXPECT_TRUE(analysis) << (analysis ? "" : analysis.error().message);
  return analysis ? std::move(*analysis) : Analysis{};
}

}  // namespace demarc::locality
