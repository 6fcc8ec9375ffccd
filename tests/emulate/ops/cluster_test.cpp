// Clusters of blocks: their shared memory, their barrier, their numbers.
#include <gmock/gmock.h>

#include <map>
#include <numeric>

#include "cluster.hpp"
#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::words_of;

// Three dimensions that all differ, so that none stands for another.
TEST(ClusterShapes, number_the_blocks_of_a_cluster_and_the_clusters_of_a_grid_along_x_first) {
  const ClusterShape shape{{2, 3, 5}};
  const std::array<std::uint32_t, 3> grid{4, 6, 15};
  ASSERT_EQ(shape.size(), 30U);
  std::map<std::uint64_t, std::vector<std::uint32_t>> ranks;  // by cluster
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> ends;
  std::uint64_t number = 0;
  for (std::uint32_t z = 0; z < grid[2]; ++z) {
    for (std::uint32_t y = 0; y < grid[1]; ++y) {
      for (std::uint32_t x = 0; x < grid[0]; ++x, ++number) {
        const std::uint64_t cluster = shape.cluster({x, y, z}, grid);
        ASSERT_EQ(cluster, (z / 5 * 2 + y / 3) * 2 + x / 2);
        ASSERT_EQ(shape.rank({x, y, z}), (z % 5 * 3 + y % 3) * 2 + x % 2);
        ranks[cluster].push_back(shape.rank({x, y, z}));
        ends.try_emplace(cluster, number, number).first->second.second = number;
      }
    }
  }
  ASSERT_EQ(ranks.size(), 12U);
  std::vector<std::uint32_t> in_order(30);
  std::iota(in_order.begin(), in_order.end(), 0U);
  for (const auto& [cluster, found] : ranks) {
    EXPECT_THAT(found, testing::ElementsAreArray(in_order)) << cluster;
    EXPECT_EQ(shape.span(grid), ends[cluster].second - ends[cluster].first + 1) << cluster;
  }
}

// %r2 is the block's rank, %r3 the address of the first word of its tile.
std::string in_clusters(const std::string& shape, const std::string& body) {
  std::string text = kernel_of(".shared .align 16 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n",
                               "mov.u32 %r2, %cluster_ctarank;\nmov.u32 %r3, tile;\n" + body);
  return text.insert(text.find("{\n"), ".explicitcluster\n.reqnctapercluster " + shape + "\n");
}

gpu::Launch grid_of(std::uint32_t x, std::uint32_t y, std::uint32_t threads) {
  gpu::Launch launch = launch_of(x, threads, std::uint64_t{8} * x * y * threads);
  launch.kernels[0].grid.y = y;
  return launch;
}

// The thread's word of the buffer, of all threads of the grid, gets %rd9.
const std::string store_word = R"(
mov.u32 %r20, %ctaid.y;
mov.u32 %r21, %nctaid.x;
mov.u32 %r22, %ctaid.x;
mad.lo.u32 %r20, %r20, %r21, %r22;
mov.u32 %r21, %ntid.x;
mad.lo.u32 %r20, %r20, %r21, %r1;
mul.wide.u32 %rd20, %r20, 8;
add.s64 %rd20, %rd20, %rd1;
st.global.u64 [%rd20], %rd9;)";

const std::string cluster_barrier =
    "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n";

std::vector<std::uint64_t> words(const std::string& shape, const std::string& body,
                                 const gpu::Launch& launch) {
  const auto outcome = run_text(in_clusters(shape, body + store_word), launch);
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (!outcome) return {};
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  return words_of(*outcome);
}

Finding finding_of(const std::string& body, std::uint32_t threads = 32) {
  const auto outcome = run_text(in_clusters("2", body), grid_of(2, 1, threads));
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (!outcome || outcome->findings.empty()) return {};
  return outcome->findings[0];
}

