// Calls, tables of branches, printf and assert, named barriers, memory from malloc.
#include <numeric>

#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::words_of;

constexpr const char* flow_store = "\ncvt.u64.u32 %rd3, %r9;\nst.global.u64 [%rd2], %rd3;";

std::vector<std::uint64_t> flow_words(const std::string& declarations, const std::string& body,
                                      std::uint32_t threads = 32) {
  const auto outcome =
      run_text(kernel_of(declarations, body + flow_store), launch_of(1, threads, 8 * threads));
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (!outcome) return std::vector<std::uint64_t>(threads, ~0ULL);
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  return words_of(*outcome);
}

TEST(BranchTables, each_lane_goes_where_its_index_says_and_all_meet_again) {
  const auto words = flow_words("", R"(
and.b32 %r3, %r1, 3;
mov.u32 %r9, 0;
TABLE: .branchtargets L0, L1, L2, L0;
brx.idx %r3, TABLE;
L0: mov.u32 %r9, 10;
bra MEET;
L1: mov.u32 %r9, 20;
bra MEET;
L2: mov.u32 %r9, 30;
MEET:
activemask.b32 %r4;
popc.b32 %r4, %r4;
mad.lo.u32 %r9, %r4, 100, %r9;)");
  const std::uint64_t expected[4] = {10, 20, 30, 10};
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(words[i], 3200 + expected[i % 4]);
}

TEST(BranchTables, an_index_behind_the_table_is_a_finding) {
  const auto outcome = run_text(
      kernel_of("", "TABLE: .branchtargets L0;\nbrx.idx %r1, TABLE;\nL0:"), launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].kind, FindingKind::trap);
}

constexpr const char* two_functions = R"(
.func (.param .b32 res) twice(.param .b32 n)
{ .reg .b32 %s<3>; ld.param.b32 %s1, [n]; add.u32 %s2, %s1, %s1; st.param.b32 [res], %s2; ret; }
.func (.param .b32 res) square(.param .b32 n)
{ .reg .b32 %s<3>; ld.param.b32 %s1, [n]; mul.lo.u32 %s2, %s1, %s1; st.param.b32 [res], %s2; ret; }
)";

TEST(Calls, lanes_may_call_different_functions_through_a_register) {
  const auto words = flow_words(two_functions, R"(
and.b32 %r3, %r1, 1;
setp.eq.u32 %p1, %r3, 0;
mov.u64 %rd5, twice;
mov.u64 %rd6, square;
selp.b64 %rd7, %rd5, %rd6, %p1;
{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1;
PROTOTYPE: .callprototype (.param .b32 _) _ (.param .b32 _);
call (r), %rd7, (a), PROTOTYPE;
ld.param.b32 %r9, [r]; })");
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(words[i], i % 2 == 0 ? 2 * i : i * i);
}

// A table of virtual functions, and one of pointers that are declared before the functions.
TEST(Calls, functions_are_found_in_variables_that_hold_their_addresses_from_the_start) {
  const std::string table = ".global .align 8 .u64 table[3] = {0, twice, square};\n";
  const std::string forward =
      ".func (.param .b32 res) twice(.param .b32 n);\n.func (.param .b32 res) square(.param .b32 "
      "n);\n";
  for (const std::string& declarations : {two_functions + table, forward + table + two_functions}) {
    const auto words = flow_words(declarations, R"(
and.b32 %r3, %r1, 1;
mul.wide.u32 %rd5, %r3, 8;
mov.u64 %rd6, table;
add.s64 %rd6, %rd6, %rd5;
ld.global.u64 %rd7, [%rd6+8];
mov.u64 %rd8, twice;
ld.global.u64 %rd9, [table+8];
setp.eq.u64 %p1, %rd8, %rd9;
{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1;
PROTOTYPE: .callprototype (.param .b32 _) _ (.param .b32 _);
call (r), %rd7, (a), PROTOTYPE;
ld.param.b32 %r9, [r]; }
@!%p1 mov.u32 %r9, 77777;)");
    for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(words[i], i % 2 == 0 ? 2 * i : i * i);
  }
}

