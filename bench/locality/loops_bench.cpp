// Ten million threads with loops: time and memory against their limits. Beside it the same kernel
// with some thousand threads, by closed runs and by the same runs written out trip by trip. Each
// case runs in a process of its own, whose peak of memory is taken.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <map>

#include "demarc/locality/analyse.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/workload/workload.hpp"

namespace {

using namespace demarc;
using namespace demarc::locality;

constexpr double max_seconds = 10;
constexpr double max_mib = 1024;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string kernel_text(const std::string& parameters, const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(" + parameters +
         ")\n{\n.reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n.reg .f32 %f<20>;\n" +
         body + "done:\nret;\n}\n";
}

// One of atax's kernels: A, a vector and tmp, of nx rows and ny columns; %r6 is the thread, %rd4
// four times it.
std::string atax_text(const std::string& body) {
  return kernel_text(
      ".param .u64 a, .param .u64 vector, .param .u64 tmp, .param .u32 nx, .param .u32 ny",
      R"(
ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [vector];
ld.param.u64 %rd3, [tmp];
ld.param.u32 %r1, [nx];
ld.param.u32 %r2, [ny];
mov.u32 %r3, %ctaid.x;
mov.u32 %r4, %ntid.x;
mov.u32 %r5, %tid.x;
mad.lo.s32 %r6, %r3, %r4, %r5;
mul.wide.s32 %rd4, %r6, 4;
)" + body);
}

// PolyBench's atax: tmp[i] = sum of A[i][j] x[j], a thread for each row.
std::string atax_rows() {
  return atax_text(R"(
setp.ge.s32 %p1, %r6, %r1;
@%p1 bra done;
add.s64 %rd5, %rd3, %rd4;
mul.wide.s32 %rd6, %r6, %r2;
shl.b64 %rd7, %rd6, 2;
add.s64 %rd8, %rd1, %rd7;
mov.u32 %r7, 0;
again:
ld.global.f32 %f1, [%rd8];
ld.global.f32 %f2, [%rd2];
ld.global.f32 %f3, [%rd5];
fma.rn.f32 %f3, %f1, %f2, %f3;
st.global.f32 [%rd5], %f3;
add.s64 %rd8, %rd8, 4;
add.s64 %rd2, %rd2, 4;
add.s32 %r7, %r7, 1;
setp.lt.s32 %p2, %r7, %r2;
@%p2 bra again;
)");
}

// y[j] = sum of A[i][j] tmp[i], a thread for each column.
std::string atax_columns() {
  return atax_text(R"(
setp.ge.s32 %p1, %r6, %r2;
@%p1 bra done;
add.s64 %rd5, %rd2, %rd4;
add.s64 %rd8, %rd1, %rd4;
mul.wide.s32 %rd9, %r2, 4;
mov.u32 %r7, 0;
again:
ld.global.f32 %f1, [%rd8];
ld.global.f32 %f2, [%rd3];
ld.global.f32 %f3, [%rd5];
fma.rn.f32 %f3, %f1, %f2, %f3;
st.global.f32 [%rd5], %f3;
add.s64 %rd8, %rd8, %rd9;
add.s64 %rd3, %rd3, 4;
add.s32 %r7, %r7, 1;
setp.lt.s32 %p2, %r7, %r1;
@%p2 bra again;
)");
}

// out[y][x] = sum of in[y + i][x + j] w[i][j], i and j below 5, in two loops.
std::string convolution() {
  return kernel_text(".param .u64 in, .param .u64 w, .param .u64 out, .param .u32 n, .param .u32 m",
                     R"(
ld.param.u64 %rd1, [in];
ld.param.u64 %rd2, [w];
ld.param.u64 %rd3, [out];
ld.param.u32 %r1, [n];
mov.u32 %r3, %ctaid.x;
mov.u32 %r4, %ntid.x;
mov.u32 %r5, %tid.x;
mad.lo.s32 %r6, %r3, %r4, %r5;
mov.u32 %r3, %ctaid.y;
mov.u32 %r4, %ntid.y;
mov.u32 %r5, %tid.y;
mad.lo.s32 %r7, %r3, %r4, %r5;
add.s32 %r8, %r1, -4;
setp.ge.s32 %p1, %r6, %r8;
@%p1 bra done;
setp.ge.s32 %p1, %r7, %r8;
@%p1 bra done;
mov.u32 %r9, 0;
rows:
add.s32 %r10, %r7, %r9;
mad.lo.s32 %r11, %r10, %r1, %r6;
mul.wide.s32 %rd4, %r11, 4;
add.s64 %rd5, %rd1, %rd4;
mul.lo.s32 %r12, %r9, 5;
mul.wide.s32 %rd6, %r12, 4;
add.s64 %rd7, %rd2, %rd6;
mov.u32 %r13, 0;
columns:
ld.global.f32 %f1, [%rd5];
ld.global.f32 %f2, [%rd7];
fma.rn.f32 %f3, %f1, %f2, %f3;
add.s64 %rd5, %rd5, 4;
add.s64 %rd7, %rd7, 4;
add.s32 %r13, %r13, 1;
setp.ne.s32 %p2, %r13, 5;
@%p2 bra columns;
add.s32 %r9, %r9, 1;
setp.ne.s32 %p3, %r9, 5;
@%p3 bra rows;
mad.lo.s32 %r11, %r7, %r1, %r6;
mul.wide.s32 %rd4, %r11, 4;
add.s64 %rd5, %rd3, %rd4;
st.global.f32 [%rd5], %f3;
)");
}

bool missed = false;

// `work` prints and says whether it did what it should.
void in_own_process(const std::function<bool()>& work, bool limited) {
  std::fflush(stdout);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    const bool good = work();
    std::fflush(stdout);
    _exit(good ? 0 : 1);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  const double mib = static_cast<double>(usage.ru_maxrss) / 1024;
  const double taken = seconds_since(start);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  const double cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  const bool good = status == 0 && (!limited || (taken <= max_seconds && mib <= max_mib));
  missed = missed || !good;
  fmt::print("{:.2f} s ({:.2f} s of a core), {:.0f} MiB{}\n", taken, cpu, mib,
             !limited ? ""
                      : fmt::format(" (limits {} s, {} MiB: {})", max_seconds, max_mib,
                                    good ? "kept" : "MISSED"));
}

Options indices() {
  Options options;
  options.max_cells = 0;
  return options;
}

void measure_large(const char* name, const ptx::Module& module, const gpu::Launch& launch) {
  in_own_process(
      [&] {
        const auto analysis = analyse(module, launch, indices());
        if (!analysis) {
          fmt::print("{}: {}\n", name, analysis.error().message);
          return false;
        }
        std::uint64_t accesses = 0;
        for (const Access& access : analysis->all.accesses) accesses += access.executed;
        fmt::print("{}: {} threads, {:.3g} accesses, {} runs, {}: ", name,
                   analysis->all.blocks() * std::uint64_t{analysis->all.threads()},
                   static_cast<double>(accesses), analysis->all.runs.size(),
                   to_string(analysis->method));
        return analysis->method == Method::symbolic;
      },
      true);
}

// The same indices from every trip.
void measure_small(const ptx::Module& module, const gpu::Launch& launch) {
  const auto closed = collect_runs(module, launch, 0, Force::symbolic);
  if (!closed) {
    missed = true;
    fmt::print("{}\n", closed.error().message);
    return;
  }
  const auto measured = [](AccessRuns runs) {
    count_requests(runs);
    const AccessRuns loads = only(runs, AccessKind::load);
    return std::pair(inter_map(loads, Granularity::element, Count::accesses, 0),
                     intra_map(loads, Granularity::element, Count::accesses));
  };
  const auto start = std::chrono::steady_clock::now();
  const auto [inter, intra] = measured(closed->runs);
  const double taken = seconds_since(start);
  in_own_process(
      [&, &inter = inter, &intra = intra] {
        const auto [plain_inter, plain_intra] = measured(expanded(closed->runs));
        const bool equal = inter.degree_of_sharing == plain_inter.degree_of_sharing &&
                           inter.places == plain_inter.places && intra.map == plain_intra.map;
        fmt::print("  {} threads: closed {:.3f} s; trip by trip, indices {}: ",
                   closed->runs.blocks() * std::uint64_t{closed->runs.threads()}, taken,
                   equal ? "equal" : "DIFFERENT");
        return equal;
      },
      false);
}

struct Case {
  const char* name;
  std::string text;
  gpu::Launch large;
  gpu::Launch small;
};

gpu::Launch launch_of(const std::string& grid, const std::string& block,
                      const std::string& arguments) {
  return *gpu::parse_launch(
      {.ptx = "k.ptx", .kernel = "k", .grid = grid, .block = block, .arguments = arguments});
}

using Sizes = std::map<std::string, std::int64_t>;
Case bundled(const char* name, const Sizes& large, const Sizes& small) {
  Case one{
      name, {}, *workload::instance(name, {{}, large}), *workload::instance(name, {{}, small})};
  one.text = *workload::ptx_text(one.large, 90);
  return one;
}

}  // namespace

int main() {
  fmt::print("Parsed module to indices and coalescing; loads, elements, accesses.\n");
  const std::vector<Case> cases{
      bundled("matmul_naive", {{"n", 3168}}, {{"n", 64}}),
      bundled("stencil2d", {{"width", 3200}, {"height", 3200}}, {{"width", 64}, {"height", 64}}),
      {"atax, rows of 4096", atax_rows(),
       launch_of("39063", "256", "buf:163840000000,buf:16384,buf:40000000,i32:10000000,i32:4096"),
       launch_of("16", "256", "buf:67108864,buf:16384,buf:16384,i32:4096,i32:4096")},
      {"atax, columns of 4096", atax_columns(),
       launch_of("39063", "256", "buf:163840000000,buf:40000000,buf:16384,i32:4096,i32:10000000"),
       launch_of("16", "256", "buf:67108864,buf:16384,buf:16384,i32:4096,i32:4096")},
      bundled("conv2d", {{"rows", 3200}, {"columns", 3200}}, {{"rows", 64}, {"columns", 64}}),
      {"convolution 5x5 in loops", convolution(),
       launch_of("100,400", "32,8", "buf:40960000,buf:100,buf:40960000,i32:3200,i32:0"),
       launch_of("2,8", "32,8", "buf:16384,buf:100,buf:16384,i32:64,i32:0")}};
  for (const Case& one : cases) {
    const ptx::ParseResult parsed = ptx::parse(one.text, "k.ptx");
    measure_large(one.name, parsed.module, one.large);
    measure_small(parsed.module, one.small);
  }
  return missed ? 3 : 0;
}
