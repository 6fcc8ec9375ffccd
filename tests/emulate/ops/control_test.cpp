// Calls and how deep they nest, branches by a table, lanes that exit or return, logic of
// predicates, and the branches that statistics count.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "demarc/ptx/vocabulary.hpp"
#include "groups.hpp"
#include "ops/control.hpp"
#include "progress_kernels.hpp"

namespace demarc::emulate {
namespace {

using test::in_both_sides;
using test::kernel_of;
using test::launch_of;
using test::progress_words;
using test::run_text;
using test::words_of;
using testing::HasSubstr;

// A warp of 32 lanes, of which 16 have parted from the others and are to meet them at micro-op 7.
class LeavingLanes : public testing::Test {
 protected:
  LeavingLanes() {
    program.block = {32, 1, 1};
    program.functions.resize(1);
    program.functions[0].frame_bytes = sizeof frame;
    program.tids.resize(std::size_t{3} * warp_size);
    program.code.resize(20);
    program.code[2].a = 8;
    block = std::make_unique<Block>(program, pool);
    block->start(0, false, false);
    warp = &block->warps[0];
    warp->frame = frame;
    meeting = &open_meeting(*warp, 7);
    park(*warp, 12, 0xffff0000);
    warp->mask = 0xffff;
  }

  // Micro-op 2, for the lanes of `predicate`, or for all.
  const MicroOp* leave(Handler handler, std::optional<Mask> predicate, bool negated = false) {
    MicroOp& op = program.code[2];
    op.flags = static_cast<std::uint8_t>((predicate ? control::flag_conditional : 0) |
                                         (negated ? control::flag_negated : 0));
    const Mask given = predicate.value_or(0);
    if (predicate) std::memcpy(warp->frame + op.a, &given, sizeof given);
    return handler(*warp, &op);
  }
  [[nodiscard]] const MicroOp* at(std::size_t place) const { return program.code.data() + place; }

