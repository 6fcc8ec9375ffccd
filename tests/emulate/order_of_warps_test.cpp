// Which accesses to shared memory race where warps are ordered by more than barriers of the whole
// block: each right kernel stands beside those that lack one thing.
#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;

constexpr const char* order_declarations =
    ".shared .align 8 .b8 data[128];\n.shared .align 4 .u32 flag;\n.shared .align 4 .u32 other;\n"
    ".shared .align 8 .b64 phase;\n";

constexpr const char* write_data = "st.shared.u32 [%r4], %r1;\n";
constexpr const char* read_data = "ld.shared.u32 %r6, [%r5];\n";

std::string wait_for_one(const std::string& load) {
  static int number = 0;
  const std::string label = "SPIN" + std::to_string(++number);
  return label + ":\n" + load + " %r7, [%r20];\nsetp.eq.u32 %p2, %r7, 0;\n@%p2 bra " + label +
         ";\n";
}

std::string locked(const std::string& taking, const std::string& giving) {
  static int number = 0;
  const std::string label = "LOCK" + std::to_string(++number);
  return "@%p3 bra FREE" + label + ";\n" + label +
         ":\natom.shared.cas.b32 %r7, [%r20], 0, 1;\nsetp.ne.u32 %p2, %r7, 0;\n@%p2 bra " + label +
         ";\n" + taking + "ld.shared.u32 %r6, [data];\nadd.u32 %r6, %r6, 1;\n" +
         "st.shared.u32 [data], %r6;\n" + giving + "atom.shared.exch.b32 %r7, [%r20], 0;\nFREE" +
         label + ":\n";
}

// Warp 0 does `first`, warp 1 `second`, warp 2 `third`. %r4 is a word for each lane, %r5 another
// lane's; the flags are 0, and the mbarrier expects 32 arrivals.
struct OrderCase {
  std::string name;
  bool races = false;
  std::string first, second, third;
};

