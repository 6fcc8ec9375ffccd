// Asynchronous copies and the barriers in shared memory.
#include <algorithm>

#include "async_programs.hpp"

namespace demarc::emulate {
namespace {

using test::async_init;
using test::async_words;
using test::run_async;

TEST(AsyncCopies, bytes_that_are_not_read_become_zeros) {
  // Each thread fills its word of the buffer, then copies 4 bytes of which it reads %r3.
  const auto words = async_words(R"(
mul.wide.u32 %rd5, %r1, 4;
add.s64 %rd6, %rd1, %rd5;
mov.u32 %r4, 0x01020304;
st.global.u32 [%rd6], %r4;
mov.u64 %rd7, area;
add.s64 %rd7, %rd7, %rd5;
cvt.u32.u64 %r7, %rd7;
and.b32 %r3, %r1, 3;
cp.async.ca.shared.global [%r7], [%rd6], 4, %r3;
cp.async.commit_group;
cp.async.wait_group 0;
ld.shared.u32 %r9, [%rd7];
bar.sync 0;)");
  const std::uint64_t expected[4] = {0, 0x04, 0x0304, 0x020304};
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(words[i], expected[i % 4]);
}

TEST(AsyncCopies, have_a_policy_behind_the_bytes_that_are_read) {
  const auto copied = [](const std::string& operands) {
    return async_words(R"(
mov.u32 %r4, 0x01020304;
st.global.u32 [%rd1], %r4;
mov.u64 %rd7, area;
cvt.u32.u64 %r7, %rd7;
mov.u32 %r3, 1;
createpolicy.fractional.L2::evict_first.b64 %rd8, 0f3F800000;
cp.async.ca.shared.global.L2::cache_hint [%r7], [%rd1], 4)" +
                           operands + R"(;
cp.async.wait_all;
ld.shared.u32 %r9, [%rd7];)",
                       1)
        .at(0);
  };
  EXPECT_EQ(copied(", %rd8"), 0x01020304U);
  EXPECT_EQ(copied(", %r3, %rd8"), 0x04U);
}

TEST(MemoryBarriers, the_phase_ends_when_all_have_arrived) {
  // Thread 0 sees the phase unfinished until the other 63 have arrived.
  const auto words = async_words(async_init + R"(
@%p1 mbarrier.init.shared::cta.b64 [%rd10], 64;
bar.sync 0;
mbarrier.arrive.shared::cta.b64 %rd11, [%rd10];
WAIT:
mbarrier.try_wait.shared::cta.b64 %p2, [%rd10], %rd11;
@!%p2 bra WAIT;
mbarrier.test_wait.parity.shared::cta.b64 %p3, [%rd10], 0;
selp.u32 %r9, 1, 0, %p3;
mbarrier.test_wait.parity.shared::cta.b64 %p4, [%rd10], 1;
@%p4 add.u32 %r9, %r9, 10;)",
                                 64);
  for (const std::uint64_t word : words) EXPECT_EQ(word, 1U);
}

TEST(MemoryBarriers, pending_counts_drops_and_bytes_hold_the_phase_open) {
  const auto words = async_words(async_init + R"(
mov.u32 %r9, 0;
@!%p1 bra END;
mbarrier.init.shared.b64 [%rd10], 3;
mbarrier.arrive.shared.b64 %rd11, [%rd10];
mbarrier.pending_count.b64 %r3, %rd11;
mbarrier.arrive_drop.shared.b64 %rd12, [%rd10];
mbarrier.pending_count.b64 %r4, %rd12;
mbarrier.arrive.expect_tx.shared.b64 %rd13, [%rd10], 48;
mbarrier.test_wait.shared.b64 %p2, [%rd10], %rd13;
mbarrier.complete_tx.shared.b64 [%rd10], 40;
mbarrier.test_wait.shared.b64 %p3, [%rd10], %rd13;
mbarrier.complete_tx.shared.b64 [%rd10], 8;
mbarrier.test_wait.shared.b64 %p4, [%rd10], %rd13;
mbarrier.arrive.shared.b64 _, [%rd10], 2;
mbarrier.test_wait.parity.shared.b64 %p5, [%rd10], 1;
mad.lo.u32 %r9, %r3, 10, %r4;
@%p2 add.u32 %r9, %r9, 1000;
@%p3 add.u32 %r9, %r9, 2000;
@%p4 add.u32 %r9, %r9, 4000;
@%p5 add.u32 %r9, %r9, 8000;
mbarrier.inval.shared.b64 [%rd10];
END:)");
  // 3 and 2 arrivals were to come; bytes held the first phase open until the last 8 of 48; the
  // second phase expects 2, for one thread has dropped out.
  EXPECT_EQ(words[0], 12032U);
}

