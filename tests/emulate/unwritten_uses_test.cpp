// What the finding says of bytes that were not written: which load, whose bytes, where, which line
// uses them, and how many threads do; through registers, calls, variables of calls and memory.
#include <gmock/gmock.h>

#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;

// In local memory the byte at 0 is written, those from 1 to 7 are not, those from 8 to 15 are. In
// shared memory no byte is written; %r20 is the thread's word there.
constexpr const char* uses_head =
    ".local .align 16 .b8 mine[32];\nmov.u64 %rd5, mine;\nmov.u16 %h1, 7;\nst.local.u8 [%rd5], "
    "%h1;\nmov.u64 %rd6, 0x1122334455667788;\nst.local.u64 [%rd5+8], %rd6;\nmov.u32 %r19, "
    "area;\nmad.lo.u32 %r20, %r1, 4, %r19;\n";
constexpr const char* uses_declarations =
    ".shared .align 16 .b8 area[512];\n"
    ".func (.param .b64 r) same(.param .b64 a)\n{ .reg .b64 %x<3>;\nld.param.b64 %x1, [a];\n"
    "st.param.b64 [r], %x1; ret; }\n"
    ".func (.param .b64 r) twice(.param .b64 a)\n{ .reg .b64 %x<3>;\nld.param.b64 %x1, [a];\n"
    "{ .param .b64 b; .param .b64 s; st.param.b64 [b], %x1; call (s), same, (b); ld.param.b64 "
    "%x2, [s]; }\nst.param.b64 [r], %x2; ret; }\n"
    ".func (.param .b64 r) early(.param .b64 a, .param .b32 n)\n{ .reg .pred %q; .reg .b64 %x<3>; "
    ".reg .b32 %y<3>;\nld.param.b64 %x1, [a];\nld.param.b32 %y1, [n];\nmov.u64 %x2, 5;\n"
    "st.param.b64 [r], %x2;\nsetp.lt.u32 %q, %y1, 20;\n@%q ret;\nst.param.b64 [r], %x1; ret; }\n"
    ".func (.param .align 8 .b8 r[16]) swapped(.param .align 8 .b8 a[16])\n{ .reg .b64 %x<3>;\n"
    "ld.param.v2.b64 {%x1, %x2}, [a];\nst.param.v2.b64 [r], {%x2, %x1}; ret; }\n"
    ".func (.param .b64 r) makes()\n{ .reg .b64 %x<3>; .local .align 8 .b8 own[8];\n"
    "mov.u64 %x1, own;\nld.local.u64 %x2, [%x1];\nst.param.b64 [r], %x2; ret; }\n"
    ".func waits(.param .b64 a)\n{ .reg .pred %q; .reg .b64 %x<3>;\nld.param.b64 %x1, [a];\n"
    "bar.warp.sync -1;\nsetp.gt.u64 %q, %x1, 9;\n@%q bra LAST;\nLAST: ret; }\n"
    ".func (.param .b64 r) hands()\n{ .reg .b64 %x<3>;\n{ .param .b64 s; call (s), makes; "
    "ld.param.b64 %x1, [s]; }\nst.param.b64 [r], %x1; ret; }\n";

std::vector<Finding> uses_of(const std::string& body, std::uint32_t threads = 32) {
  const auto outcome =
      run_text(kernel_of(uses_declarations, uses_head + body), launch_of(1, threads, 8 * threads));
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome ? outcome->findings : std::vector<Finding>{};
}

constexpr const char* decide = "setp.lt.u32 %p1, %r4, 9;\n@%p1 bra OUT;\nOUT:";
constexpr const char* decide_wide =
    "cvt.u32.u64 %r4, %rd8;\nsetp.lt.u32 %p1, %r4, 9;\n@%p1 bra "
    "OUT;\nOUT:";

