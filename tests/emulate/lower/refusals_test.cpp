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
  const std::string text = "kernel 'k' is launched in clusters of ";
  EXPECT_NE(refusal(with_directive(".explicitcluster"))
                .find("kernel 'k' leaves the size of its clusters to the launch "
                      "(.explicitcluster); give \"cluster\" in the launch file, or --cluster"),
            std::string::npos);
  EXPECT_NE(refusal(with_directive(".reqnctapercluster 17"))
                .find(text + "17 x 1 x 1 blocks; it takes 1 to 16"),
            std::string::npos);
  EXPECT_NE(refusal(with_directive(".reqnctapercluster 1, 2, 1"))
                .find("clusters of 1 x 2 x 1 blocks, which do not divide a grid of 1 x 1 x 1"),
            std::string::npos);
  for (const char* size : {"0", "1, 0", "17, 0"}) {
    EXPECT_NE(refusal(with_directive(fmt::format(".reqnctapercluster {}", size)))
                  .find("blocks; it takes 1 to 16"),
              std::string::npos)
        << size;
  }
  for (const char* lacking : {"", ".reqntid 32", ".reqnctapercluster 1"}) {
    EXPECT_NE(refusal(with_directive(fmt::format(".blocksareclusters {}", lacking)))
                  .find("'.blocksareclusters' needs '.reqntid' and '.reqnctapercluster'"),
              std::string::npos)
        << lacking;
  }
  EXPECT_NE(refusal(with_directive(".blocksareclusters .reqntid 64 .reqnctapercluster 1"))
                .find("has blocks of 64 x 1 x 1 threads (.reqntid), the launch says 32 x 1 x 1"),
            std::string::npos);
  EXPECT_EQ(refusal(with_directive(".reqnctapercluster 1, 1, 1")), "accepted");
  EXPECT_EQ(refusal(with_directive(".maxclusterrank 8")), "accepted");
}

TEST(Refusals, clusters_of_another_size_than_the_kernel_takes) {
  const auto in_clusters = [](const std::string& directive, const gpu::Dim3& cluster) {
    gpu::Launch launch = launch_of(16, 32, 256);
    launch.kernels[0].cluster = cluster;
    const auto outcome = run_text(with_directive(directive), launch);
    return outcome ? std::string("accepted") : outcome.error().message;
  };
  EXPECT_NE(
      in_clusters(".reqnctapercluster 4", {2, 1, 1})
          .find("kernel 'k' has clusters of 4 x 1 x 1 blocks (.reqnctapercluster), the launch "
                "says 2 x 1 x 1"),
      std::string::npos);
  EXPECT_EQ(in_clusters(".reqnctapercluster 4", {4, 1, 1}), "accepted");
  EXPECT_NE(in_clusters(".maxclusterrank 4", {8, 1, 1})
                .find("clusters of 8 x 1 x 1 blocks; it takes 1 to 4 (.maxclusterrank)"),
            std::string::npos);
  EXPECT_EQ(in_clusters(".maxclusterrank 4", {4, 1, 1}), "accepted");
  EXPECT_EQ(in_clusters(".maxclusterrank 32", {16, 1, 1}), "accepted");
  EXPECT_EQ(in_clusters(".explicitcluster", {4, 1, 1}), "accepted");
  EXPECT_EQ(in_clusters("", {16, 1, 1}), "accepted");
  EXPECT_NE(in_clusters("", {3, 1, 1})
                .find("clusters of 3 x 1 x 1 blocks, which do not divide a grid of 16 x 1 x 1"),
            std::string::npos);
  EXPECT_EQ(in_clusters(".reqntid 32 .blocksareclusters .reqnctapercluster 3", {3, 1, 1}),
            "accepted");
  EXPECT_NE(in_clusters(".reqntid 32 .blocksareclusters .reqnctapercluster 4", {2, 1, 1})
                .find("(.reqnctapercluster), the launch says 2 x 1 x 1"),
            std::string::npos);
}

TEST(Refusals, a_grid_of_more_clusters_than_there_are_numbers_of_blocks) {
  gpu::Launch launch = launch_of(0x7fffffff, 32, 256);
  for (const gpu::Dim3 grid : {gpu::Dim3{0x7fffffff, 1, 1}, gpu::Dim3{0x8000000, 60000, 60000}}) {
    launch.kernels[0].grid = grid;
    const auto outcome =
        run_text(with_directive(".reqntid 32 .blocksareclusters .reqnctapercluster 4"), launch);
    ASSERT_FALSE(outcome);
    EXPECT_TRUE(outcome.error().message.find("which are too many") != std::string::npos ||
                outcome.error().message.find("the limit is 2^32 - 1") != std::string::npos)
        << outcome.error().message;
  }
}