TEST(Calls, a_register_that_holds_no_function_is_a_finding) {
  const auto outcome = run_text(
      kernel_of(two_functions,
                "mov.u64 %rd7, 4096;\n{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1;\n"
                "P: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (r), %rd7, (a), P; }"),
      launch_of(1, 1, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_NE(outcome->findings[0].detail.find("which is not a function"), std::string::npos);
}

// Copied as they are declared, the places of one frame would reach beyond the other.
TEST(Calls, a_function_that_takes_or_gives_other_values_than_are_handed_over_is_a_finding) {
  const auto finding = [](const std::string& function, const std::string& call) {
    const auto outcome = run_text(kernel_of(function,
                                            "mov.u64 %rd7, other;\n{ .param .b32 a; .param .b32 r; "
                                            ".param .b64 s;\nst.param.b32 [a], %r1;\n" +
                                                call + " }"),
                                  launch_of(1, 32, 256));
    if (!outcome) return outcome.error().message;
    return outcome->findings.empty() ? std::string() : outcome->findings[0].detail;
  };
  const std::string large_argument = ".func other(.param .b8 x[65536]) { ret; }\n";
  const std::string large_result = ".func (.param .b8 o[65536]) other(.param .b32 n) { ret; }\n";
  const std::string plain = ".func (.param .b32 o) other(.param .b32 n) { ret; }\n";
  const auto is_other = testing::HasSubstr("whose parameters or results differ");
  EXPECT_THAT(finding(large_argument, "P: .callprototype _ (.param .b32 _);\ncall %rd7, (a), P;"),
              is_other);
  EXPECT_THAT(
      finding(large_result,
              "P: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (r), %rd7, (a), P;"),
      is_other);
  EXPECT_THAT(finding(plain, "P: .callprototype _ (.param .b32 _);\ncall %rd7, (a), P;"), is_other);
  EXPECT_THAT(finding(plain, "P: .callprototype (.param .b32 _) _ ();\ncall (r), %rd7, (), P;"),
              is_other);
  EXPECT_EQ(
      finding(plain,
              "P: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (r), %rd7, (a), P;"),
      "");
}

TEST(Calls, parameters_and_results_may_be_registers) {
  const auto words = flow_words(R"(
.func (.reg .b32 res) weigh(.reg .b32 a, .reg .b64 b, .reg .b32 c)
{ .reg .pred %q; .reg .b32 %s<3>;
cvt.u32.u64 %s1, b;
mad.lo.u32 res, a, %s1, c;
setp.gt.u32 %q, res, 100;
@%q ret;
add.u32 res, res, 1000;
ret; }
)",
                                R"(
cvt.u64.u32 %rd5, %r1;
call (%r9), weigh, (%r1, %rd5, 3);)");
  for (std::uint64_t i = 0; i < 32; ++i)
    EXPECT_EQ(words[i], i * i + 3 > 100 ? i * i + 3 : i * i + 1003);
}

TEST(Calls, a_register_result_is_that_of_each_lane_whatever_way_it_took) {
  const auto words = flow_words(R"(
.func (.reg .b32 res) side(.reg .b32 a)
{ .reg .pred %q;
mov.u32 res, 1;
setp.lt.u32 %q, a, 9;
@%q bra OVER;
mov.u32 res, 2;
OVER: ret; }
)",
                                "call (%r9), side, (%r1);");
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(words[i], i < 9 ? 1U : 2U);
}

TEST(Calls, a_guard_keeps_the_other_lanes_out) {
  const auto words = flow_words(two_functions, R"(
mov.u32 %r9, 7;
setp.lt.u32 %p1, %r1, 5;
{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1;
@%p1 call (r), square, (a);
@%p1 ld.param.b32 %r9, [r]; })");
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(words[i], i < 5 ? i * i : 7);
}

TEST(Calls, structures_pass_by_value_and_locals_are_one_s_own) {
  const auto words = flow_words(R"(
.func (.param .b32 res) total(.param .align 8 .b8 s[16])
{ .reg .b32 %s<9>; .reg .b64 %t<3>; .local .align 4 .b8 mine[8];
ld.param.b32 %s1, [s+4]; ld.param.b64 %t1, [s+8]; cvt.u32.u64 %s2, %t1;
mov.u64 %t2, mine; st.local.u32 [%t2+4], %s1; ld.local.u32 %s3, [%t2+4];
add.u32 %s4, %s3, %s2; st.param.b32 [res], %s4; ret; }
)",
                                R"(
{ .param .align 8 .b8 a[16]; .param .b32 r;
st.param.b32 [a+4], %r1; mul.wide.u32 %rd5, %r1, 10; st.param.b64 [a+8], %rd5;
call (r), total, (a);
ld.param.b32 %r9, [r]; })");
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(words[i], 11 * i);
}

