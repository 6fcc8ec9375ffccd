// Rarely written forms that ptxas takes: constants for predicates, addresses of a function's
// parameters, vector registers as a whole, the sizes of shared memory.
#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::words_of;

// What thread 0 stores from %r9.
std::uint64_t taken_word(const std::string& declarations, const std::string& body,
                         std::uint32_t dynamic_bytes = 0) {
  gpu::Launch launch = launch_of(1, 32, 256);
  launch.kernels[0].dynamic_shared_bytes = dynamic_bytes;
  const auto outcome = run_text(
      kernel_of(declarations, body + "\ncvt.u64.u32 %rd9, %r9;\nst.global.u64 [%rd2], %rd9;"),
      launch);
  if (!outcome) {
    ADD_FAILURE() << outcome.error().message;
    return 0;
  }
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  return words_of(*outcome)[0];
}

// ptxas gives the same machine code for these as for 1 or 0.
TEST(TakenForms, a_constant_is_a_predicate_that_holds_unless_it_is_zero) {
  const std::pair<const char*, std::uint64_t> rows[] = {
      {"mov.pred %p1, 1;", 1},
      {"mov.pred %p1, 0;", 0},
      {"mov.pred %p1, 2;", 1},
      {"mov.pred %p1, -1;", 1},
      {"mov.pred %p1, 0x100;", 1},
      {"mov.pred %p1, 0x100000000;", 1},
      {"mov.pred %p1, 0x8000000000000000;", 1},
      {"mov.pred %p1, !2;", 0},
      {"mov.pred %p1, !0;", 1},
      {"mov.pred %p1, WARP_SZ;", 1},
      {"not.pred %p1, 4;", 0},
      {"and.pred %p1, 2, 4;", 1},
      {"or.pred %p1, 0, 8;", 1},
      {"xor.pred %p1, 2, 4;", 0},
      {"xor.pred %p1, 2, !4;", 1},
      {"setp.lt.and.u32 %p1, 1, 2, 4;", 1},
      {"setp.lt.xor.u32 %p1, 1, 2, 4;", 0},
      {"vote.sync.all.pred %p1, 4, -1;", 1},
  };
  for (const auto& [text, value] : rows)
    EXPECT_EQ(taken_word("", std::string(text) + "\nselp.u32 %r9, 1, 0, %p1;"), value) << text;
  EXPECT_EQ(taken_word("", "selp.u32 %r9, 1, 0, 2;"), 1U);
  EXPECT_EQ(taken_word("", "bar.red.popc.u32 %r9, 0, 2;"), 32U);
}

// s: eight words that hold 10, 11, ...; the result is that of the function.
std::string with_words(const std::string& call) {
  std::string text = "{ .param .align 8 .b8 s[32]; .param .b32 i; .param .align 4 .b8 q[8];\n";
  for (int i = 0; i < 8; ++i) text += fmt::format("st.param.b32 [s+{}], {};\n", 4 * i, 10 + i);
  return text + "st.param.b32 [i], 3;\n" + call +
         "\nld.param.b32 %r9, [q];\nld.param.b32 %r10, [q+4];\nmad.lo.u32 %r9, %r10, 1000, %r9;\n}";
}

std::string function_of_words(const std::string& name, const std::string& body) {
  return ".func (.param .align 4 .b8 q[8]) " + name +
         "(.param .align 8 .b8 s[32], .param .b32 i)\n{\n.reg .b64 %rd<9>;\n.reg .b32 %r<9>;\n.reg "
         ".pred %p<3>;\n" +
         body + "\nret;\n}\n";
}

TEST(TakenForms, a_parameter_whose_address_is_taken_lies_in_local_memory) {
  const std::string element = "ld.param.b32 %r1, [i];\nmul.wide.u32 %rd2, %r1, 4;\n";
  const std::string results = "st.param.b32 [q], %r2;\nst.param.b32 [q+4], %r3;\n";
  const std::pair<std::string, std::uint64_t> bodies[] = {
      // By an address of local memory and by a generic one; ld.param sees what was stored.
      {"mov.b64 %rd1, s;\n" + element +
           "add.s64 %rd3, %rd1, %rd2;\nld.local.b32 %r2, [%rd3];\nst.local.b32 [%rd3], 77;\n"
           "ld.param.b32 %r3, [s+12];\n",
       77013},
      {"mov.b64 %rd1, s;\ncvta.local.u64 %rd1, %rd1;\n" + element +
           "add.s64 %rd3, %rd1, %rd2;\nld.b32 %r2, [%rd3];\nst.b32 [%rd3+4], 78;\n"
           "ld.param.b32 %r3, [s+16];\n",
       78013},
      // An offset, and a load from the space of parameters.
      {"mov.b64 %rd1, s+8;\nld.local.b32 %r2, [%rd1];\nld.param.b32 %r3, [%rd1+4];\n", 13012},
  };
  for (const auto& [body, value] : bodies) {
    EXPECT_EQ(
        taken_word(function_of_words("f", body + results), with_words("call (q), f, (s, i);")),
        value)
        << body;
  }
}