TEST(Refusals, bulk_copies_that_are_covered_in_other_forms) {
  const std::string in = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
  const std::string out = "cp.async.bulk.global";
  const std::string reduce = "cp.reduce.async.bulk.global.shared::cta.bulk_group";
  EXPECT_EQ(refusal(kernel_of("", in + " [%r5], [%rd1], 256, [%r6];")), "accepted");
  EXPECT_EQ(refusal(kernel_of("", in + ".multicast::cluster [%r5], [%rd1], 256, [%r6], %h1;")),
            "accepted");
  EXPECT_EQ(refusal(kernel_of("", out + ".shared::cta.bulk_group [%rd1], [%r5], 256;")),
            "accepted");
  EXPECT_EQ(refusal(kernel_of("", reduce + ".add.u32 [%rd1], [%r5], 256;")), "accepted");
  for (const std::string& line :
       {in + ".multicast::cluster [%r5], [%rd1], 256, [%r6];",
        out + ".shared::cta.multicast::cluster [%rd1], [%r5], 256, [%r6], %h1;",
        out + ".shared::cta.bulk_group.cp_mask [%rd1], [%r5], 256, %h1;",
        out + ".bulk_group [%rd1], [%r5], 256;", reduce + ".exch.u32 [%rd1], [%r5], 256;",
        in + " [%r5], [%rd1], 256;"}) {
    // What follows begins with an operand that could be the barrier.
    EXPECT_NE(refusal(kernel_of("", line + "\nst.shared.b64 [%r6], %rd1;"))
                  .find("a form of this instruction that the emulator does not cover: " + line),
              std::string::npos)
        << line;
  }
}

void expect_no_such_form(const std::string& line) {
  EXPECT_NE(refusal(kernel_of("", line))
                .find("a form of this instruction that the emulator does not cover: " + line),
            std::string::npos)
      << line << ": " << refusal(kernel_of("", line));
}

TEST(Refusals, products_of_types_that_there_are_not) {
  const std::string small = " {%r1, %r2}, {%r3, %r4}, {%r5}, {%r6, %r7};";
  const std::string wide =
      " {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, {%r1, %r2, %r3, %r4};";
  const std::string floats =
      " {%f1, %f2, %f3, %f4}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, {%f1, %f2, %f3, %f4};";
  const std::string mma = "mma.sync.aligned.";
  EXPECT_EQ(refusal(kernel_of("", mma + "m16n8k16.row.col.f32.f16.f16.f32" + floats)), "accepted");
  EXPECT_EQ(refusal(kernel_of("", mma + "m16n8k32.row.col.satfinite.s32.s8.u8.s32" + wide)),
            "accepted");
  for (const std::string& line :
       {mma + "m16n8k8.row.col.bf16.bf16.bf16.bf16" + small,
        mma + "m16n8k8.row.col.f32.tf32.f32.f32" + floats,
        mma + "m16n8k8.row.col.f32.tf32.s32.f32" + floats,
        mma + "m16n8k16.row.col.f32.f16.bf16.f32" + floats,
        mma + "m16n8k32.row.col.s32.s8.e4m3.s32" + wide,
        mma + "m16n8k16.row.col.s32.f16.f16.s32" + wide,
        mma + "m16n8k32.row.col.f32.s8.s8.f32" + floats,
        mma + "m16n8k16.row.col.f16.f16.f16.f32 {%r1, %r2}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, "
              "{%f1, %f2, %f3, %f4};",
        mma + "m16n8k16.row.col.satfinite.f32.f16.f16.f32" + floats,
        mma + "m8n8k128.row.col.s32.b1.b1.s32.popc {%r1, %r2}, {%r3}, {%r4}, {%r5, %r6};",
        std::string(
            "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32.satfinite {%f1, %f2, %f3, %f4, "
            "%f5, %f6, %f7, %f8}, {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, {%r1, %r2, %r3, "
            "%r4, %r5, %r6, %r7, %r8}, {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};")}) {
    expect_no_such_form(line);
  }
}

