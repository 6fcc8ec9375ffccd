// Barriers in shared memory: their bits as the header has them, how many bytes a phase counts,
// where they may lie, and what one operation leaves where.
#include <algorithm>
#include <memory>

#include "harness.hpp"
#include "ops/async.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::words_of;

Outcome run_mbarrier(const std::string& body) {
  auto outcome =
      run_text(kernel_of(".shared .align 16 .b8 area[1024];\n.shared .align 8 .b64 bar;\n",
                         "mov.u64 %rd10, bar;\n" + body),
               launch_of(1, 1, 256));
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome ? std::move(*outcome) : Outcome{};
}

std::uint64_t word_of(unsigned pending, unsigned expected, std::int64_t bytes, bool parity) {
  return std::uint64_t{1} << 63 | std::uint64_t{parity} << 62 |
         (static_cast<std::uint64_t>(bytes) & 0x3fffff) << 40 | std::uint64_t{expected} << 20 |
         pending;
}

TEST(BarrierBits, hold_arrivals_bytes_and_the_parity_as_the_header_says) {
  const Outcome outcome = run_mbarrier(R"(
mbarrier.init.shared.b64 [%rd10], 7;
mbarrier.arrive.shared.b64 %rd11, [%rd10];
mbarrier.complete_tx.shared.b64 [%rd10], 16;
mbarrier.arrive.shared.b64 %rd12, [%rd10];
mbarrier.arrive_drop.shared.b64 %rd13, [%rd10];
mbarrier.expect_tx.shared.b64 [%rd10], 1048575;
mbarrier.arrive.shared.b64 %rd14, [%rd10];
mbarrier.complete_tx.shared.b64 [%rd10], 1048559;
mbarrier.arrive.shared.b64 _, [%rd10], 3;
mbarrier.arrive.shared.b64 %rd15, [%rd10];
st.global.u64 [%rd1], %rd11;
st.global.u64 [%rd1+8], %rd12;
st.global.u64 [%rd1+16], %rd13;
st.global.u64 [%rd1+24], %rd14;
st.global.u64 [%rd1+32], %rd15;)");
  for (const Finding& finding : outcome.findings) ADD_FAILURE() << describe(finding, "t.ptx");
  const auto words = words_of(outcome);
  EXPECT_EQ(words[0], word_of(7, 7, 0, false));
  EXPECT_EQ(words[1], word_of(6, 7, -16, false));
  EXPECT_EQ(words[2], word_of(5, 7, -16, false));
  EXPECT_EQ(words[3], word_of(4, 6, 1048559, false));
  EXPECT_EQ(words[4], word_of(6, 6, 0, true));
  EXPECT_EQ(pending_count(words[3]), 4U);
}

// Warp 0 of block 0 writes a word and arrives at block 1, which then arrives at block 0: there warp
// 1 reads the word.
TEST(BarrierBits, of_another_block_of_the_cluster_order_the_warps_of_this_one) {
  std::string text = kernel_of(".shared .align 16 .b8 area[64];\n.shared .align 8 .b64 bar;\n", R"(
mov.u32 %r3, area;
mov.u32 %r4, bar;
mov.u32 %r2, %cluster_ctarank;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r4], 1;
barrier.cluster.arrive;
barrier.cluster.wait;
xor.b32 %r5, %r2, 1;
mapa.shared::cluster.u32 %r6, %r4, %r5;
setp.eq.u32 %p2, %r2, 1;
@%p2 bra SECOND;
setp.ge.u32 %p3, %r1, 32;
@%p3 bra READ;
st.shared.u32 [%r3], 7;
@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];
bra END;
READ:
mbarrier.try_wait.parity.shared.b64 %p4, [%r4], 0;
@!%p4 bra READ;
ld.shared.u32 %r9, [%r3];
bra END;
SECOND:
@!%p1 bra END;
LOOK:
mbarrier.try_wait.parity.shared.b64 %p4, [%r4], 0;
@!%p4 bra LOOK;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];
END:
barrier.cluster.arrive;
barrier.cluster.wait;)");
  text.insert(text.find("{\n"), ".explicitcluster\n.reqnctapercluster 2\n");
  const auto outcome = run_text(text, launch_of(2, 64, 512));
  ASSERT_TRUE(outcome) << outcome.error().message;
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
}

// The only finding, which is a limit.
std::string limit_of(const std::string& body) {
  const Outcome outcome = run_mbarrier(body);
  EXPECT_LE(outcome.findings.size(), 1U) << body;
  if (outcome.findings.empty()) return "none";
  EXPECT_EQ(outcome.findings[0].kind, FindingKind::limit);
  return outcome.findings[0].detail;
}

TEST(BarrierBits, are_all_0_once_the_barrier_is_invalidated) {
  const Outcome outcome = run_mbarrier(
      "mbarrier.init.shared.b64 [%rd10], 7;\nmbarrier.inval.shared.b64 [%rd10];\n"
      "ld.shared.u64 %rd11, [%rd10];\nst.global.u64 [%rd1], %rd11;\nst.global.u64 [%rd1+8], 3;");
  for (const Finding& finding : outcome.findings) ADD_FAILURE() << describe(finding, "t.ptx");
  EXPECT_EQ(words_of(outcome)[0], 0U);
  EXPECT_EQ(words_of(outcome)[1], 3U);
}

