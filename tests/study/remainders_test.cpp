#include <gtest/gtest.h>

#include <cstring>

#include "demarc/base/random.hpp"
#include "demarc/emulate/emulate.hpp"
#include "demarc/gpu/slice_model.hpp"
#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/parser.hpp"
#include "gpu/page_remainders.hpp"
#include "gpu/support_kernels.hpp"

namespace demarc::study {
namespace {

constexpr std::uint32_t columns = 8;

// A card with the hash of an H200 whose slices have latencies of their own, with some jitter.
class PlantedCard {
 public:
  explicit PlantedCard(std::uint64_t seed) : random_(seed) {
    for (std::uint32_t slice = 0; slice < 94; ++slice) {
      const bool side = slice % 47 < 20;
      for (std::uint32_t c = 0; c < columns; ++c) {
        const double distance = (c % 2 == 1) == side ? 200 : 240;
        centers_.push_back(static_cast<float>(distance + 30 * random_.uniform()));
      }
    }
  }
  std::uint32_t slice(std::uint64_t offset, std::uint32_t constant, std::uint32_t remainder) const {
    return parity_of_half(offset) * 47 + (hash_.number(offset, constant) + remainder) % 47;
  }
  gpu::LatencyMatrix latencies(const std::vector<std::uint64_t>& offsets, std::uint32_t constant,
                               std::uint32_t remainder) {
    gpu::LatencyMatrix matrix;
    matrix.dimensions = columns;
    for (const std::uint64_t offset : offsets) {
      for (std::uint32_t c = 0; c < columns; ++c) {
        matrix.values.push_back(centers_[slice(offset, constant, remainder) * columns + c] +
                                static_cast<float>(0.3 * random_.uniform()));
      }
    }
    return matrix;
  }

 private:
  std::uint32_t parity_of_half(std::uint64_t offset) const {
    return static_cast<std::uint32_t>(std::popcount(offset & hash_.half)) & 1U;
  }
  gpu::RemainderHash hash_ = gpu::h200_remainders();
  Random random_;
  std::vector<float> centers_;
};

std::vector<std::uint64_t> every_chunk() {
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t at = 0; at < 2U << 20U; at += 256) offsets.push_back(at);
  return offsets;
}

TEST(PageRemainders, what_a_page_adds_to_its_numbers_is_found_by_latency) {
  PlantedCard card(3);
  const auto model =
      make_remainder_model(gpu::h200_remainders(), card.latencies(every_chunk(), 0x2b, 0));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->constant, 0x2bU);
  EXPECT_GT(model->agreement, 0.99);
  const auto samples = gpu::sample_offsets(2U << 20U, 256, 32);
  for (const auto& [constant, remainder] : {std::pair{0x16U, 37U}, std::pair{0x3fU, 0U}}) {
    const auto found =
        find_page_remainder(*model, samples, card.latencies(samples, constant, remainder), 0);
    EXPECT_EQ(found.constant, constant);
    EXPECT_EQ(found.remainder, remainder);
    EXPECT_GT(found.agreement, 0.9);
  }
}

TEST(PageRemainders, a_card_with_another_hash_is_refused) {
  Random random(5);
  gpu::LatencyMatrix matrix;
  matrix.dimensions = columns;
  for (std::uint64_t at = 0; at < 8192; ++at) {
    for (std::uint32_t c = 0; c < columns; ++c) {
      const auto cycles = static_cast<double>(200 + 10 * ((at >> 3U) % 7) + c);
      matrix.values.push_back(static_cast<float>(cycles + 0.3 * random.uniform()));
    }
  }
  const auto model = make_remainder_model(gpu::h200_remainders(), matrix);
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("this card chooses its slices in another way"),
            std::string::npos);
}

TEST(PageRemainders, pages_are_put_in_the_order_of_their_remainders) {
  RemainderModel model;
  model.hash = gpu::h200_remainders();
  // A page of 1024 numbers: 37 more each time, modulo 47.
  std::vector<PageRemainder> pages;
  for (const std::uint32_t remainder : {27U, 0U, 37U, 27U, 5U}) pages.push_back({0, remainder, 1});
  pages.push_back({0, 17, 0.3});  // in doubt
  EXPECT_EQ(order_by_remainder(model, pages), (std::vector<std::uint32_t>{1, 2, 0}));
}