TEST(TakenForms, a_result_whose_address_is_taken_is_what_was_stored_there) {
  EXPECT_EQ(taken_word(function_of_words("f",
                                         "mov.b64 %rd1, q;\nst.local.b32 [%rd1], 5;\n"
                                         "st.param.b32 [q+4], 6;\n"),
                       with_words("call (q), f, (s, i);")),
            6005U);
}

// Each call has a parameter of its own.
TEST(TakenForms, parameters_with_addresses_go_through_calls_and_recursion) {
  const std::string recursive =
      "mov.b64 %rd1, s;\nld.param.b32 %r1, [i];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra END;\n"
      "ld.local.b32 %r2, [%rd1];\nadd.u32 %r2, %r2, 1;\nst.local.b32 [%rd1], %r2;\nsub.u32 %r1, "
      "%r1, 1;\n{ .param .align 8 .b8 t[32]; .param .b32 j; .param .align 4 .b8 u[8];\n"
      "st.param.b32 [t], %r2;\nst.param.b32 [t+4], %r1;\nst.param.b32 [j], %r1;\n"
      "call (u), f, (t, j);\nld.param.b32 %r3, [u]; }\n"
      "ld.local.b32 %r2, [%rd1];\nst.param.b32 [q], %r3;\nst.param.b32 [q+4], %r2;\nret;\nEND:\n"
      "ld.local.b32 %r3, [%rd1];\nst.param.b32 [q], %r3;\nst.param.b32 [q+4], 0;";
  // 10 + 3 in the innermost one, 10 + 1 in the first.
  EXPECT_EQ(taken_word(function_of_words("f", recursive), with_words("call (q), f, (s, i);")),
            11013U);
}

TEST(TakenForms, an_access_behind_a_parameter_of_a_function_is_found) {
  const auto outcome =
      run_text(kernel_of(function_of_words("f",
                                           "mov.b64 %rd1, s;\nld.local.b32 %r2, [%rd1+32];\n"
                                           "st.param.b32 [q], %r2;\nst.param.b32 [q+4], 0;"),
                         with_words("call (q), f, (s, i);")),
               launch_of(1, 1, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].kind, FindingKind::out_of_bounds);
}

TEST(TakenForms, vector_registers_are_written_and_read_as_a_whole_and_by_element) {
  const std::string v = ".reg .v4 .u32 %v;\n.reg .v4 .u32 %w<3>;\n.reg .v2 .u32 %t;\n";
  const std::string from_list = "mov.v4.u32 %v, {4, 3, 2, 1};\n";
  const std::string digits =
      "mad.lo.u32 %r9, %v.x, 10, %v.y;\nmad.lo.u32 %r9, %r9, 10, %v.z;\nmad.lo.u32 %r9, %r9, 10, "
      "%v.w;";
  EXPECT_EQ(taken_word("", v + from_list + digits), 4321U);
  EXPECT_EQ(taken_word("", v + from_list + "mov.v4.u32 %w2, %v;\nmov.v4.u32 %v, %w2;\n" + digits),
            4321U);
  EXPECT_EQ(taken_word("", v + from_list +
                               "st.global.v4.u32 [%rd1], %v;\nmov.u32 %v.r, 9;\n"
                               "ld.global.v4.u32 %w1, [%rd1];\nmov.v4.u32 %v, %w1;\n" +
                               digits),
            4321U);
  // All elements are read before one is written.
  EXPECT_EQ(taken_word("", v + from_list + "mov.v4.u32 {%v.y, %v.x, %v.w, %v.z}, %v;\n" + digits),
            3412U);
  EXPECT_EQ(
      taken_word("", v + from_list + "mov.u32 %v.g, 7;\nadd.u32 %v.b, %v.b, %v.a;\n" + digits),
      4731U);
  EXPECT_EQ(taken_word("", v + "mov.v4.u32 %v, %ntid;\n" + digits), 32110U);
  EXPECT_EQ(
      taken_word("", v + "mov.v2.u32 %t, {5, 6};\nmov.b64 %rd7, %t;\nmov.b64 {%r8, %r9}, %rd7;"),
      6U);
}