TEST(Clusters, every_block_reads_and_changes_the_shared_memory_of_the_others) {
  const auto found = words("2, 2, 1", R"(
mad.lo.u32 %r4, %r2, 100, %r1;
mad.lo.u32 %r5, %r1, 4, %r3;
st.shared.u32 [%r5], %r4;
)" + cluster_barrier + R"(
add.u32 %r6, %r2, 1;
and.b32 %r6, %r6, 3;
mapa.shared::cluster.u32 %r7, %r5, %r6;
ld.shared::cluster.u32 %r8, [%r7];
)" + cluster_barrier + R"(
atom.shared::cluster.add.u32 %r9, [%r7], 5000;
)" + cluster_barrier + R"(
cvt.u64.u32 %rd3, %r5;
cvta.shared.u64 %rd3, %rd3;
mapa.u64 %rd3, %rd3, %r2;
ld.u32 %r10, [%rd3];
add.u32 %r8, %r8, %r10;
cvt.u64.u32 %rd9, %r8;)",
                           grid_of(4, 2, 64));
  ASSERT_EQ(found.size(), 8U * 64);
  for (std::uint32_t block = 0; block < 8; ++block) {
    const std::uint32_t rank = block / 4 % 2 * 2 + block % 2;
    for (std::uint32_t thread = 0; thread < 64; ++thread) {
      EXPECT_EQ(found[block * 64 + thread],
                (rank + 1) % 4 * 100 + thread + rank * 100 + thread + 5000);
    }
  }
}

TEST(Clusters, blocks_know_their_place_and_the_rank_of_an_address) {
  const auto found = words("2, 1, 1", R"(
mov.u32 %r4, %clusterid.x;
mov.u32 %r5, %nclusterid.x;
mov.u32 %r6, %cluster_ctaid.x;
mov.u32 %r7, %cluster_nctaid.x;
mov.u32 %r8, %cluster_nctarank;
mapa.shared::cluster.u32 %r10, %r3, 1;
getctarank.shared::cluster.u32 %r11, %r10;
getctarank.shared::cluster.u32 %r12, %r3;
mad.lo.u32 %r9, %r4, 10, %r5;
mad.lo.u32 %r9, %r9, 10, %r6;
mad.lo.u32 %r9, %r9, 10, %r7;
mad.lo.u32 %r9, %r9, 10, %r8;
mad.lo.u32 %r9, %r9, 10, %r11;
mad.lo.u32 %r9, %r9, 10, %r12;
cvt.u64.u32 %rd9, %r9;)",
                           grid_of(6, 1, 1));
  EXPECT_EQ(found, (std::vector<std::uint64_t>{302210 + 0, 312211 + 0, 1302210, 1312211, 2302210,
                                               2312211}));
}

// The numbers of a block of a launch in clusters, as `blocks_know_their_place` has them, with
// %is_explicit_cluster in front.
std::vector<std::uint64_t> numbers_of(const std::string& directives, const gpu::Launch& launch) {
  std::string text = kernel_of("", R"(
mov.pred %p1, %is_explicit_cluster;
selp.u32 %r2, 1, 0, %p1;
mov.u32 %r4, %clusterid.x;
mov.u32 %r5, %nclusterid.x;
mov.u32 %r6, %cluster_ctarank;
mov.u32 %r7, %cluster_nctarank;
mov.u32 %r8, %nctaid.x;
mad.lo.u32 %r9, %r2, 10, %r4;
mad.lo.u32 %r9, %r9, 10, %r5;
mad.lo.u32 %r9, %r9, 10, %r6;
mad.lo.u32 %r9, %r9, 10, %r7;
mad.lo.u32 %r9, %r9, 10, %r8;
cvt.u64.u32 %rd9, %r9;)" + store_word);
  const auto outcome = run_text(text.insert(text.find("{\n"), directives + "\n"), launch);
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome ? words_of(*outcome) : std::vector<std::uint64_t>{};
}

