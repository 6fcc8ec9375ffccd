// The card's side of a server, on the stand-in: what it lends, fills with zeros and proves.
#include "pool_card.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "demarc/card/proof.hpp"
#include "demarc/color/color_scheme.hpp"
#include "demarc/guest/lent_share.hpp"
#include "lent_pools.hpp"

namespace demarc::serve {
namespace {

using color::LinearByte;
using test::page_of_share;
using testing::HasSubstr;

constexpr std::uint64_t step = lease::extent_step;

// Four pages of one constant: two steps a half.
class OnAPool : public testing::Test {
 protected:
  cuda::CardPointer card = test::fake_card().value();
  std::shared_ptr<cuda::ColoredPool> pool =
      test::pool_of_constants(card->gpu(), {0, 0, 0, 0}, test::both_halves,
                              cuda::Lending::by_descriptor)
          .value();
  std::unique_ptr<PoolCard> side = PoolCard::adopt(card, pool, {{1, 2}, {2, 2}}).value();

  [[nodiscard]] std::vector<char> arena() const {
    std::vector<char> bytes(4 * page_of_share);
    EXPECT_EQ(
        card->gpu()->api().cuMemcpyDtoH_v2(bytes.data(), pool->arena().address(), bytes.size()), 0);
    return bytes;
  }
};

TEST_F(OnAPool, lends_shares_in_the_numbers_of_the_pool) {
  EXPECT_EQ(side->uuid(), card->gpu()->uuid());
  EXPECT_EQ(side->pages(), 4U);
  EXPECT_EQ(side->page_bytes(), page_of_share);
  EXPECT_TRUE(side->table().empty());
  const auto first = side->share({1, 2}).value();
  EXPECT_EQ(first, (lease::Share{page_of_share, 4, 2 * step,
                                 color::make_law(color::Parities{{0xc4000}, 0})}));
  EXPECT_EQ(to_text(*side->share({2, 2}).value().law),
            to_text(*color::make_law(color::Parities{{0xc4000}, 1})));
  EXPECT_THAT(
      side->share({3, 2}).error().message,
      HasSubstr(
          "colours 0,1 of 2: the memory was not divided in this way when the server started"));
  const auto files = side->lend({color::ArenaPage(1), 3}).value();
  ASSERT_EQ(files.size(), 3U);
  for (const OwnedFile& file : files) {
    EXPECT_TRUE(cuda::PhysicalMemory::borrow(card->gpu(), file, page_of_share));
  }
  EXPECT_FALSE(side->lend({color::ArenaPage(3), 2}));
}

TEST_F(OnAPool, knows_what_terms_need_of_the_card) {
  const auto numbers = side->numbers();
  EXPECT_EQ(numbers.topology, card->topology());
  EXPECT_EQ(numbers.sync_domains, 4U);
  EXPECT_EQ(numbers.share_bytes({1, 2}).value(), 2 * step);
  EXPECT_FALSE(numbers.share_bytes({4, 2}));
  // An eighth of 524 288 mappings is left to others; a page of a window takes 124 of them.
  EXPECT_EQ(numbers.window_bytes, 458'752U / 124 * page_of_share);
  const auto groups = PoolCard::adopt(card, test::lent_parities({0, 1}), {{1, 2}, {2, 2}}).value();
  EXPECT_EQ(groups->numbers().window_bytes, 458'752U / 63 * page_of_share);
  EXPECT_EQ(numbers.no_windows, "");
}

TEST_F(OnAPool, fills_the_bytes_of_a_share_with_zeros_and_no_other) {
  ASSERT_EQ(card->gpu()->api().cuMemsetD8_v2(pool->arena().address(), 7, 4 * page_of_share), 0);
  ASSERT_TRUE(side->scrub({2, 2}, {LinearByte(step), step}));
  const color::Coloring coloring = color::Coloring::make(test::half_mask, page_of_share).value();
  std::uint64_t zeros = 0;
  const auto bytes = arena();
  for (std::uint64_t at = 0; at < bytes.size(); at += 64) {
    if (bytes[at] != 0) continue;
    zeros += 64;
    ASSERT_EQ(__builtin_parityll(at & test::half_mask[0]), 1) << "at " << at;
    ASSERT_GE(at, 2 * page_of_share) << "the first step of the share";
  }
  EXPECT_EQ(zeros, step);
  EXPECT_FALSE(side->scrub({2, 2}, {LinearByte(2 * step), step})) << "beyond the share";
  EXPECT_EQ(side->scrub({4, 2}, {{}, step}).error().message, "colours 2 of 2 are no share");
}

// Whatever context the thread that serves has had before.
TEST_F(OnAPool, looks_at_the_card_by_its_own_context) {
  ASSERT_EQ(card->gpu()->api().cuCtxSetCurrent(nullptr), 0);
  EXPECT_TRUE(side->check_alive());
  ASSERT_TRUE(card->gpu()->make_current());
}

TEST_F(OnAPool, fills_more_bytes_than_are_written_at_a_time) {
  constexpr std::uint64_t pages = 18;  // 9 steps a half; 8 are written at a time
  const auto large = test::lent_parities(std::vector<std::uint32_t>(pages, 0));
  const auto other = PoolCard::adopt(card, large, {{1, 2}, {2, 2}}).value();
  const auto& api = card->gpu()->api();
  ASSERT_EQ(api.cuMemsetD8_v2(large->arena().address(), 7, pages * page_of_share), 0);
  ASSERT_TRUE(other->scrub({1, 2}, {{}, 9 * step}));
  std::vector<char> bytes(pages * page_of_share);
  ASSERT_EQ(api.cuMemcpyDtoH_v2(bytes.data(), large->arena().address(), bytes.size()), 0);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), '\0'), 9 * step);
}

TEST_F(OnAPool, refuses_colours_that_hold_less_than_one_step) {
  const auto refused = PoolCard::adopt(card, test::lent_parities({0}), {{4, 8}, {8, 8}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(refused.error().message,
            fmt::format("colours 2 of 8 hold {} bytes of the arena, fewer than one step of {}",
                        page_of_share / 2, step));
}

TEST_F(OnAPool, proves_TPCs_that_the_card_has_and_no_others) {
  EXPECT_TRUE(side->prove({1, 3}));
  EXPECT_EQ(side->prove({1, 12}).error().message, "TPCs 1,12: the card has the TPCs 0-11");
}

TEST_F(OnAPool, gives_a_running_program_another_mask) {
  const auto control = cuda::Control::create().value();
  ASSERT_TRUE(side->move(control.value(), {0, 1, 2}));
  cuda::HardwareMask mask;
  ASSERT_TRUE(control.block().mask.load(mask));
  EXPECT_EQ(mask, card->hardware_mask({0, 1, 2}).value());
  EXPECT_NE(control.block().largest_cluster, 0U);
  EXPECT_FALSE(side->move("nothing", {0}));
}

TEST(PoolCards, tell_of_remainders_what_their_clients_need) {
  const auto& pool = test::lent_remainders();
  cuda::CardOptions options;
  options.cache_folder = test::fresh_folder("facts").string();
  const auto card = cuda::Card::open(pool->arena().gpu(), options).value();
  const auto lent = pool->lend(1).value();
  {
    const auto side = PoolCard::adopt(card, pool, {{1, 2}, {2, 2}}).value();
    const auto share = side->share({2, 2}).value();
    EXPECT_EQ(to_text(*share.law), to_text(*lent.law));
    EXPECT_EQ(share.bytes, lent.bytes / step * step);
    const auto table = pool->colors().table();
    EXPECT_EQ(side->table(), std::vector<std::byte>(table.begin(), table.end()));
    EXPECT_TRUE(side->scrub({1, 2}, {{}, step}));
    EXPECT_EQ(side->numbers().window_bytes, 0U);
    EXPECT_THAT(side->numbers().no_windows,
                testing::StartsWith("slices change every 256 bytes: a page of 4 KiB"));
  }
}

// A card that is another one from the audits on, which come after the pool.
class OnACardThatChanges : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    ::setenv("DEMARC_CACHE", test::fresh_folder("facts").c_str(), 1);
    config = parse_config(R"(description = "h100-sxm"
memory = "64 MiB"
[tenants.a]
tpcs = "0-5"
colors = "1/2"
[tenants.b]
tpcs = "6-11"
colors = "2/2"
)",
                          "demarc.toml")
                 .value();
    test::configure(fake::small_gpu());
    const auto quiet = PoolCard::create(config);  // what the card is like is remembered
    ASSERT_TRUE(quiet) << quiet.error().message;
    const auto card = cuda::Card::open(test::fake_gpu()).value();
    const auto scheme =
        color::color_scheme(gpu::describe_card(card->gpu()->name(), "h100-sxm").value(), 2);
    constexpr cuda::ShareRequest halves[] = {{{1, 2}, 0}, {{2, 2}, 0}};
    ASSERT_TRUE(cuda::ColoredPool::create(card, scheme.value(), *config.memory, halves,
                                          cuda::Lending::by_descriptor));
    const auto launches = test::fake_symbol<std::uint64_t()>("fake_launch_count");
    const std::uint64_t before = launches();
    ASSERT_TRUE(cuda::prove_sync_domains(card->gpu()));
    const std::uint64_t of_a_proof = launches() - before;
    changed.upset_from = launches() + of_a_proof + 1;
    changed.upset_until = 1'000'000;
  }
  void TearDown() override {
    ::unsetenv("DEMARC_LIBCUDA");
    ::unsetenv("DEMARC_CACHE");
    test::configure(fake::small_gpu());
  }
  std::string refusal() {
    test::configure(changed);
    const auto side = PoolCard::create(config);
    if (side) return "";
    EXPECT_EQ(side.error().kind, ErrorKind::check_failed);
    return side.error().message;
  }
  Config config;
  fake::FakeConfig changed = fake::small_gpu();
};

