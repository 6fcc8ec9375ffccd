// Where generic addresses lead: which space they are of, and the way there and back.
#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::words_of;

// What `body` leaves in %rd9 of thread 0.
std::uint64_t result_of(const std::string& body) {
  const auto outcome =
      run_text(kernel_of(".const .align 8 .b8 table[16];\n.global .align 8 .b8 wide[16];\n",
                         ".shared .align 8 .b8 tile[16];\n.local .align 8 .b8 own[16];\n" + body +
                             "\nst.global.u64 [%rd2], %rd9;"),
               launch_of(1, 1, 8));
  EXPECT_TRUE(outcome) << body << ": " << outcome.error().message;
  return outcome ? words_of(*outcome)[0] : 0;
}

TEST(Spaces, every_generic_address_is_of_its_own_and_of_no_other) {
  const std::vector<std::pair<std::string, std::string>> addresses{
      {"shared", "mov.u64 %rd3, tile;\ncvta.shared.u64 %rd4, %rd3;\nadd.u64 %rd4, %rd4, 15;"},
      {"local", "mov.u64 %rd3, own;\ncvta.local.u64 %rd4, %rd3;\nadd.u64 %rd4, %rd4, 15;"},
      {"const", "mov.u64 %rd3, table;\ncvta.const.u64 %rd4, %rd3;\nadd.u64 %rd4, %rd4, 15;"},
      {"global", "mov.u64 %rd3, wide;\ncvta.global.u64 %rd4, %rd3;\nadd.u64 %rd4, %rd4, 15;"},
      {"global", "mov.u64 %rd4, %rd1;"}};
  for (const auto& [space, address] : addresses) {
    for (const std::string asked : {"shared", "local", "const", "global"}) {
      EXPECT_EQ(
          result_of(address + "\nisspacep." + asked + " %p1, %rd4;\nselp.b64 %rd9, 1, 0, %p1;"),
          space == asked ? 1U : 0U)
          << address << " " << asked;
    }
  }
}

TEST(Spaces, the_way_to_a_generic_address_and_back_ends_where_it_began) {
  for (const std::string space : {"shared", "local", "const", "global"}) {
    EXPECT_EQ(result_of("mov.u64 %rd3, 8;\ncvta." + space + ".u64 %rd4, %rd3;\ncvta.to." + space +
                        ".u64 %rd9, %rd4;"),
              8U)
        << space;
  }
}

// Every second thread reads from the other of two memories, whichever the first one reads from.
TEST(Spaces, threads_of_a_warp_reach_different_memories_with_one_access) {
  const std::string fill =
      "mov.u64 %rd3, tile;\nst.shared.u64 [%rd3+8], 11;\ncvta.shared.u64 %rd4, %rd3;\n"
      "mov.u64 %rd3, own;\nst.local.u64 [%rd3+8], 22;\ncvta.local.u64 %rd5, %rd3;\n"
      "mov.u64 %rd3, table;\ncvta.const.u64 %rd6, %rd3;\n"
      "mov.b64 %rd3, out;\ncvta.param.u64 %rd7, %rd3;\nsub.u64 %rd7, %rd7, 8;\n"
      "mov.u64 %rd8, wide;\ncvta.global.u64 %rd8, %rd8;\n"
      "and.b32 %r5, %r1, 1;\nsetp.eq.u32 %p1, %r5, 0;\n";
  std::vector<std::pair<std::string, std::uint64_t>> targets{
      {"%rd4", 11}, {"%rd5", 22}, {"%rd6", 33}, {"%rd7", 0}, {"%rd8", 55}};
  targets[3].second = gpu::default_base_address;  // the parameter itself
  for (const auto& [even, in_even] : targets) {
    for (const auto& [odd, in_odd] : targets) {
      const auto outcome =
          run_text(kernel_of(".const .align 8 .u64 table[2] = {0, 33};\n"
                             ".global .align 8 .u64 wide[2] = {0, 55};\n",
                             ".shared .align 8 .b8 tile[16];\n.local .align 8 .b8 own[16];\n" +
                                 fill + "selp.b64 %rd9, " + even + ", " + odd +
                                 ", %p1;\nld.u64 %rd10, [%rd9+8];\nst.global.u64 [%rd2], %rd10;"),
                   launch_of(1, 32, 256));
      ASSERT_TRUE(outcome) << outcome.error().message;
      ASSERT_TRUE(outcome->findings.empty())
          << even << " " << odd << describe(outcome->findings[0], "t.ptx");
      const auto words = words_of(*outcome);
      for (std::size_t i = 0; i < words.size(); ++i) {
        EXPECT_EQ(words[i], i % 2 == 0 ? in_even : in_odd) << even << " " << odd << " " << i;
      }
    }
  }
}

TEST(Spaces, a_block_without_a_cluster_maps_its_shared_memory_to_itself_and_has_rank_0) {
  EXPECT_EQ(result_of("mov.u64 %rd3, tile;\nst.shared.u64 [%rd3], 12345;\n"
                      "mapa.shared::cluster.u64 %rd4, %rd3, 0;\nld.shared.u64 %rd9, [%rd4];"),
            12345U);
  EXPECT_EQ(result_of("mov.u64 %rd3, tile;\nst.shared.u64 [%rd3], 12345;\n"
                      "cvta.shared.u64 %rd4, %rd3;\nmapa.u64 %rd5, %rd4, 0;\nld.u64 %rd9, [%rd5];"),
            12345U);
  EXPECT_EQ(result_of("mov.u32 %r5, 7;\nmov.u64 %rd3, tile;\ncvta.shared.u64 %rd4, %rd3;\n"
                      "getctarank.u64 %r5, %rd4;\ncvt.u64.u32 %rd9, %r5;"),
            0U);
}

TEST(Spaces, the_system_reserves_no_shared_memory) {
  std::string body = "mov.u32 %r2, 0;\n";
  for (const char* which : {"begin", "end", "cap"})
    body += fmt::format("mov.b32 %r3, %reserved_smem_offset_{};\nor.b32 %r2, %r2, %r3;\n", which);
  const auto outcome =
      run_text(kernel_of("", body + "cvt.u64.u32 %rd3, %r2;\nst.global.u64 [%rd2], %rd3;"),
               launch_of(1, 1, 8));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(words_of(*outcome)[0], 0U);
}

}  // namespace
}  // namespace demarc::emulate