TEST(Calls, recursion_without_an_end_is_a_finding) {
  const auto outcome = run_text(kernel_of(".func down()\n{ call down; ret; }\n", "call down;"),
                                launch_of(1, 1, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].kind, FindingKind::limit);
}

// .global strings, and a vprintf of the thread's number and more.
constexpr const char* print_declarations = R"(
.extern .func (.param .b32 res) vprintf(.param .b64 format, .param .b64 arguments);
.extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line, .param .b64 function, .param .b64 size);
.global .align 1 .b8 format[34] = {37,100,58,32,37,53,46,50,102,32,37,115,32,37,108,108,120,32,37,99,32,37,37,32,91,37,45,52,117,93,10,0};
.global .align 1 .b8 word[3] = {104, 105, 0};
)";

TEST(Printing, printf_formats_every_kind_of_argument_in_thread_order) {
  const auto outcome = run_text(kernel_of(print_declarations, R"(
.local .align 8 .b8 pack[48];
mov.u64 %rd5, pack;
st.local.u32 [%rd5], %r1;
mov.b64 %rd6, 0d3FF8000000000000;
st.local.b64 [%rd5+8], %rd6;
mov.u64 %rd7, word;
cvta.global.u64 %rd7, %rd7;
st.local.b64 [%rd5+16], %rd7;
mov.b64 %rd8, 0x123456789a;
st.local.b64 [%rd5+24], %rd8;
mov.u32 %r3, 65;
st.local.u32 [%rd5+32], %r3;
st.local.u32 [%rd5+36], %r1;
cvta.local.u64 %rd5, %rd5;
mov.u64 %rd9, format;
cvta.global.u64 %rd9, %rd9;
{ .param .b64 f; .param .b64 a; .param .b32 r;
st.param.b64 [f], %rd9; st.param.b64 [a], %rd5;
call (r), vprintf, (f, a); })"),
                                launch_of(1, 2, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  EXPECT_EQ(outcome->printed,
            "0:  1.50 hi 123456789a A % [0   ]\n1:  1.50 hi 123456789a A % [1   ]\n");
}

std::string assertion(const std::string& guard) {
  return guard + R"(
mov.u64 %rd7, word;
cvta.global.u64 %rd7, %rd7;
@%p1 bra FINE;
{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;
st.param.b64 [m], %rd7; st.param.b64 [f], %rd7; st.param.b32 [l], 42; st.param.b64 [n], %rd7; st.param.b64 [s], 1;
call __assertfail, (m, f, l, n, s); }
FINE:)";
}

TEST(Assertions, one_that_does_not_hold_names_its_text_and_thread) {
  const auto outcome = run_text(
      kernel_of(print_declarations, assertion("setp.lt.u32 %p1, %r1, 9;")), launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].kind, FindingKind::assertion);
  EXPECT_EQ(outcome->findings[0].thread[0], 9U);
  EXPECT_NE(outcome->findings[0].detail.find("assertion 'hi' does not hold at hi:42 in hi"),
            std::string::npos);
}

TEST(Assertions, one_that_holds_is_silent) {
  const auto outcome = run_text(
      kernel_of(print_declarations, assertion("setp.lt.u32 %p1, %r1, 32;")), launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->findings.empty());
}

constexpr const char* heap_declarations =
    ".extern .func (.param .b64 res) malloc(.param .b64 size);\n.extern .func free(.param .b64 "
    "pointer);\n";
constexpr const char* take_8 =
    "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 8; call (r), malloc, (n); ld.param.b64 "
    "%rd5, [r]; }\n";
constexpr const char* give_back = "{ .param .b64 p; st.param.b64 [p], %rd5; call free, (p); }\n";

TEST(DeviceHeap, every_thread_gets_memory_of_its_own_and_may_give_it_back) {
  const auto words = flow_words(heap_declarations,
                                std::string(take_8) +
                                    "mul.wide.u32 %rd6, %r1, 5;\nst.u64 [%rd5], %rd6;\n"
                                    "bar.sync 0;\nld.u64 %rd7, [%rd5];\ncvt.u32.u64 %r9, %rd7;\n" +
                                    give_back,
                                96);
  for (unsigned i = 0; i < 96; ++i) EXPECT_EQ(words[i], 5 * i);
}