TEST(MemoryBarriers, what_was_written_before_an_arrival_may_be_read_after_the_wait) {
  const std::string body = async_init + R"(
@%p1 mbarrier.init.shared.b64 [%rd10], 64;
bar.sync 0;
mov.u64 %rd7, area;
mad.wide.u32 %rd8, %r1, 4, %rd7;
st.shared.u32 [%rd8], %r1;
mbarrier.arrive.shared.b64 %rd11, [%rd10];
WAIT:
mbarrier.try_wait.shared.b64 %p2, [%rd10], %rd11;
@!%p2 bra WAIT;
xor.b32 %r3, %r1, 32;
mad.wide.u32 %rd8, %r3, 4, %rd7;
ld.shared.u32 %r9, [%rd8];)";
  const auto words = async_words(body, 64);
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_EQ(words[i], i ^ 32U);
  // Without the wait the read races.
  std::string hasty = body;
  const std::size_t at = hasty.find("@!%p2 bra WAIT;");
  hasty.erase(at, 15);
  const auto outcome = run_async(hasty, 64, 512);
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(
      std::any_of(outcome->findings.begin(), outcome->findings.end(),
                  [](const Finding& finding) { return finding.kind == FindingKind::shared_race; }));
}

// Thread 0 arrives and expects some bytes, then its warp writes a word each, and does what `bytes`
// says, at which the bytes come. The other warp waits for them and reads the words. Whether they
// race.
bool bytes_race(unsigned expected, const std::string& bytes) {
  const auto outcome =
      run_async(async_init + R"(
mov.u64 %rd7, area;
cvt.u32.u64 %r7, %rd7;
cvt.u32.u64 %r8, %rd10;
and.b32 %r3, %r1, 31;
mad.wide.u32 %rd8, %r3, 4, %rd7;
@%p1 st.shared.u32 [%rd7+512], 0;
@%p1 mbarrier.init.shared.b64 [%rd10], 1;
bar.sync 0;
setp.ge.u32 %p2, %r1, 32;
@%p2 bra READ;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%rd10], )" +
                    std::to_string(expected) + ";\nst.shared.u32 [%rd8], %r1;\n" + bytes + R"(
bra END;
READ:
mbarrier.try_wait.parity.shared.b64 %p3, [%rd10], 0;
@!%p3 bra READ;
ld.shared.u32 %r9, [%rd8];
END:)",
                64, 512);
  if (!outcome) return false;
  for (const Finding& finding : outcome->findings)
    EXPECT_EQ(finding.kind, FindingKind::shared_race) << describe(finding, "t.ptx");
  return !outcome->findings.empty();
}