struct Use {
  const char* name;
  std::string body;
  std::string bytes;         // and where they are
  std::string user;          // the line that uses them
  std::uint64_t count = 32;  // threads
  std::uint32_t thread = 0;  // the first
};

// %rd8 = function(%rd7); with `more`, of the thread's number too.
std::string call_of(const std::string& function, bool more = false) {
  return fmt::format(
      "{{ .param .b64 a; .param .b64 r; .param .b32 n;\nst.param.b64 [a], %rd7;\n"
      "st.param.b32 [n], %r1;\ncall (r), {}, (a{});\nld.param.b64 %rd8, [r]; }}\n",
      function, more ? ", n" : "");
}

std::vector<Use> uses() {
  const std::string branch = "@%p1 bra OUT;";
  const std::string local_4 = "4 bytes at 0x4 in local memory";
  const std::string load = "ld.local.u32 %r3, [%rd5+4];\n";
  const std::string wide = "ld.local.u64 %rd7, [%rd5];\n";
  const std::string local_8 = "8 bytes at 0x0 in local memory";
  return {
      {"a_branch", load + "add.u32 %r4, %r3, 1;\n" + decide, local_4, branch},
      {"a_branch_for_the_second_word_of_a_vector",
       "ld.local.v2.u32 {%r3, %r4}, [%rd5];\n" + std::string(decide), local_8, branch},
      {"a_branch_for_one_of_several_loads",
       "ld.local.u32 %r5, [%rd5+8];\n" + load + "add.u32 %r4, %r5, %r3;\n" + decide, local_4,
       branch},
      {"a_branch_of_one_thread",
       "setp.eq.u32 %p2, %r1, 5;\n@!%p2 st.shared.u32 [%r20], 1;\nld.shared.u32 %r4, [%r20];\n" +
           std::string(decide),
       "4 bytes at 0x14 in shared memory", branch, 1, 5},
      {"all_threads_by_a_shuffle",
       "setp.eq.u32 %p2, %r1, 5;\n@!%p2 st.shared.u32 [%r20], 1;\nld.shared.u32 %r3, [%r20];\n"
       "shfl.sync.idx.b32 %r4, %r3, 5, 31, -1;\n" +
           std::string(decide),
       "4 bytes at 0x14 in shared memory", branch},
      {"all_threads_by_a_sum",
       "setp.eq.u32 %p2, %r1, 5;\n@!%p2 st.shared.u32 [%r20], 1;\nld.shared.u32 %r3, [%r20];\n"
       "redux.sync.add.u32 %r4, %r3, -1;\n" +
           std::string(decide),
       "4 bytes at 0x14 in shared memory", branch},
      {"those_above_by_a_shuffle",
       "setp.ge.u32 %p2, %r1, 29;\n@!%p2 st.shared.u32 [%r20], 1;\nld.shared.u32 %r3, [%r20];\n"
       "shfl.sync.down.b32 %r4, %r3, 4, 31, -1;\n" +
           std::string(decide),
       "4 bytes at 0x74 in shared memory", branch, 6, 25},
      {"an_address", load + "and.b32 %r4, %r3, 4;\nadd.u32 %r4, %r4, %r20;\nst.shared.u8 [%r4], 1;",
       local_4, "st.shared.u8 [%r4], 1;"},
      {"an_address_of_a_load",
       load + "cvt.u64.u32 %rd7, %r3;\nand.b64 %rd7, %rd7, 8;\nadd.s64 %rd7, %rd7, %rd1;\n"
              "ld.global.u32 %r4, [%rd7];",
       local_4, "ld.global.u32 %r4, [%rd7];"},
      {"an_atomic", load + "red.global.add.u32 [%rd1], %r3;", local_4,
       "red.global.add.u32 [%rd1], %r3;"},
      {"a_compare_and_swap", load + "atom.global.cas.b32 %r4, [%rd1], 5, %r3;", local_4,
       "atom.global.cas.b32 %r4, [%rd1], 5, %r3;"},
      {"a_store_to_global_memory", load + "st.global.u32 [%rd2], %r3;", local_4,
       "st.global.u32 [%rd2], %r3;"},
      {"a_store_of_a_vector_to_global_memory", load + "st.global.v2.u32 [%rd2], {%r1, %r3};",
       local_4, "st.global.v2.u32 [%rd2], {%r1, %r3};"},
      {"an_exit", load + "setp.lt.u32 %p1, %r3, 9;\n@%p1 exit;", local_4, "@%p1 exit;"},
      {"a_guard", load + "setp.lt.u32 %p1, %r3, 9;\n@%p1 mov.u32 %r5, 1;\n", local_4,
       "@%p1 mov.u32 %r5, 1;"},
      {"a_table_of_branches",
       load + "and.b32 %r4, %r3, 1;\nTABLE: .branchtargets L0, L1;\nbrx.idx %r4, TABLE;\nL0:\nL1:",
       local_4, "brx.idx %r4, TABLE;"},
      {"what_went_through_shared_memory",
       wide +
           "st.shared.u32 [%r20], %r1;\ncvt.u32.u64 %r3, %rd7;\nst.shared.u32 [%r20], "
           "%r3;\nld.shared.u32 %r4, [%r20];\n" +
           decide,
       "4 bytes at 0x0 in shared memory", branch},
      {"half_of_what_went_through_shared_memory",
       wide +
           "mad.lo.u32 %r21, %r1, 8, %r19;\nst.shared.u64 [%r21], %rd7;\nld.shared.u32 %r4, "
           "[%r21+4];\n" +
           decide,
       "4 bytes at 0x4 in shared memory", branch},
      {"a_branch_for_what_was_loaded_through_a_generic_address",
       "cvta.local.u64 %rd9, %rd5;\nld.u32 %r4, [%rd9+4];\n" + std::string(decide), local_4,
       branch},
      {"a_branch_for_what_was_loaded_from_several_spaces",
       "cvt.u64.u32 %rd9, %r19;\ncvta.shared.u64 %rd9, %rd9;\ncvta.local.u64 %rd11, %rd5;\n"
       "setp.eq.u32 %p2, %r1, 9;\nselp.u64 %rd9, %rd9, %rd11, %p2;\nld.u32 %r4, [%rd9+4];\n" +
           std::string(decide),
       local_4, branch},
      {"the_address_of_a_barrier_object",
       load + "and.b32 %r4, %r3, 8;\nadd.u32 %r4, %r4, %r19;\nmbarrier.init.shared.b64 "
              "[%r4], 4;",
       local_4, "mbarrier.init.shared.b64 [%r4], 4;"},
      {"what_a_call_gives_back", wide + call_of("same") + decide_wide, local_8, branch},
      {"what_a_call_in_a_call_gives_back", wide + call_of("twice") + decide_wide, local_8, branch},
      {"what_a_call_gives_back_to_those_that_stay_in_it",
       wide + call_of("early", true) + decide_wide, local_8, branch, 12, 20},
      {"what_a_function_loads_and_gives_back",
       "{ .param .b64 r; call (r), makes; ld.param.b64 %rd8, [r]; }\n" + std::string(decide_wide),
       "8 bytes at 0x20 in local memory", branch},
      {"what_a_function_loads_that_a_function_calls",
       "{ .param .b64 r; call (r), hands; ld.param.b64 %rd8, [r]; }\n" + std::string(decide_wide),
       "8 bytes at 0x20 in local memory", branch},
      {"what_a_function_was_given_in_which_some_lanes_wait_for_those_outside",
       "and.b32 %r3, %r1, 1;\nsetp.eq.u32 %p2, %r3, 1;\n@%p2 bra ODD;\n" + wide +
           "{ .param .b64 a; st.param.b64 [a], %rd7;\ncall waits, (a); }\nbra MEET;\nODD: "
           "bar.warp.sync -1;\nMEET:",
       local_8, "@%q bra LAST;", 16},
      {"a_store_to_several_spaces_at_once",
       load + "cvt.u64.u32 %rd9, %r20;\ncvta.shared.u64 %rd9, %rd9;\ncvta.local.u64 %rd11, "
              "%rd5;\nsetp.lt.u32 %p2, %r1, 16;\nselp.u64 %rd9, %rd9, %rd11, %p2;\nst.u32 [%rd9], "
              "%r3;",
       local_4, "st.u32 [%rd9], %r3;"},
      {"the_second_half_of_a_structure_that_a_call_swaps",
       wide +
           "{ .param .align 8 .b8 a[16]; .param .align 8 .b8 r[16];\nst.param.v2.b64 [a], {%rd7, "
           "%rd6};\ncall (r), swapped, (a);\nld.param.b64 %rd8, [r+8]; }\n" +
           decide_wide,
       local_8, branch},
      {"a_byte_of_a_structure_that_a_call_takes_as_a_word",
       "ld.local.u8 %h2, [%rd5+1];\n{ .param .align 8 .b8 a[16]; .param .align 8 .b8 r[16];\n"
       "st.param.b8 [a], 3;\nst.param.b8 [a+1], %h2;\nst.param.b16 [a+2], 0;\nst.param.b32 [a+4], "
       "0;\nst.param.b64 [a+8], %rd6;\ncall (r), swapped, (a);\nld.param.b64 %rd8, [r+8]; }\n" +
           std::string(decide_wide),
       "1 bytes at 0x1 in local memory", branch},
      {"a_byte_of_a_word_that_a_call_gives_back",
       wide +
           "{ .param .align 8 .b8 a[16]; .param .align 8 .b8 r[16];\nst.param.v2.b64 [a], {%rd7, "
           "%rd6};\ncall (r), swapped, (a);\nld.param.u8 %r4, [r+9]; }\n" +
           decide,
       local_8, branch},
      {"the_function_of_a_call",
       wide + "and.b64 %rd8, %rd7, 256;\nmov.u64 %rd9, same;\nadd.s64 %rd9, %rd9, %rd8;\n{ .param "
              ".b64 a; .param .b64 r; st.param.b64 [a], %rd6;\nP: .callprototype (.param .b64 _) _ "
              "(.param .b64 _);\ncall (r), %rd9, (a), P; }",
       local_8, "call (r), %rd9, (a), P;"},
  };
}