  alignas(64) std::byte frame[256] = {};
  Program program;
  FramePool pool;
  std::unique_ptr<Block> block;
  Warp* warp = nullptr;
  Meeting* meeting = nullptr;
};

TEST_F(LeavingLanes, exit_where_the_predicate_says_so_and_are_waited_for_nowhere) {
  EXPECT_EQ(leave(control::exit_lanes, 0), at(3)) << "none does";
  EXPECT_EQ(leave(control::exit_lanes, 0xffff0000), at(3)) << "others would";
  EXPECT_EQ(leave(control::exit_lanes, 0xffff, true), at(3));
  EXPECT_EQ(warp->live, full_mask);
  EXPECT_EQ(warp->mask, 0xffffU);
  EXPECT_EQ(meeting->mask, full_mask);
  EXPECT_EQ(leave(control::exit_lanes, 0xf000000f), at(3));
  EXPECT_EQ(warp->live, 0xfffffff0U);
  EXPECT_EQ(warp->mask, 0xfff0U);
  EXPECT_EQ(meeting->mask, 0xfffffff0U);
  EXPECT_EQ(leave(control::exit_lanes, 0xff0, true), at(3));
  EXPECT_EQ(warp->live, 0xffff0ff0U);
  EXPECT_EQ(warp->mask, 0xff0U);
  ASSERT_EQ(leave(control::exit_lanes, std::nullopt), at(12)) << "the others go on";
  EXPECT_EQ(warp->live, 0xffff0000U);
  EXPECT_EQ(warp->mask, 0xffff0000U);
  EXPECT_EQ(meeting->mask, 0xffff0000U);
  EXPECT_EQ(warp->state, WarpState::ready);
  EXPECT_EQ(block->running, 1U);
  EXPECT_EQ(leave(control::exit_lanes, std::nullopt), nullptr);
  EXPECT_EQ(warp->live, 0U);
  EXPECT_EQ(warp->state, WarpState::done);
  EXPECT_EQ(block->running, 0U);
}

TEST_F(LeavingLanes, stay_behind_a_guard_and_are_there_again_behind_what_it_guards) {
  program.code[2].target = 9;
  ASSERT_EQ(leave(control::guard, 0xff00ff), at(3));
  EXPECT_EQ(warp->mask, 0xffU);
  EXPECT_EQ(warp->warp_instructions, 1U);
  EXPECT_EQ(warp->thread_instructions, 8U);
  EXPECT_EQ(control::unguard(*warp, at(4)), at(5));
  EXPECT_EQ(warp->mask, 0xffffU);
  ASSERT_EQ(leave(control::guard, 0xfff, true), at(3));
  EXPECT_EQ(warp->mask, 0xf000U);
  EXPECT_EQ(control::unguard(*warp, at(4)), at(5));
  ASSERT_EQ(leave(control::guard, 0xff0000), at(9)) << "what is guarded is passed over";
  EXPECT_EQ(warp->mask, 0xffffU);
  EXPECT_EQ(warp->warp_instructions, 3U);
  EXPECT_EQ(warp->thread_instructions, 12U);
}

TEST_F(LeavingLanes, of_a_guarded_instruction_are_traced_as_one_run_of_it) {
  block->trace.assign(8, 99);
  program.code[2].instruction = 6;
  ASSERT_EQ(leave(control::guard, 0xff), at(3));
  EXPECT_EQ(block->trace_used, 0U) << "unless they are not asked for";
  warp->mask = 0xffff;
  warp->trace_runs = true;
  ASSERT_EQ(leave(control::guard, 0xff), at(3));
  ASSERT_EQ(block->trace_used, 2U);
  EXPECT_EQ(block->trace[0], trace_detail::head(trace_detail::kind_run, 6, 0xff));
  EXPECT_EQ(block->trace[1], 1U);
  EXPECT_EQ(block->trace[2], 99U);
}

TEST_F(LeavingLanes, of_a_branch_meet_the_others_at_its_join) {
  MicroOp& op = program.code[2];
  op.target = 9;
  op.join = 13;
  ASSERT_EQ(leave(control::branch, 0xff0000), at(3)) << "none goes there";
  ASSERT_EQ(leave(control::branch, 0xfffff), at(9)) << "all do";
  EXPECT_EQ(warp->mask, 0xffffU);
  EXPECT_EQ(warp->divergent_branches, 0U);
  ASSERT_EQ(warp->meeting, meeting);
  ASSERT_EQ(leave(control::branch, 0xff), at(3));
  EXPECT_EQ(warp->mask, 0xff00U);
  EXPECT_EQ(warp->divergent_branches, 1U);
  ASSERT_NE(warp->meeting, meeting);
  EXPECT_EQ(warp->meeting->outer, meeting);
  EXPECT_EQ(warp->meeting->pc, 13U);
  EXPECT_EQ(warp->meeting->mask, 0xffffU);
  EXPECT_EQ(warp->top_join, 13U);
  ASSERT_EQ(warp->groups.size(), 2U);
  EXPECT_EQ(warp->groups[1].pc, 9U);
  EXPECT_EQ(warp->groups[1].mask, 0xffU);
  EXPECT_EQ(control::join(*warp, at(12)), at(13)) << "that is another one's";
  ASSERT_EQ(control::join(*warp, at(13)), at(9)) << "the others come first";
  EXPECT_EQ(warp->mask, 0xffU);
  ASSERT_EQ(control::join(*warp, at(13)), at(13));
  EXPECT_EQ(warp->mask, 0xffffU);
  EXPECT_EQ(warp->meeting, meeting);
  EXPECT_EQ(control::join(*warp, at(13)), at(14));
}

TEST_F(LeavingLanes, of_a_branch_that_leads_to_its_join_are_there_at_once) {
  MicroOp& op = program.code[2];
  op.target = 13;
  op.join = 13;
  ASSERT_EQ(leave(control::branch, 0xff), at(3));
  ASSERT_NE(warp->meeting, meeting);
  EXPECT_EQ(warp->meeting->arrived, 0xffU);
  EXPECT_EQ(warp->mask, 0xff00U);
  EXPECT_EQ(warp->groups.size(), 1U);
  const Meeting* const around = warp->meeting;
  ASSERT_EQ(leave(control::branch, 0xf00), at(3));
  EXPECT_EQ(warp->meeting, around) << "one branch within another with the same join";
  EXPECT_EQ(around->arrived, 0xfffU);
  EXPECT_EQ(warp->mask, 0xf000U);
  // The other side is there.
  op.target = 9;
  op.join = 3;
  ASSERT_EQ(leave(control::branch, 0x3000), at(9));
  ASSERT_NE(warp->meeting, around);
  EXPECT_EQ(warp->meeting->pc, 3U);
  EXPECT_EQ(warp->meeting->arrived, 0xc000U);
  EXPECT_EQ(warp->mask, 0x3000U);
  EXPECT_EQ(warp->groups.size(), 1U);
}

TEST_F(LeavingLanes, of_a_branch_whose_sides_never_meet_wait_for_nothing) {
  program.code[2].target = 9;
  program.code[2].join = no_join;
  warp->top_join = 7;
  ASSERT_EQ(leave(control::branch, 0xff), at(3));
  EXPECT_EQ(warp->meeting, meeting);
  EXPECT_EQ(warp->top_join, no_join);
  ASSERT_EQ(warp->groups.size(), 2U);
  EXPECT_EQ(warp->groups[1].top_join, no_join);
}

// Lane by lane the targets 0, 1, 2, 0, ...
TEST_F(LeavingLanes, of_a_table_of_branches_go_to_one_target_after_the_other) {
  const std::vector<std::uint32_t> targets{10, 11, 12};
  MicroOp& op = program.code[2];
  op.aux = &targets;
  op.a = 128;
  op.join = 13;
  for (unsigned lane = 0; lane < 32; ++lane) warp->at<std::uint32_t>(op.a)[lane] = lane % 3;
  const auto lanes_of = [](unsigned target) {
    Mask lanes = 0;
    for (unsigned lane = target; lane < 16; lane += 3) lanes |= Mask{1} << lane;
    return lanes;
  };
  ASSERT_EQ(control::branch_index(*warp, &op), at(10));
  EXPECT_EQ(warp->mask, lanes_of(0));
  EXPECT_EQ(warp->divergent_branches, 1U);
  ASSERT_NE(warp->meeting, meeting);
  EXPECT_EQ(warp->meeting->mask, 0xffffU);
  ASSERT_EQ(warp->groups.size(), 2U);
  EXPECT_EQ(warp->groups[1].pc, 2U);
  EXPECT_EQ(warp->groups[1].mask, 0xffff & ~lanes_of(0));
  ASSERT_EQ(control::join(*warp, at(13)), at(2));
  ASSERT_EQ(control::branch_index(*warp, &op), at(11));
  EXPECT_EQ(warp->mask, lanes_of(1));
  ASSERT_EQ(control::join(*warp, at(13)), at(2));
  ASSERT_EQ(control::branch_index(*warp, &op), at(12));
  EXPECT_EQ(warp->mask, lanes_of(2));
  EXPECT_EQ(warp->divergent_branches, 2U);
  EXPECT_EQ(warp->groups.size(), 1U);
  ASSERT_EQ(control::join(*warp, at(13)), at(13));
  EXPECT_EQ(warp->mask, 0xffffU);
}

TEST_F(LeavingLanes, of_a_table_of_branches_go_where_a_register_of_all_lanes_says) {
  const std::vector<std::uint32_t> targets{10, 11, 12};
  MicroOp& op = program.code[2];
  op.aux = &targets;
  op.a = 128;
  op.uniform = uniform_a;
  warp->at<std::uint32_t>(op.a)[0] = 2;
  ASSERT_EQ(control::branch_index(*warp, &op), at(12));
  EXPECT_EQ(warp->mask, 0xffffU);
  EXPECT_EQ(warp->divergent_branches, 0U);
  EXPECT_EQ(warp->meeting, meeting);
}

TEST_F(LeavingLanes, are_not_those_that_get_a_special_register) {
  program.time_ns = 0x500000000;
  program.sm_of_block = {9};
  warp->warp_instructions = 6;
  warp->mask = 0x22;
  MicroOp& op = program.code[2];
  op.d = 0;
  const auto read = [&](ptx::SpecialRegister which, std::uint8_t bytes) {
    std::fill(std::begin(frame), std::end(frame), std::byte{0xff});
    op.imm = static_cast<std::uint64_t>(which);
    op.bytes = bytes;
    EXPECT_EQ(control::read_special(*warp, &op), at(3));
    const auto untouched = std::count(std::begin(frame), std::end(frame), std::byte{0xff});
    EXPECT_GE(untouched, static_cast<std::ptrdiff_t>(sizeof frame) - 2 * bytes);
    std::uint64_t value = 0;
    std::memcpy(&value, frame + 5 * bytes, bytes);
    return value;
  };
  using ptx::SpecialRegister;
  EXPECT_EQ(read(SpecialRegister::laneid, 4), 5U);
  EXPECT_EQ(read(SpecialRegister::smid, 4), 9U);
  EXPECT_EQ(read(SpecialRegister::lanemask_ge, 4), 0xffffffe0U);
  EXPECT_EQ(read(SpecialRegister::lanemask_gt, 4), 0xffffffc0U);
  EXPECT_EQ(read(SpecialRegister::globaltimer, 8), 0x500000006U);
  EXPECT_EQ(read(SpecialRegister::clock64, 8), 0x500000006U);
  EXPECT_EQ(read(SpecialRegister::clock, 4), 6U);
  EXPECT_EQ(read(SpecialRegister::globaltimer_hi, 4), 5U);
  EXPECT_EQ(read(SpecialRegister::clock_hi, 4), 5U);
}

TEST(FunctionVariables, fit_if_they_are_as_many_of_the_same_sizes_and_alignments) {
  using Variables = std::vector<FrameVariable>;
  const auto variable = [](std::uint32_t bytes, std::uint32_t size, std::uint32_t align) {
    return FrameVariable{.offset = 0, .bytes = bytes, .size = size, .align = align};
  };
  const Variables declared{variable(8, 8, 8), variable(4, 3, 1)};
  EXPECT_TRUE(control::fit({}, {}));
  EXPECT_TRUE(control::fit(declared, declared));
  EXPECT_TRUE(control::fit({variable(8, 0, 1), variable(4, 0, 4)}, declared)) << "constants";
  for (const Variables& other : {Variables{variable(8, 8, 8)},
                                 Variables{variable(8, 8, 8), variable(4, 3, 1), variable(4, 3, 1)},
                                 Variables{variable(8, 8, 8), variable(8, 3, 1)},
                                 Variables{variable(8, 8, 8), variable(4, 2, 1)},
                                 Variables{variable(8, 8, 8), variable(4, 3, 2)},
                                 Variables{variable(8, 8, 8), variable(8, 0, 1)}}) {
    EXPECT_FALSE(control::fit(other, declared));
  }
}

// The lanes are in a function that all have called, and in a branch of it.
TEST_F(LeavingLanes, return_to_where_the_function_was_called_and_come_to_no_meeting_within_it) {
  meeting->callee_frame = frame;
  Meeting& branch = open_meeting(*warp, 9);
  EXPECT_EQ(leave(control::return_lanes, 0), at(3));
  EXPECT_EQ(warp->mask, 0xffffU);
  EXPECT_EQ(branch.mask, 0xffffU);
  EXPECT_EQ(meeting->arrived, 0U);
  EXPECT_EQ(leave(control::return_lanes, 0xf000000f), at(3));
  EXPECT_EQ(warp->mask, 0xfff0U);
  EXPECT_EQ(branch.mask, 0xfff0U);
  EXPECT_EQ(meeting->mask, full_mask);
  EXPECT_EQ(meeting->arrived, 0xfU);
  EXPECT_EQ(leave(control::return_lanes, 0xff0, true), at(3));
  EXPECT_EQ(warp->mask, 0xff0U);
  EXPECT_EQ(meeting->arrived, 0xf00fU);
  EXPECT_EQ(leave(control::return_lanes, std::nullopt), at(12)) << "the others go on";
  EXPECT_EQ(meeting->arrived, 0xffffU);
  EXPECT_EQ(warp->live, full_mask);
}

// Function 1 has two parameters, a register that is zero, and gives one result.
TEST_F(LeavingLanes, come_back_from_a_function_with_its_results) {
  alignas(64) std::byte caller[4 * warp_size * sizeof(std::uint32_t)] = {};
  CodeFunction callee;
  callee.frame_bytes = 4 * warp_size * sizeof(std::uint32_t);
  callee.entry = 15;
  callee.local_bytes = 20;
  callee.parameters = {{0, 4}, {128, 4}};
  callee.zeroed = {{256, 128}};
  callee.results = {{384, 4}};
  program.functions[0].local_bytes = 17;
  program.functions.push_back(callee);
  const CallDetails details{.function = 1, .arguments = {{256, 4}, {128, 4}}, .results = {{0, 4}}};
  program.code[2].aux = &details;
  std::byte* const dirty = pool.take(program.functions[1]);
  std::fill_n(dirty, callee.frame_bytes, std::byte{9});
  pool.give_back(program.functions[1], dirty);
  for (std::size_t i = 0; i < sizeof caller; ++i)
    caller[i] = static_cast<std::byte>(i % 128 + i / 128);
  warp->frame = caller;
  warp->local_base = 16;
  warp->top_join = 7;

  ASSERT_EQ(control::call(*warp, program.code.data() + 2), at(15));
  ASSERT_EQ(warp->frame, dirty);
  EXPECT_EQ(warp->function, 1U);
  EXPECT_EQ(warp->local_base, 16U + 32);
  EXPECT_EQ(block->local_end, 16U + 32 + 20);
  EXPECT_EQ(warp->top_join, no_join);
  EXPECT_EQ(std::memcmp(dirty, caller + 256, 128), 0);
  EXPECT_EQ(std::memcmp(dirty + 128, caller + 128, 128), 0);
  EXPECT_EQ(std::count(dirty + 256, dirty + 384, std::byte{0}), 128);
  const Meeting* const call = warp->meeting;
  ASSERT_NE(call, meeting);
  ASSERT_EQ(call->callee_frame, dirty);
  EXPECT_EQ(call->callee, 1U);
  EXPECT_EQ(call->depth, 1U);
  EXPECT_EQ(call->outer, meeting);

  std::fill_n(dirty + 384, 128, std::byte{5});
  ASSERT_EQ(leave(control::return_lanes, std::nullopt), at(3));
  EXPECT_EQ(warp->frame, caller);
  EXPECT_EQ(warp->function, 0U);
  EXPECT_EQ(warp->local_base, 16U);
  EXPECT_EQ(warp->top_join, 7U);
  EXPECT_EQ(warp->mask, 0xffffU);
  EXPECT_EQ(warp->meeting, meeting);
  EXPECT_EQ(std::count(caller, caller + 64, std::byte{5}), 64) << "for the lanes that return";
  EXPECT_EQ(caller[64], std::byte{64});
  EXPECT_EQ(pool.take(program.functions[1]), dirty) << "the frame is free again";
}

// down(n) calls itself n times, and each call has `bytes` of local memory.
Result<Outcome> nested(unsigned calls, unsigned bytes) {
  const std::string function = fmt::format(
      ".func down(.param .b32 n)\n{{ .reg .pred %q; .reg .b32 %s<3>; .reg .b64 %t<2>;\n"
      "{}ld.param.b32 %s1, [n];\nsetp.eq.u32 %q, %s1, 0;\n@%q ret;\nsub.u32 %s2, %s1, 1;\n"
      "{{ .param .b32 a; st.param.b32 [a], %s2; call down, (a); }}\nret; }}\n",
      bytes == 0 ? "" : fmt::format(".local .align 4 .b8 mine[{}];\nmov.u64 %t1, mine;\n", bytes));
  return run_text(
      kernel_of(function, fmt::format("{{ .param .b32 a; st.param.b32 [a], {}; call down, (a); "
                                      "}}\nst.global.u64 [%rd2], %rd1;",
                                      calls)),
      launch_of(1, 1, 8));
}

TEST(NestedCalls, reach_2000_deep_and_no_deeper) {
  const auto deepest = nested(1999, 0);
  ASSERT_TRUE(deepest) << deepest.error().message;
  EXPECT_TRUE(deepest->findings.empty());
  EXPECT_NE(words_of(*deepest)[0], 0U);
  const auto deeper = nested(2000, 0);
  ASSERT_TRUE(deeper) << deeper.error().message;
  ASSERT_EQ(deeper->findings.size(), 1U);
  EXPECT_EQ(deeper->findings[0].kind, FindingKind::limit);
  EXPECT_EQ(deeper->findings[0].detail,
            "calls nested 2000 deep with 0 bytes of local memory; the limits are 2000 and "
            "524288");
  EXPECT_EQ(words_of(*deeper)[0], 0U) << "the block ends there";
}

TEST(NestedCalls, share_512_kib_of_local_memory) {
  const auto most = nested(15, 32768);
  ASSERT_TRUE(most) << most.error().message;
  EXPECT_TRUE(most->findings.empty()) << describe(most->findings[0], "t.ptx");
  const auto more = nested(16, 32768);
  ASSERT_TRUE(more) << more.error().message;
  ASSERT_EQ(more->findings.size(), 1U);
  EXPECT_THAT(more->findings[0].detail,
              HasSubstr("calls nested 16 deep with 557056 bytes of local memory"));
}

TEST(NestedCalls, from_the_kernel_are_the_first) {
  const auto outcome = run_text(
      kernel_of(".func large() { .reg .b64 %t<2>; .local .align 16 .b8 own[400000];\nmov.u64 %t1, "
                "own;\nst.local.u64 [%t1], %t1; ret; }\n",
                ".local .align 16 .b8 mine[200000];\nmov.u64 %rd5, mine;\nst.local.u64 [%rd5], "
                "%rd5;\ncall large;"),
      launch_of(1, 1, 8));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_THAT(outcome->findings[0].detail,
              HasSubstr("calls nested 0 deep with 600000 bytes of local memory"));
}

// The caller's four bytes lie before them.
TEST(NestedCalls, have_locals_at_multiples_of_16_apart_from_those_of_the_caller) {
  const auto found = progress_words(
      ".func (.param .b32 r) inner(.param .b32 a)\n{ .reg .b32 %s<9>; .reg .b64 %t<2>;\n"
      ".local .align 16 .b8 own[16];\nld.param.b32 %s1, [a];\nmov.u64 %t1, own;\n"
      "st.local.v4.u32 [%t1], {%s1, %s1, %s1, %s1};\nld.local.u32 %s2, [%t1+12];\n"
      "st.param.b32 [r], %s2; ret; }\n",
      ".local .align 4 .b8 mine[4];\nmov.u64 %rd5, mine;\nst.local.u32 [%rd5], %r1;\n"
      "{ .param .b32 a; .param .b32 r;\nadd.u32 %r3, %r1, 100;\nst.param.b32 [a], %r3;\n"
      "call (r), inner, (a);\nld.param.b32 %r4, [r]; }\nld.local.u32 %r5, [%rd5];\n"
      "mad.lo.u32 %r9, %r5, 1000, %r4;");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(found[lane], lane * 1000 + 100 + lane);
}

TEST(NestedCalls, through_a_register_name_the_address_that_is_no_function) {
  const auto outcome =
      run_text(kernel_of(".func one() { ret; }\n.func other(.param .b64 n) { ret; }\n",
                         "mov.u64 %rd5, one;\nadd.u64 %rd5, %rd5, 1;\nP: .callprototype _ ();\n"
                         "call %rd5, (), P;\nst.global.u64 [%rd2], %rd1;"),
               launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].kind, FindingKind::trap);
  EXPECT_EQ(outcome->findings[0].count, 1U);
  EXPECT_EQ(outcome->findings[0].detail, "call of 0x500000000001, which is not a function");
  EXPECT_EQ(words_of(*outcome)[0], 0U) << "the block ends there";
}

// Thread 5 is the first that comes there, and the only one.
TEST(BranchTables, name_the_index_and_the_thread_that_has_no_target) {
  const auto outcome =
      run_text(kernel_of("",
                         "setp.lt.u32 %p1, %r1, 5;\n@%p1 exit;\nTABLE: .branchtargets L0, L1, L2;\n"
                         "sub.u32 %r3, %r1, 2;\nbrx.idx %r3, TABLE;\nL0:\nL1:\nL2:\n"
                         "st.global.u64 [%rd2], %rd1;"),
               launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].detail, "branch index 3 of a list of 3 targets");
  EXPECT_EQ(outcome->findings[0].thread[0], 5U);
  EXPECT_EQ(outcome->findings[0].count, 1U);
  for (const std::uint64_t word : words_of(*outcome)) EXPECT_EQ(word, 0U) << "the block ends there";
}