TEST_F(OnACardThatChanges, leaves_the_memory_that_is_to_be_left) {
  constexpr std::uint64_t taken = std::uint64_t{64} << 20U;
  test::configure(fake::small_gpu());
  config.memory.reset();
  config.reserve = fake::small_gpu().free_bytes - taken;
  const auto side = PoolCard::create(config);
  ASSERT_TRUE(side) << side.error().message;
  EXPECT_LE((*side)->pages() * (*side)->page_bytes(), taken);
}

TEST_F(OnACardThatChanges, has_the_domain_of_all_programs_where_it_has_no_others) {
  changed = fake::small_gpu();
  changed.sync_domains = 1;
  test::configure(changed);
  const auto side = PoolCard::create(config);
  ASSERT_TRUE(side) << side.error().message;
  EXPECT_EQ((*side)->numbers().sync_domains, 1U);
}

TEST_F(OnACardThatChanges, has_windows_where_its_colours_survive_pages) {
  config.tenants[0].windows = std::uint64_t{2} << 20U;
  test::configure(fake::small_gpu());
  const auto side = PoolCard::create(config);
  ASSERT_TRUE(side) << side.error().message;
  EXPECT_NE((*side)->numbers().window_bytes, 0U);
}

// Before its memory is taken, which is not that of an H200.
TEST_F(OnACardThatChanges, has_no_windows_where_slices_change_within_a_page) {
  config.description = "h200";
  config.tenants[1].windows = std::uint64_t{2} << 20U;
  config.tenants[1].windows_place = "demarc.toml:8:11";
  test::configure(fake::small_gpu());
  const auto side = PoolCard::create(config);
  ASSERT_FALSE(side);
  EXPECT_EQ(side.error().kind, ErrorKind::invalid_input);
  EXPECT_EQ(side.error().message,
            "demarc.toml:8:11: tenant 'b': windows must be left out on this card: slices change "
            "every 256 bytes: a page of 4 KiB has bytes of several colours, so no page table "
            "divides them; give the program PTX, or a build of it that has PTX");
}

