// Tests on the emulator that code rewritten for remainders reaches the places of its colour.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "demarc/base/files.hpp"
#include "demarc/card/remainder_colors.hpp"
#include "demarc/emulate/emulate.hpp"
#include "demarc/ptx/parser.hpp"
#include "gpu/support_kernels.hpp"
#include "paths.hpp"
#include "remainder_addressing.hpp"
#include "rewritten_by_colors.hpp"

namespace demarc::study {
namespace {

// The rewritten copy on the emulator: a linear buffer arrives where position() says.
TEST(RewriteRemainders, instructions_compute_what_the_colouring_does) {
  const std::vector<std::uint32_t> constants{0x15, 0x3e};
  const auto coloring =
      color::RemainderColoring::make(color::h200_remainders(), {{40, 24}, {17, 23}}, constants)
          .value();
  constexpr std::uint64_t words = 60000;
  gpu::Launch launch;
  launch.buffers.resize(3);
  launch.buffers[0].bytes = 4U << 20U;  // the arena
  launch.buffers[0].output = true;
  launch.buffers[1].bytes = words * 4;
  launch.buffers[2].bytes = coloring.table().size();
  gpu::KernelLaunch kernel;
  kernel.kernel = "demarc_copy";
  kernel.grid.x = 40;
  kernel.block.x = 256;
  kernel.arguments = {gpu::BufferUse{0, 0}, gpu::BufferUse{1, 0},
                      gpu::make_scalar(gpu::ScalarType::u64, std::int64_t{words})};
  launch.kernels.push_back(kernel);
  const auto addresses = gpu::default_addresses(launch);
  for (const std::uint32_t color : {0U, 1U}) {
    const auto addressing = test::addressing_of(coloring, color, addresses[0], addresses[2]);
    const auto plain = ptx::parse(support_kernels_ptx(), "copies");
    const auto made = color::rewrite_remainders(plain.module, addressing,
                                                {.accesses = ptx::ColoredAccesses::stores});
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_TRUE(ptx::check_accepted(made->kernels, "copies", {"demarc_copy"}));
    gpu::Memory memory(3);
    memory[0].resize(4U << 20U);
    memory[1].resize(words * 4);
    for (std::uint32_t i = 0; i < words; ++i) std::memcpy(&memory[1][4 * i], &i, 4);
    memory[2] = coloring.table();
    const auto outcome = emulate::run_on(made->module, launch, memory);
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_TRUE(outcome->findings.empty());
    for (std::uint32_t i = 0; i < words; ++i) {
      std::uint32_t found = 0;
      std::memcpy(
          &found,
          &outcome->buffers[0][coloring.position(color::LinearByte(std::uint64_t{4} * i), color)
                                   .raw()],
          4);
      ASSERT_EQ(found, i) << "colour " << color;
    }
  }
}

// The kernel that fills coloured buffers, as compiled: what colored.cuh computes on a card.
TEST(CopyRemainders, device_code_puts_every_byte_where_the_colouring_says) {
  const std::vector<std::uint32_t> constants{0x2a, 0x07};
  const auto coloring =
      color::RemainderColoring::make(color::h200_remainders(), {{40, 24}}, constants).value();
  constexpr std::uint64_t bytes = 50003;
  constexpr color::LinearByte first(777 * 256 + 5);
  constexpr std::uint64_t ahead = first.raw() % 16;
  gpu::Launch launch;
  launch.buffers.resize(3);
  launch.buffers[0].bytes = 4U << 20U;  // the arena
  launch.buffers[1].bytes = bytes + ahead;
  launch.buffers[2].bytes = coloring.table().size();
  const auto addresses = gpu::default_addresses(launch);
  const color::RemainderSteps steps = coloring.steps(0).value();
  const color::DeviceAddress table_at(addresses[2]);
  const color::SharePlace at{.arena = color::DeviceAddress(addresses[0]),
                             .patterns = table_at,
                             .places = table_at + steps.pages_at + steps.first_page};
  const auto layout = cuda::layout_of_remainders(steps, at, first);
  gpu::ByteArgument place;
  place.bytes.resize(sizeof layout);
  std::memcpy(place.bytes.data(), &layout, sizeof layout);
  gpu::KernelLaunch kernel;
  kernel.kernel = "demarc_copy_colored";
  kernel.grid.x = 4;
  kernel.block.x = 256;
  kernel.arguments = {place, gpu::BufferUse{1, ahead},
                      gpu::make_scalar(gpu::ScalarType::u64, std::int64_t{bytes}),
                      gpu::make_scalar(gpu::ScalarType::u32, std::int64_t{1})};
  launch.kernels.push_back(kernel);
  const auto text = read_file(test::source_dir() / "src/card/kernels/ptx/colored_copy.ptx").value();
  const auto module = ptx::parse(text, "colored_copy.ptx");
  ASSERT_TRUE(module.diagnostics.ok());
  gpu::Memory memory(3);
  memory[0].resize(4U << 20U);
  for (std::uint64_t i = 0; i < bytes + ahead; ++i) {
    memory[1].push_back(static_cast<std::byte>(1 + i % 251));
  }
  memory[2] = coloring.table();
  const auto outcome = emulate::run_on(module.module, launch, memory);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->findings.empty());
  auto arena = outcome->buffers[0];
  for (std::uint64_t i = 0; i < bytes; ++i) {
    std::byte& found = arena[coloring.position(first + i, 0).raw()];
    ASSERT_EQ(found, static_cast<std::byte>(1 + (ahead + i) % 251)) << i;
    found = std::byte{0};
  }
  EXPECT_EQ(std::count(arena.begin(), arena.end(), std::byte{0}), std::ssize(arena))
      << "bytes beside the buffer were written";
}

TEST(RewriteRemainders, the_table_stays_in_the_l1_where_ptx_can_say_so) {
  const auto coloring = color::RemainderColoring::make(color::h200_remainders(), {{0, 24}},
                                                       std::vector<std::uint32_t>(16))
                            .value();
  const auto addressing = test::addressing_of(coloring, 0, 1U << 21U, 1U << 20U);
  const auto rewritten = [&](const std::string& head) {
    const auto module = ptx::parse(head +
                                       "\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
                                       "\t.reg .b64 %rd<2>;\n\tld.param.u64 %rd1, [p];\n"
                                       "\tst.global.u32 [%rd1], 1;\n\tret;\n}\n",
                                   "k");
    const auto made = color::rewrite_remainders(module.module, addressing);
    return made ? *made->module.text : made.error().message;
  };
  for (const char* width : {"u8", "u16"}) {
    EXPECT_NE(rewritten(".version 8.0\n.target sm_90a")
                  .find(std::string("ld.global.nc.L1::evict_last.") + width),
              std::string::npos);
  }
  EXPECT_NE(rewritten(".version 7.3\n.target sm_80").find("ld.global.nc.u16"), std::string::npos);
  EXPECT_NE(rewritten(".version 7.4\n.target sm_60").find("ld.global.nc.u16"), std::string::npos);
}

TEST(RewriteRemainders, colours_that_do_not_fit_are_refused) {
  const auto plain = ptx::parse(support_kernels_ptx(), "copies");
  const auto coloring = color::RemainderColoring::make(color::h200_remainders(), {{0, 24}},
                                                       std::vector<std::uint32_t>(4))
                            .value();
  const color::RemainderAddressing right = test::addressing_of(coloring, 0, 1U << 21U, 1U << 20U);
  EXPECT_TRUE(color::rewrite_remainders(plain.module, right));
  const auto refused = [&](auto change) {
    color::RemainderAddressing wrong = right;
    change(wrong);
    return !color::rewrite_remainders(plain.module, wrong);
  };
  EXPECT_TRUE(refused([](auto& wrong) { wrong.constants.end = 0; }));
  EXPECT_TRUE(refused([](auto& wrong) { wrong.constants.reciprocal_shift = 32; }));
  EXPECT_TRUE(refused([](auto& wrong) { wrong.constants.arena += 4096; }));
  EXPECT_TRUE(refused([](auto& wrong) { wrong.shape.chunk_shift = 3; }));
  for (const color::RemainderShape fits :
       {color::RemainderShape{4, 1, 1}, color::RemainderShape{12, 16, 9}}) {
    EXPECT_TRUE(color::rewrite_remainders(plain.module, fits));
  }
  for (const color::RemainderShape wrong :
       {color::RemainderShape{3, 13, 9}, color::RemainderShape{13, 13, 9},
        color::RemainderShape{8, 0, 0}, color::RemainderShape{8, 17, 9},
        color::RemainderShape{8, 13, 14}}) {
    EXPECT_FALSE(color::rewrite_remainders(plain.module, wrong));
  }
}

}  // namespace
}  // namespace demarc::study
