// Traces of Accel-Sim as access streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "demarc/base/files.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/sim/memory/access_stream.hpp"
#include "demarc/sim/memory/emulated.hpp"
#include "paths.hpp"
#include "small_memory.hpp"

namespace demarc::sim::memory::test {
namespace {

using testing::HasSubstr;

// Shared memory, a barrier, a divergent scattered load, a store, a reduction.
constexpr const char* mixed = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry mixed(.param .u64 a, .param .u64 c)
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  .reg .pred %p<2>;
  .shared .align 4 .b8 tile[256];
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [c];
  mov.u32 %r1, %tid.x;
  mov.u32 %r5, %ctaid.x;
  mad.lo.u32 %r1, %r5, 64, %r1;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4];
  and.b32 %r6, %r1, 3;
  setp.eq.u32 %p1, %r6, 1;
  mul.lo.u32 %r7, %r1, %r1;
  and.b32 %r7, %r7, 127;
  mul.wide.u32 %rd6, %r7, 4;
  add.s64 %rd6, %rd1, %rd6;
  @%p1 ld.global.u32 %r3, [%rd6];
  bar.sync 0;
  add.u32 %r4, %r2, %r3;
  st.global.u32 [%rd5], %r4;
  red.global.add.u32 [%rd2], %r2;
  ret;
}
)";

gpu::Launch mixed_launch() {
  gpu::LaunchText text;
  text.ptx = "mixed.ptx";
  text.kernel = "mixed";
  text.grid = "2";
  text.block = "64";
  text.arguments = "buf:512,buf:512";
  return gpu::parse_launch(text).value();
}

// What Accel-Sim's tracer would have written, had it seen the same instructions.
class AccelsimWriter {
 public:
  explicit AccelsimWriter(const emulate::TraceRecorder::Kernel& kernel) : header_(kernel.header) {
    text_ =
        fmt::format("-kernel name = {}\n-grid dim = ({},1,1)\n-block dim = ({},1,1)\n-shmem = {}\n",
                    header_.kernel, header_.grid[0], header_.block[0], header_.shared_bytes);
    for (const auto& block : kernel.blocks) {
      warps_.assign(header_.block[0] / 32, {});
      std::uint32_t warp = 0;
      emulate::visit_events({block.block, true, block.words}, warp, *this);
      text_ += fmt::format("#BEGIN_TB\nthread block = {},0,0\n", block.block);
      for (std::size_t w = 0; w < warps_.size(); ++w) {
        text_ += fmt::format("warp = {}\ninsts = {}\n", w, warps_[w].size());
        for (const std::string& line : warps_[w]) text_ += line + "\n";
      }
      text_ += "#END_TB\n";
    }
  }
  [[nodiscard]] const std::string& text() const { return text_; }

  void run(const emulate::RunEvent& event) {
    for (std::uint32_t i = event.first; i < event.first + event.count; ++i)
      warps_[event.warp].push_back(line_of(i, event.mask));
  }
  void access(const emulate::AccessEvent& event) {
    // Its instruction is in the run that came before.
    for (std::string& line : warps_[event.warp]) {
      if (!line.starts_with(fmt::format("{:04x} ", event.instruction * 16U))) continue;
      line.resize(line.size() - 1);
      line += fmt::format("{} 0", header_.instructions[event.instruction].bytes);
      for (unsigned lane = 0; lane < 32; ++lane)
        if ((event.mask >> lane & 1U) != 0) line += fmt::format(" {:#x}", event.addresses[lane]);
    }
  }

 private:
  std::string line_of(std::uint32_t i, std::uint32_t mask) {
    const std::string& text = header_.instructions[i].text;
    std::vector<std::string> names;
    for (std::size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at + 1)) {
      const std::size_t end = std::min(text.find_first_of(" ,;]+.", at), text.size());
      const auto number =
          numbers_.emplace(text.substr(at, end - at), numbers_.size()).first->second;
      names.push_back(fmt::format("R{}", number));
    }
    const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
    std::string opcode = has("ld.global")    ? "LDG.E"
                         : has("st.global")  ? "STG.E"
                         : has("red.global") ? "RED.E.ADD.STRONG.GPU"
                         : has("bar.sync")   ? "BAR.SYNC.DEFER_BLOCKING"
                                             : "IADD3";
    std::string line = fmt::format("{:04x} {:08x} ", i * 16U, mask);
    const bool loads = opcode == "LDG.E";
    if (loads && text.starts_with('@')) std::swap(names[0], names[1]);  // the guard is read
    line += loads ? fmt::format("1 {} ", names[0]) : "0 ";
    if (loads) names.erase(names.begin());
    line += fmt::format("{} {}", opcode, names.size());
    for (const std::string& name : names) line += " " + name;
    return line + " 0";
  }

  emulate::TraceHeader header_;
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::vector<std::string>> warps_;
  std::string text_;
};

struct Recorded {
  std::filesystem::path accelsim;
  std::filesystem::path ours;
};