TEST(UsesOfUnwrittenBytes, name_the_load_its_bytes_the_line_that_uses_them_and_the_first_thread) {
  for (const Use& use : uses()) {
    const auto found = uses_of(use.body);
    ASSERT_GE(found.size(), 1U) << use.name;
    EXPECT_EQ(found[0].kind, FindingKind::uninitialised_read) << use.name;
    EXPECT_THAT(found[0].detail,
                testing::MatchesRegex(".* were not written before; line [0-9]+ uses them: .*"))
        << use.name;
    EXPECT_EQ(found[0].detail.substr(0, use.bytes.size()), use.bytes) << use.name;
    EXPECT_THAT(found[0].detail, testing::EndsWith(" uses them: " + use.user)) << use.name;
    EXPECT_EQ(found[0].count, use.count) << use.name;
    EXPECT_EQ(found[0].thread[0], use.thread) << use.name;
  }
}

// The same with what is written beside it.
TEST(UsesOfUnwrittenBytes, are_none_where_the_value_is_of_written_ones) {
  const std::string wide = "ld.local.u64 %rd7, [%rd5];\n";
  for (const std::string& body :
       {std::string("ld.local.v2.u64 {%rd7, %rd8}, [%rd5];\n") + decide_wide,
        wide +
            "{ .param .align 8 .b8 a[16]; .param .align 8 .b8 r[16];\nst.param.v2.b64 [a], "
            "{%rd7, %rd6};\ncall (r), swapped, (a);\nld.param.b64 %rd8, [r]; }\n" +
            decide_wide,
        wide +
            "mad.lo.u32 %r21, %r1, 8, %r19;\nst.shared.u64 [%r21], %rd7;\nld.shared.u8 %r4, "
            "[%r21];\n" +
            decide,
        // The register gets another value, by an instruction, a load, a call.
        "ld.local.u32 %r4, [%rd5+4];\nmov.u32 %r4, 3;\n" + std::string(decide),
        "ld.local.u32 %r4, [%rd5+4];\nld.local.u32 %r4, [%rd5+8];\n" + std::string(decide),
        wide + "mov.u64 %rd8, %rd7;\nmov.u64 %rd7, %rd6;\n" + call_of("same") + decide_wide,
        wide + "mov.u64 %rd9, %rd7;\nmov.u64 %rd7, %rd6;\n" + call_of("twice") + decide_wide,
        // A byte of a structure, beside those that are not written.
        "ld.local.u8 %h2, [%rd5+1];\n{ .param .align 8 .b8 a[16]; .param .align 8 .b8 r[16];\n"
        "st.param.b8 [a], 3;\nst.param.b8 [a+1], %h2;\nst.param.b8 [a+2], 4;\nst.param.b64 [a+8], "
        "%rd6;\ncall (r), swapped, (a);\nld.param.u8 %r4, [r+8];\nld.param.u8 %r5, [r+10];\n"
        "add.u32 %r4, %r4, %r5; }\n" +
            std::string(decide),
        // The first 20 threads get 5.
        wide + "setp.ge.u32 %p3, %r1, 20;\n@%p3 mov.u64 %rd7, 7;\n" + call_of("early", true) +
            decide_wide,
        // Once it is told, it is not told again.
        "ld.local.u8 %h2, [%rd5];\ncvt.u32.u16 %r4, %h2;\n" + std::string(decide)}) {
    for (const Finding& finding : uses_of(body))
      ADD_FAILURE() << body << describe(finding, "t.ptx");
  }
}

