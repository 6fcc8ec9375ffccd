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

// Of a kernel of two addresses with this body: 64 words at `at`, the first of which it changes.
CapturedLaunch captured(const std::string& body, std::uint64_t first = captured_at,
                        std::uint64_t last = captured_at + 256) {
  const std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.func other();\n"
      ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b64 %rd<4>;\n.reg .f32 %f<4>;\n"
      ".reg .b32 %r<4>;\nld.param.u64 %rd1, [a];\n" +
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

TEST(CapturedLaunch, memory_keeps_its_place_where_memory_holds_addresses) {
  CapturedLaunch launch = captured("st.global.u32 [%rd1], %r1;");
  EXPECT_EQ(written(launch).buffers.at(0).address, 0U);
  const std::uint64_t word = captured_at + 16;
  std::memcpy(launch.memory[0].before.data() + 64, &word, sizeof word);
  EXPECT_EQ(written(launch).buffers.at(0).address, captured_at);
}

}  // namespace
}  // namespace demarc::cuda