std::vector<OrderCase> order_cases() {
  const std::string w = write_data;
  const std::string r = read_data;
  const std::string set = "st.relaxed.cta.shared.u32 [%r20], 1;\n";
  const std::string release = "st.release.cta.shared.u32 [%r20], 1;\n";
  const std::string fence = "fence.acq_rel.cta;\n";
  const auto relaxed = [] { return wait_for_one("ld.relaxed.cta.shared.u32"); };
  const auto acquire = [] { return wait_for_one("ld.acquire.cta.shared.u32"); };
  const std::string arrive = "mbarrier.arrive.shared.b64 %rd7, [phase];\n";
  const std::string wait =
      "WAIT:\nmbarrier.test_wait.parity.shared.b64 %p2, [phase], 0;\n@!%p2 bra WAIT;\n";
  const std::string next = "mov.u32 %r20, other;\n";
  return {
      {"a_release_that_is_acquired", false, w + release, acquire() + r, ""},
      {"a_release_of_the_whole_gpu", false, w + "st.release.gpu.shared.u32 [%r20], 1;\n",
       wait_for_one("ld.acquire.sys.shared.u32") + r, ""},
      {"a_release_through_a_generic_address", false, w + "st.release.cta.u32 [%rd8], 1;\n",
       acquire() + r, ""},
      {"a_flag_that_is_not_released", true, w + set, acquire() + r, ""},
      {"a_flag_that_is_not_acquired", true, w + release, relaxed() + r, ""},
      {"a_flag_that_is_released_before_the_data", true, release + w, acquire() + r, ""},
      {"data_that_is_read_before_the_flag", true, w + release, r + acquire(), ""},
      {"fences_around_a_relaxed_flag", false, w + fence + set, relaxed() + fence + r, ""},
      {"fences_around_a_volatile_flag", false,
       w + "membar.cta;\nst.volatile.shared.u32 [flag], 1;\n",
       wait_for_one("ld.volatile.shared.u32") + "membar.cta;\n" + r, ""},
      {"fences_of_all_scopes", false, w + "membar.gl;\n" + set, relaxed() + "fence.sc.sys;\n" + r,
       ""},
      {"no_fence_before_the_flag", true, w + set, relaxed() + fence + r, ""},
      {"no_fence_behind_the_flag", true, w + fence + set, relaxed() + r, ""},
      {"a_fence_before_the_flag_is_read", true, w + fence + set, fence + relaxed() + r, ""},
      {"a_fence_before_the_data", true, fence + w + set, relaxed() + fence + r, ""},
      {"a_fence_that_orders_proxies_alone", true, w + "fence.proxy.alias;\n" + set,
       relaxed() + fence + r, ""},
      {"an_atomic_that_releases", false, w + "atom.release.cta.shared.exch.b32 %r7, [%r20], 1;\n",
       acquire() + r, ""},
      {"an_atomic_that_does_not_release", true, w + "atom.shared.exch.b32 %r7, [%r20], 1;\n",
       acquire() + r, ""},
      {"a_reduction_that_releases", false, w + "red.release.cta.shared.add.u32 [%r20], 1;\n",
       acquire() + r, ""},
      {"a_flag_in_global_memory", false,
       w + "fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%rd1], 1;\n",
       "mov.u32 %r7, 0;\nGLOBAL:\nld.acquire.gpu.global.u32 %r7, [%rd1];\nsetp.eq.u32 %p2, %r7, "
       "0;\n"
       "@%p2 bra GLOBAL;\n" +
           r,
       ""},
      {"a_flag_in_global_memory_without_a_fence", true,
       w + "st.relaxed.gpu.global.u32 [%rd1], 1;\n",
       "mov.u32 %r7, 0;\nGLOBAL:\nld.acquire.gpu.global.u32 %r7, [%rd1];\nsetp.eq.u32 %p2, %r7, "
       "0;\n"
       "@%p2 bra GLOBAL;\n" +
           r,
       ""},
      {"a_chain_through_a_third_warp", false, w + release, acquire() + next + release,
       next + acquire() + r},
      {"a_chain_that_one_does_not_acquire", true, w + release, relaxed() + next + release,
       next + acquire() + r},
      {"a_chain_of_atomics_that_the_middle_one_does_not_order", false, w + release,
       acquire() + "atom.shared.add.u32 %r7, [%r20], 1;\n",
       "TWO:\nld.acquire.cta.shared.u32 %r7, [%r20];\nsetp.lt.u32 %p2, %r7, 2;\n@%p2 bra TWO;\n" +
           r},
      {"a_plain_flag", true, w + fence + "st.shared.u32 [%r20], 1;\n", acquire() + r, ""},
      {"a_lock_with_fences", false, locked(fence, fence), locked(fence, fence),
       locked(fence, fence)},
      {"a_lock_without_a_fence_when_it_is_taken", true, locked("", fence), locked("", fence), ""},
      {"a_lock_without_a_fence_when_it_is_given_back", true, locked(fence, ""), locked(fence, ""),
       ""},
      {"an_mbarrier_that_is_waited_for", false, w + arrive, wait + r, ""},
      {"an_mbarrier_that_is_not_waited_for", true, w + arrive, r, ""},
      {"an_arrival_before_the_data", true, arrive + w, wait + r, ""},
      {"a_named_barrier_of_both", false, w + "bar.sync 1, 64;\n", "bar.sync 1, 64;\n" + r, ""},
      {"a_named_barrier_that_one_only_arrives_at", false, w + "bar.arrive 1, 64;\n",
       "bar.sync 1, 64;\n" + r, ""},
      {"data_behind_the_arrival", true, "bar.arrive 1, 64;\n" + w, "bar.sync 1, 64;\n" + r, ""},
      {"a_named_barrier_of_two_others", true, w, "bar.sync 1, 64;\n" + r, "bar.sync 1, 64;\n"},
      {"a_named_barrier_of_two_others_that_comes_before", true, w + "bar.sync 1, 64;\n",
       "bar.sync 1, 64;\n" + set, relaxed() + r},
      {"a_named_barrier_that_one_uses_again_alone", true, w + "bar.arrive 1, 64;\n",
       "bar.sync 1, 64;\n" + set, relaxed() + "bar.sync 1, 32;\n" + r},
      {"a_write_behind_all_reads", false, acquire() + w, r + release, ""},
      {"a_write_behind_one_of_two_reads", true,
       "BOTH:\nld.acquire.cta.shared.u32 %r7, [%r20];\nsetp.lt.u32 %p2, %r7, 64;\n@%p2 bra "
       "BOTH;\n" +
           w,
       r + "red.release.cta.shared.add.u32 [%r20], 1;\n",
       r + "red.relaxed.cta.shared.add.u32 [%r20], 1;\n"},
      {"a_write_behind_both_reads", false,
       "BOTH:\nld.acquire.cta.shared.u32 %r7, [%r20];\nsetp.lt.u32 %p2, %r7, 64;\n@%p2 bra "
       "BOTH;\n" +
           w,
       r + "red.release.cta.shared.add.u32 [%r20], 1;\n",
       r + "red.release.cta.shared.add.u32 [%r20], 1;\n"},
  };
}