TEST(DeviceHeap, what_was_never_written_or_never_allocated_is_found) {
  const auto read =
      run_text(kernel_of(heap_declarations, std::string(take_8) + "ld.u64 %rd7, [%rd5];"),
               launch_of(1, 1, 256));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->findings.size(), 1U);
  EXPECT_EQ(read->findings[0].kind, FindingKind::uninitialised_read);
  const auto freed =
      run_text(kernel_of(heap_declarations, std::string(take_8) + give_back + give_back),
               launch_of(1, 1, 256));
  ASSERT_TRUE(freed) << freed.error().message;
  ASSERT_EQ(freed->findings.size(), 1U);
  EXPECT_NE(freed->findings[0].detail.find("which malloc did not return"), std::string::npos);
}

TEST(NamedBarriers, a_producer_that_only_arrives_lets_the_consumer_go_on) {
  // Warp 0 writes and arrives, warp 1 waits and reads.
  const auto words = flow_words(".shared .align 4 .b8 area[128];\n", R"(
mov.u32 %r9, 0;
shl.b32 %r4, %r1, 2;
and.b32 %r4, %r4, 127;
cvt.u64.u32 %rd5, %r4;
mov.u64 %rd6, area;
add.s64 %rd5, %rd5, %rd6;
setp.ge.u32 %p1, %r1, 32;
@%p1 bra CONSUMER;
add.u32 %r5, %r1, 100;
st.shared.u32 [%rd5], %r5;
bar.arrive 3, 64;
bra END;
CONSUMER:
bar.sync 3, 64;
ld.shared.u32 %r9, [%rd5];
END:)",
                                64);
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(words[32 + i], 100 + i);
}

TEST(NamedBarriers, two_pairs_of_warps_do_not_wait_for_each_other) {
  const auto words = flow_words("", R"(
shr.u32 %r3, %r1, 6;
add.u32 %r4, %r3, 1;
bar.sync %r4, 64;
mov.u32 %r9, %r3;)",
                                128);
  EXPECT_EQ(words[0], 0U);
  EXPECT_EQ(words[127], 1U);
}

TEST(NamedBarriers, reductions_count_and_combine_the_predicates_of_the_block) {
  const std::string p = "setp.lt.u32 %p1, %r1, 40;\n";
  EXPECT_EQ(flow_words("", p + "bar.red.popc.u32 %r9, 0, %p1;", 64)[50], 40U);
  EXPECT_EQ(flow_words("", p + "bar.red.popc.u32 %r9, 0, !%p1;", 64)[3], 24U);
  EXPECT_EQ(flow_words("", p + "bar.red.and.pred %p2, 0, %p1;\nselp.u32 %r9, 1, 0, %p2;", 64)[50],
            0U);
  EXPECT_EQ(flow_words("", p + "bar.red.or.pred %p2, 0, %p1;\nselp.u32 %r9, 1, 0, %p2;", 64)[50],
            1U);
  EXPECT_EQ(
      flow_words("", p + "barrier.red.or.pred %p2, 5, 64, %p1;\nselp.u32 %r9, 1, 0, %p2;", 64)[50],
      1U);
}

TEST(Traps, a_trap_ends_the_launch_with_a_finding) {
  const auto outcome =
      run_text(kernel_of("", "setp.eq.u32 %p1, %r1, 3;\n@%p1 trap;"), launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].kind, FindingKind::trap);
  EXPECT_EQ(outcome->findings[0].thread[0], 3U);
}

TEST(Refusals, an_instruction_that_is_not_covered_is_named_with_its_line) {
  for (const char* instruction :
       {"tcgen05.wait::ld.sync.aligned;",
        "tex.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6, %f7, %f8}];",
        "alloca.u64 %rd5, 16;"}) {
    const auto outcome =
        run_text(kernel_of("", std::string("\n") + instruction), launch_of(1, 32, 256));
    ASSERT_FALSE(outcome) << instruction;
    EXPECT_NE(outcome.error().message.find(instruction), std::string::npos)
        << outcome.error().message;
    EXPECT_NE(outcome.error().message.find("does not cover"), std::string::npos)
        << outcome.error().message;
  }
}

}  // namespace
}  // namespace demarc::emulate