TEST(Clusters, the_launch_says_how_large_they_are) {
  gpu::Launch launch = grid_of(4, 1, 1);
  const std::vector<std::uint64_t> pairs{102024, 102124, 112024, 112124};
  EXPECT_EQ(numbers_of("", launch), (std::vector<std::uint64_t>{4014, 14014, 24014, 34014}));
  EXPECT_EQ(numbers_of(".reqnctapercluster 2", launch), pairs);
  launch.kernels[0].cluster = gpu::Dim3{2, 1, 1};
  for (const char* directives : {"", ".explicitcluster", ".maxclusterrank 2"}) {
    EXPECT_EQ(numbers_of(directives, launch), pairs) << directives;
  }
  launch.kernels[0].cluster = gpu::Dim3{1, 1, 1};
  EXPECT_EQ(numbers_of("", launch), (std::vector<std::uint64_t>{104014, 114014, 124014, 134014}));
}

TEST(Clusters, a_grid_may_be_counted_in_them) {
  gpu::Launch launch = grid_of(4, 1, 1);
  launch.kernels[0].grid.x = 2;
  EXPECT_EQ(numbers_of(".reqntid 1 .blocksareclusters .reqnctapercluster 2", launch),
            (std::vector<std::uint64_t>{102024, 102124, 112024, 112124}));
}

TEST(Clusters, bytes_for_another_block_are_waited_for_at_its_barrier) {
  const auto found = words("2", R"(
mov.u32 %r4, bar;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r4], 1;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;
)" + cluster_barrier + R"(
xor.b32 %r5, %r2, 1;
mad.lo.u32 %r6, %r1, 4, %r3;
mapa.shared::cluster.u32 %r7, %r6, %r5;
mapa.shared::cluster.u32 %r8, %r4, %r5;
mad.lo.u32 %r9, %r2, 1000, %r1;
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r7], %r9, [%r8];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
@!%p2 bra WAIT;
ld.shared.u32 %r10, [%r6];
cvt.u64.u32 %rd9, %r10;
)" + cluster_barrier,
                           grid_of(2, 1, 32));
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(found[i], (1 - i / 32) * 1000 + i % 32);
}

TEST(Clusters, a_bulk_copy_goes_to_another_block) {
  const auto found = words("2", R"(
mov.u32 %r4, bar;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r4], 1;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;
mad.lo.u32 %r6, %r1, 4, %r3;
mad.lo.u32 %r9, %r2, 1000, %r1;
st.shared.u32 [%r6], %r9;
)" + cluster_barrier + R"(
xor.b32 %r5, %r2, 1;
add.u32 %r10, %r3, 512;
mapa.shared::cluster.u32 %r7, %r10, %r5;
mapa.shared::cluster.u32 %r8, %r4, %r5;
@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7], [%r3], 128, [%r8];
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
@!%p2 bra WAIT;
ld.shared.u32 %r10, [%r6+512];
cvt.u64.u32 %rd9, %r10;
)" + cluster_barrier,
                           grid_of(2, 1, 32));
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(found[i], (1 - i / 32) * 1000 + i % 32);
}

// Block 1 sends the buffer's words, which it wrote, to the blocks of the mask, and each of these
// waits for them at its own barrier.
std::string multicast(const std::string& mask, const std::string& operands) {
  return R"(
mov.u32 %r4, bar;
setp.eq.u32 %p1, %r1, 0;
setp.eq.and.u32 %p2, %r2, 1, %p1;
@%p1 mbarrier.init.shared::cta.b64 [%r4], 1;
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;
add.u32 %r5, %r1, 500;
mad.wide.u32 %rd3, %r1, 4, %rd1;
setp.eq.u32 %p3, %r2, 1;
@%p3 st.global.u32 [%rd3], %r5;
mov.b16 %h1, )" +
         mask + ";\n" + cluster_barrier + R"(
mov.u32 %r6, %r3;
mov.u32 %r7, %r4;
mapa.shared::cluster.u32 %r8, %r3, 3;
mapa.shared::cluster.u32 %r9, %r4, 2;
@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster )" +
         operands + R"(;
cvt.u32.u16 %r10, %h1;
shr.u32 %r10, %r10, %r2;
and.b32 %r10, %r10, 1;
setp.eq.u32 %p4, %r10, 0;
mov.u64 %rd9, 7;
@%p4 bra DONE;
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
@!%p2 bra WAIT;
mad.lo.u32 %r6, %r1, 4, %r3;
ld.shared.u32 %r10, [%r6];
cvt.u64.u32 %rd9, %r10;
DONE:
)" + cluster_barrier;
}

