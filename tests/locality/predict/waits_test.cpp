// Tests where a warp is found to wait for its loads, in kernels written for it.
#include "predict/waits.hpp"

#include <gtest/gtest.h>

#include "demarc/locality/analyse.hpp"
#include "demarc/ptx/parser.hpp"

namespace demarc::locality {
namespace {

// By access, in the order of the text: a w where the warp waits, else a dot.
std::string waits_in(const std::string& body) {
  const std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .pred %p<3>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<9>;
  .shared .align 4 .b8 tile[64];
  ld.param.u64 %rd1, [p];
  cvta.to.global.u64 %rd2, %rd1;
)" + body + "  ret;\n}\n";
  const auto module = ptx::parse_whole(text, "k.ptx");
  if (!module) return module.error().message;
  gpu::Launch launch;
  launch.buffers.push_back({.name = "p", .bytes = 4096, .fill = {}});
  gpu::KernelLaunch& kernel = launch.kernels.emplace_back();
  kernel.kernel = "k";
  kernel.grid = kernel.block = {1, 1, 1};
  kernel.arguments.push_back(gpu::BufferUse{});
  const auto found = collect_runs(*module, launch, 0, Force::automatic, 1);
  if (!found) return found.error().message;
  std::string out;
  for (const Access& access : found->runs.accesses) out += access.waits ? 'w' : '.';
  return out;
}

TEST(Waits, loads_of_a_block_are_under_way_together_and_the_last_waits_for_all) {
  EXPECT_EQ(waits_in("ld.global.u32 %r1, [%rd2];\n ld.global.u32 %r2, [%rd2+4];\n"
                     "add.u32 %r3, %r1, %r2;\n st.global.u32 [%rd2+8], %r3;\n"),
            ".w.");
}

TEST(Waits, a_load_behind_a_use_is_moved_before_it) {
  EXPECT_EQ(waits_in("ld.global.u32 %r1, [%rd2];\n add.u32 %r3, %r1, 1;\n"
                     "ld.global.u32 %r2, [%rd2+4];\n add.u32 %r3, %r3, %r2;\n"
                     "st.global.u32 [%rd2+8], %r3;\n"),
            ".w.");
}

TEST(Waits, an_address_that_comes_from_a_load_waits_for_it) {
  EXPECT_EQ(waits_in("ld.global.u32 %r1, [%rd2];\n and.b32 %r2, %r1, 4;\n"
                     "cvt.u64.u32 %rd3, %r2;\n add.u64 %rd4, %rd2, %rd3;\n"
                     "ld.global.u32 %r3, [%rd4];\n st.global.u32 [%rd2+8], %r3;\n"),
            "ww.");
}

TEST(Waits, a_register_that_is_written_anew_is_waited_for_no_more) {
  EXPECT_EQ(waits_in("ld.global.u32 %r1, [%rd2];\n mov.u32 %r1, 4;\n cvt.u64.u32 %rd3, %r1;\n"
                     "add.u64 %rd4, %rd2, %rd3;\n ld.global.u32 %r3, [%rd4];\n"),
            ".w");
}

TEST(Waits, a_store_of_other_data_holds_nobody_and_one_of_loaded_data_does) {
  EXPECT_EQ(waits_in("ld.global.u32 %r1, [%rd2];\n st.global.u32 [%rd2+8], 7;\n"
                     "ld.global.u32 %r2, [%rd2+4];\n"),
            "..w");
  EXPECT_EQ(waits_in("ld.global.u32 %r1, [%rd2];\n st.global.u32 [%rd2+8], %r1;\n"
                     "ld.global.u32 %r2, [%rd2+4];\n"),
            "w.w");
}

TEST(Waits, no_load_is_moved_over_a_barrier_or_a_fence) {
  for (const std::string between : {"bar.sync 0;\n", "membar.gl;\n"}) {
    EXPECT_EQ(waits_in("ld.global.u32 %r1, [%rd2];\n" + between + "ld.global.u32 %r2, [%rd2+4];\n"),
              "ww")
        << between;
  }
}

TEST(Waits, a_block_of_code_that_ends_waits_for_its_loads) {
  EXPECT_EQ(waits_in("ld.global.u32 %r1, [%rd2];\n mov.u32 %r4, %tid.x;\n"
                     "setp.eq.u32 %p1, %r4, 7;\n @%p1 bra L;\n"
                     "ld.global.u32 %r2, [%rd2+4];\n L:\n"),
            "ww");
}

TEST(Waits, an_atomic_waits_if_its_result_is_read) {
  EXPECT_EQ(waits_in("atom.global.add.u32 %r1, [%rd2], 1;\n red.global.add.u32 [%rd2+4], 1;\n"
                     "atom.global.add.u32 %r2, [%rd2+8], 1;\n st.global.u32 [%rd2+12], %r2;\n"),
            "..w.");
}

}  // namespace
}  // namespace demarc::locality
