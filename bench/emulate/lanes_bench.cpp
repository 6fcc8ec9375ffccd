// Thread instructions per second of the emulator where lanes stay together, exchange values, wait
// for each other, and part: one core, no trace, no checks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "demarc/emulate/emulate.hpp"
#include "demarc/ptx/parser.hpp"

namespace demarc::bench {
namespace {

constexpr int runs = 15;  // per kernel, in turns
constexpr std::uint32_t blocks = 16;
constexpr std::uint32_t threads = 256;

struct LanesCase {
  const char* name;
  const char* body;  // of a loop of 2000 rounds; %r1 the thread, %r5 the round, %r9 the result
};

constexpr std::array<LanesCase, 6> lanes_cases{{
    {"arithmetic",
     "mad.lo.u32 %r9, %r9, 3, %r5;\nxor.b32 %r9, %r9, %r1;\nshr.u32 %r6, %r9, 3;\n"
     "add.u32 %r9, %r9, %r6;\nmad.lo.u32 %r9, %r9, 5, %r1;\nsub.u32 %r9, %r9, %r5;\n"},
    {"shuffles",
     "shfl.sync.bfly.b32 %r6, %r9, 16, 31, -1;\nadd.u32 %r9, %r9, %r6;\n"
     "shfl.sync.bfly.b32 %r6, %r9, 8, 31, -1;\nadd.u32 %r9, %r9, %r6;\n"
     "shfl.sync.bfly.b32 %r6, %r9, 4, 31, -1;\nadd.u32 %r9, %r9, %r6;\n"},
    {"votes",
     "setp.gt.u32 %p1, %r9, %r5;\nvote.sync.ballot.b32 %r6, %p1, -1;\nadd.u32 %r9, %r9, %r6;\n"},
    {"barriers",
     "st.shared.u32 [%r7], %r9;\nbar.sync 0;\nld.shared.u32 %r6, [%r8];\nbar.sync 0;\n"
     "add.u32 %r9, %r9, %r6;\n"},
    {"branches",
     "and.b32 %r6, %r9, 1;\nsetp.eq.u32 %p1, %r6, 0;\n@%p1 bra EVEN;\nmad.lo.u32 %r9, %r9, 3, 1;\n"
     "add.u32 %r9, %r9, %r1;\nbra MEET;\nEVEN:\nshr.u32 %r9, %r9, 1;\nadd.u32 %r9, %r9, "
     "%r5;\nMEET:\n"},
    {"calls",
     "{ .param .b32 a; .param .b32 r;\nst.param.b32 [a], %r9;\ncall (r), step, (a);\n"
     "ld.param.b32 %r9, [r]; }\n"},
}};

std::string text_of(const LanesCase& one) {
  return fmt::format(
      ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 4 .b8 area[1024];\n"
      ".func (.param .b32 r) step(.param .b32 a)\n{{ .reg .b32 %s<3>;\nld.param.b32 %s1, [a];\n"
      "mad.lo.u32 %s2, %s1, 3, 1;\nst.param.b32 [r], %s2; ret; }}\n"
      ".visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<9>;\n.reg .b32 %r<20>;\n.reg .b64 "
      "%rd<9>;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"
      "add.s64 %rd2, %rd1, %rd2;\nshl.b32 %r7, %r1, 2;\nmov.u32 %r8, area;\nadd.u32 %r7, %r7, "
      "%r8;\n"
      "xor.b32 %r8, %r7, 64;\nmov.u32 %r9, %r1;\nmov.u32 %r5, 0;\nROUND:\n{}"
      "add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p2, %r5, 2000;\n@%p2 bra ROUND;\n"
      "st.global.u32 [%rd2], %r9;\nret;\n}}\n",
      one.body);
}

gpu::Launch launch_of_lanes() {
  gpu::Launch launch;
  launch.buffers.resize(1);
  launch.buffers[0].bytes = std::uint64_t{threads} * 4;
  gpu::KernelLaunch kernel;
  kernel.kernel = "k";
  kernel.grid.x = blocks;
  kernel.block.x = threads;
  kernel.arguments.emplace_back(gpu::BufferUse{0, 0});
  launch.kernels.push_back(kernel);
  return launch;
}

Result<void> run_lanes() {
  emulate::Options options;
  options.threads = 1;
  options.check_races = false;
  options.check_uninitialised = false;
  std::array<double, lanes_cases.size()> best{};
  for (int run = 0; run < runs; ++run) {
    for (std::size_t i = 0; i < lanes_cases.size(); ++i) {
      const ptx::ParseResult parsed = ptx::parse(text_of(lanes_cases[i]), lanes_cases[i].name);
      if (!parsed.diagnostics.ok()) return check_failed("{} does not parse", lanes_cases[i].name);
      DEMARC_TRY(const emulate::Outcome outcome,
                 emulate::run(parsed.module, launch_of_lanes(), options));
      if (!outcome.findings.empty())
        return check_failed("{}", emulate::describe(outcome.findings.front(), lanes_cases[i].name));
      const emulate::KernelStatistics& kernel = outcome.kernels.front();
      best[i] = std::max(
          best[i], static_cast<double>(kernel.thread_instructions) / kernel.cpu_seconds * 1e-6);
    }
  }
  fmt::print("million thread instructions/s, one core, {}, best of {} runs in turns\n",
             emulate::to_string(emulate::widest_instruction_set()), runs);
  for (std::size_t i = 0; i < lanes_cases.size(); ++i)
    fmt::print("{:<12} {:>8.0f}\n", lanes_cases[i].name, best[i]);
  return {};
}

}  // namespace
}  // namespace demarc::bench

int main() {
  const auto done = demarc::bench::run_lanes();
  if (done) return 0;
  fmt::print(stderr, "{}\n", done.error().message);
  return 1;
}
