// Locality maps against their targets, beside plain enumeration (a hash map of addresses) of the
// same accesses in the same run: figure, target, baseline, ratio.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>

#include "../../tests/locality/naive_maps.hpp"
#include "demarc/locality/analyse.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/workload/workload.hpp"

namespace {

using namespace demarc;
using namespace demarc::locality;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// One thousand blocks of 1024 threads, twenty loads of a stencil-like kernel.
std::string synthetic_kernel() {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry synthetic(.param .u64 in, "
      ".param .u32 n)\n{\n.reg .pred %p<2>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f32 "
      "%f<3>;\n"
      "ld.param.u64 %rd1, [in];\nld.param.u32 %r1, [n];\nmov.u32 %r2, %ctaid.x;\n"
      "mov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\nmad.lo.s32 %r5, %r2, %r3, %r4;\n"
      "setp.ge.s32 %p1, %r5, %r1;\n@%p1 bra done;\nmul.wide.s32 %rd2, %r5, 4;\n"
      "add.s64 %rd3, %rd1, %rd2;\n";
  for (int load = 0; load < 20; ++load)
    text += fmt::format("ld.global.f32 %f1, [%rd3+{}];\n", load * 4096);
  return text + "done:\nret;\n}\n";
}

std::string one_word_kernel() {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 in)\n{\n"
         ".reg .b32 %r<2>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [in];\n"
         "ld.global.u32 %r1, [%rd1];\nret;\n}\n";
}

// The most memory the process has held so far.
double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

struct Timed {
  double analysis_s = 0;
  double naive_s = 0;
  std::uint64_t accesses = 0;
  Analysis analysis;
  bool equal = true;
};

int failures = 0;
bool missed = false;  // a target, or maps that differ

void measure(const char* name, const std::string& ptx, const gpu::Launch& launch,
             const Options& options, double target_s, bool with_naive) {
  const ptx::ParseResult parsed = ptx::parse(ptx, name);
  Timed best;
  best.analysis_s = 1e9;
  const int rounds = target_s > 5 ? 1 : 5;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    auto analysis = analyse(parsed.module, launch, options);
    const double taken = seconds_since(start);
    if (!analysis) {
      fmt::print("{}: {}\n", name, analysis.error().message);
      ++failures;
      return;
    }
    if (taken < best.analysis_s) {
      best.analysis_s = taken;
      best.analysis = std::move(*analysis);
    }
  }
  for (const Access& access : best.analysis.all.accesses) best.accesses += access.executed;
  std::string baseline = "baseline not run";
  if (with_naive) {
    const AccessRuns loads = only(best.analysis.all, AccessKind::load);
    const auto start = std::chrono::steady_clock::now();
    const LocalityMap inter = naive::inter(loads, options.granularity, options.count);
    const LocalityMap intra =
        naive::intra(loads, best.analysis.intra.map_block, options.granularity, options.count);
    best.naive_s = seconds_since(start);
    best.equal = inter == best.analysis.inter.map && intra == best.analysis.intra.map;
    baseline = fmt::format(
        "enumeration {:.3f} s (inter map and one intra map), {:.1f} times as long, "
        "maps {}",
        best.naive_s, best.naive_s / best.analysis_s, best.equal ? "equal" : "DIFFERENT");
  }
  const bool reached = best.analysis_s <= target_s && best.equal;
  if (!reached) missed = true;
  fmt::print(
      "{}: {} threads, {} accesses, method {}: {:.4f} s (target {} s: {}), {:.0f} MiB so "
      "far; {}\n",
      name, best.analysis.all.blocks() * std::uint64_t{best.analysis.all.threads()}, best.accesses,
      to_string(best.analysis.method), best.analysis_s, target_s, reached ? "reached" : "MISSED",
      peak_mib(), baseline);
  std::fflush(stdout);
}

void measure_bundled(const char* name, const char* kernel, const gpu::LaunchFileOptions& scale,
                     double target_s, bool with_naive) {
  const auto launch = workload::instance(name, scale);
  if (!launch) {
    fmt::print("{}: {}\n", name, launch.error().message);
    ++failures;
    return;
  }
  const auto text = workload::ptx_text(*launch, 90);
  Options options;
  options.kernel = kernel;
  options.threads = 1;
  measure(name, *text, *launch, options, target_s, with_naive);
}

}  // namespace

int main() {
  fmt::print(
      "One core; best of five for the closed forms. The time holds parsed module to maps, "
      "indices and coalescing.\n");
  measure_bundled("hotspot", "calculate_temp", {}, 0.3, true);
  const auto launch = gpu::parse_launch({.ptx = "synthetic",
                                         .kernel = "synthetic",
                                         .grid = "1024",
                                         .block = "1024",
                                         .arguments = "buf:8388608,i32:1048576"});
  measure("synthetic, 20 loads", synthetic_kernel(), *launch, {}, 1, true);
  // A sixteenth, to see how the two grow.
  const auto part = gpu::parse_launch({.ptx = "synthetic",
                                       .kernel = "synthetic",
                                       .grid = "64",
                                       .block = "1024",
                                       .arguments = "buf:8388608,i32:1048576"});
  measure("synthetic, a sixteenth", synthetic_kernel(), *part, {}, 1, true);
  measure_bundled("bfs", "bfs_expand", {.scale = "1m", .parameters = {}}, 30, true);
  // Five times the synthetic launch, every address from the emulator: 10^8 accesses.
  const auto large = gpu::parse_launch({.ptx = "synthetic",
                                        .kernel = "synthetic",
                                        .grid = "4883",
                                        .block = "1024",
                                        .arguments = "buf:20082688,i32:5000192"});
  Options emulated;
  emulated.force = Force::emulated;
  emulated.threads = 1;
  measure("synthetic, emulated", synthetic_kernel(), *large, emulated, 60, false);
  // A million threads that all read one word: every pair of the 32 768 blocks shares.
  const auto shared = gpu::parse_launch(
      {.ptx = "one word", .kernel = "k", .grid = "32768", .block = "32", .arguments = "buf:4"});
  Options indices;
  indices.max_cells = std::uint64_t{1} << 18U;
  measure("one word for all", one_word_kernel(), *shared, indices, 1, false);
  if (failures > 0) return 1;
  return missed ? 3 : 0;
}