TEST(Clusters, a_bulk_copy_goes_to_the_same_place_in_several_blocks) {
  // Whichever block's address is named, the place in the block counts.
  for (const char* operands : {"[%r3], [%rd1], 128, [%r4], %h1", "[%r8], [%rd1], 128, [%r9], %h1",
                               "[%r3], [%rd1], 128, [%r4], 13", "[%r3], [%rd1], 128, [%r4], %h1"}) {
    const auto found = words("4", multicast("13", operands), grid_of(4, 1, 32));
    ASSERT_EQ(found.size(), 128U);
    for (std::uint32_t i = 0; i < 128; ++i)
      EXPECT_EQ(found[i], i / 32 == 1 ? 7U : 500 + i % 32) << operands << " " << i;
  }
}

TEST(Clusters, a_bulk_copy_to_a_block_that_is_not_there_is_a_finding) {
  const auto outcome =
      run_text(in_clusters("2", multicast("5", "[%r3], [%rd1], 128, [%r4], %h1") + store_word),
               grid_of(2, 1, 32));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_FALSE(outcome->findings.empty());
  EXPECT_THAT(outcome->findings[0].detail,
              testing::HasSubstr("block 2 of the cluster, which has no such block"));
}

TEST(Clusters, threads_that_have_ended_are_not_waited_for) {
  const auto found =
      words("2", "setp.ge.u32 %p1, %r1, 40;\n@%p1 exit;\n" + cluster_barrier + "mov.u64 %rd9, 7;",
            grid_of(2, 1, 64));
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(found[i], i % 64 < 40 ? 7U : 0U);
}

TEST(Clusters, shared_memory_of_a_block_that_is_not_there_is_a_finding) {
  const std::string read =
      "mapa.shared::cluster.u32 %r7, %r3, {};\nst.shared::cluster.u32 [%r7], 1;";
  const Finding none = finding_of(fmt::format(fmt::runtime(read), 2));
  EXPECT_EQ(none.kind, FindingKind::out_of_bounds);
  EXPECT_THAT(none.detail, testing::HasSubstr("block 2 of the cluster, which has no such block"));
  for (const char* rank : {"254", "255", "256", "0xffffffff"}) {
    EXPECT_THAT(finding_of(fmt::format(fmt::runtime(read), rank)).detail,
                testing::HasSubstr("of block 254 of the cluster, which has no such block"))
        << rank;
  }
  EXPECT_EQ(finding_of("mapa.u64 %rd3, %rd1, 1;\nst.u32 [%rd3], 1;").kind,
            FindingKind::out_of_bounds);
  const Finding early = finding_of(fmt::format(fmt::runtime(read), 1));
  EXPECT_THAT(early.detail, testing::HasSubstr("block 1 of the cluster, which has not begun"));
  const Finding beyond = finding_of(cluster_barrier +
                                    "mapa.shared::cluster.u32 %r7, %r3, 1;\n"
                                    "st.shared::cluster.u32 [%r7+4096], 1;\n" +
                                    cluster_barrier);
  EXPECT_EQ(beyond.kind, FindingKind::out_of_bounds);
}

TEST(Clusters, a_barrier_at_which_not_all_threads_arrive_is_a_finding) {
  // The second warps wait for more of their block.
  const Finding found = finding_of(
      "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra ARRIVE;\nbar.sync 1, 64;\nARRIVE:\n" + cluster_barrier,
      64);
  EXPECT_EQ(found.kind, FindingKind::barrier_divergence);
  EXPECT_THAT(found.detail, testing::HasSubstr("the barrier is never completed"));
}