TEST(PageRemainders, colours_are_runs_of_remainders_on_one_side) {
  std::vector<std::uint32_t> sides(47, 1);
  for (std::uint32_t i = 40; i < 64; ++i) sides[i % 47] = 0;
  const auto halves = windows_by_side(sides, 2);
  ASSERT_TRUE(halves);
  EXPECT_EQ((*halves)[0].first, 40U);
  EXPECT_EQ((*halves)[0].count, 24U);
  EXPECT_EQ((*halves)[1].first, 17U);
  EXPECT_EQ((*halves)[1].count, 23U);
  const auto quarters = windows_by_side(sides, 4);
  ASSERT_TRUE(quarters);
  // Of three stacks of 8 remainders the middle one is left out; of 8, 8 and 7 a little more.
  EXPECT_EQ((*quarters)[0].first, 40U);
  EXPECT_EQ((*quarters)[0].count, 8U);
  EXPECT_EQ((*quarters)[1].first, 9U);
  EXPECT_EQ((*quarters)[2].first, 17U);
  EXPECT_EQ((*quarters)[3].first, 33U);
  EXPECT_EQ((*quarters)[3].count, 7U);
  EXPECT_FALSE(windows_by_side(sides, 3));
  sides[20] = 0;
  EXPECT_FALSE(windows_by_side(sides, 2));
}

// The rewritten copy on the emulator: a linear buffer arrives where position() says.
TEST(RewriteRemainders, instructions_compute_what_the_colouring_does) {
  const std::vector<std::uint32_t> constants{0x15, 0x3e};
  const auto coloring =
      gpu::RemainderColoring::make(gpu::h200_remainders(), {{40, 24}, {17, 23}}, constants).value();
  constexpr std::uint64_t words = 60000;
  gpu::Launch launch;
  launch.buffers.resize(3);
  launch.buffers[0].bytes = 4U << 20U;  // the arena
  launch.buffers[0].output = true;
  launch.buffers[1].bytes = words * 4;
  launch.buffers[2].bytes = coloring.blocks().size_bytes();
  gpu::KernelLaunch kernel;
  kernel.kernel = "demarc_copy";
  kernel.grid.x = 40;
  kernel.block.x = 256;
  kernel.arguments = {gpu::BufferUse{0, 0}, gpu::BufferUse{1, 0},
                      gpu::make_scalar(gpu::ScalarType::u64, std::int64_t{words})};
  launch.kernels.push_back(kernel);
  const auto addresses = gpu::default_addresses(launch);
  for (const std::uint32_t color : {0U, 1U}) {
    ptx::RemainderAddressing addressing{addresses[0],
                                        addresses[2],
                                        static_cast<std::uint32_t>(coloring.blocks().size()),
                                        47,
                                        coloring.window(color).first,
                                        coloring.window(color).count,
                                        8,
                                        17,
                                        coloring.patterns().of_digit,
                                        coloring.patterns().of_free_bit};
    const auto plain = ptx::parse(support_kernels_ptx(), "copies");
    const auto text =
        ptx::rewrite_remainders(plain.module, addressing, ptx::ColoredAccesses::stores);
    ASSERT_TRUE(text) << text.error().message;
    const auto module = ptx::parse(*text, "copies");
    ASSERT_TRUE(module.diagnostics.ok());
    gpu::Memory memory(3);
    memory[0].resize(4U << 20U);
    memory[1].resize(words * 4);
    for (std::uint32_t i = 0; i < words; ++i) std::memcpy(&memory[1][4 * i], &i, 4);
    memory[2].resize(coloring.blocks().size_bytes());
    std::memcpy(memory[2].data(), coloring.blocks().data(), memory[2].size());
    const auto outcome = emulate::run_on(module.module, launch, memory);
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_TRUE(outcome->findings.empty());
    for (std::uint32_t i = 0; i < words; ++i) {
      std::uint32_t found = 0;
      std::memcpy(&found, &outcome->buffers[0][coloring.position(4 * i, color)], 4);
      ASSERT_EQ(found, i) << "colour " << color;
    }
  }
}

TEST(RewriteRemainders, the_table_stays_in_the_l1_where_ptx_can_say_so) {
  const ptx::RemainderAddressing addressing{
      1U << 21U, 1U << 20U, 16, 47, 0, 24, 8, 17, {1, 2, 4, 8, 16, 32}, {64, 128, 256}};
  const auto rewritten = [&](const std::string& head) {
    const auto module = ptx::parse(head +
                                       "\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
                                       "\t.reg .b64 %rd<2>;\n\tld.param.u64 %rd1, [p];\n"
                                       "\tst.global.u32 [%rd1], 1;\n\tret;\n}\n",
                                   "k");
    return ptx::rewrite_remainders(module.module, addressing).value_or("refused");
  };
  EXPECT_NE(rewritten(".version 7.4\n.target sm_90a").find("ld.global.nc.L1::evict_last.u16"),
            std::string::npos);
  EXPECT_NE(rewritten(".version 7.3\n.target sm_90").find("ld.global.nc.u16"), std::string::npos);
  EXPECT_NE(rewritten(".version 7.4\n.target sm_60").find("ld.global.nc.u16"), std::string::npos);
}

TEST(RewriteRemainders, colours_that_do_not_fit_are_refused) {
  const auto plain = ptx::parse(support_kernels_ptx(), "copies");
  EXPECT_FALSE(ptx::rewrite_remainders(plain.module, {}));
}

}  // namespace
}  // namespace demarc::study