// The second warp gets the frame of the first, which has ended.
TEST(UsesOfUnwrittenBytes, are_not_those_of_a_warp_that_had_the_frame_before) {
  for (const Finding& finding :
       uses_of("setp.ge.u32 %p2, %r1, 32;\n@%p2 bra SECOND;\nld.local.u32 %r4, [%rd5+4];\n"
               "add.u32 %r4, %r4, 1;\nst.shared.u32 [%r20], %r4;\nexit;\nSECOND:\n"
               "add.u32 %r4, %r1, 1;\nld.local.u32 %r3, [%rd5+4];\nst.shared.u32 [%r20], %r3;\n" +
                   std::string(decide),
               64)) {
    ADD_FAILURE() << describe(finding, "t.ptx");
  }
}

// The byte at 0 is written, those from 1 to 7 are not; `load` takes a type, a register and a place.
struct SignedSpace {
  const char* name;
  std::string before;
  std::string load;
  std::string behind;
};
std::vector<SignedSpace> signed_spaces() {
  return {{"local", "", "ld.local.{} {}, [%rd5+{}];\n", ""},
          {"generic", "cvta.local.u64 %rd9, %rd5;\n", "ld.{} {}, [%rd9+{}];\n", ""},
          {"shared", "st.shared.u8 [%r19], %h1;\n", "ld.shared.{} {}, [%r19+{}];\n", ""},
          {"global", "st.global.u8 [%rd1], %h1;\n", "ld.global.{} {}, [%rd1+{}];\n", ""},
          {"param",
           "ld.local.u64 %rd7, [%rd5];\n{ .param .align 8 .b8 a[16]; .param .align 8 .b8 r[16];\n"
           "st.param.v2.b64 [a], {%rd6, %rd7};\ncall (r), swapped, (a);\n",
           "ld.param.{} {}, [r+{}];\n", "}\n"}};
}

