// Small kernels for tests: a body between a fixed frame, run on one output buffer.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "demarc/emulate/emulate.hpp"
#include "demarc/ptx/parser.hpp"

namespace demarc::emulate::test {

// %rd1 is the output buffer, %r1 the thread's number in the block, %rd2 the address of its 8-byte
// place.
inline std::string kernel_of(const std::string& declarations, const std::string& body) {
  return ".version 8.3\n.target sm_80\n.address_size 64\n" + declarations +
         ".visible .entry k(.param .u64 out)\n{\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 "
         "%r<30>;\n.reg .b64 %rd<30>;\n"
         ".reg .f32 %f<9>;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, "
         "%r1, 8;\nadd.s64 %rd2, %rd1, %rd2;\n" +
         body + "\nret;\n}\n";
}

// A declaration of it, for kernel_of().
inline constexpr const char* shared_area = ".shared .align 16 .b8 area[512];\n";

inline gpu::Launch launch_of(std::uint32_t grid, std::uint32_t block, std::uint64_t bytes) {
  gpu::Launch launch;
  gpu::Buffer buffer;
  buffer.bytes = bytes;
  buffer.output = true;
  launch.buffers.push_back(buffer);
  gpu::KernelLaunch kernel;
  kernel.kernel = "k";
  kernel.grid.x = grid;
  kernel.block.x = block;
  kernel.arguments.emplace_back(gpu::BufferUse{0, 0});
  launch.kernels.push_back(kernel);
  return launch;
}

inline Result<Outcome> run_text(const std::string& text, const gpu::Launch& launch,
                                const Options& options = {}, TraceSink* sink = nullptr) {
  const ptx::ParseResult parsed = ptx::parse(text, "t.ptx");
  if (!parsed.diagnostics.ok())
    return invalid_input("{}", ptx::format(parsed.diagnostics.list.front(), "t.ptx"));
  return run(parsed.module, launch, options, sink);
}

inline std::vector<std::uint64_t> words_of(const Outcome& outcome) {
  std::vector<std::uint64_t> words(outcome.buffers[0].size() / 8);
  std::memcpy(words.data(), outcome.buffers[0].data(), words.size() * 8);
  return words;
}

}  // namespace demarc::emulate::test