TEST(BarrierBits, hold_as_many_arrivals_as_20_bits_do_and_at_least_one) {
  const auto init = [](const char* count) {
    return limit_of(fmt::format("mbarrier.init.shared.b64 [%rd10], {};", count));
  };
  EXPECT_EQ(init("1"), "none");
  EXPECT_EQ(init("1048575"), "none");
  EXPECT_EQ(init("0"), "an mbarrier for 0 arrivals; it counts 1 to 1048575");
  EXPECT_EQ(init("1048576"), "an mbarrier for 1048576 arrivals; it counts 1 to 1048575");
}

TEST(BarrierBits, no_longer_expect_those_that_drop_out_and_no_more_can_than_are_expected) {
  const Outcome outcome = run_mbarrier(
      "mbarrier.init.shared.b64 [%rd10], 3;\nmbarrier.arrive_drop.shared.b64 %rd11, [%rd10], 9;\n"
      "mbarrier.arrive_drop.shared.b64 %rd12, [%rd10];\nst.global.u64 [%rd1], %rd12;");
  ASSERT_EQ(outcome.findings.size(), 2U);
  EXPECT_EQ(outcome.findings[0].detail, "9 arrivals, but the phase still expects 3");
  EXPECT_EQ(outcome.findings[1].detail, "1 arrivals, but the phase still expects 0");
  EXPECT_EQ(words_of(outcome)[0], word_of(0, 0, 0, true));
}

TEST(BarrierBits, more_bytes_than_a_phase_counts_are_a_finding) {
  const std::string make = "mbarrier.init.shared.b64 [%rd10], 1;\n";
  const auto finding = [&](const std::string& body) { return limit_of(make + body); };
  const std::string limits = " bytes are to come to a phase; the limits are -1048575 and 1048575";
  EXPECT_EQ(finding("mbarrier.expect_tx.shared.b64 [%rd10], 1048575;"), "none");
  EXPECT_EQ(finding("mbarrier.complete_tx.shared.b64 [%rd10], 1048575;"), "none");
  EXPECT_EQ(finding("mbarrier.expect_tx.shared.b64 [%rd10], 1048576;"), "1048576" + limits);
  EXPECT_EQ(finding("mbarrier.complete_tx.shared.b64 [%rd10], 1048576;"), "-1048576" + limits);
  EXPECT_EQ(finding("mbarrier.expect_tx.shared.b64 [%rd10], 1048575;\n"
                    "mbarrier.arrive.expect_tx.shared.b64 _, [%rd10], 5;"),
            "1048580" + limits);
  EXPECT_EQ(finding("mbarrier.expect_tx.shared.b64 [%rd10], 4294967295;"), "4294967295" + limits);
}

TEST(BarrierPlaces, outside_shared_memory_are_a_finding) {
  const std::string local =
      ".local .align 8 .b64 own;\nmov.u64 %rd5, own;\ncvta.local.u64 %rd6, %rd5;\n";
  for (const auto& [body, space] : std::vector<std::pair<std::string, std::string>>{
           {local + "mbarrier.init.b64 [%rd6], 1;", "local"},
           {local + "st.local.u64 [%rd5], -1;\nmbarrier.arrive.b64 _, [%rd6];", "local"},
           {"mbarrier.init.b64 [%rd1], 1;", "global"},
           {"mbarrier.test_wait.parity.b64 %p1, [%rd1], 0;", "global"}}) {
    const Outcome outcome = run_mbarrier(body);
    ASSERT_EQ(outcome.findings.size(), 1U) << body;
    EXPECT_EQ(outcome.findings[0].kind, FindingKind::out_of_bounds);
    EXPECT_EQ(outcome.findings[0].detail,
              "an mbarrier in " + space + " memory; it must be in shared memory");
  }
}

TEST(BarrierPlaces, that_a_copy_is_to_tell_of_its_bytes_hold_an_initialised_barrier) {
  const std::string copy =
      "mov.u64 %rd7, area;\nadd.u64 %rd8, %rd7, 512;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%rd7], [%rd1], 64, "
      "[%rd8];";
  const Outcome none = run_mbarrier("st.shared.u64 [area+512], 0;\n" + copy);
  ASSERT_EQ(none.findings.size(), 1U);
  EXPECT_EQ(none.findings[0].kind, FindingKind::uninitialised_read);
  EXPECT_NE(none.findings[0].detail.find("there is no initialised mbarrier at 0x"),
            std::string::npos);
  EXPECT_TRUE(run_mbarrier("mbarrier.init.shared.b64 [area+512], 1;\n" + copy).findings.empty());
}

