// What a kernel that knows nothing of colours needs: one region, and its addressing.
#include "demarc/card/code_of_pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "demarc/ptx/parser.hpp"
#include "pools.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t arena_page_bytes = 2 << 20;

Result<std::shared_ptr<ColoredPool>> pool_on(const fake::FakeConfig& config = fake::small_gpu()) {
  return test::parity_pool(16 * arena_page_bytes, test::both_halves, test::half_mask, config);
}

TEST(OneConstant, is_that_of_most_pages_and_the_others_go_back_to_the_driver) {
  const auto pool = pool_on().value();
  const std::uint64_t kept = pool->arena().pages();
  EXPECT_GE(2 * kept, 16U) << "the most frequent of two";
  EXPECT_LT(kept, 16U);
  EXPECT_EQ(pool->colors().account(),
            fmt::format("16 pages measured, {} kept, of one constant", kept));
  for (std::size_t share = 0; share < 2; ++share) {
    EXPECT_EQ(pool->usage(share).largest_free_bytes, kept * arena_page_bytes / 2);
    const auto audit = pool->allocate(share, 1 << 20)->audit();
    ASSERT_TRUE(audit) << audit.error().message;
    EXPECT_TRUE(audit->holds());
    EXPECT_EQ(audit->chunks_of_color[1 - share], 0U);
  }
}

template <class At>
concept HasPointerInShare = requires(const ColoredCode& code, At at) {
  code.pointer(at);
};
static_assert(HasPointerInShare<color::LinearByte> && !HasPointerInShare<color::ArenaByte>);
static_assert(!HasPointerInShare<std::uint64_t> && !HasPointerInShare<color::DeviceAddress>);

TEST(ColoredCode, of_a_share_that_the_pool_lacks_is_refused) {
  const auto pool = pool_on().value();
  EXPECT_THAT(code_of_pool(*pool, 2).error().message, HasSubstr("share 2: the pool has 2"));
}

// Shares differ in the colour that the code inserts, and in nothing else.
TEST(ColoredCode, addresses_the_share_that_it_is_of) {
  const auto module = ptx::parse_whole(
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .u64 p) {\n.reg .b64 %rd<3>;\n.reg .b32 %r<2>;\n"
      "ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd2, %rd1;\nld.global.u32 %r1, [%rd2];\n"
      "st.global.u32 [%rd2], %r1;\nret;\n}\n",
      "k.ptx");
  ASSERT_TRUE(module) << module.error().message;
  const auto pool = pool_on().value();
  const auto first = code_of_pool(*pool, 0).value();
  const auto second = code_of_pool(*pool, 1).value();
  const auto text = [&](const ColoredCode& code) { return *code.rewrite(*module)->module.text; };
  EXPECT_NE(text(first), text(second));
  EXPECT_EQ(text(first), text(*code_of_pool(*pool, 0)));
  EXPECT_EQ(first.pointer({}).raw(), pool->arena().address() / 2);
  EXPECT_EQ(first.pointer(color::LinearByte(4096)), first.pointer({}) + 4096);
}

// Policies of the L2 are of newer targets than the module's.
TEST(ColoredCode, is_for_the_card_of_its_pool) {
  const auto module = ptx::parse_whole(
      ".version 8.0\n.target sm_75\n.address_size 64\n"
      ".visible .entry k(.param .u64 p) {\n.reg .b64 %rd<2>;\n.reg .b32 %r<2>;\n"
      "ld.param.u64 %rd1, [p];\nld.global.cg.u32 %r1, [%rd1];\nret;\n}\n",
      "k.ptx");
  ASSERT_TRUE(module) << module.error().message;
  fake::FakeConfig card = fake::small_gpu();
  for (const int major : {9, 7}) {
    card.capability_major = major;
    card.capability_minor = 5;
    const auto pool = pool_on(card).value();
    const auto made = code_of_pool(*pool, 0)->rewrite(*module);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->module.text->find("createpolicy") != std::string::npos, major == 9);
    EXPECT_EQ(made->module.text->find(".target sm_80") != std::string::npos, major == 9);
  }
}

TEST(PageConstants, are_measured_three_times_where_the_card_is_disturbed) {
  fake::FakeConfig busy = fake::small_gpu();
  busy.upset_from = 4;  // the first page has been measured, by three launches
  busy.upset_until = 4 + 3 * 3;
  busy.upset_noise = 60;
  EXPECT_THAT(pool_on(busy).error().message, HasSubstr("are not certain"));
  busy.upset_until = 4 + 2 * 3;
  const auto pool = pool_on(busy);
  ASSERT_TRUE(pool) << pool.error().message;
  const auto audit = (*pool)->allocate(0, 1 << 20)->audit();
  ASSERT_TRUE(audit) << audit.error().message;
  EXPECT_TRUE(audit->holds());
}

}  // namespace
}  // namespace demarc::cuda