// It would be taken for one without domains.
TEST_F(OnACardThatChanges, streams_that_do_not_stay_in_their_domains_are_an_error) {
  changed = fake::small_gpu();
  changed.forgets_domains = true;
  EXPECT_THAT(refusal(), HasSubstr("was given the memory synchronisation domain"));
}

TEST_F(OnACardThatChanges, colours_that_timing_leaves_in_doubt_are_refused) {
  changed.upset_noise = 60;
  EXPECT_THAT(refusal(), testing::ContainsRegex(
                             "colours [01] of 2: by timing [0-9]+ of 512 chunks belong to other "
                             "colours, and [1-9][0-9]+ are in doubt"));
}

TEST_F(OnACardThatChanges, thirds_have_a_colour_each_of_the_four_of_the_card) {
  config.colors = 3;
  config.tenants[0].colors = {1, 3};
  config.tenants[1].colors = {2, 3};
  test::configure(fake::small_gpu());
  EXPECT_TRUE(PoolCard::create(config));
  config.tenants[1].colors = {8, 3};
  EXPECT_EQ(PoolCard::create(config).error().kind, ErrorKind::invalid_input)
      << "there is no fourth of three";
}

TEST_F(OnACardThatChanges, colours_that_are_those_of_others_are_refused) {
  changed.upset_seed = 1;
  EXPECT_THAT(refusal(), testing::ContainsRegex(
                             "by timing [1-9][0-9]* of 512 chunks belong to other colours"));
}

}  // namespace
}  // namespace demarc::serve