Recorded record_mixed() {
  const auto folder = demarc::test::fresh_folder("accelsim_stream");
  const auto parsed = ptx::parse(mixed, "mixed.ptx");
  EXPECT_TRUE(parsed.diagnostics.ok());
  emulate::Options options;
  options.check_uninitialised = false;
  emulate::TraceRecorder recorder;
  emulate::TraceFileWriter writer(folder / "ours.trace");
  EXPECT_TRUE(emulate::run(parsed.module, mixed_launch(), options, &recorder));
  EXPECT_TRUE(emulate::run(parsed.module, mixed_launch(), options, &writer));
  EXPECT_TRUE(
      write_file(folder / "kernel-1.traceg", AccelsimWriter(recorder.kernels().at(0)).text()));
  return {folder / "kernel-1.traceg", folder / "ours.trace"};
}

ClientStatistics simulated(const std::shared_ptr<const PackedLaunch>& launch) {
  Simulation gpu(small_memory());
  const auto client =
      gpu.add_client({"mixed", sms({0, 1, 2}), replay_launch(launch),
                      Translation{Address(gpu::default_base_address),
                                  12,
                                  {PhysicalAddress(0x3000), PhysicalAddress(0x1000)}}});
  EXPECT_TRUE(gpu.run_launches(client, 2));
  return gpu.statistics(client);
}

TEST(AccelsimStreams, what_the_emulator_traced_and_the_same_in_accel_sims_form_are_one_stream) {
  const Recorded files = record_mixed();
  const auto ours = read_access_stream(files.ours);
  const auto theirs = read_access_stream(files.accelsim);
  ASSERT_TRUE(ours) << ours.error().message;
  ASSERT_TRUE(theirs) << theirs.error().message;
  const std::string text = access_text(**theirs);
  EXPECT_EQ(text, access_text(**ours));
  for (const char* step : {"wait ", "\nload ", "\nbarrier ", "\nreduce ", "store "})
    EXPECT_THAT(text, HasSubstr(step));
  const ClientStatistics a = simulated(*ours);
  const ClientStatistics b = simulated(*theirs);
  EXPECT_EQ(a.run_cycles, b.run_cycles);
  EXPECT_GT(a.instructions, 0U);
  EXPECT_EQ(a.instructions, b.instructions);
  EXPECT_EQ(a.sectors(), b.sectors());
  EXPECT_EQ(a.l1_hit_sectors, b.l1_hit_sectors);
  EXPECT_EQ(a.l2_hit_sectors, b.l2_hit_sectors);
  EXPECT_EQ(a.l2_miss_sectors, b.l2_miss_sectors);
}

TEST(AccelsimStreams, a_list_of_kernels_is_one_launch_of_all_of_them) {
  const auto one = read_access_stream(record_mixed().accelsim);
  const Recorded files = record_mixed();
  const auto list = files.accelsim.parent_path() / "kernelslist.g";
  ASSERT_TRUE(write_file(list, "MemcpyHtoD,0x1000,512\nkernel-1.traceg\nkernel-1.traceg\n"));
  const auto both = read_access_stream(list);
  ASSERT_TRUE(one && both);
  EXPECT_EQ(access_text(**both), access_text(**one) + access_text(**one));
}

TEST(AccelsimStreams, a_trace_without_some_of_its_blocks_is_refused) {
  const auto path = demarc::test::fresh_folder("accelsim_part") / "part.trace";
  emulate::TraceFileWriter writer(path);
  emulate::TraceHeader header;
  header.kernel = "part";
  header.grid = {2, 1, 1};
  ASSERT_TRUE(writer.begin_kernel(header));
  ASSERT_TRUE(writer.consume({0, true, {}}));
  ASSERT_TRUE(writer.end_kernel());
  ASSERT_TRUE(writer.end());
  const auto read = read_access_stream(path);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message,
            path.string() + ": kernel 'part': the trace has 1 of its 2 blocks");
}

TEST(AccelsimStreams, a_warp_that_its_block_does_not_have_is_refused) {
  const auto path = demarc::test::fresh_folder("accelsim_warp") / "warp.trace";
  emulate::TraceFileWriter writer(path);
  emulate::TraceHeader header;
  header.kernel = "k";
  header.block = {32, 1, 1};
  header.instructions.resize(1);
  ASSERT_TRUE(writer.begin_kernel(header));
  const std::uint64_t words[] = {
      emulate::trace_detail::head(emulate::trace_detail::kind_warp, 7, ~0U),
      emulate::trace_detail::head(emulate::trace_detail::kind_run, 0, ~0U), 1};
  ASSERT_TRUE(writer.consume({0, true, words}));
  ASSERT_TRUE(writer.end_kernel());
  ASSERT_TRUE(writer.end());
  const auto read = read_access_stream(path);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("kernel 'k', block 0: warp 7 of 1"));
}

TEST(AccelsimStreams, errors_name_file_and_line) {
  const auto path = demarc::test::fresh_folder("accelsim_error") / "kernel-1.traceg";
  ASSERT_TRUE(write_file(path, "-kernel name = k\n-grid dim = (1,1)\n"));
  const auto read = read_access_stream(path);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr(path.string() + ":2: "));
}

}  // namespace
}  // namespace demarc::sim::memory::test