// The highest bit of the register decides. It is the sign of what is loaded, or nothing.
TEST(UsesOfUnwrittenBytes, go_with_the_sign_through_the_whole_register_in_each_space) {
  const std::string word = "shr.u32 %r4, %r4, 31;\n";
  const std::string wide = "shr.u64 %rd8, %rd8, 63;\ncvt.u32.u64 %r4, %rd8;\n";
  const std::string half = "shr.u16 %h2, %h2, 15;\ncvt.u32.u16 %r4, %h2;\n";
  struct Row {
    unsigned bytes;
    const char* reg;
    std::string highest;
  };
  const Row rows[] = {{1, "%h2", half},  {1, "%r4", word},  {2, "%r4", word},
                      {1, "%rd8", wide}, {2, "%rd8", wide}, {4, "%rd8", wide}};
  Options options;
  options.uninitialised_buffers = {0};
  for (const SignedSpace& space : signed_spaces()) {
    for (const Row& row : rows) {
      const auto findings = [&](char letter, unsigned place) {
        const std::string type = fmt::format("{}{}", letter, row.bytes * 8);
        const std::string load = fmt::format(fmt::runtime(space.load), type, row.reg, place);
        const auto outcome =
            run_text(kernel_of(uses_declarations, uses_head + space.before + load + space.behind +
                                                      row.highest + decide),
                     launch_of(1, 32, 256), options);
        EXPECT_TRUE(outcome) << outcome.error().message;
        return outcome ? outcome->findings : std::vector<Finding>(9);
      };
      const std::string what = fmt::format("{} {} {}", space.name, row.bytes, row.reg);
      const auto found = findings('s', row.bytes);
      ASSERT_EQ(found.size(), 1U) << what;
      EXPECT_EQ(found[0].kind, FindingKind::uninitialised_read) << what;
      EXPECT_EQ(found[0].count, 32U) << what;
      EXPECT_EQ(findings('u', row.bytes).size(), 0U) << what;
      // The first byte is written, and where it is all the sign is, too.
      EXPECT_EQ(findings('s', 0).size(), row.bytes == 1 ? 0U : 1U) << what;
      EXPECT_EQ(findings('u', 0).size(), 0U) << what;
    }
  }
}