TEST(Refusals, fragments_of_types_and_shapes_that_there_are_not) {
  EXPECT_EQ(refusal(kernel_of("",
                              "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%f1, %f2, %f3, "
                              "%f4, %f5, %f6, %f7, %f8}, [%rd1];")),
            "accepted");
  for (const char* line :
       {"wmma.store.d.sync.aligned.row.m16n16k16.global.u8 [%rd1], {%r1, %r2};",
        "wmma.load.c.sync.aligned.row.m16n24k16.global.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, "
        "%f8, "
        "%f1, %f2, %f3, %f4}, [%rd1];",
        "wmma.load.b.sync.aligned.col.m16n24k16.global.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, "
        "%r8}, [%rd1];",
        "wmma.load.c.sync.aligned.row.m8n8k4.global.f32 {%f1, %f2}, [%rd1];"}) {
    expect_no_such_form(line);
  }
}

TEST(Refusals, transfers_that_complete_on_a_barrier_of_other_types) {
  const std::string store = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes";
  const std::string reduce =
      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes";
  for (const std::string& line :
       {store + ".u32 [%r1], %r2, [%r3];", store + ".b64 [%r1], %rd2, [%r3];",
        reduce + ".add.u64 [%r1], %rd2, [%r3];", reduce + ".inc.u32 [%r1], %r2, [%r3];",
        reduce + ".min.s32 [%r1], %r2, [%r3];", reduce + ".xor.b32 [%r1], %r2, [%r3];"}) {
    EXPECT_EQ(refusal(kernel_of("", line)), "accepted") << line;
  }
  for (const std::string& line :
       {store + ".u16 [%r1], %h2, [%r3];", store + ".u32 [%r1], %r2;",
        std::string("st.async.weak.shared::cluster.u32 [%r1], %r2, [%r3];"),
        reduce + ".add.f32 [%r1], %f2, [%r3];", reduce + ".exch.b32 [%r1], %r2, [%r3];",
        reduce + ".min.u64 [%r1], %rd2, [%r3];", reduce + ".inc.s32 [%r1], %r2, [%r3];",
        reduce + ".and.b64 [%r1], %rd2, [%r3];", reduce + ".cas.b32 [%r1], %r2, [%r3];",
        reduce + ".add.u32 [%r1], %r2;"}) {
    expect_no_such_form(line);
  }
}

TEST(Refusals, offsets_into_shared_memory_of_the_system_that_is_not_there) {
  for (const char* which : {"0", "1"}) {
    const std::string message =
        refusal(kernel_of("", fmt::format("mov.b32 %r3, %reserved_smem_offset_{};", which)));
    EXPECT_NE(message.find(fmt::format("%reserved_smem_offset_{}", which)), std::string::npos)
        << message;
  }
}

TEST(Refusals, variables_larger_than_the_memory_they_are_of) {
  EXPECT_NE(refusal(kernel_of(".shared .b8 s[4294967297];\n", "mov.u64 %rd3, s;"))
                .find(": 4294967297 bytes of static shared memory; at most 49152 are possible: s"),
            std::string::npos);
  EXPECT_NE(refusal(kernel_of("", ".shared .b8 s[49152];\n.shared .b8 t;\nmov.u64 %rd3, s;"))
                .find(": 49153 bytes of static shared memory; at most 49152 are possible: t"),
            std::string::npos);
  EXPECT_NE(refusal(kernel_of("", ".local .b8 a[4294967296];"))
                .find(": 4294967296 bytes of local memory; at most 524288 are possible: a"),
            std::string::npos);
  EXPECT_NE(refusal(kernel_of("", ".local .b8 a[524288];\n.local .b8 b;"))
                .find(": 524289 bytes of local memory; at most 524288 are possible: b"),
            std::string::npos);
  EXPECT_NE(refusal(kernel_of("", ".param .b8 p[1048577];"))
                .find(": 1048577 bytes of parameter memory; at most 1048576 are possible: p"),
            std::string::npos);
  EXPECT_NE(refusal(kernel_of(".const .b8 c[65537];\n", ""))
                .find("with 'c' the module's constant variables have 65537 bytes, but constant "
                      "memory has 65536"),
            std::string::npos);
  EXPECT_NE(
      refusal(kernel_of(".global .b8 g[70368744177664];\n", ""))
          .find("with 'g' the module's variables take 70368744177664 bytes; this machine has "),
      std::string::npos);
  EXPECT_NE(
      refusal(kernel_of(".extern .const .b8 c[70368744177664];\n", ""))
          .find("with 'c' the module's variables take 70368744177664 bytes; this machine has "),
      std::string::npos);
  EXPECT_EQ(refusal(kernel_of(".const .b8 c[65536];\n.global .b8 g[1048576];\n",
                              ".shared .b8 s[49152];\n.local .b8 a[524288];\n"
                              ".param .b8 p[1024];\n")),
            "accepted");
}