TEST(Clusters, a_thread_that_arrives_twice_or_waits_where_it_has_not_is_a_finding) {
  const std::string arrive = "barrier.cluster.arrive.aligned;\n";
  const std::string wait = "barrier.cluster.wait.aligned;\n";
  EXPECT_THAT(finding_of(arrive + arrive + wait).detail,
              testing::HasSubstr("arrives again without a wait in between"));
  EXPECT_THAT(finding_of(wait).detail, testing::HasSubstr("waits without having arrived"));
  EXPECT_THAT(finding_of(cluster_barrier + wait).detail,
              testing::HasSubstr("waits without having arrived"));
  const std::string some = "setp.lt.u32 %p1, %r1, 7;\n";
  const Finding waits = finding_of(some + "@%p1 barrier.cluster.arrive;\nbarrier.cluster.wait;\n");
  EXPECT_EQ(waits.thread[0], 7U) << "the first that has not arrived";
  EXPECT_EQ(waits.kind, FindingKind::barrier_divergence);
  EXPECT_EQ(waits.detail, "the thread waits without having arrived");
  const Finding again =
      finding_of(some + "@!%p1 barrier.cluster.arrive;\nbarrier.cluster.arrive;\n");
  EXPECT_EQ(again.thread[0], 7U) << "the first that has arrived";
  EXPECT_EQ(again.detail, "the thread arrives again without a wait in between");
}

// One warp of block 0 has ended before, the other one traps; block 1 waits for neither.
TEST(Clusters, threads_of_a_block_that_a_trap_stops_are_not_waited_for) {
  const auto outcome =
      run_text(in_clusters("2",
                           "mov.u64 %rd9, 7;\nsetp.eq.u32 %p1, %r2, 0;\nsetp.lt.and.u32 %p2, "
                           "%r1, 32, %p1;\n@%p2 exit;\n@%p1 trap;\n" +
                               cluster_barrier + store_word),
               grid_of(2, 1, 64));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].kind, FindingKind::trap);
  const auto found = words_of(*outcome);
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(found[i], i < 64 ? 0U : 7U);
}

// Block 0 arrives and ends; block 1 must still wait for block 2, which is late.
TEST(Clusters, who_arrives_and_ends_does_not_arrive_for_others) {
  const auto found = words("3", R"(
setp.eq.u32 %p1, %r2, 0;
@%p1 barrier.cluster.arrive;
@%p1 exit;
setp.ne.u32 %p2, %r2, 2;
@%p2 bra READY;
mov.u32 %r4, 0;
LATE:
add.u32 %r4, %r4, 1;
setp.lt.u32 %p3, %r4, 200000;
@%p3 bra LATE;
st.shared.u32 [%r3], 77;
READY:
)" + cluster_barrier + R"(
mapa.shared::cluster.u32 %r7, %r3, 2;
ld.shared::cluster.u32 %r8, [%r7];
cvt.u64.u32 %rd9, %r8;
)" + cluster_barrier,
                           grid_of(3, 1, 32));
  ASSERT_EQ(found.size(), 96U);
  for (std::uint32_t i = 32; i < 96; ++i) EXPECT_EQ(found[i], 77U);
}

TEST(Clusters, blocks_know_their_place_along_every_dimension) {
  std::string body = "mov.u32 %r9, 0;\n";
  for (const char* name : {"%clusterid.x", "%clusterid.y", "%clusterid.z", "%cluster_ctaid.x",
                           "%cluster_ctaid.y", "%cluster_ctaid.z"}) {
    body += fmt::format("mov.u32 %r4, {};\nmad.lo.u32 %r9, %r9, 10, %r4;\n", name);
  }
  body +=
      "mov.u32 %r20, %ctaid.z;\nmov.u32 %r21, %nctaid.y;\nmov.u32 %r22, %ctaid.y;\n"
      "mad.lo.u32 %r20, %r20, %r21, %r22;\nmov.u32 %r21, %nctaid.x;\nmov.u32 %r22, %ctaid.x;\n"
      "mad.lo.u32 %r20, %r20, %r21, %r22;\nmul.wide.u32 %rd20, %r20, 8;\n"
      "add.s64 %rd20, %rd20, %rd1;\ncvt.u64.u32 %rd9, %r9;\nst.global.u64 [%rd20], %rd9;";
  for (const auto& [shape, grid] : std::vector<std::pair<gpu::Dim3, gpu::Dim3>>{
           {{2, 3, 1}, {4, 9, 2}}, {{1, 2, 4}, {3, 4, 8}}, {{5, 1, 3}, {5, 2, 9}}}) {
    gpu::Launch launch = launch_of(1, 1, 8 * grid.count());
    launch.kernels[0].grid = grid;
    const std::string name = fmt::format("{}, {}, {}", shape.x, shape.y, shape.z);
    const auto outcome = run_text(in_clusters(name, body), launch);
    ASSERT_TRUE(outcome) << outcome.error().message;
    const auto found = words_of(*outcome);
    for (std::uint32_t i = 0; i < grid.count(); ++i) {
      const std::uint32_t x = i % grid.x;
      const std::uint32_t y = i / grid.x % grid.y;
      const std::uint32_t z = i / grid.x / grid.y;
      EXPECT_EQ(found[i],
                ((((x / shape.x * 10U + y / shape.y) * 10 + z / shape.z) * 10 + x % shape.x) * 10 +
                 y % shape.y) *
                        10 +
                    z % shape.z)
          << name << " block " << i;
    }
  }
}