TEST(UsesOfUnwrittenBytes, are_told_once_for_a_register_that_is_used_again) {
  for (const char* twice : {"st.global.u32 [%rd2], %r4;\nst.global.u32 [%rd2+4], %r4;",
                            "red.shared.add.u32 [%r20], %r4;\nred.shared.add.u32 [%r20], %r4;"}) {
    const auto found =
        uses_of("st.shared.u32 [%r20], %r1;\nld.local.u32 %r4, [%rd5+4];\n" + std::string(twice));
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].count, 32U) << twice;
  }
}

TEST(UsesOfUnwrittenBytes, are_found_however_late_they_come) {
  const auto found = uses_of(
      "ld.local.u32 %r4, [%rd5+4];\nmov.u32 %r3, 0;\nLOOP:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, "
      "%r3, 6000;\n@%p2 bra LOOP;\n" +
      std::string(decide));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].instruction, "ld.local.u32 %r4, [%rd5+4];");
}

// Behind a loop in which no register holds such bits the warp is followed again.
TEST(UsesOfUnwrittenBytes, are_found_long_after_others_were_left_alone) {
  const auto found = uses_of(
      "ld.local.u32 %r3, [%rd5+4];\nmov.u32 %r3, 0;\nLOOP:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, "
      "%r3, 6000;\n@%p2 bra LOOP;\nld.local.u32 %r4, [%rd5+4];\n" +
      std::string(decide));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].instruction, "ld.local.u32 %r4, [%rd5+4];");
}

}  // namespace
}  // namespace demarc::emulate