std::string order_kernel(const OrderCase& order) {
  return kernel_of(
      order_declarations,
      "and.b32 %r3, %r1, 31;\nsetp.ne.u32 %p3, %r3, 0;\nshl.b32 %r4, %r3, 2;\n"
      "xor.b32 %r5, %r4, 124;\nmov.u32 %r6, data;\nadd.u32 %r4, %r4, %r6;\n"
      "add.u32 %r5, %r5, %r6;\nmov.u32 %r20, flag;\nmov.u64 %rd8, flag;\n"
      "cvta.shared.u64 %rd8, %rd8;\nsetp.ge.u32 %p1, %r1, 32;\nsetp.ge.u32 %p4, %r1, 64;\n"
      "@!%p1 st.shared.u32 [%r4], 0;\nst.relaxed.cta.shared.u32 [%r20], 0;\n"
      "st.relaxed.cta.shared.u32 [other], 0;\nsetp.eq.u32 %p5, %r1, 0;\n"
      "@%p5 mbarrier.init.shared.b64 [phase], 32;\n"
      "bar.sync 0;\n@%p4 bra THIRD;\n@%p1 bra SECOND;\n" +
          order.first + "bra OVER;\nSECOND:\n" + order.second + "bra OVER;\nTHIRD:\n" +
          order.third + "OVER:");
}

class OrderOfWarps : public testing::TestWithParam<OrderCase> {};

TEST_P(OrderOfWarps, decides_whether_they_race) {
  const OrderCase& order = GetParam();
  const auto outcome = run_text(order_kernel(order), launch_of(2, 96, 2 * 96 * 8));
  ASSERT_TRUE(outcome) << outcome.error().message;
  std::size_t races = 0;
  for (const Finding& finding : outcome->findings) {
    EXPECT_EQ(finding.kind, FindingKind::shared_race) << describe(finding, "t.ptx");
    if (!order.races) ADD_FAILURE() << describe(finding, "t.ptx");
    ++races;
  }
  EXPECT_EQ(races != 0, order.races);
}

INSTANTIATE_TEST_SUITE_P(All, OrderOfWarps, testing::ValuesIn(order_cases()),
                         [](const testing::TestParamInfo<OrderCase>& given) {
                           return given.param.name;
                         });

TEST(OrdersOfWarps, a_race_says_what_would_have_ordered_the_two) {
  const auto outcome =
      run_text(order_kernel({.name = "",
                             .races = true,
                             .first = std::string("fence.acq_rel.cta;\n") + write_data,
                             .second = read_data,
                             .third = ""}),
               launch_of(1, 64, 512));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_NE(outcome->findings[0].detail.find("no release, acquire or fence orders the two"),
            std::string::npos)
      << outcome->findings[0].detail;
}

}  // namespace
}  // namespace demarc::emulate