TEST(TakenForms, the_sizes_of_shared_memory_are_what_a_block_gets) {
  const std::string area = ".shared .align 4 .b8 area[100];\n";
  const std::string use = "mov.u32 %r3, area;\n";
  EXPECT_EQ(taken_word(area, use + "mov.u32 %r9, %total_smem_size;"), 128U);
  EXPECT_EQ(taken_word(area, use + "mov.u32 %r9, %total_smem_size;", 40), 256U);
  EXPECT_EQ(taken_word(area, use + "mov.u32 %r9, %aggr_smem_size;", 40), 256U);
  EXPECT_EQ(taken_word(area, use + "mov.u32 %r9, %dynamic_smem_size;", 40), 40U);
  EXPECT_EQ(taken_word("", "mov.u32 %r9, %total_smem_size;"), 0U);
  EXPECT_EQ(taken_word("", "mov.u64 %rd7, %current_graph_exec;\ncvt.u32.u64 %r9, %rd7;"), 0U);
}

TEST(TakenForms, older_targets_give_shared_memory_in_larger_units) {
  std::string text = kernel_of(".shared .align 4 .b8 area[100];\n",
                               "mov.u32 %r3, area;\nmov.u32 %r9, %total_smem_size;\n"
                               "st.global.u32 [%rd1], %r9;");
  text.replace(text.find("sm_80"), 5, "sm_75");
  const auto outcome = run_text(text, launch_of(1, 1, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(words_of(*outcome)[0], 256U);
}

TEST(TakenForms, a_special_register_without_a_value_here_is_refused_by_name) {
  for (const char* name : {"%pm0", "%envreg0", "%reserved_smem_offset_0"}) {
    const auto outcome =
        run_text(kernel_of("", fmt::format("mov.b32 %r9, {};", name)), launch_of(1, 1, 256));
    ASSERT_FALSE(outcome) << name;
    EXPECT_NE(outcome.error().message.find(name), std::string::npos) << outcome.error().message;
  }
}

TEST(TakenForms, a_range_of_targets_names_each_of_them) {
  for (const auto& [index, value] : {std::pair(0, 10U), std::pair(1, 11U), std::pair(2, 12U)}) {
    EXPECT_EQ(taken_word("", fmt::format("mov.u32 %r3, {};\nT: .branchtargets A<2>, B;\n"
                                         "brx.idx %r3, T;\nA0: mov.u32 %r9, 10;\nbra E;\n"
                                         "A1: mov.u32 %r9, 11;\nbra E;\nB: mov.u32 %r9, 12;\nE:",
                                         index)),
              value);
  }
  EXPECT_EQ(taken_word(".func (.reg .b32 a) F0()\n{\nmov.u32 a, 20;\nret;\n}\n"
                       ".func (.reg .b32 a) F1()\n{\nmov.u32 a, 21;\nret;\n}\n",
                       "mov.u64 %rd5, F1;\nT: .calltargets F<2>;\ncall (%r9), %rd5, (), T;"),
            21U);
}

TEST(TakenForms, a_result_may_be_thrown_away) {
  const std::string function = ".global .u32 calls;\n";
  const std::string count =
      "ld.global.u32 t, [calls];\nadd.u32 t, t, 1;\nst.global.u32 [calls], t;\n";
  const std::string small =
      ".func (.reg .b32 q) f(.reg .b32 a)\n{\n.reg .b32 t;\n" + count + "mov.b32 q, a;\nret;\n}\n";
  const std::string large = ".func (.param .align 8 .b8 q[64]) g()\n{\n.reg .b32 t;\n" + count +
                            "st.param.b32 [q+60], 9;\nret;\n}\n";
  const std::string counted = "ld.global.u32 %r3, [calls];\nmad.lo.u32 %r9, %r3, 10, 5;";
  EXPECT_EQ(taken_word(function + small,
                       "call.uni (_), f, (%r1);\nmov.u64 %rd5, f;\n"
                       "T: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n"
                       "call (_), %rd5, (%r1), T;\n" +
                           counted),
            25U);
  EXPECT_EQ(taken_word(function + large, "call (_), g;\n" + counted), 15U);
  EXPECT_EQ(taken_word(".func (.reg .b32 q, .reg .b32 p) two()\n{\nmov.u32 q, 4;\nmov.u32 p, 5;\n"
                       "ret;\n}\n",
                       "call (_, %r9), two;"),
            5U);
}

}  // namespace
}  // namespace demarc::emulate
