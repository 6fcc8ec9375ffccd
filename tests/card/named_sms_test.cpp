// Kernels that learn from the hardware on which SM they run.
#include "named_sms.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/card/probe_kernels.hpp"
#include "fake_card.hpp"
#include "sms.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

TEST(NamedSms, the_number_is_cut_out_of_each_reading) {
  EXPECT_EQ(
      cut_readings("\tmov.u32 %r3, %smid;\n\tadd.u32 %r1, %r3, 1;\nmov.u32 %sm, %smid; ret;", "k")
          .value(),
      "\tmov.u32 %r3, %smid; bfe.u32 %r3, %r3, 20, 9;\n\tadd.u32 %r1, %r3, 1;\n"
      "mov.u32 %sm, %smid; bfe.u32 %sm, %sm, 20, 9; ret;");
  EXPECT_EQ(cut_readings("ret;\n", "k").value(), "ret;\n");
}

TEST(NamedSms, readings_of_another_form_are_refused) {
  for (const char* line : {"mov.b32 %r3, %smid;", "mov.u32 %r3,%smid;", "add.u32 %r1, %smid, 1;",
                           "%smid", "mov.u32 %r3, %smid"}) {
    const auto cut = cut_readings(std::string("ret;\n") + line + "\nret;", "k");
    ASSERT_FALSE(cut) << line;
    EXPECT_THAT(cut.error().message,
                HasSubstr(fmt::format("k: '{}' reads %smid otherwise than by mov.u32", line)));
  }
}

// In a client of MPS %smid counts, and the register names.
TEST(NamedSms, both_kinds_of_kernels_run_side_by_side) {
  fake::FakeConfig config = fake::small_gpu();
  config.client = 0xa0;  // TPCs 5 and 7
  config.client_hidden = true;
  config.virtual_sms = true;
  const GpuPointer gpu = test::fake_gpu(config);
  const Stream stream = Stream::create(gpu).value();
  const auto used = [&](SmNumbers numbers) {
    const auto kernels = ProbeKernels::load(gpu, numbers).value();
    return probe_placement(stream, kernels, LaunchShape::line(32, 64), 1000)->used_sms();
  };
  EXPECT_EQ(used(SmNumbers::of_launch), test::sm_list({0, 1, 2, 3}));
  EXPECT_EQ(used(SmNumbers::of_card), test::sm_list({10, 11, 14, 15}));
}

TEST(NamedSms, placements_have_an_entry_for_each_sm_and_more_where_numbers_are_higher) {
  const GpuPointer gpu = test::fake_gpu();
  const auto kernels = ProbeKernels::load(gpu, SmNumbers::of_card).value();
  EXPECT_EQ(kernels.counters(), 512U);
  EXPECT_EQ(ProbeKernels::load(gpu)->counters(), 24U);
  const auto counters = placement_counters(gpu, kernels).value();
  EXPECT_EQ(read_placement(counters, kernels)->blocks.size(), 24U) << "nothing has run";
  std::vector<std::uint32_t> counted(512);
  counted[300] = 7;
  ASSERT_TRUE(counters.upload(counted.data(), 4 * counted.size()));
  const Placement placement = read_placement(counters, kernels).value();
  EXPECT_EQ(placement.blocks.size(), 301U);
  EXPECT_EQ(placement.used_sms(), test::sm_list({300}));
}

TEST(Assemble, what_the_driver_refuses_is_told_with_the_source) {
  const GpuPointer gpu = test::fake_gpu();
  const auto alive = test::fake_symbol<std::int64_t()>("fake_live_objects");
  const std::int64_t before = alive();
  const auto refused = assemble(gpu, "no PTX", "my.ptx");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("my.ptx: cannot link"));
  EXPECT_TRUE(assemble(gpu, ".version 8.0\n", "my.ptx"));
  EXPECT_EQ(alive(), before) << "links are given back";
}

}  // namespace
}  // namespace demarc::cuda