// Lanes of both sides are at one barrier, and one half of the warp comes to it much later.
TEST(Clusters, lanes_on_both_sides_of_a_branch_arrive_and_wait_on_their_own) {
  const std::string barrier = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";
  const auto found = words("2",
                           "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra FEW;\nst.shared.u32 [%r3], 55;\n" +
                               barrier + barrier + "bra MEET;\nFEW:\n" + barrier +
                               "xor.b32 %r6, %r2, 1;\nmapa.shared::cluster.u32 %r7, %r3, %r6;\n"
                               "ld.shared::cluster.u32 %r8, [%r7];\ncvt.u64.u32 %rd9, %r8;\n" +
                               barrier + "MEET:\n",
                           grid_of(2, 1, 32));
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(found[i], i % 32 < 16 ? 55U : 0U);
}

// The reads behind the barrier do not race with the writes before it.
TEST(Clusters, their_barrier_orders_the_warps_of_a_block) {
  const auto found =
      words("2",
            "mad.lo.u32 %r5, %r1, 4, %r3;\nst.shared.u32 [%r5], %r1;\n" + cluster_barrier +
                "xor.b32 %r6, %r1, 32;\nmad.lo.u32 %r6, %r6, 4, %r3;\n"
                "ld.shared.u32 %r7, [%r6];\ncvt.u64.u32 %rd9, %r7;",
            grid_of(2, 1, 64));
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(found[i], i % 64 ^ 32U);
}

TEST(Clusters, a_warp_that_waits_at_a_barrier_of_its_block_is_not_let_go_by_that_of_the_cluster) {
  const auto found = words("2, 1, 1", R"(
mov.u32 %r4, 0;
barrier.cluster.arrive.release.aligned;
setp.lt.u32 %p1, %r1, 32;
@%p1 bra SYNC;
barrier.cluster.wait.acquire.aligned;
mov.u32 %r4, 7;
st.shared.u32 [%r3], %r4;
SYNC:
bar.sync 1, 64;
ld.shared.u32 %r5, [%r3];
cvt.u64.u32 %rd9, %r5;
)",
                           grid_of(2, 1, 64));
  EXPECT_THAT(found, testing::Each(7U));
}

// Lanes of one warp wait for the other block while the rest waits for them at a barrier.
TEST(Clusters, a_block_waits_for_the_others_if_any_of_its_lanes_does) {
  const auto found = words("2", R"(
barrier.cluster.arrive;
mov.u32 %r4, 0;
setp.eq.u32 %p1, %r2, 0;
@%p1 bra READY;
LATE:
add.u32 %r4, %r4, 1;
setp.lt.u32 %p2, %r4, 200000;
@%p2 bra LATE;
READY:
setp.lt.u32 %p3, %r1, 16;
@%p3 barrier.cluster.wait;
barrier.sync 1;
@!%p3 barrier.cluster.wait;
mov.u64 %rd9, 7;)",
                           grid_of(2, 1, 96));
  EXPECT_THAT(found, testing::Each(7U));
}

}  // namespace
}  // namespace demarc::emulate
