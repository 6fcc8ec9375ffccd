// What the emulator does not do is refused by name and not done in another way.
#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;

std::string refusal(const std::string& text) {
  const auto outcome = run_text(text, launch_of(1, 32, 256));
  return outcome ? std::string("accepted") : outcome.error().message;
}

std::string with_directive(const std::string& directive) {
  std::string text = kernel_of("", "");
  return text.insert(text.find("{\n"), directive + "\n");
}

TEST(Refusals, a_kernel_in_clusters_of_a_size_that_is_not_said_or_too_large) {
  const std::string text = "kernel 'k' is launched in clusters of blocks ";
  EXPECT_NE(refusal(with_directive(".explicitcluster")).find(text + "(.explicitcluster)"),
            std::string::npos);
  EXPECT_NE(refusal(with_directive(".reqnctapercluster 17")).find(text + "(.reqnctapercluster)"),
            std::string::npos);
  EXPECT_NE(refusal(with_directive(".reqnctapercluster 1, 2, 1"))
                .find("clusters of 1 x 2 x 1 blocks, which do not divide a grid of 1 x 1 x 1"),
            std::string::npos);
  EXPECT_EQ(refusal(with_directive(".reqnctapercluster 1, 1, 1")), "accepted");
  EXPECT_EQ(refusal(with_directive(".maxclusterrank 8")), "accepted");
}

TEST(Refusals, bulk_copies_that_are_covered_in_other_forms) {
  const std::string in = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
  const std::string out = "cp.async.bulk.global";
  const std::string reduce = "cp.reduce.async.bulk.global.shared::cta.bulk_group";
  EXPECT_EQ(refusal(kernel_of("", in + " [%r5], [%rd1], 256, [%r6];")), "accepted");
  EXPECT_EQ(refusal(kernel_of("", out + ".shared::cta.bulk_group [%rd1], [%r5], 256;")),
            "accepted");
  EXPECT_EQ(refusal(kernel_of("", reduce + ".add.u32 [%rd1], [%r5], 256;")), "accepted");
  for (const std::string& line :
       {in + ".multicast::cluster [%r5], [%rd1], 256, [%r6], %h1;",
        out + ".shared::cta.bulk_group.cp_mask [%rd1], [%r5], 256, %h1;",
        out + ".bulk_group [%rd1], [%r5], 256;", reduce + ".exch.u32 [%rd1], [%r5], 256;",
        in + " [%r5], [%rd1], 256;"}) {
    // What follows begins with an operand that could be the barrier.
    EXPECT_NE(refusal(kernel_of("", line + "\nst.shared.b64 [%r6], %rd1;"))
                  .find("a form of this instruction the emulator does not cover: " + line),
              std::string::npos)
        << line;
  }
}

TEST(Refusals, variables_larger_than_the_memory_they_are_of) {
  EXPECT_NE(refusal(kernel_of(".shared .b8 s[4294967297];\n", "mov.u64 %rd3, s;"))
                .find(": 4294967297 bytes of shared memory, 232448 are the most: s"),
            std::string::npos);
  EXPECT_NE(refusal(kernel_of("", ".shared .b8 s[232448];\n.shared .b8 t;\nmov.u64 %rd3, s;"))
                .find(": 232449 bytes of shared memory, 232448 are the most: t"),
            std::string::npos);
  EXPECT_NE(refusal(kernel_of("", ".local .b8 a[4294967296];"))
                .find(": 4294967296 bytes of local memory, 524288 are the most: a"),
            std::string::npos);
  EXPECT_NE(refusal(kernel_of("", ".local .b8 a[524288];\n.local .b8 b;"))
                .find(": 524289 bytes of local memory, 524288 are the most: b"),
            std::string::npos);
  EXPECT_NE(refusal(kernel_of("", ".param .b8 p[1048577];"))
                .find(": 1048577 bytes of parameter memory, 1048576 are the most: p"),
            std::string::npos);
  EXPECT_NE(
      refusal(kernel_of(".const .b8 c[720897];\n", ""))
          .find("with 'c' the module has 720897 bytes of constant memory, 720896 are the most"),
      std::string::npos);
  EXPECT_NE(
      refusal(kernel_of(".global .b8 g[70368744177664];\n", ""))
          .find("with 'g' the module's variables take 70368744177664 bytes; this machine has "),
      std::string::npos);
  EXPECT_EQ(refusal(kernel_of(".const .b8 c[720896];\n.global .b8 g[1048576];\n",
                              ".shared .b8 s[232448];\n.local .b8 a[524288];\n"
                              ".param .b8 p[1024];\n")),
            "accepted");
}

TEST(Refusals, a_function_with_larger_parameters_than_a_call_can_carry) {
  const std::string text =
      kernel_of(".func f(.param .b8 a[1048576], .param .b8 b[16])\n{\n\tret;\n}\n",
                ".param .b8 a[1048576];\n.param .b8 b[16];\ncall f, (a, b);");
  EXPECT_NE(refusal(text).find(": 1048592 bytes of parameter memory, 1048576 are the most: b"),
            std::string::npos)
      << refusal(text);
}

TEST(Refusals, a_call_that_hands_over_other_values_than_the_function_declares) {
  const std::string function =
      ".func (.param .b32 r) f(.param .b8 a[32], .reg .b32 b)\n{\n\tst.param.b32 [r], b;\n}\n";
  const auto of = [&](const std::string& call) {
    return refusal(kernel_of(function,
                             ".param .b8 a[32];\n.param .b8 s[16];\n.param .b32 r;\n"
                             ".param .b64 q;\n" +
                                 call));
  };
  EXPECT_EQ(of("call (r), f, (a, %r1);"), "accepted");
  EXPECT_EQ(of("call (q), f, (a, 1);"), "accepted");
  for (const std::string call :
       {"call (r), f, (a);", "call (r), f, (s, %r1);", "call (r), f, (%r1, %r1);",
        "call (r), f, (a, %r1, %r1);", "call f, (a, %r1);", "call (a), f, (a, %r1);"}) {
    EXPECT_NE(of(call).find("a form of this instruction the emulator does not cover: " + call),
              std::string::npos)
        << call;
  }
}

TEST(Refusals, a_function_with_more_registers_than_a_warp_can_keep) {
  EXPECT_NE(refusal(kernel_of("", ".reg .b64 %many<600000>;"))
                .find("registers and parameters of more than 134217728 bytes a warp: k"),
            std::string::npos);
}

TEST(Refusals, a_function_with_a_register_parameter_that_calls_do_not_carry) {
  const std::string cause = "a .reg parameter or result that is a predicate or has 16 bytes: f";
  const auto of = [](const std::string& function, const std::string& call) {
    return refusal(kernel_of(function, call));
  };
  EXPECT_NE(of(".func f(.reg .pred a)\n{\n\tret;\n}\n", "call f, (1);").find(cause),
            std::string::npos);
  EXPECT_NE(of(".func f(.reg .b128 a)\n{\n\tret;\n}\n", "call f, (1);").find(cause),
            std::string::npos);
  EXPECT_NE(
      of(".func (.reg .pred r) f()\n{\n\tsetp.eq.u32 r, 1, 1;\n}\n", "call (%r5), f;").find(cause),
      std::string::npos);
  EXPECT_EQ(
      of(".func (.reg .b64 r) f(.reg .b64 a)\n{\n\tmov.u64 r, a;\n}\n", "call (%rd5), f, (%rd1);"),
      "accepted");
}

}  // namespace
}  // namespace demarc::emulate