TEST(Refusals, a_function_with_larger_parameters_than_a_call_can_carry) {
  const std::string text =
      kernel_of(".func f(.param .b8 a[1048576], .param .b8 b[16])\n{\n\tret;\n}\n",
                ".param .b8 a[1048576];\n.param .b8 b[16];\ncall f, (a, b);");
  EXPECT_NE(
      refusal(text).find(": 1048592 bytes of parameter memory; at most 1048576 are possible: b"),
      std::string::npos)
      << refusal(text);
}

constexpr const char* other_values =
    "values of another number, size or alignment than the called function declares";

TEST(Refusals, a_call_that_hands_over_other_values_than_the_function_declares) {
  const std::string function =
      ".func (.param .b32 r) f(.param .b8 a[32], .reg .b32 b)\n{\n\tst.param.b32 [r], b;\n}\n";
  const auto of = [&](const std::string& call) {
    return refusal(kernel_of(function,
                             ".param .b8 a[32];\n.param .b8 s[16];\n.param .b32 r;\n"
                             ".param .b64 q;\n" +
                                 call));
  };
  for (const std::string call : {"call (r), f, (a, %r1);", "call (r), f, (a, 1);",
                                 "call (%r5), f, (a, 1);", "call (_), f, (a, %r1);"})
    EXPECT_EQ(of(call), "accepted") << call;
  for (const std::string call :
       {"call (r), f, (a);", "call (r), f, (s, %r1);", "call (r), f, (%r1, %r1);",
        "call (r), f, (a, %r1, %r1);", "call f, (a, %r1);", "call (a), f, (a, %r1);",
        "call (q), f, (a, 1);", "call (%rd5), f, (a, 1);", "call (r), f, (a, %rd1);",
        "call (r), f, (a, q);", "call (r), f, (a, %h1);"}) {
    EXPECT_NE(of(call).find(fmt::format("{}: {}", other_values, call)), std::string::npos) << call;
  }
}

// By the function's own header, by a prototype, and by the functions that the call may reach.
TEST(Refusals, an_argument_of_another_size_or_alignment_than_the_parameter) {
  const auto of = [](const std::string& formal, const std::string& actual,
                     const std::string& targets) {
    const std::string last = targets.empty() ? "" : ", T";
    const std::string callee = targets.empty() ? "f" : "%rd5";
    return refusal(kernel_of(".func f(.param " + formal + ")\n{\n\tret;\n}\n",
                             "mov.u64 %rd5, f;\n" + targets + "{\n.param " + actual + ";\ncall " +
                                 callee + ", (x)" + last + ";\n}"));
  };
  for (const std::string kind : {"", "prototype", "targets"}) {
    const auto targets = [&](const std::string& formal) {
      if (kind.empty()) return std::string();
      return kind == "targets" ? std::string("T: .calltargets f;\n")
                               : "T: .callprototype _ (.param " + formal + ");\n";
    };
    const auto said = [&](const std::string& formal, const std::string& actual) {
      return of(formal + (formal.ends_with(']') ? "" : " a"), actual,
                targets(formal + (formal.ends_with(']') ? "" : " _")));
    };
    for (const auto& [formal, actual] :
         {std::pair(".b32", ".b32 x"), std::pair(".b32", ".s32 x"), std::pair(".f64", ".b64 x"),
          std::pair(".align 8 .b8 a[12]", ".align 8 .b8 x[12]")})
      EXPECT_EQ(said(formal, actual), "accepted") << formal << " <- " << actual << " " << kind;
    for (const auto& [formal, actual] :
         {std::pair(".b32", ".b64 x"), std::pair(".b32", ".b16 x"), std::pair(".b64", ".b32 x"),
          std::pair(".b8", ".b16 x"), std::pair(".b32", ".align 8 .b32 x"),
          std::pair(".align 8 .b32", ".b32 x"),
          std::pair(".align 4 .b8 a[8]", ".align 4 .b8 x[12]"),
          std::pair(".align 4 .b8 a[8]", ".align 8 .b8 x[8]"),
          std::pair(".align 8 .b8 a[8]", ".align 4 .b8 x[8]")}) {
      EXPECT_NE(said(formal, actual).find(other_values), std::string::npos)
          << formal << " <- " << actual << " " << kind;
    }
  }
}

