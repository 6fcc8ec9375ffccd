// Kernels each in a process of its own: an emulator that crashes or hangs on one of them is a
// failed expectation with the kernel's name, and the tests of the others go on. They are small, and
// between them they take the ways on which the emulator follows pointers of its own: frames of
// functions, groups of lanes, barriers, blocks of a cluster, unwritten bits, the heap, the records
// of races.
#include "own_process.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <string_view>

#include "progress_kernels.hpp"

namespace demarc::emulate {
namespace {

using test::in_both_sides;
using test::kernel_of;
using test::launch_of;
using test::progress_store;
using test::run_text;
using test::shared_area;
using test::words_of;

struct OwnKernel {
  const char* name;
  std::string declarations;
  std::string body;                                         // leaves the word of each thread in %r9
  std::function<std::uint64_t(std::uint32_t thread)> word;  // what it is
  const char* finding = "";  // words of the only one; none: there is none
  std::uint32_t threads = 32;
  std::uint32_t blocks = 1;
  const char* directives = "";
  bool traced = false;
};

class EventCount final : public TraceSink {
 public:
  Result<void> consume(const TraceChunk& chunk) override {
    words += chunk.words.size();
    return {};
  }
  std::size_t words = 0;
};

void PrintTo(const OwnKernel& one, std::ostream* out) {
  *out << one.name;
}

std::function<std::uint64_t(std::uint32_t)> always(std::uint64_t word) {
  return [word](std::uint32_t) { return word; };
}

std::uint64_t lane_numbers(std::uint32_t thread) {
  return thread % 32;
}

void run_and_compare(const OwnKernel& one) {
  std::string text =
      kernel_of(one.declarations,
                "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmul.lo.u32 %r3, %r2, %r3;\n"
                "mad.wide.u32 %rd2, %r3, 8, %rd2;\nmov.u32 %r9, 99;\n" +
                    one.body + progress_store);
  text.insert(text.find("{\n", text.find(".entry")), one.directives);
  const std::uint32_t all = one.threads * one.blocks;
  EventCount events;
  const auto outcome = run_text(text, launch_of(one.blocks, one.threads, 8 * (all + 8)), {},
                                one.traced ? &events : nullptr);
  EXPECT_EQ(events.words != 0, one.traced);
  ASSERT_TRUE(outcome) << outcome.error().message;
  if (std::string_view(one.finding).empty()) {
    for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  } else {
    ASSERT_EQ(outcome->findings.size(), 1U);
    EXPECT_THAT(outcome->findings[0].detail, testing::HasSubstr(one.finding));
  }
  const auto words = words_of(*outcome);
  for (std::uint32_t i = 0; i < all; ++i) ASSERT_EQ(words[i], one.word(i)) << "thread " << i;
}

std::vector<OwnKernel> blocks_and_barriers() {
  const auto below_20 = [](const char* reduce) {
    return "setp.lt.u32 %p2, %r1, 20;\n" + std::string(reduce);
  };
  return {
      {"many_blocks_one_after_the_other", "", "mad.lo.u32 %r9, %r2, 1000, %r1;",
       [](std::uint32_t i) { return i / 64 * 1000 + i % 64; }, "", 64, 70},
      {"many_blocks_whose_lanes_part", "",
       in_both_sides("mov.u32 %r9, %r4;", "add.u32 %r9, %r4, 1;"),
       [](std::uint32_t i) { return i % 2 == 0 ? i % 64 * 2 : i % 64 * 3 + 1; }, "", 64, 9},
      {"hints", "",
       "prefetch.global.L1 [%rd1];\ncp.async.commit_group;\ncp.async.wait_all;\n"
       "mov.u32 %r9, 6;",
       always(6)},
      {"blocks_that_are_traced", "",
       "setp.lt.u32 %p1, %r1, 40;\n@%p1 add.u32 %r9, %r9, 1;\nbar.sync 0;",
       [](std::uint32_t i) { return i % 64 < 40 ? 100 : 99; }, "", 64, 3, "", true},
      {"a_reduction_of_the_whole_block", "", below_20("bar.red.popc.u32 %r9, 3, %p2;\nbar.sync 0;"),
       always(20), "", 96},
      {"a_reduction_to_a_predicate", "",
       below_20("bar.red.or.pred %p3, 3, %p2;\n@%p3 mov.u32 %r9, 20;"), always(20), "", 96},
      {"barriers_of_some_warps", "",
       "setp.ge.u32 %p1, %r1, 32;\n@%p1 bra WAITS;\nbarrier.arrive 5, 64;\nbra OVER;\nWAITS:\n"
       "barrier.sync 5, 64;\nOVER:\nmov.u32 %r9, 4;",
       always(4), "", 64},
      {"barriers_of_both_sides", "",
       in_both_sides(below_20("barrier.red.popc.u32 %r9, 2, %p2;"),
                     below_20("barrier.red.popc.u32 %r9, 2, %p2;")) +
           "barrier.sync 1;",
       always(20), "", 64},
      {"a_number_beyond_the_last", "", "mov.u32 %r3, 16;\nmov.u32 %r4, 32;\nbar.sync %r3, %r4;",
       always(0), "barrier 16 with 32 threads"},
      {"a_barrier_of_those_that_have_not_left", "",
       "setp.ge.u32 %p1, %r1, 70;\n@%p1 exit;\nbar.sync 0;\nmov.u32 %r9, 4;\nbar.sync 1;",
       [](std::uint32_t i) { return i < 70 ? 4 : 0; }, "", 128},
      {"too_few_threads", "", "bar.sync 1, 64;", always(0), "too few threads take part"},
      {"warps_elsewhere", "",
       "setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 1, 64;\n@!%p1 bar.sync 2, 64;", always(0),
       "the barrier is never completed: warp 1 waits at line", 64},
      {"lanes_that_never_come", "", in_both_sides("bar.warp.sync -1;", "barrier.sync 0;"),
       always(0), "16 threads of the warp do not arrive"},
      {"lanes_at_different_collectives", "",
       in_both_sides("redux.sync.add.u32 %r9, %r4, -1;", "bar.warp.sync -1;"), always(0),
       "16 threads of the warp do not arrive"},
      {"a_trap_of_some", "", "setp.eq.u32 %p1, %r1, 9;\n@%p1 trap;\nbar.sync 0;", always(0),
       "the kernel executed a trap", 64},
  };
}

constexpr const char* own_functions =
    ".func (.param .b32 r) twice(.param .b32 a)\n{ .reg .b32 %s<3>; .reg .b64 %t<2>;\n"
    ".local .align 4 .b8 own[128];\nld.param.b32 %s1, [a];\nmov.u64 %t1, own;\n"
    "st.local.u32 [%t1+124], %s1;\nld.local.u32 %s2, [%t1+124];\nadd.u32 %s2, %s2, %s1;\n"
    "st.param.b32 [r], %s2; ret; }\n"
    ".func (.param .b32 r) more(.param .b32 a)\n{ .reg .b32 %s<3>; .reg .pred %q;\n"
    ".local .align 4 .b8 own[72];\nld.param.b32 %s1, [a];\nsetp.lt.u32 %q, %s1, 10;\n"
    "st.param.b32 [r], %s1;\n@%q ret;\n"
    "{ .param .b32 b; .param .b32 c;\nst.param.b32 [b], %s1;\ncall (c), twice, (b);\n"
    "ld.param.b32 %s2, [c]; }\nst.param.b32 [r], %s2; ret; }\n";
std::string own_call(const char* name) {
  return fmt::format(
      "{{ .param .b32 a; .param .b32 r;\nst.param.b32 [a], %r4;\ncall (r), {}, (a);\n"
      "ld.param.b32 %r9, [r]; }}\n",
      name);
}
const std::string own_lock = R"(
LOOK:
atom.global.cas.b32 %r4, [%rd5], 0, 1;
setp.ne.u32 %p1, %r4, 0;
@%p1 bra LOOK;
ld.volatile.global.u32 %r5, [%rd5+4];
add.u32 %r5, %r5, 1;
st.volatile.global.u32 [%rd5+4], %r5;
membar.gl;
atom.global.exch.b32 %r4, [%rd5], 0;
)";

std::vector<OwnKernel> lanes_that_part() {
  const auto doubled = [](std::uint32_t i) { return 2 * i; };
  return {
      {"a_call_by_all", own_functions, "mov.u32 %r4, %r1;\n" + own_call("twice"), doubled},
      {"a_call_from_both_sides", own_functions, in_both_sides(own_call("twice"), own_call("more")),
       [](std::uint32_t i) { return i % 2 == 0   ? 4 * i
                                    : 3 * i < 10 ? 3 * i
                                                 : 6 * i; }},
      {"a_function_that_some_leave_early", own_functions, "mov.u32 %r4, %r1;\n" + own_call("more"),
       [](std::uint32_t i) { return i < 10 ? i : 2 * i; }},
      {"calls_through_a_register", own_functions,
       "and.b32 %r3, %r1, 1;\nsetp.eq.u32 %p1, %r3, 0;\nmov.u64 %rd5, twice;\nmov.u64 %rd6, more;\n"
       "selp.b64 %rd5, %rd5, %rd6, %p1;\n{ .param .b32 a; .param .b32 r;\nst.param.b32 [a], %r1;\n"
       "P: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (r), %rd5, (a), P;\n"
       "ld.param.b32 %r9, [r]; }",
       [](std::uint32_t i) { return i % 2 == 0 || i >= 10 ? 2 * i : i; }},
      {"a_table_of_branches", "",
       "and.b32 %r3, %r1, 1;\nT: .branchtargets L0, L1;\nbrx.idx %r3, T;\nL0:\nmov.u32 %r9, 3;\n"
       "bra OVER;\nL1:\nmov.u32 %r9, 5;\nOVER:",
       [](std::uint32_t i) { return i % 2 == 0 ? 3 : 5; }},
      {"a_place_behind_a_table", "", "T: .branchtargets L0;\nbrx.idx %r1, T;\nL0:\nbar.sync 0;",
       always(0), "branch index 1 of a list of 1 targets"},
      {"sides_that_both_leave", "",
       in_both_sides("setp.lt.u32 %p5, %r1, 32;\n@%p5 exit;",
                     "setp.lt.u32 %p5, %r1, 40;\n@%p5 exit;"),
       always(0)},
      {"member_masks", "",
       "setp.lt.u32 %p1, %r1, 12;\nselp.b32 %r4, 0xfff, 0xfffff000, %p1;\n"
       "redux.sync.add.u32 %r9, %r1, %r4;",
       [](std::uint32_t i) { return i < 12 ? 66 : 430; }},
      {"a_member_mask_in_a_register_of_each_lane", "",
       "or.b32 %r4, %r1, -1;\nredux.sync.add.u32 %r9, %r1, %r4;", always(496)},
      {"leaders_of_member_masks", "",
       "setp.lt.u32 %p1, %r1, 12;\nselp.b32 %r4, 0xfff, 0xfffff000, %p1;\nand.b32 %r5, %r1, 1;\n"
       "elect.sync %r9|%p2, %r4;\n@%p2 add.u32 %r9, %r9, 500;\n"
       "match.any.sync.b32 %r6, %r5, %r4;\nand.b32 %r6, %r6, 0x3003;\nadd.u32 %r9, %r9, %r6;",
       [](std::uint32_t i) {
         const std::uint32_t first = i < 12 ? 0 : 12;
         return first + (i == first ? 500 : 0) + ((1U + i % 2) << first);
       }},
      {"a_shuffle_by_both_sides", "",
       in_both_sides("shfl.sync.idx.b32 %r9, %r4, 3, 31, -1;",
                     "mov.u32 %r12, %r4;\nshfl.sync.idx.b32 %r9, %r12, 3, 31, -1;"),
       always(9)},
      {"a_vote_by_both_sides_when_some_have_left", "",
       "setp.ge.u32 %p4, %r1, 20;\n@%p4 exit;\n" +
           in_both_sides("setp.gt.u32 %p2, %r1, 17;\nvote.sync.ballot.b32 %r9, %p2, 0xfffff;",
                         "setp.le.u32 %p3, %r1, 17;\nvote.sync.ballot.b32 %r9, !%p3, 0xfffff;"),
       [](std::uint32_t i) { return i < 20 ? 0xc0000 : 0; }},
      {"collectives_of_some", "",
       "setp.ge.u32 %p4, %r1, 20;\n@%p4 exit;\nsetp.lt.u32 %p1, %r1, 3;\nand.b32 %r3, %r1, 1;\n"
       "shfl.sync.up.b32 %r4, %r1, 1, 0, 0xfffff;\nvote.sync.ballot.b32 %r5, %p1, 0xfffff;\n"
       "vote.sync.any.pred %p2, %p1, 0xfffff;\n@%p2 add.u32 %r5, %r5, 1000;\n"
       "match.any.sync.b32 %r6, %r3, 0xfffff;\nmatch.all.sync.b32 %r7|%p3, %r2, 0xfffff;\n"
       "redux.sync.max.u32 %r8, %r1, 0xfffff;\nelect.sync %r10|%p5, 0xfffff;\n"
       "activemask.b32 %r11;\nadd.u32 %r9, %r4, %r5;\nadd.u32 %r9, %r9, %r6;\n"
       "add.u32 %r9, %r9, %r7;\nadd.u32 %r9, %r9, %r8;\nadd.u32 %r9, %r9, %r10;\n"
       "add.u32 %r9, %r9, %r11;",
       [](std::uint32_t i) -> std::uint64_t {
         if (i >= 20) return 0;
         const std::uint64_t before = i == 0 ? 0 : i - 1;
         return before + 1007 + (i % 2 == 0 ? 0x55555 : 0xaaaaa) + 0xfffff + 19 + 0xfffff;
       }},
      {"matches_by_both_sides", "",
       in_both_sides("and.b32 %r4, %r1, 2;\nmatch.any.sync.b32 %r9, %r4, -1;",
                     "and.b32 %r12, %r1, 2;\nmatch.any.sync.b32 %r9, %r12, -1;"),
       [](std::uint32_t i) { return (i & 2U) == 0 ? 0x33333333 : 0xcccccccc; }},
      {"a_transposed_matrix", "", "movmatrix.sync.aligned.m8n8.trans.b16 %r9, %r1;",
       [](std::uint32_t i) {
         const std::uint32_t low = i % 4 * 8 + i / 8;
         return i / 4 % 2 == 0 ? low | (low + 4) << 16 : 0;
       }},
      {"logic_of_predicates", "",
       "setp.lt.u32 %p1, %r1, 16;\nand.b32 %r3, %r1, 1;\nsetp.eq.u32 %p2, %r3, 0;\n"
       "and.pred %p3, %p1, %p2;\nor.pred %p4, %p1, %p2;\nxor.pred %p5, %p1, %p2;\n"
       "not.pred %p6, %p5;\nselp.u32 %r9, 1, 0, %p3;\n@%p4 add.u32 %r9, %r9, 10;\n"
       "@%p5 add.u32 %r9, %r9, 100;\n@%p6 add.u32 %r9, %r9, 1000;",
       [](std::uint32_t i) {
         const bool low = i < 16;
         const bool even = i % 2 == 0;
         return (low && even ? 1 : 0) + (low || even ? 10 : 0) + (low != even ? 100 : 1000);
       }},
      {"lanes_that_sleep_and_look", "",
       "setp.ge.u32 %p1, %r1, 16;\n@%p1 bra LATER;\nLOOK:\nnanosleep.u32 20;\n"
       "ld.acquire.gpu.global.u32 %r9, [%rd1+256];\nsetp.eq.u32 %p2, %r9, 0;\n@%p2 bra LOOK;\n"
       "bra OVER;\nLATER:\nmov.u32 %r9, 4;\nst.release.gpu.global.u32 [%rd1+256], %r9;\nOVER:",
       always(4)},
      {"a_matrix_that_all_load_behind_a_branch", shared_area,
       "mov.u32 %r5, area;\nmad.lo.u32 %r6, %r1, 4, %r5;\nst.shared.u32 [%r6], %r1;\n"
       "and.b32 %r7, %r1, 7;\nmad.lo.u32 %r7, %r7, 16, %r5;\nbar.warp.sync -1;\n"
       "setp.lt.u32 %p1, %r1, 9;\n@%p1 bra NEXT;\nadd.u32 %r8, %r1, 1;\nNEXT:\n"
       "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r7];",
       lane_numbers},
      {"masks_of_lanes", "",
       "setp.gt.u32 %p1, %r1, 40;\n@%p1 mov.u32 %r9, 1;\nmov.u32 %r3, %lanemask_le;\n"
       "mov.u32 %r4, %warpid;\nadd.u32 %r9, %r3, %r4;",
       [](std::uint32_t i) { return (std::uint64_t{2} << i % 32) - 1 + i / 32; }, "", 63},
      {"a_lane_that_waits_for_a_later_one", "",
       "mov.u32 %r3, 0;\nsetp.ne.u32 %p1, %r1, 1;\n@%p1 bra OVER;\nLOOK:\n"
       "ld.volatile.global.u32 %r4, [%rd1+256];\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra LOOK;\n"
       "OVER:\nadd.u32 %r3, %r3, 1;\nsetp.eq.u32 %p3, %r1, 0;\n"
       "@%p3 st.volatile.global.u32 [%rd1+256], 1;\nbar.sync 0;\nadd.u32 %r9, %r3, 4;",
       always(5)},
      {"a_lock_in_a_loop", "",
       "add.s64 %rd5, %rd1, 256;\nmov.u32 %r6, 0;\nROUND:" + own_lock +
           "add.u32 %r6, %r6, 1;\nsetp.lt.u32 %p2, %r6, 2;\n@%p2 bra ROUND;\nmov.u32 %r9, %r6;",
       always(2)},
      {"a_lock_in_a_function",
       ".func take(.param .b64 p)\n{ .reg .b64 %rd<6>; .reg .b32 %r<6>; .reg .pred %p<2>;\n"
       "ld.param.b64 %rd5, [p];" +
           own_lock + "ret; }\n",
       "add.s64 %rd5, %rd1, 256;\nmov.u32 %r6, 7;\n{ .param .b64 a;\nst.param.b64 [a], %rd5;\n"
       "call take, (a); }\nmov.u32 %r9, %r6;",
       always(7)},
      {"blocks_that_wait_for_each_other", "",
       in_both_sides("", "") + "atom.global.add.u32 %r4, [%rd1+1024], "
                               "1;\nLOOK:\nld.volatile.global.u32 %r9, [%rd1+1024];\n"
                               "setp.lt.u32 %p2, %r9, 128;\n@%p2 bra LOOK;",
       always(128), "", 32, 4},
  };
}

const std::string own_cluster_barrier =
    "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n";
// Thread 0 sends 128 bytes of `tile` to block `to`, at whose mbarrier each block waits for some.
std::string own_bulk_copy(const char* to) {
  return "mov.u32 %r3, tile;\nmov.u32 %r4, bar;\nsetp.eq.u32 %p1, %r1, 0;\n"
         "@%p1 mbarrier.init.shared::cta.b64 [%r4], 1;\n"
         "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;\n"
         "mad.lo.u32 %r6, %r1, 4, %r3;\nmad.lo.u32 %r5, %r2, 1000, %r1;\n"
         "st.shared.u32 [%r6], %r5;\n" +
         own_cluster_barrier + "xor.b32 %r5, %r2, 1;\nadd.u32 %r10, %r3, 512;\n" +
         fmt::format(
             "mapa.shared::cluster.u32 %r7, %r10, {0};\n"
             "mapa.shared::cluster.u32 %r8, %r4, {0};\n",
             to) +
         "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7], "
         "[%r3], 128, [%r8];\n";
}

std::vector<OwnKernel> blocks_of_a_cluster() {
  const char* const tile = ".shared .align 16 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n";
  const char* const pairs = ".explicitcluster\n.reqnctapercluster 2\n";
  return {
      {"a_copy_to_the_other_block", tile,
       own_bulk_copy("%r5") +
           "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;\n@!%p2 bra WAIT;\n"
           "ld.shared.u32 %r9, [%r6+512];\n" +
           own_cluster_barrier,
       [](std::uint32_t i) { return (1 - i / 32) * 1000 + i % 32; }, "", 32, 2, pairs},
      {"a_copy_to_a_block_that_is_not_there", tile, own_bulk_copy("7"), always(99),
       "of block 7 of the cluster, which has no such block", 32, 2, pairs},
      {"a_copy_for_an_mbarrier_that_is_none", tile,
       "setp.eq.u32 %p1, %r1, 0;\nmov.u32 %r3, tile;\nmov.u32 %r4, bar;\nmov.u64 %rd5, 0;\n"
       "@%p1 st.shared.u64 [%r4], %rd5;\n@%p1 st.global.u64 [%rd1], %rd5;\n"
       "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 16, "
       "[%r4];",
       always(99), "there is no initialised mbarrier at 0x"},
      {"an_arrival_at_an_mbarrier_that_is_none", tile,
       "setp.eq.u32 %p1, %r1, 0;\nmov.u32 %r4, bar;\nmov.u64 %rd5, 0;\n"
       "@%p1 st.shared.u64 [%r4], %rd5;\n@%p1 mbarrier.arrive.shared.b64 %rd6, [%r4];",
       always(99), "there is no initialised mbarrier at 0x"},
      {"a_store_to_a_block_that_is_not_there", tile,
       "mov.u32 %r3, tile;\nmapa.shared::cluster.u32 %r7, %r3, 2;\n"
       "st.shared::cluster.u32 [%r7], 1;",
       always(99), "of block 2 of the cluster, which has no such block", 32, 2, pairs},
      {"both_sides_at_its_barrier", tile,
       "mov.u32 %r3, tile;\nsetp.lt.u32 %p1, %r1, 16;\n@%p1 bra FEW;\nst.shared.u32 [%r3], 55;\n"
       "barrier.cluster.arrive;\nbarrier.cluster.wait;\nbra MEET;\nFEW:\n"
       "barrier.cluster.arrive;\nbarrier.cluster.wait;\nMEET:\n" +
           own_cluster_barrier + "ld.shared.u32 %r9, [%r3];",
       always(55), "", 32, 4, pairs},
      {"threads_that_do_not_arrive", tile,
       "setp.ge.u32 %p1, %r1, 32;\n@%p1 bar.sync 1, 64;\n" + own_cluster_barrier, always(0),
       "the barrier is never completed", 64, 2, pairs},
      {"a_block_that_ends_first", tile,
       "setp.eq.u32 %p1, %r2, 0;\n@%p1 exit;\n" + own_cluster_barrier + "mov.u32 %r9, 6;",
       [](std::uint32_t i) { return i < 32 ? 0 : 6; }, "", 32, 2, pairs},
  };
}

constexpr const char* own_local =
    ".local .align 16 .b8 mine[32];\nmov.u64 %rd5, mine;\nmov.u16 %h1, 7;\n"
    "st.local.u8 [%rd5], %h1;\n";

std::vector<OwnKernel> memory_that_is_followed() {
  const auto lanes = [](std::uint32_t i) { return std::uint64_t{i}; };
  const std::string take =
      "{ .param .b64 n; .param .b64 r;\nst.param.b64 [n], 24;\ncall (r), malloc, (n);\n"
      "ld.param.b64 %rd5, [r]; }\n";
  const std::string give = "{ .param .b64 p;\nst.param.b64 [p], %rd5;\ncall free, (p); }\n";
  const char* const heap =
      ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n";
  const std::string shared_word =
      "mov.u32 %r3, area;\nmad.lo.u32 %r3, %r1, 4, %r3;\nst.shared.u32 [%r3], %r1;\n";
  return {
      {"unwritten_bytes_that_no_value_needs", "",
       std::string(own_local) + "ld.local.u32 %r3, [%rd5];\nand.b32 %r9, %r3, 0xff;", always(7)},
      {"unwritten_bytes_that_a_branch_needs", "",
       std::string(own_local) +
           "ld.local.u32 %r3, [%rd5+4];\nsetp.gt.u32 %p1, %r3, %r1;\n@%p1 mov.u32 %r9, 1;",
       always(99), "were not written before; line"},
      {"unwritten_bytes_that_a_function_gets", own_functions,
       std::string(own_local) +
           "ld.local.u32 %r4, [%rd5];\n{ .param .b32 a; .param .b32 r;\nst.param.b32 [a], %r4;\n"
           "call (r), twice, (a);\nld.param.b32 %r9, [r]; }\nand.b32 %r9, %r9, 0xff;",
       always(14)},
      {"unwritten_bytes_of_a_structure_that_a_function_gets",
       ".func (.param .align 8 .b8 r[16]) swapped(.param .align 8 .b8 a[16])\n{ .reg .b64 %x<3>;\n"
       "ld.param.v2.b64 {%x1, %x2}, [a];\nst.param.v2.b64 [r], {%x2, %x1}; ret; }\n",
       std::string(own_local) +
           "ld.local.u64 %rd6, [%rd5];\nmov.u64 %rd7, 60;\n{ .param .align 8 .b8 a[16]; .param "
           ".align 8 .b8 r[16];\nst.param.v2.b64 [a], {%rd6, %rd7};\ncall (r), swapped, (a);\n"
           "ld.param.v2.b64 {%rd8, %rd9}, [r]; }\ncvt.u32.u64 %r3, %rd8;\ncvt.u32.u64 %r4, %rd9;\n"
           "and.b32 %r4, %r4, 0xff;\nadd.u32 %r9, %r3, %r4;",
       always(67)},
      {"unwritten_bytes_beside_a_call_through_a_register", own_functions,
       std::string(own_local) +
           "ld.local.u32 %r5, [%rd5];\nmov.u64 %rd6, twice;\n{ .param .b32 a; .param .b32 r;\n"
           "st.param.b32 [a], %r1;\nP: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
           "call (r), %rd6, (a), P;\nld.param.b32 %r9, [r]; }\nand.b32 %r5, %r5, 0xff;\n"
           "add.u32 %r9, %r9, %r5;",
       [](std::uint32_t i) { return 2 * i + 7; }},
      {"unwritten_bytes_of_another_lane", "",
       std::string(own_local) +
           "ld.local.u32 %r3, [%rd5];\nshfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;\nprmt.b32 %r4, %r4, "
           "0, 0x4440;\nst.local.u64 [%rd5+8], %rd1;\nadd.u32 %r9, %r4, 1;",
       always(8)},
      {"unwritten_bytes_in_a_long_loop", "",
       std::string(own_local) +
           "ld.local.v4.u32 {%r3, %r4, %r5, %r6}, [%rd5];\nmov.u32 %r7, 0;\nLOOP:\n"
           "add.u32 %r7, %r7, 1;\nand.b32 %r3, %r3, 0xff;\nsetp.lt.u32 %p1, %r7, 2000;\n"
           "@%p1 bra LOOP;\nand.b32 %r4, %r4, 0;\nadd.u32 %r9, %r3, %r4;",
       always(7)},
      {"a_vote_on_unwritten_bytes", "",
       std::string(own_local) + "ld.local.u32 %r3, [%rd5+4];\nsetp.lt.s32 %p1, %r3, 0;\n"
                                "vote.sync.any.pred %p1, %p1, -1;\n@%p1 mov.u32 %r9, 1;",
       always(99), "were not written before; line"},
      {"unwritten_bytes_around_written_ones", "",
       std::string(own_local) +
           "ld.local.u32 %r3, [%rd5+4];\nbfi.b32 %r3, %r1, %r3, 8, 8;\nshr.u32 %r3, %r3, 8;\n"
           "and.b32 %r9, %r3, 0xff;",
       lanes},
      {"a_store_to_two_spaces", shared_area,
       std::string(own_local) +
           "mov.u64 %rd6, area;\ncvta.shared.u64 %rd6, %rd6;\ncvta.local.u64 %rd7, %rd5;\n"
           "and.b32 %r3, %r1, 1;\nsetp.eq.u32 %p1, %r3, 0;\nselp.u64 %rd8, %rd6, %rd7, %p1;\n"
           "st.u32 [%rd8+8], 9;\nld.u32 %r9, [%rd8+8];",
       always(9)},
      {"an_atomic_on_unwritten_bytes", shared_area,
       "mov.u32 %r3, area;\nmad.lo.u32 %r3, %r1, 4, %r3;\natom.shared.add.u32 %r9, [%r3], 1;",
       always(0), "bytes at 0x0 in shared memory were not written before"},
      {"a_store_before_all_buffers", "",
       "setp.eq.u32 %p1, %r1, 5;\n@%p1 st.global.u32 [%rd1+-4096], 1;\nmov.u32 %r9, %r1;", lanes,
       "bytes before the 320 bytes"},
      {"an_mbarrier_beyond_shared_memory", shared_area,
       "setp.eq.u32 %p1, %r1, 5;\nmov.u32 %r3, area;\n"
       "@%p1 mbarrier.init.shared.b64 [%r3+4096], 1;\nmov.u32 %r9, %r1;",
       lanes, "write of 8 bytes at 0x1000 in shared memory"},
      {"a_copy_to_where_another_warp_wrote", shared_area,
       "mov.u32 %r3, area;\nsetp.eq.u32 %p1, %r1, 5;\n@%p1 st.shared.u64 [%r3], 1;\n"
       "setp.eq.u32 %p1, %r1, 35;\n@%p1 cp.async.ca.shared.global [%r3], [%rd1+512], 8;\n"
       "cp.async.wait_all;\nmov.u32 %r9, %r1;",
       lanes, "thread (5,0,0) touched it since the last barrier", 64},
      {"a_store_beyond_a_buffer", "",
       "setp.eq.u32 %p1, %r1, 5;\n@%p1 st.global.u32 [%rd1+1048576], 1;\nmov.u32 %r9, %r1;", lanes,
       "bytes after the end of the 320 bytes"},
      {"memory_from_malloc", heap,
       take + "st.u32 [%rd5+20], %r1;\nld.u32 %r9, [%rd5+20];\n" + give + take + give, lanes},
      {"much_memory_from_malloc", heap,
       "mov.u32 %r3, 0;\nLOOP:\n" + take + take + give +
           "add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 100;\n@%p1 bra LOOP;\nmov.u32 %r9, %r1;",
       lanes},
      {"much_memory_at_once", heap,
       "mov.u32 %r3, 0;\nLOOP:\n{ .param .b64 n; .param .b64 r;\nst.param.b64 [n], 8000000;\n"
       "call (r), malloc, (n);\nld.param.b64 %rd5, [r]; }\nst.u32 [%rd5+7999996], 5;\n"
       "ld.u32 %r9, [%rd5+7999996];\n" +
           give + "add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 3;\n@%p1 bra LOOP;",
       always(5), "", 1},
      {"memory_that_was_freed", heap, take + give + "st.u32 [%rd5], %r1;\nmov.u32 %r9, %r1;", lanes,
       "that were freed at line"},
      {"words_of_another_warp_behind_a_barrier_of_both", shared_area,
       shared_word + "bar.sync 1, 64;\nxor.b32 %r4, %r3, 128;\nld.shared.u32 %r9, [%r4];",
       [](std::uint32_t i) { return i ^ 32U; }, "", 64},
      {"words_of_another_warp_that_it_hands_on", shared_area,
       shared_word +
           "setp.ge.u32 %p1, %r1, 32;\nmov.u32 %r4, area;\n@%p1 bra LOOK;\nmov.u32 %r9, %r1;\n"
           "setp.ne.u32 %p2, %r1, 0;\n@%p2 bra OVER;\nmembar.cta;\n"
           "st.volatile.shared.u32 [%r4+500], 1;\nbra OVER;\nLOOK:\n"
           "ld.volatile.shared.u32 %r5, [%r4+500];\nsetp.eq.u32 %p3, %r5, 0;\n@%p3 bra LOOK;\n"
           "membar.cta;\nld.shared.u32 %r9, [%r4];\nOVER:",
       [](std::uint32_t i) { return i < 32 ? i : 0; }, "", 64},
      {"words_of_another_warp_behind_an_mbarrier",
       std::string(shared_area) + ".shared .align 8 .b64 bar;\n",
       "mov.u32 %r4, bar;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 mbarrier.init.shared.b64 [%r4], 64;\n"
       "bar.sync 0;\n" +
           shared_word +
           "mbarrier.arrive.shared.b64 %rd5, [%r4];\nWAIT:\n"
           "mbarrier.try_wait.shared.b64 %p2, [%r4], %rd5;\n@!%p2 bra WAIT;\n"
           "xor.b32 %r5, %r1, 32;\nmov.u32 %r6, area;\nmad.lo.u32 %r5, %r5, 4, %r6;\nld.shared.u32 "
           "%r9, [%r5];",
       [](std::uint32_t i) { return i ^ 32U; }, "", 64},
      {"a_word_that_an_odd_thread_wrote", shared_area,
       "mov.u32 %r3, area;\nsetp.eq.u32 %p1, %r1, 3;\n@%p1 st.shared.u32 [%r3], 7;\n"
       "setp.eq.u32 %p1, %r1, 40;\n@%p1 ld.shared.u32 %r9, [%r3];",
       [](std::uint32_t i) { return i == 40 ? 7 : 99; },
       "thread (3,0,0) touched it since the last barrier", 64},
      {"a_word_that_an_odd_thread_hands_on_unordered", shared_area,
       "mov.u32 %r3, area;\nsetp.eq.u32 %p1, %r1, 3;\n@%p1 st.shared.u32 [%r3], 7;\n"
       "@%p1 st.volatile.shared.u32 [%r3+8], 1;\nbar.arrive 1, 96;\nsetp.eq.u32 %p1, %r1, 40;\n"
       "@%p1 ld.shared.u32 %r9, [%r3];",
       [](std::uint32_t i) { return i == 40 ? 7 : 99; },
       "thread (3,0,0) touched it since the last barrier", 64},
      {"words_of_another_warp_without_a_barrier", shared_area,
       "mov.u32 %r3, area;\nst.shared.u32 [%r3], %r1;\nmov.u32 %r9, %r1;", lanes,
       "touched it since the last barrier", 64},
  };
}

std::string name_of(const testing::TestParamInfo<OwnKernel>& info) {
  return info.param.name;
}

// GoogleTest runs suites of such a name before all others.
class OwnProcessDeathTest : public testing::TestWithParam<OwnKernel> {};

TEST_P(OwnProcessDeathTest, ends_by_itself_with_the_words_and_the_finding_expected) {
  EXPECT_TRUE(demarc::test::passes_in_a_process([&] { run_and_compare(GetParam()); }));
}

INSTANTIATE_TEST_SUITE_P(Barriers, OwnProcessDeathTest, testing::ValuesIn(blocks_and_barriers()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Lanes, OwnProcessDeathTest, testing::ValuesIn(lanes_that_part()), name_of);
INSTANTIATE_TEST_SUITE_P(Clusters, OwnProcessDeathTest, testing::ValuesIn(blocks_of_a_cluster()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Memory, OwnProcessDeathTest, testing::ValuesIn(memory_that_is_followed()),
                         name_of);

}  // namespace
}  // namespace demarc::emulate
