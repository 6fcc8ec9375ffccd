// A random kernel of random_flow.hpp as a launch, and what it leaves in memory: in the emulator and
// by the reference.
#pragma once

#include <fmt/format.h>

#include <cstring>

#include "demarc/emulate/emulate.hpp"
#include "demarc/ptx/parser.hpp"
#include "random_flow.hpp"
#include "thread_reference.hpp"

namespace demarc::emulate::test {

inline gpu::Launch launch_of_flow(const RandomFlow& flow) {
  gpu::Launch launch;
  launch.name = "flow";
  for (const std::uint32_t words : {flow.threads, flow_data_words}) {
    gpu::Buffer buffer;
    buffer.bytes = std::uint64_t{words} * 4;
    buffer.output = true;
    launch.buffers.push_back(buffer);
  }
  gpu::KernelLaunch kernel;
  kernel.kernel = "k";
  kernel.block.x = flow.threads;
  kernel.arguments.emplace_back(gpu::BufferUse{0, 0});
  kernel.arguments.emplace_back(gpu::BufferUse{1, 0});
  launch.kernels.push_back(kernel);
  return launch;
}

inline ThreadReference::Memory memory_of_flow(const RandomFlow& flow) {
  ThreadReference::Memory memory;
  memory.out.resize(flow.threads);
  memory.data.resize(flow_data_words);
  for (std::uint32_t i = 0; i < flow_inputs; ++i) memory.data[i] = i * 2654435761U >> 7;
  return memory;
}

inline gpu::Memory bytes_of(const ThreadReference::Memory& memory) {
  gpu::Memory bytes;
  for (const auto* words : {&memory.out, &memory.data}) {
    bytes.emplace_back(words->size() * 4);
    std::memcpy(bytes.back().data(), words->data(), words->size() * 4);
  }
  return bytes;
}

// Empty: memory is as it was expected; otherwise the first word that is not.
inline std::string flow_difference(const gpu::Memory& expected, const gpu::Memory& found) {
  for (std::size_t b = 0; b < expected.size(); ++b) {
    for (std::size_t at = 0; at + 4 <= expected[b].size(); at += 4) {
      std::uint32_t want = 0;
      std::uint32_t got = 0;
      std::memcpy(&want, expected[b].data() + at, 4);
      std::memcpy(&got, found[b].data() + at, 4);
      if (want != got)
        return fmt::format("word {} of {}: {} in place of {}", at / 4, b == 0 ? "out" : "data", got,
                           want);
    }
  }
  return {};
}

// What the reference leaves. An error: the kernel is not one that always ends.
inline Result<gpu::Memory> reference_of_flow(const RandomFlow& flow, std::uint64_t order) {
  ThreadReference::Memory memory = memory_of_flow(flow);
  const std::string wrong = ThreadReference(flow.text, flow.threads, order).run(memory);
  if (!wrong.empty()) return invalid_input("the reference: {}", wrong);
  return bytes_of(memory);
}

inline Result<gpu::Memory> emulated_flow(const RandomFlow& flow) {
  const ptx::ParseResult parsed = ptx::parse(flow.text, "flow.ptx");
  if (!parsed.diagnostics.ok())
    return invalid_input("{}", ptx::format(parsed.diagnostics.list.front(), "flow.ptx"));
  Options options;
  options.threads = 1;
  DEMARC_TRY(Outcome outcome, run_on(parsed.module, launch_of_flow(flow),
                                     bytes_of(memory_of_flow(flow)), options, nullptr));
  if (!outcome.findings.empty())
    return invalid_input("{}", describe(outcome.findings.front(), "flow.ptx"));
  return std::move(outcome.buffers);
}

// Empty: the emulator leaves what the reference does.
inline std::string compare_flow(const RandomFlow& flow, std::uint64_t order) {
  const auto expected = reference_of_flow(flow, order);
  if (!expected) return expected.error().message;
  const auto found = emulated_flow(flow);
  if (!found) return found.error().message;
  return flow_difference(*expected, *found);
}

}  // namespace demarc::emulate::test
