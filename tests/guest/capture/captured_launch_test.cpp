// What a launch that was taken out of a program is held against, and where its addresses lead.
#include "capture/captured_launch.hpp"

#include <gtest/gtest.h>

#include "demarc/ptx/parser.hpp"
#include "paths.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t captured_at = 0x7f0000000000;

std::vector<std::byte> bytes_of(std::uint64_t value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// For a kernel of two addresses with this body: 64 words at `at`, the first of which it changes.
CapturedLaunch captured(const std::string& body, std::uint64_t first = captured_at,
                        std::uint64_t last = captured_at + 256) {
  const std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.func other();\n"
      ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b64 %rd<4>;\n.reg .f32 %f<4>;\n"
      ".reg .b32 %r<4>;\n.reg .b16 %h<3>;\n.reg .pred %p<2>;\nld.param.u64 %rd1, [a];\n" +
      body + "\nret;\n}\n.func other()\n{\nret;\n}\n";
  CapturedLaunch launch;
  launch.module =
      std::make_shared<const ptx::Module>(ptx::parse_whole(text, "captured.ptx").value());
  launch.kernel = "k";
  launch.arguments = {bytes_of(first), bytes_of(last)};
  CapturedMemory memory{captured_at, false, std::vector<std::byte>(256), {}};
  memory.after = memory.before;
  memory.after[0] = std::byte{1};
  launch.memory.push_back(memory);
  return launch;
}

gpu::Launch written(const CapturedLaunch& launch) {
  const auto folder = test::fresh_folder("captured_launch");
  EXPECT_TRUE(write_captured(launch, folder));
  return gpu::read_launch(folder / "launch.json").value();
}

double tolerance(const std::string& body) {
  const gpu::Launch launch = written(captured(body));
  EXPECT_EQ(launch.check.absolute, 0) << body;
  const bool floating = is_floating(launch.buffers.at(0).element);
  EXPECT_EQ(floating, launch.check.relative != 0) << body;
  return launch.check.relative;
}

TEST(CapturedLaunch, numbers_of_one_type_alone_have_a_tolerance) {
  EXPECT_EQ(tolerance("st.global.f32 [%rd1], %f1;"), 1e-5);
  EXPECT_EQ(tolerance("st.global.f32 [%rd1], %f1;\nred.global.add.f32 [%rd1], %f1;"), 1e-5);
  EXPECT_EQ(tolerance("st.f32 [%rd1], %f1;\nst.shared.u32 [%rd1], %r1;"), 1e-5);
  EXPECT_EQ(tolerance("st.global.u32 [%rd1], %r1;"), 0);
  EXPECT_EQ(tolerance("st.global.f32 [%rd1], %f1;\nst.global.u32 [%rd1], %r1;"), 0);
  EXPECT_EQ(tolerance("st.global.f32 [%rd1], %f1;\ncall other;"), 0);
  EXPECT_EQ(tolerance("st.global.f32 [%rd1], %f1;\n"
                      "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%rd2], 16;"),
            0);
}

TEST(CapturedLaunch, bits_have_the_type_of_what_made_them) {
  const std::string stored = "\nst.global.b32 [%rd1], {%r1};";
  EXPECT_EQ(tolerance("mul.f32 %r1, %r2, %r3;" + stored), 1e-5);
  EXPECT_EQ(tolerance("div.full.f32 %r2, %r3, %r3;\nmov.b32 %r1, %r2;" + stored), 1e-5);
  EXPECT_EQ(tolerance("cvt.rn.f16x2.f32 %r1, %f1, %f2;" + stored), 1e-3);
  EXPECT_EQ(tolerance("cvt.rn.f16x2.f32 %r2, %f1, %f2;\nmov.b32 {%h1, %h2}, %r2;\n"
                      "mov.b32 %r1, {%h2, %h1};" +
                      stored),
            1e-3);
  // Where one way leads to a number, a constant and what memory held on the other do not count.
  EXPECT_EQ(tolerance("ld.global.b32 %r2, [%rd1];\nadd.f32 %r3, %r2, %r2;\n"
                      "selp.b32 %r1, %r2, %r3, %p1;" +
                      stored),
            1e-5);
  EXPECT_EQ(tolerance("add.f32 %r2, %r3, %r3;\nselp.b32 %r1, %r2, 0, %p1;" + stored), 1e-5);
  EXPECT_EQ(tolerance("add.f32 %r2, %r3, %r3;\nprmt.b32 %r1, 0, %r2, 0x7654;" + stored), 1e-5);
  EXPECT_EQ(tolerance("add.f32 %r2, %r3, %r3;\nshfl.sync.idx.b32 %r1, %r2, 0, 31, -1;" + stored),
            1e-5);
  EXPECT_EQ(tolerance("mov.u32 %r1, 0;\n@%p1 add.f32 %r1, %r3, %r3;" + stored), 1e-5);
  // A copy beside numbers does not count either.
  EXPECT_EQ(tolerance("add.f32 %r1, %r3, %r3;" + stored +
                      "\nld.global.b32 %r2, [%rd1];\n"
                      "st.global.b32 [%rd2], {%r2};"),
            1e-5);
  // All of shared memory leads on.
  EXPECT_EQ(tolerance("add.f32 %r2, %r3, %r3;\nst.shared.b32 [%r3], %r2;\n"
                      "ld.shared.b32 %r1, [%r3];" +
                      stored),
            1e-5);
  EXPECT_EQ(tolerance("cvt.rn.f16x2.f32 %r2, %f1, %f2;\n"
                      "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r2};\n"
                      "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r3];" +
                      stored),
            1e-3);
  // Copies to shared memory, and waits for them, write nothing that others see.
  EXPECT_EQ(tolerance("cp.async.ca.shared.global [%r3], [%rd1], 4;\ncp.async.commit_group;\n"
                      "cp.async.wait_group 0;\nadd.f32 %r1, %r3, %r3;" +
                      stored),
            1e-5);
  // A register that leads to itself.
  EXPECT_EQ(
      tolerance("mov.b32 %r2, %r1;\nmov.b32 %r1, %r2;\nfma.rn.f32 %r1, %r2, %r2, %r2;" + stored),
      1e-5);
}

TEST(CapturedLaunch, bits_that_tell_no_number_or_several_are_compared_exactly) {
  const std::string stored = "\nst.global.b32 [%rd1], {%r1};";
  EXPECT_EQ(tolerance("ld.global.b32 %r1, [%rd1];" + stored), 0);
  EXPECT_EQ(tolerance("mov.b32 %r1, 7;" + stored), 0);
  EXPECT_EQ(tolerance("xor.b32 %r1, %r2, %r3;" + stored), 0);
  EXPECT_EQ(tolerance("add.s32 %r1, %r2, %r3;" + stored), 0);
  EXPECT_EQ(tolerance("cvt.rn.bf16x2.f32 %r1, %f1, %f2;" + stored), 0);
  EXPECT_EQ(tolerance("mul.f32 %r1, %r2, %r3;\nadd.s32 %r2, %r1, 1;\n"
                      "st.global.b32 [%rd1], %r2;" +
                      stored),
            0);
  EXPECT_EQ(tolerance("add.f32 %r2, %r3, %r3;\nadd.s32 %r3, %r2, 1;\nst.shared.b32 [%r3], %r2;\n"
                      "st.shared.b32 [%r3], %r3;\nld.shared.b32 %r1, [%r3];" +
                      stored),
            0);
  EXPECT_EQ(tolerance("mul.f32 %r1, %r2, %r3;\natom.global.exch.b32 %r2, [%rd1], %r3;" + stored),
            0);
}

TEST(CapturedLaunch, a_store_that_is_not_understood_is_compared_exactly) {
  const std::string known = "add.f32 %r1, %r2, %r2;\nst.global.b32 [%rd1], {%r1};\n";
  EXPECT_EQ(tolerance(known), 1e-5);
  EXPECT_EQ(tolerance(known + "st.global.newmod.b32 [%rd1], %r1;"), 0);
  EXPECT_EQ(tolerance(known + "st.global.newmod.b32 <%rd1>;"), 0);
  EXPECT_EQ(tolerance(known + "mov.newmod.b32 %r3, %r1;\nst.global.b32 [%rd1], {%r3};"), 0);
  EXPECT_EQ(tolerance(known + "st.shared.newmod.b32 <%r3>;\nld.shared.b32 %r2, [%r3];\n"
                              "st.global.b32 [%rd1], {%r2};"),
            0);
}

TEST(CapturedLaunch, the_end_of_memory_is_an_address_too) {
  const gpu::Launch launch = written(captured("st.global.u32 [%rd1], %r1;"));
  EXPECT_EQ(std::get<gpu::BufferUse>(launch.kernels.at(0).arguments.at(0)), (gpu::BufferUse{0, 0}));
  EXPECT_EQ(std::get<gpu::BufferUse>(launch.kernels.at(0).arguments.at(1)),
            (gpu::BufferUse{0, 256}));
  const gpu::Launch number =
      written(captured("st.global.u32 [%rd1], %r1;", captured_at + 8, captured_at + 257));
  EXPECT_EQ(std::get<gpu::BufferUse>(number.kernels.at(0).arguments.at(0)), (gpu::BufferUse{0, 8}));
  EXPECT_EQ(std::get<gpu::Scalar>(number.kernels.at(0).arguments.at(1)).bits, captured_at + 257);
}

TEST(CapturedLaunch, clusters_that_the_launch_sized_keep_their_size) {
  CapturedLaunch launch = captured("st.global.u32 [%rd1], %r1;");
  EXPECT_FALSE(written(launch).kernels.at(0).cluster);
  launch.cluster = gpu::Dim3{2, 1, 4};
  EXPECT_EQ(written(launch).kernels.at(0).cluster, (gpu::Dim3{2, 1, 4}));
}

TEST(CapturedLaunch, kernels_that_take_what_only_the_driver_knows_are_refused_by_line) {
  const auto refusal = [](const std::string& body, const std::string& of_other = "") {
    const ptx::Module module =
        ptx::parse_whole(
            ".version 8.0\n.target sm_90\n.address_size 64\n.func other();\n"
            ".visible .entry k(.param .u64 a)\n{\n.reg .b64 %rd<4>;\n.reg .b32 "
            "%r<9>;\n" +
                body + "\nret;\n}\n.func other()\n{\n.reg .b64 %rd<4>;\n.reg .b32 " + "%r<9>;\n" +
                of_other + "\nret;\n}\n",
            "its code")
            .value();
    const auto taken = refuse_opaque_arguments(module, *module.find_function("k"));
    if (taken) return std::string();
    EXPECT_EQ(taken.error().kind, ErrorKind::missing_capability);
    return taken.error().message;
  };
  const std::string size = "txq.width.b32 %r1, [%rd1];";
  EXPECT_EQ(refusal(size), "its code:9: " + size + ": a texture or a surface cannot be taken");
  const std::string write = "sust.b.1d.b32.trap [%rd1, {%r1}], {%r2};";
  EXPECT_EQ(refusal(write), "its code:9: " + write + ": a texture or a surface cannot be taken");
  for (const std::string copy :
       {"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, "
        "{%r2}], [%r3];",
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd1, {%r1}], [%r2];",
        "cp.async.bulk.prefetch.tensor.1d.L2.global [%rd1, {%r1}];",
        "tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 1;"})
    EXPECT_EQ(refusal(copy), "its code:9: " + copy + ": a tensor map cannot be taken");
  // What a function has counts where the kernel calls any.
  EXPECT_EQ(refusal("call other;", size),
            "its code:16: " + size + ": a texture or a surface cannot be taken");
  EXPECT_EQ(refusal("", size), "");
  EXPECT_EQ(refusal("call other;\nst.global.u64 [%rd1], %rd2;"), "");
}

TEST(CapturedLaunch, memory_keeps_its_place_where_memory_holds_addresses) {
  CapturedLaunch launch = captured("st.global.u32 [%rd1], %r1;");
  EXPECT_EQ(written(launch).buffers.at(0).address, 0U);
  const std::uint64_t word = captured_at + 16;
  std::memcpy(launch.memory[0].before.data() + 64, &word, sizeof word);
  EXPECT_EQ(written(launch).buffers.at(0).address, captured_at);
}

}  // namespace
}  // namespace demarc::cuda