// Asynchronous stores and copies release what was written before them. mbarrier.complete_tx only
// counts: it is relaxed, and without a fence nothing comes before it.
TEST(MemoryBarriers, are_released_by_bytes_that_come_and_not_by_bytes_that_are_only_counted) {
  for (const char* count : {"@%p1 mbarrier.complete_tx.shared.b64 [%rd10], 64;",
                            "@%p1 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%rd10], 64;"}) {
    EXPECT_TRUE(bytes_race(64, count)) << count;
    EXPECT_FALSE(bytes_race(64, std::string("fence.acq_rel.cta;\n") + count)) << count;
  }
  for (const char* store :
       {"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r7+512], 7, [%r8];",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
        "[%r7+512], 7, [%r8];"}) {
    EXPECT_FALSE(bytes_race(4, std::string("@%p1 ") + store)) << store;
  }
  EXPECT_FALSE(bytes_race(64,
                          "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                          "[%rd7+512], [%rd1], 64, [%rd10];"));
}

// Every thread of the first warp copies its word and lets the copy arrive.
TEST(MemoryBarriers, what_was_copied_before_an_arrival_of_copies_may_be_read_after_the_wait) {
  const auto words = async_words(async_init + R"(
@%p1 mbarrier.init.shared.b64 [%rd10], 32;
mul.wide.u32 %rd5, %r1, 4;
add.s64 %rd6, %rd1, %rd5;
st.global.u32 [%rd6], %r1;
bar.sync 0;
mov.u64 %rd7, area;
and.b32 %r3, %r1, 31;
mad.wide.u32 %rd8, %r3, 4, %rd7;
cvt.u32.u64 %r7, %rd8;
mov.u32 %r9, 0;
setp.ge.u32 %p2, %r1, 32;
@%p2 bra READ;
cp.async.ca.shared.global [%r7], [%rd6], 4;
cp.async.mbarrier.arrive.noinc.shared.b64 [%rd10];
bra END;
READ:
mbarrier.try_wait.parity.shared.b64 %p3, [%rd10], 0;
@!%p3 bra READ;
ld.shared.u32 %r9, [%rd8];
END:
bar.sync 0;)",
                                 64);
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_EQ(words[i], i < 32 ? 0 : i - 32);
}

TEST(MemoryBarriers, a_generic_address_leads_to_the_same_object) {
  const auto words = async_words(async_init + R"(
mov.u32 %r9, 0;
@!%p1 bra END;
cvta.shared.u64 %rd12, %rd10;
mbarrier.init.b64 [%rd12], 1;
mbarrier.arrive.shared.b64 _, [%rd10];
mbarrier.try_wait.parity.b64 %p2, [%rd12], 0;
selp.u32 %r9, 1, 0, %p2;
END:)");
  EXPECT_EQ(words[0], 1U);
}

TEST(MemoryBarriers, an_operation_on_none_is_a_finding) {
  const auto outcome = run_async(
      async_init + "@%p1 st.shared.b64 [%rd10], 0;\n@%p1 mbarrier.arrive.shared.b64 _, [%rd10];",
      32, 256);
  ASSERT_TRUE(outcome);
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_NE(outcome->findings[0].detail.find("no initialised mbarrier"), std::string::npos);
}

// What %r9 holds after `body`, which thread 0 executes alone.
std::uint64_t alone_with_a_barrier(const std::string& body) {
  return async_words(async_init + "mov.u32 %r9, 0;\n@!%p1 bra END;\n" + body + "END:")[0];
}

TEST(MemoryBarriers, an_arrival_gives_what_was_to_come_before_it_and_a_new_phase_expects_as_many) {
  EXPECT_EQ(alone_with_a_barrier(R"(
mbarrier.init.shared.b64 [%rd10], 1000000;
mbarrier.arrive.shared.b64 %rd11, [%rd10], 999990;
mbarrier.arrive.shared.b64 %rd12, [%rd10], 10;
mbarrier.arrive.shared.b64 %rd13, [%rd10];
mbarrier.pending_count.b64 %r3, %rd11;
mbarrier.pending_count.b64 %r4, %rd12;
mbarrier.pending_count.b64 %r5, %rd13;
sub.u32 %r3, %r3, 1000000;
sub.u32 %r5, %r5, 1000000;
or.b32 %r3, %r3, %r5;
add.u32 %r9, %r3, %r4;
)"),
            10U);
}

TEST(MemoryBarriers, threads_that_drop_out_are_expected_no_more) {
  EXPECT_EQ(alone_with_a_barrier(R"(
mbarrier.init.shared.b64 [%rd10], 9;
mbarrier.arrive_drop.shared.b64 %rd11, [%rd10], 4;
mbarrier.arrive_drop.expect_tx.shared.b64 %rd12, [%rd10], 16;
mbarrier.arrive.shared.b64 %rd13, [%rd10], 4;
mbarrier.pending_count.b64 %r3, %rd12;
mbarrier.pending_count.b64 %r4, %rd13;
mbarrier.test_wait.parity.shared.b64 %p2, [%rd10], 0;
mbarrier.complete_tx.shared.b64 [%rd10], 16;
mbarrier.test_wait.parity.shared.b64 %p3, [%rd10], 0;
mbarrier.arrive.shared.b64 %rd14, [%rd10];
mbarrier.pending_count.b64 %r5, %rd14;
mad.lo.u32 %r9, %r3, 10, %r4;
mad.lo.u32 %r9, %r9, 10, %r5;
@%p2 add.u32 %r9, %r9, 1000;
@%p3 add.u32 %r9, %r9, 2000;
)"),
            2544U);
}

// Bytes may come before they are expected: then they are less than none.
TEST(MemoryBarriers, bytes_that_come_before_they_are_expected_are_taken_off_later) {
  EXPECT_EQ(alone_with_a_barrier(R"(
mbarrier.init.shared.b64 [%rd10], 1;
mbarrier.complete_tx.shared.b64 [%rd10], 1048560;
mbarrier.arrive.shared.b64 %rd11, [%rd10];
mbarrier.test_wait.shared.b64 %p2, [%rd10], %rd11;
mbarrier.expect_tx.shared.b64 [%rd10], 1048576;
mbarrier.test_wait.shared.b64 %p3, [%rd10], %rd11;
mbarrier.complete_tx.shared.b64 [%rd10], 16;
mbarrier.test_wait.shared.b64 %p4, [%rd10], %rd11;
selp.u32 %r9, 1, 0, %p2;
@%p3 add.u32 %r9, %r9, 10;
@%p4 add.u32 %r9, %r9, 100;
)"),
            100U);
}

// A phase that nothing is to come for, and no other, is one that has ended.
TEST(MemoryBarriers, a_wait_is_for_the_phase_of_its_state_or_parity) {
  EXPECT_EQ(alone_with_a_barrier(R"(
mbarrier.init.shared.b64 [%rd10], 1;
mbarrier.test_wait.parity.shared.b64 %p2, [%rd10], 0;
mbarrier.test_wait.parity.shared.b64 %p3, [%rd10], 1;
mbarrier.arrive.shared.b64 %rd11, [%rd10];
mov.u32 %r9, 2;
mbarrier.test_wait.parity.shared.b64 %p4, [%rd10], %r9;
mbarrier.arrive.shared.b64 %rd12, [%rd10];
mbarrier.test_wait.shared.b64 %p5, [%rd10], %rd12;
selp.u32 %r9, 1, 0, %p2;
@%p3 add.u32 %r9, %r9, 10;
@%p4 add.u32 %r9, %r9, 100;
@%p5 add.u32 %r9, %r9, 1000;
mbarrier.test_wait.shared.b64 %p5, [%rd10], %rd11;
@%p5 add.u32 %r9, %r9, 10000;
)"),
            1110U);
}

// The only finding of what thread 0 does.
Finding barrier_word_finding(const std::string& body) {
  const auto outcome = run_async(async_init + "@!%p1 bra END;\n" + body + "END:", 32, 256);
  if (!outcome) return {};
  EXPECT_EQ(outcome->findings.size(), 1U) << body;
  return outcome->findings.empty() ? Finding{} : outcome->findings[0];
}

TEST(MemoryBarriers, more_arrivals_than_a_phase_expects_are_a_finding) {
  const Finding more = barrier_word_finding(
      "mbarrier.init.shared.b64 [%rd10], 3;\nmbarrier.arrive.shared.b64 _, [%rd10], 1;\n"
      "mbarrier.arrive.shared.b64 _, [%rd10], 3;\n");
  EXPECT_EQ(more.kind, FindingKind::limit);
  EXPECT_EQ(more.detail, "3 arrivals, but the phase still expects 2");
  EXPECT_EQ(more.instruction, "mbarrier.arrive.shared.b64 _, [%rd10], 3;");
  EXPECT_EQ(barrier_word_finding("mbarrier.init.shared.b64 [%rd10], 1;\n"
                                 "mbarrier.arrive_drop.shared.b64 _, [%rd10], 2;\n")
                .detail,
            "2 arrivals, but the phase still expects 1");
}

TEST(MemoryBarriers, one_that_was_invalidated_is_none_until_it_is_initialised_again) {
  const std::string made =
      "mov.u64 %rd7, area;\nadd.u64 %rd10, %rd7, 64;\nmbarrier.init.shared.b64 [%rd10], 2;\n";
  const std::string gone = "mbarrier.inval.shared.b64 [%rd10];\n";
  for (const char* use : {"mbarrier.arrive.shared.b64 _, [%rd10];\n",
                          "mbarrier.inval.shared.b64 "
                          "[%rd10];\n",
                          "mbarrier.expect_tx.shared.b64 [%rd10], 16;\n",
                          "mbarrier.test_wait.parity.shared.b64 %p2, [%rd10], 0;\n"}) {
    const Finding found = barrier_word_finding(made + gone + use);
    EXPECT_EQ(found.kind, FindingKind::uninitialised_read) << use;
    EXPECT_EQ(found.detail, "there is no initialised mbarrier at 0x50 in shared memory");
    EXPECT_EQ(alone_with_a_barrier(made + gone + made + use), 0U);
  }
}

}  // namespace
}  // namespace demarc::emulate
