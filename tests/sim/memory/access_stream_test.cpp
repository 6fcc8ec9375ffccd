// Tests that access streams come back as they were, and that damaged ones are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "demarc/sim/memory/access_stream.hpp"
#include "small_memory.hpp"

namespace demarc::sim::memory::test {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view example = R"(# two warps, the second waits for its load
kernel threads=64 shared=1024
block
warp
load.cg.cs +3 float=2 shared=7 0x1000/15 0x2080/1
barrier +1
warp
load 0x3020
wait store.part +2 0x4000/3
barrier
kernel threads=32 registers=40
block
warp
work +10
)";

TEST(AccessStream, text_says_what_each_warp_does) {
  const auto launch = parse_access_text(example, "x.txt");
  ASSERT_TRUE(launch) << launch.error().message;
  ASSERT_EQ((*launch)->kernels.size(), 2U);
  EXPECT_EQ((*launch)->kernels[0].shape, (KernelShape{1, 64, 1024}));
  Step step;
  std::size_t at = 0;
  (*launch)->kernels[0].blocks[0]->warps[0].read(at, step);
  EXPECT_TRUE(step.past_l1);
  EXPECT_TRUE(step.streams);
  EXPECT_FALSE(step.partial);
  EXPECT_EQ(step.shared_rows, 7U);
  EXPECT_EQ(step.floats, 2U);
  EXPECT_EQ((*launch)->kernels[1].shape.registers, 40U);
  at = 0;
  const PackedSteps& second = (*launch)->kernels[0].blocks[0]->warps[1];
  second.read(at, step);
  EXPECT_EQ(step.lines[0].word(), 0x3000U | 2U);  // the sector of the address itself
  EXPECT_EQ(step.floats, 0U);
  second.read(at, step);
  EXPECT_TRUE(step.wait);
  EXPECT_EQ(step.kind, StepKind::store);
  EXPECT_FALSE(step.past_l1);
  EXPECT_FALSE(step.streams);
  EXPECT_TRUE(step.partial);
  EXPECT_EQ(step.instructions, 2U);
}

TEST(AccessStream, text_and_binary_come_back_as_they_were) {
  const auto launch = parse_access_text(example, "x.txt").value();
  const std::string text = access_text(*launch);
  EXPECT_EQ(access_text(*parse_access_text(text, "y.txt").value()), text);
  const std::string binary = access_binary(*launch);
  EXPECT_EQ(access_text(*parse_access_binary(binary, "y.bin").value()), text);
}

TEST(AccessStream, a_stream_runs_on_a_simulation) {
  Simulation gpu(small_memory());
  const auto client = gpu.add_client(
      {"mine", sms({0, 1}), replay_launch(parse_access_text(example, "x").value()), {}});
  ASSERT_TRUE(gpu.run_launches(client, 1));
  EXPECT_EQ(gpu.statistics(client).load_sectors, 6U);
  EXPECT_EQ(gpu.statistics(client).store_sectors, 2U);
}

