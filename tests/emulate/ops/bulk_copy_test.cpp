// Bulk copies, and asynchronous stores and reductions, which tell a barrier of their bytes.
#include <cstring>

#include "async_programs.hpp"

namespace demarc::emulate {
namespace {

using test::async_init;
using test::async_words;
using test::run_async;

TEST(BulkCopies, bytes_come_in_through_a_barrier_and_go_out_again) {
  // The buffer holds 64 words; thread 0 brings 256 bytes in, all add 1, thread 0 brings them out.
  const std::string body = async_init + R"(
mov.u64 %rd7, area;
mad.wide.u32 %rd2, %r1, 4, %rd1;
st.global.u32 [%rd2], %r1;
@%p1 mbarrier.init.shared.b64 [%rd10], 1;
bar.sync 0;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%rd10], 256;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%rd7], [%rd1], 256, [%rd10];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [%rd10], 0;
@!%p2 bra WAIT;
mad.wide.u32 %rd8, %r1, 4, %rd7;
ld.shared.u32 %r3, [%rd8];
add.u32 %r3, %r3, 1;
st.shared.u32 [%rd8], %r3;
fence.proxy.async;
bar.sync 0;
@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%rd7], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;)";
  const auto outcome = run_async(body, 64, 256);
  ASSERT_TRUE(outcome);
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  for (unsigned i = 0; i < 64; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, outcome->buffers[0].data() + 4 * i, 4);
    EXPECT_EQ(word, i + 1);
  }
}

// The arrival comes before the words are written, the bytes behind them.
TEST(BulkCopies, what_was_written_before_them_may_be_read_once_their_bytes_are_there) {
  const auto words = async_words(async_init + R"(
@%p1 mbarrier.init.shared.b64 [%rd10], 1;
bar.sync 0;
mov.u64 %rd7, area;
and.b32 %r3, %r1, 31;
mad.wide.u32 %rd8, %r3, 4, %rd7;
mov.u32 %r9, 0;
setp.ge.u32 %p2, %r1, 32;
@%p2 bra READ;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%rd10], 64;
st.shared.u32 [%rd8], %r1;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%rd7+512], [%rd1], 64, [%rd10];
bra END;
READ:
mbarrier.try_wait.parity.shared.b64 %p3, [%rd10], 0;
@!%p3 bra READ;
ld.shared.u32 %r9, [%rd8];
END:)",
                                 64);
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_EQ(words[i], i < 32 ? 0 : i - 32);
}

// Each of three threads brings 64 bytes in, and the barrier waits for all of them.
TEST(BulkCopies, of_several_threads_tell_the_barrier_of_the_bytes_of_each) {
  const auto words = async_words(async_init + R"(
mov.u32 %r9, 0;
mov.u64 %rd7, area;
mad.wide.u32 %rd6, %r1, 8, %rd1;
mov.u64 %rd9, 5;
st.global.u64 [%rd6], %rd9;
@%p1 mbarrier.init.shared.b64 [%rd10], 1;
@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%rd10], 192;
mad.wide.u32 %rd8, %r1, 64, %rd7;
setp.lt.u32 %p2, %r1, 3;
bar.warp.sync -1;
@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%rd8], [%rd1], 64, [%rd10];
bar.warp.sync -1;
mbarrier.test_wait.parity.shared.b64 %p3, [%rd10], 0;
@!%p3 bra END;
ld.shared.u32 %r9, [%rd7+96];
END:)");
  for (const std::uint64_t word : words) EXPECT_EQ(word, 5U);
}

TEST(BulkCopies, a_reduction_adds_to_what_is_there) {
  const auto outcome = run_async(async_init + R"(
mov.u64 %rd7, area;
mad.wide.u32 %rd2, %r1, 4, %rd1;
st.global.u32 [%rd2], %r1;
mad.wide.u32 %rd8, %r1, 4, %rd7;
mov.u32 %r3, 1000;
st.shared.u32 [%rd8], %r3;
bar.sync 0;
@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%rd7], 128;)",
                                 32, 256);
  ASSERT_TRUE(outcome);
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  for (unsigned i = 0; i < 32; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, outcome->buffers[0].data() + 4 * i, 4);
    EXPECT_EQ(word, 1000 + i);
  }
}

TEST(BulkCopies, bytes_behind_a_buffer_or_not_a_multiple_of_16_are_findings) {
  const std::string head =
      async_init + "mov.u64 %rd7, area;\n@%p1 mbarrier.init.shared.b64 [%rd10], 1;\n";
  const auto copy = [&](const char* bytes) {
    return run_async(head + "mov.u32 %r9, " + bytes +
                         ";\n"
                         "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%rd7], [%rd1], %r9, [%rd10];",
                     32, 256);
  };
  const auto behind = copy("272");
  ASSERT_TRUE(behind);
  ASSERT_EQ(behind->findings.size(), 1U);
  EXPECT_EQ(behind->findings[0].kind, FindingKind::out_of_bounds);
  const auto odd = copy("40");
  ASSERT_TRUE(odd);
  ASSERT_EQ(odd->findings.size(), 1U);
  EXPECT_EQ(odd->findings[0].kind, FindingKind::misaligned);
}

// Each thread's eight bytes, then an addition to the first four of them, are waited for by a phase
// of the barrier each.
TEST(AsyncStores, and_reductions_tell_the_barrier_of_their_bytes) {
  const auto words = async_words(async_init + R"(
mov.u64 %rd7, area;
mad.wide.u32 %rd7, %r1, 8, %rd7;
cvt.u32.u64 %r7, %rd7;
cvt.u32.u64 %r8, %rd10;
@%p1 mbarrier.init.shared::cta.b64 [%rd10], 1;
bar.sync 0;
add.u32 %r3, %r1, 100;
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%r7], {%r1, %r3}, [%r8];
mbarrier.test_wait.parity.shared::cta.b64 %p2, [%rd10], 0;
selp.u32 %r20, 1000000, 0, %p2;
bar.sync 0;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%rd10], 512;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%rd10], 0;
@!%p2 bra WAIT;
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r7], 7, [%r8];
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%rd10], 256;
AGAIN:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%rd10], 1;
@!%p2 bra AGAIN;
ld.shared.v2.u32 {%r4, %r5}, [%rd7];
mad.lo.u32 %r9, %r4, 1000, %r5;
add.u32 %r9, %r9, %r20;)",
                                 64);
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(words[i], (i + 7) * 1000 + i + 100);
}

}  // namespace
}  // namespace demarc::emulate