TEST(PredicateLogic, is_carried_out_for_the_lanes_that_run) {
  // %p1: lanes 0-15, %p2: even lanes, %p3: what was there before.
  const std::string inputs =
      "and.b32 %r3, %r1, 1;\nsetp.lt.u32 %p1, %r1, 16;\nsetp.eq.u32 %p2, %r3, 0;\n"
      "setp.ge.u32 %p3, %r1, 30;\nsetp.lt.u32 %p4, %r1, 24;\n";
  for (const auto& [instruction, gives] : std::vector<std::pair<std::string, bool (*)(bool, bool)>>{
           {"and.pred %p3, %p1, %p2;", [](bool a, bool b) { return a && b; }},
           {"or.pred %p3, %p1, %p2;", [](bool a, bool b) { return a || b; }},
           {"xor.pred %p3, %p1, %p2;", [](bool a, bool b) { return a != b; }},
           {"not.pred %p3, %p1;", [](bool a, bool) { return !a; }},
           {"not.pred %p3, %p2;", [](bool, bool b) { return !b; }},
           {"mov.pred %p3, %p2;", [](bool, bool b) { return b; }},
           {"mov.pred %p3, 1;", [](bool, bool) { return true; }},
           {"mov.pred %p3, 0;", [](bool, bool) { return false; }}}) {
    const auto found =
        progress_words("", inputs + "@%p4 " + instruction + "\nselp.u32 %r9, 1, 0, %p3;");
    for (unsigned lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(found[lane] != 0, lane < 24 ? gives(lane < 16, lane % 2 == 0) : lane >= 30)
          << instruction << " lane " << lane;
    }
  }
}

TEST(Statistics, count_branches_at_which_lanes_part) {
  const auto divergent = [](const std::string& body) {
    const auto outcome = run_text(kernel_of("", body), launch_of(1, 64, 512));
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? outcome->kernels[0].divergent_branches : 0;
  };
  EXPECT_EQ(divergent(in_both_sides("", "")), 2U) << "one a warp";
  EXPECT_EQ(divergent("setp.lt.u32 %p1, %r1, 32;\n@%p1 bra OVER;\nmov.u32 %r3, 1;\nOVER:"), 0U);
  EXPECT_EQ(divergent("setp.lt.u32 %p1, %r1, 40;\n@%p1 bra OVER;\nmov.u32 %r3, 1;\nOVER:"), 1U);
  // Three targets: two partings.
  EXPECT_EQ(divergent("rem.u32 %r3, %r1, 3;\nTABLE: .branchtargets L0, L1, L2;\nbrx.idx %r3, "
                      "TABLE;\nL0: mov.u32 %r4, 1;\nbra MEET;\nL1: mov.u32 %r4, 2;\nbra MEET;\nL2: "
                      "mov.u32 %r4, 3;\nMEET:"),
            4U);
}

}  // namespace
}  // namespace demarc::emulate