// What the call hands over fits the prototype, but not the function that the register holds.
TEST(Refusals, a_function_of_another_size_than_the_prototype_ends_the_kernel) {
  const auto findings = [](const std::string& formal) {
    const auto outcome =
        run_text(kernel_of(".func f(.param " + formal + " a)\n{\n\tret;\n}\n",
                           "mov.u64 %rd5, f;\nT: .callprototype _ (.param .b32 _);\n"
                           "{\n.param .b32 x;\nst.param.b32 [x], 1;\ncall %rd5, (x), T;\n}"),
                 launch_of(1, 32, 256));
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? outcome->findings : std::vector<Finding>{};
  };
  EXPECT_EQ(findings(".b32").size(), 0U);
  for (const std::string formal : {".b64", ".b16", ".align 8 .b32"}) {
    ASSERT_EQ(findings(formal).size(), 1U) << formal;
    EXPECT_NE(findings(formal)[0].detail.find("parameters or results differ"), std::string::npos);
  }
}

TEST(Refusals, a_block_that_is_not_what_the_kernel_says) {
  const auto of = [](const std::string& directive, const gpu::Dim3& block) {
    gpu::Launch launch = launch_of(1, 1, 8192);
    launch.kernels[0].block = block;
    const auto outcome = run_text(with_directive(directive), launch);
    return outcome ? std::string("accepted") : outcome.error().message;
  };
  EXPECT_EQ(of(".reqntid 32,2,1", {32, 2, 1}), "accepted");
  EXPECT_EQ(of(".reqntid 64", {64, 1, 1}), "accepted");
  for (const gpu::Dim3 block : {gpu::Dim3{64, 1, 1}, gpu::Dim3{2, 32, 1}, gpu::Dim3{32, 1, 2},
                                gpu::Dim3{32, 2, 2}, gpu::Dim3{32, 1, 1}}) {
    EXPECT_NE(of(".reqntid 32,2,1", block)
                  .find("kernel 'k' has blocks of 32 x 2 x 1 threads (.reqntid), the launch says " +
                        fmt::format("{} x {} x {}", block.x, block.y, block.z)),
              std::string::npos);
  }
  for (const std::string directive : {".maxntid 64", ".maxntid 16, 4", ".maxntid 4, 4, 4"}) {
    for (const gpu::Dim3 block : {gpu::Dim3{64, 1, 1}, gpu::Dim3{2, 32, 1}, gpu::Dim3{1, 1, 33}})
      EXPECT_EQ(of(directive, block), "accepted") << directive;
    for (const gpu::Dim3 block : {gpu::Dim3{65, 1, 1}, gpu::Dim3{13, 5, 1}, gpu::Dim3{5, 1, 13}}) {
      EXPECT_NE(of(directive, block)
                    .find("kernel 'k' takes blocks of at most 64 threads (.maxntid), the launch "
                          "says 65"),
                std::string::npos)
          << directive;
    }
  }
}

TEST(Refusals, more_static_shared_memory_than_ptxas_takes) {
  const auto of = [](const std::string& declarations) {
    return refusal(kernel_of(declarations, "st.shared.u8 [x], 1;"));
  };
  EXPECT_EQ(of(".shared .b8 x[49152];\n"), "accepted");
  EXPECT_NE(of(".shared .b8 x[49153];\n")
                .find("49153 bytes of static shared memory; at most 49152 are possible: x"),
            std::string::npos);
  EXPECT_NE(refusal(kernel_of(".shared .b8 x[49152];\n.shared .b8 y[1];\n",
                              "st.shared.u8 [x], 1;\nst.shared.u8 [y], 1;"))
                .find("49153 bytes of static shared memory; at most 49152 are possible: y"),
            std::string::npos);
}

TEST(Refusals, a_function_with_more_registers_than_a_warp_can_keep) {
  EXPECT_NE(refusal(kernel_of("", ".reg .b64 %many<600000>;"))
                .find("registers and parameters of more than 134217728 bytes per warp: k"),
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
      of(".func (.reg .pred r) f()\n{\n\tsetp.eq.u32 r, 1, 1;\n}\n", "call (%p1), f;").find(cause),
      std::string::npos);
  EXPECT_EQ(
      of(".func (.reg .b64 r) f(.reg .b64 a)\n{\n\tmov.u64 r, a;\n}\n", "call (%rd5), f, (%rd1);"),
      "accepted");
}

}  // namespace
}  // namespace demarc::emulate