// One warp, whose frame lies between bytes that nothing may touch. The barrier is at 16 of shared
// memory.
class BarrierWords : public testing::Test {
 protected:
  BarrierWords() {
    program.tables = baseline::tables();
    program.shared_bytes = 64;
    program.check_races = false;
    program.functions.resize(1);
    program.functions[0].frame_bytes = frame_bytes;
    program.instructions.resize(1);
    program.tids.resize(std::size_t{3} * warp_size);
    block = std::make_unique<Block>(program, pool);
    block->start(0, false, false);
    warp = &block->warps[0];
    warp->frame = bytes + frame_bytes;
    op.kind = static_cast<std::uint8_t>(AddressKind::shared);
    op.bytes = 8;
    op.flags = memory_unraced;
    op.uniform = uniform_a;
    op.imm = 16;
    op.aux = &details;
  }

  void carry_out(BarrierOperation operation, Mask lanes) {
    details.operation = operation;
    warp->mask = lanes;
    std::fill(std::begin(bytes), std::end(bytes), std::byte{0xee});
    const std::uint64_t address = 0;
    std::memcpy(warp->frame, &address, sizeof address);
    for (std::uint32_t lane = 0; lane < warp_size; ++lane)
      std::memcpy(warp->frame + numbers + 4 * lane, &lane, sizeof lane);
    ASSERT_EQ(async_ops::barrier_word(*warp, &op), &op + 1);
  }
  // Bytes of the results that were touched, all else being as it was.
  [[nodiscard]] std::ptrdiff_t touched() const {
    const std::byte* const first = bytes + frame_bytes + results;
    const std::byte* const end = bytes + 2 * frame_bytes;
    EXPECT_EQ(std::count(bytes, bytes + frame_bytes, std::byte{0xee}), frame_bytes);
    EXPECT_EQ(std::count(end, std::end(bytes), std::byte{0xee}), frame_bytes);
    return end - first - std::count(first, end, std::byte{0xee});
  }
  [[nodiscard]] std::uint64_t word() const {
    std::uint64_t value = 0;
    std::memcpy(&value, block->shared.data() + 16, sizeof value);
    return value;
  }

  static constexpr std::uint32_t frame_bytes = 512;
  static constexpr std::uint32_t numbers = 64;
  static constexpr std::uint32_t results = 256;
  alignas(64) std::byte bytes[3 * frame_bytes] = {};
  Program program;
  FramePool pool;
  std::unique_ptr<Block> block;
  Warp* warp = nullptr;
  BarrierDetails details;
  MicroOp op;
};

TEST_F(BarrierWords, take_each_lane_s_number_and_give_it_what_was_there_before) {
  details.has_number = true;
  details.number = numbers;
  carry_out(BarrierOperation::init, 1U << 9);
  EXPECT_EQ(word(), word_of(9, 9, 0, false));
  EXPECT_EQ(touched(), 0);
  details.has_result = true;
  details.result = results;
  carry_out(BarrierOperation::arrive, 1U << 2 | 1U << 3);
  EXPECT_EQ(word(), word_of(4, 9, 0, false));
  EXPECT_EQ(touched(), 16);
  std::uint64_t given[2];
  std::memcpy(given, warp->frame + results + 2 * 8, sizeof given);
  EXPECT_EQ(given[0], word_of(9, 9, 0, false));
  EXPECT_EQ(given[1], word_of(7, 9, 0, false));
  EXPECT_TRUE(block->findings.empty());
}

TEST_F(BarrierWords,
       take_one_arrival_where_no_number_is_given_and_a_number_of_all_lanes_where_one_is) {
  details.has_number = true;
  details.number_uniform = true;
  details.number = numbers + 4 * 5;
  carry_out(BarrierOperation::init, 1U << 9);
  EXPECT_EQ(word(), word_of(5, 5, 0, false));
  details.has_number = false;
  carry_out(BarrierOperation::arrive, 7);
  EXPECT_EQ(word(), word_of(2, 5, 0, false));
  carry_out(BarrierOperation::nothing, 7);
  EXPECT_EQ(word(), word_of(2, 5, 0, false));
  EXPECT_EQ(touched(), 0);
}

TEST_F(BarrierWords, give_the_lanes_that_ask_a_predicate_and_the_others_a_turn) {
  details.has_number = true;
  details.number = numbers;
  carry_out(BarrierOperation::init, 1U << 9);
  details.has_result = true;
  details.result_width = 0;
  details.result = results;
  warp->budget = 100;
  // Lanes with an odd number ask for the phase before, which has ended.
  carry_out(BarrierOperation::test_parity, 0xff0);
  EXPECT_EQ(touched(), 2);
  Mask given = 0;
  std::memcpy(&given, warp->frame + results, sizeof given);
  EXPECT_EQ(given, (0xeeeeeeee & ~Mask{0xff0}) | 0xaa0);
  EXPECT_EQ(warp->budget, 0);
  warp->budget = 100;
  carry_out(BarrierOperation::test_parity, 0xaa0);
  EXPECT_EQ(warp->budget, 100) << "no lane waits";
}

}  // namespace
}  // namespace demarc::emulate