TEST(AccessStream, errors_name_the_line) {
  const auto error = [](std::string_view text) {
    const auto launch = parse_access_text(text, "x.txt");
    return launch ? std::string() : launch.error().message;
  };
  EXPECT_THAT(error("kernel\nblock\nwarp\nlod 0x80\n"), HasSubstr("x.txt:4: 'lod' is none of"));
  EXPECT_THAT(error("kernel\nblock\nwarp\nload\n"), HasSubstr("x.txt:4: load needs an address"));
  EXPECT_THAT(error("kernel\nblock\nwarp\nload 0x80/16\n"), HasSubstr("1 to 15"));
  EXPECT_EQ(error("kernel\nblock\nwarp\nload 0x100040/1\n"),
            "x.txt:4: '0x100040/1': a mask of sectors follows the address of a line, a multiple of "
            "128: write 0x100000/MASK, or 0x100040 alone for the sector of that address");
  EXPECT_EQ(error("kernel\nblock\nwarp\nload 0x100080/1\n"), "");
  EXPECT_EQ(error("kernel\nblock\nwarp\nload 0x100044\n"), "");
  EXPECT_THAT(error("kernel\nblock\nwarp\nstore.cg 0x80\n"),
              HasSubstr("x.txt:4: '.cg' is not possible here"));
  EXPECT_THAT(error("kernel\nblock\nwarp\nload.part 0x80\n"),
              HasSubstr("x.txt:4: '.part' is not possible here"));
  EXPECT_THAT(error("kernel\nblock\nwarp\nbarrier.cs\n"),
              HasSubstr("x.txt:4: '.cs' is not possible here"));
  EXPECT_THAT(error("kernel\nblock\nwarp\nwork shared=65536\n"), HasSubstr("65536 rows"));
  EXPECT_THAT(error("kernel\nblock\nwarp\nwork +3 float=4\n"),
              HasSubstr("x.txt:4: float=4 is more than the 3 instructions of the step"));
  EXPECT_THAT(error("kernel\nblock\nwarp\nwork +3 float=3 +0\n"), HasSubstr("more than the 0"));
  EXPECT_THAT(error("kernel\nblock\nwarp\nwork +3 float=4294967296\n"), HasSubstr("at most"));
  EXPECT_EQ(error("kernel\nblock\nwarp\nwork float=3 +3\n"), "");
  EXPECT_THAT(error("kernel registers=256\n"), HasSubstr("registers=256 is out of range"));
  EXPECT_THAT(error("block\n"), HasSubstr("x.txt:1: a block comes before any kernel"));
  EXPECT_THAT(error("kernel threads=32\nblock\nwarp\nwarp\n"), HasSubstr("more than the 1 warps"));
  EXPECT_THAT(error("kernel threads=0\n"), HasSubstr("out of range"));
  EXPECT_THAT(error(""), HasSubstr("no kernel"));
}

TEST(AccessStream, binary_of_a_load_that_writes_in_part_is_refused) {
  const auto launch = parse_access_text("kernel threads=32\nblock\nwarp\nload 0x80\n", "x.txt");
  std::string binary = access_binary(**launch);
  const std::size_t head = binary.size() - 16;
  EXPECT_TRUE(parse_access_binary(binary, "x.bin"));
  binary[head] = static_cast<char>(binary[head] | 64);
  EXPECT_THAT(parse_access_binary(binary, "x.bin").error().message,
              HasSubstr("do not make a step"));
}

TEST(AccessStream, binary_whose_floats_are_missing_none_or_more_than_instructions_is_refused) {
  const auto launch =
      parse_access_text("kernel threads=32\nblock\nwarp\nwork +3 float=3\n", "x.txt");
  const std::string binary = access_binary(**launch);
  EXPECT_EQ(access_text(**parse_access_binary(binary, "x.bin")), access_text(**launch));
  const auto with_last_word = [&](char number) {
    std::string changed = binary;
    changed[binary.size() - 8] = number;
    const auto read = parse_access_binary(changed, "x.bin");
    return read ? std::string("accepted") : read.error().message;
  };
  EXPECT_EQ(with_last_word(1), "accepted");
  EXPECT_THAT(with_last_word(0), HasSubstr("floating-point"));
  EXPECT_THAT(with_last_word(4), HasSubstr("floating-point"));
  // The warp has one word, whose head says that another follows.
  std::string cut = binary.substr(0, binary.size() - 8);
  cut[binary.size() - 24] = 1;
  EXPECT_THAT(parse_access_binary(cut, "x.bin").error().message, HasSubstr("do not make a step"));
}

RC_GTEST_PROP(AccessStream, damaged_binary_is_an_error_or_another_stream_but_never_more,
              (std::vector<std::uint8_t> noise)) {
  std::string binary = access_binary(*parse_access_text(example, "x.txt").value());
  for (std::size_t i = 0; i + 1 < noise.size(); i += 2) {
    const std::size_t at = 8 + noise[i] % (binary.size() - 8);
    binary[at] = static_cast<char>(noise[i + 1]);
  }
  const auto launch = parse_access_binary(binary, "x.bin");
  if (launch) {
    RC_ASSERT(access_binary(**launch).size() == binary.size());
  } else {
    RC_ASSERT(launch.error().message.find("x.bin: ") == 0);
  }
  RC_ASSERT(!parse_access_binary(binary.substr(0, binary.size() - 3), "x.bin"));
}

}  // namespace
}  // namespace demarc::sim::memory::test
