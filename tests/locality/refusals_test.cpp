// What the analysis refuses or leaves out, and the words for it, beside what it must accept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "written_kernel.hpp"

namespace demarc::locality {
namespace {

using testing::HasSubstr;

// Whether it is analysed, or with what words and of what kind it is refused.
struct Verdict {
  ErrorKind kind = ErrorKind::invalid_input;
  std::string message = "analysed";
};
Verdict verdict_of(const ptx::Module& module, Force force) {
  const auto runs = collect_runs(module, launch_of("1", "32", "buf:64:zero,i32:0"), 0, force);
  return runs ? Verdict{} : Verdict{runs.error().kind, runs.error().message};
}

std::string repeated(const std::string& line, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += line;
  return text;
}
const std::string one_load = "ld.global.u8 %r1, [%rd1];\n";
const std::string read_p0 = "ld.param.u64 %rd1, [p0];\n";
constexpr std::size_t max_accesses = 65534;

TEST(Refusals, name_what_would_be_right) {
  const std::string open = read_p0 +
                           "ld.global.u32 %r1, [%rd1];\nmul.wide.u32 %rd2, %r1, 4;\n"
                           "add.u64 %rd3, %rd1, %rd2;\nld.global.u32 %r2, [%rd3];\n";
  const struct {
    std::string body;
    Force force;
    ErrorKind kind;
    const char* message;
  } cases[] = {
      {open, Force::automatic, ErrorKind::invalid_input, "analysed"},
      {open, Force::symbolic, ErrorKind::invalid_input,
       "k.ptx:14: ld.global.u32 %r2, [%rd3];: it depends on loaded data and has no closed form; "
       "leave out --method symbolic to have the kernel emulated"},
      {read_p0 + "ldx.global.u32 %r1, [%rd1];\n", Force::symbolic, ErrorKind::invalid_input,
       "k.ptx:11: ldx.global.u32 %r1, [%rd1];: may touch global memory and has no closed form; "
       "leave out --method symbolic to have the kernel emulated"},
      {read_p0 + "ldx.global.u32 %r1, [%rd1];\n", Force::emulated, ErrorKind::invalid_input,
       "does not cover: ldx.global.u32 %r1, [%rd1];"},
      {open + "trap;\n", Force::automatic, ErrorKind::check_failed,
       "the kernel does not run to its end: "},
      {read_p0 + repeated(one_load, max_accesses), Force::automatic, ErrorKind::invalid_input,
       "analysed"},
      {read_p0 + repeated(one_load, max_accesses + 1), Force::automatic, ErrorKind::invalid_input,
       "kernel 'k' has 65535 memory instructions, more than 65534"},
  };
  for (const auto& one : cases) {
    const Verdict verdict = verdict_of(module_of(one.body, one_pointer), one.force);
    EXPECT_THAT(verdict.message, HasSubstr(one.message));
    EXPECT_EQ(verdict.kind, one.kind) << one.message;
  }
}

// A kernel with `own` accesses that calls a function with `called` others.
Verdict verdict_with_calls(std::size_t own, std::size_t called, Force force = Force::automatic) {
  const ptx::ParseResult parsed = ptx::parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n.func f(.param .b64 address)\n{\n"
      ".reg .b64 %rd<2>;\n.reg .b32 %r<2>;\nld.param.u64 %rd1, [address];\n" +
          repeated(one_load, called) +
          "ret;\n}\n.visible .entry k(.param .u64 p0, .param .u32 p1)\n{\n"
          ".reg .b64 %rd<2>;\n.reg .b32 %r<2>;\n" +
          read_p0 + repeated(one_load, own) +
          "{\n.param .b64 to;\nst.param.b64 [to], %rd1;\ncall.uni f, (to);\n}\nret;\n}\n",
      "k.ptx");
  EXPECT_TRUE(parsed.diagnostics.ok());
  return verdict_of(parsed.module, force);
}

TEST(Refusals, count_the_accesses_of_called_functions_too) {
  EXPECT_EQ(verdict_with_calls(max_accesses - 1, 1).message, "analysed");
  const Verdict verdict = verdict_with_calls(max_accesses - 1, 2);
  EXPECT_EQ(verdict.message, "the kernel has more than 65534 memory instructions");
  EXPECT_EQ(verdict.kind, ErrorKind::invalid_input);
}

TEST(Refusals, of_calls_say_that_the_kernel_can_be_emulated) {
  EXPECT_EQ(verdict_with_calls(1, 1).message, "analysed");
  EXPECT_EQ(verdict_with_calls(1, 1, Force::symbolic).message,
            "kernel 'k' calls functions; leave out --method symbolic to have the kernel emulated");
}

TEST(Refusals, of_beginnings_say_why_they_cannot_be_followed) {
  const auto said = [](const std::string& body, const std::string& arguments) {
    const auto runs =
        collect_runs(module_of(body, one_pointer), launch_of("64", "64", arguments), 0,
                     Force::automatic, 0, {}, {.row_operations = 256, .beginning = true});
    if (runs) return std::string(runs->cut ? "a beginning" : "whole");
    EXPECT_EQ(runs.error().kind, ErrorKind::missing_capability);
    return runs.error().message;
  };
  // Two hundred times the word of the thread, or what stands there.
  const auto loop = [](const std::string& step) {
    return R"(
ld.param.u64 %rd1, [p0];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd3, %rd1, %rd2;
mov.u32 %r3, 0;
again:
xor.b32 %r4, %r3, 1;
and.b32 %r4, %r4, 1;
ld.global.u32 %r2, [%rd3];
)" + step + R"(
add.u32 %r3, %r3, 1;
setp.lt.u32 %p1, %r3, 2000;
@%p1 bra again;
)";
  };
  const std::string moves = "mul.wide.u32 %rd4, %r4, 4;\nadd.u64 %rd3, %rd3, %rd4;\n";
  EXPECT_EQ(said(loop(moves), "buf:65536:zero,i32:0"), "a beginning");
  EXPECT_THAT(said(loop(moves), "buf:128:zero,i32:0"),
              HasSubstr("an address outside of the buffers or not aligned: k.ptx:19: ld.global.u32 "
                        "%r2, [%rd3];, and it is too long to be emulated"));
  EXPECT_EQ(said(loop(moves + "mul.wide.u32 %rd5, %r2, 4;\nadd.u64 %rd5, %rd1, %rd5;\n"
                              "ld.global.u32 %r5, [%rd5];\n"),
                 "buf:65536:zero,i32:0"),
            "its addresses have no closed form, and it is too long to be emulated");
}

TEST(Notes, name_what_was_left_out_and_what_never_ran) {
  const std::string unknown = "ldx.global.u32 %r2, [%rd1];\n";
  const Analysis left_out = analysed(module_of(read_p0 + unknown + one_load, one_pointer),
                                     launch_of("1", "32", "buf:64,i32:0"));
  EXPECT_THAT(left_out.notes,
              testing::ElementsAre("left out, may touch global memory and is not covered: "
                                   "k.ptx:11: ldx.global.u32 %r2, [%rd1];",
                                   testing::StartsWith("1 of the kernel's instructions left out; "
                                                       "the emulator: ")));
  const Analysis never = analysed(
      module_of(read_p0 + "setp.eq.u32 %p1, 1, 2;\n@%p1 " + one_load + one_load, one_pointer),
      launch_of("1", "32", "buf:64,i32:0"));
  EXPECT_THAT(never.notes, testing::ElementsAre("line 12: never executed by this launch: @%p1 "
                                                "ld.global.u8 %r1, [%rd1];"));
}

}  // namespace
}  // namespace demarc::locality
