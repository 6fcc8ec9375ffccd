// Shares of a pool that another process uses: what it changes lies in its colours, as the stand-in
// knows them, and has the content that it computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <set>

#include "demarc/driver/launch.hpp"
#include "demarc/ptx/parser.hpp"
#include "lent_pools.hpp"
#include "striped_law.hpp"

namespace demarc::cuda {
namespace {

using test::borrow;
using test::both_halves;
using test::half_mask;
using test::lent_parities;
using test::lent_remainders;
using test::objects_alive;
using test::page_of_share;
using testing::HasSubstr;

// What this process expects in a child counts as its own: the child's failures are printed and make
// its exit code.
template <class Work>
int in_another_process(const Work& work) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    std::fflush(stdout);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

constexpr std::uint64_t step_bytes = 1028;  // every chunk of 256 bytes is met somewhere else

// Adds to every 257th word its number, from 1 on.
ptx::Module counting_module() {
  return ptx::parse_whole(
             ".version 8.0\n.target sm_90\n.address_size 64\n"
             ".visible .entry count(.param .u64 p, .param .u32 n)\n{\n"
             ".reg .pred %p<2>; .reg .b64 %rd<4>; .reg .b32 %r<5>;\n"
             "ld.param.u64 %rd1, [p];\nld.param.u32 %r4, [n];\n"
             "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\nmad.lo.u32 %r1, %r1, 64, %r2;\n"
             "setp.ge.u32 %p1, %r1, %r4;\n@%p1 bra done;\n"
             "mul.wide.u32 %rd2, %r1, 1028;\nadd.u64 %rd1, %rd1, %rd2;\n"
             "ld.global.u32 %r3, [%rd1];\nadd.u32 %r1, %r1, 1;\nadd.u32 %r3, %r3, %r1;\n"
             "st.global.u32 [%rd1], %r3;\ndone:\nret;\n}\n",
             "count.ptx")
      .value();
}

// `constants`: of the module's variable `demarc_colors`, where it has one.
Result<void> run_count(const GpuPointer& gpu, const std::string& text, DevicePointer pointer,
                       std::uint32_t words, const std::vector<std::byte>& constants = {}) {
  DEMARC_TRY(const Module module, Module::load(gpu, text, "count.ptx"));
  if (!constants.empty()) {
    DEMARC_TRY(const auto variable, module.global(ptx::colored_constants_name));
    EXPECT_EQ(variable.second, constants.size());
    DEMARC_CHECK(
        gpu->check(gpu->api().cuMemcpyHtoD_v2(variable.first, constants.data(), constants.size()),
                   "cannot write the constants"));
  }
  DEMARC_TRY(const Function count, module.function("count"));
  DEMARC_TRY(const Stream stream, Stream::create(gpu));
  DEMARC_CHECK(launch(stream, count, LaunchShape::line(words / 64 + 1, 64), pointer, words));
  return stream.wait();
}

std::vector<std::uint32_t> arena_words(const ColoredPool& pool) {
  std::vector<std::uint32_t> words(pool.arena().pages() * page_of_share / 4);
  EXPECT_EQ(pool.arena().gpu()->api().cuMemcpyDtoH_v2(words.data(), pool.arena().address(),
                                                      4 * words.size()),
            0);
  return words;
}

std::uint32_t words_to_count(std::uint64_t bytes) {
  return static_cast<std::uint32_t>((bytes - 4) / step_bytes + 1);
}

// `at_load`: by text that knows the share when it is loaded, else by text for this share alone.
void count_as_borrower(const ColoredPool& pool, const LentShare& lent, bool at_load) {
  const std::int64_t before = objects_alive();
  {
    const auto share = borrow(pool, lent);
    ASSERT_TRUE(share) << share.error().message;
    EXPECT_NE(share->arena().raw(), pool.arena().address());
    EXPECT_EQ(share->bytes(), lent.bytes);
    const ColoredCode code = share->code();
    EXPECT_EQ(code.pointer({}), share->window());
    EXPECT_EQ(code.pointer(color::LinearByte(4096)), share->window() + 4096);
    ptx::ColoredOptions options;
    if (at_load) options.places = ptx::PlacesAtLoad{};
    const auto rewritten = code.rewrite(counting_module(), options);
    ASSERT_TRUE(rewritten) << rewritten.error().message;
    const auto done = run_count(pool.arena().gpu(), *rewritten->module.text, share->window().raw(),
                                words_to_count(lent.bytes),
                                at_load ? code.constants({}) : std::vector<std::byte>());
    EXPECT_TRUE(done) << done.error().message;
  }
  EXPECT_EQ(objects_alive(), before) << "with its mappings, its window and its table";
}

// Contents of the whole share, by way of the owner's own buffers.
std::vector<std::uint32_t> share_words(const std::shared_ptr<ColoredPool>& pool,
                                       std::size_t share) {
  const std::uint64_t bytes = pool->usage(share).capacity_bytes;
  const auto buffer = pool->allocate(share, bytes).value();
  EXPECT_EQ(buffer.first(), color::LinearByte());
  std::vector<std::uint32_t> words(bytes / 4);
  EXPECT_TRUE(buffer.download(words.data(), bytes));
  return words;
}

// Both shares, one borrower after the other. `colors` are what the stand-in says of what each
// changed.
void expect_shares_apart(const std::shared_ptr<ColoredPool>& pool,
                         const std::function<std::uint64_t(std::uint64_t)>& true_color) {
  std::vector<std::set<std::uint64_t>> colors(2);
  for (const std::size_t share : {0U, 1U}) {
    std::vector<std::uint32_t> expected(pool->usage(share).capacity_bytes / 4);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = static_cast<std::uint32_t>(i * 77);
    }
    {
      const auto buffer = pool->allocate(share, 4 * expected.size()).value();
      ASSERT_TRUE(buffer.upload(expected.data(), 4 * expected.size()));
    }
    const LentShare lent = pool->lend(share).value();
    ASSERT_EQ(lent.bytes, 4 * expected.size());
    const auto before = arena_words(*pool);
    ASSERT_EQ(in_another_process([&] { count_as_borrower(*pool, lent, share == 1); }), 0);
    const auto after = arena_words(*pool);
    const std::uint32_t counted = words_to_count(lent.bytes);
    std::uint32_t changed = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (after[i] == before[i]) continue;
      ++changed;
      colors[share].insert(true_color(pool->arena().address() + 4 * i));
    }
    EXPECT_EQ(changed, counted);
    for (std::uint32_t i = 0; i < counted; ++i) expected[i * step_bytes / 4] += i + 1;
    EXPECT_EQ(share_words(pool, share), expected) << "share " << share;
  }
  EXPECT_EQ(colors[0].size(), 1U);
  EXPECT_EQ(colors[1].size(), 1U);
  EXPECT_NE(colors[0], colors[1]);
}

TEST(LentShare, of_parities_is_changed_by_another_process_in_its_colour_alone) {
  const auto pool = test::parity_pool(6 * page_of_share, test::both_halves, test::half_mask,
                                      fake::small_gpu(), Lending::by_descriptor)
                        .value();
  auto* true_module = test::fake_symbol<std::uint64_t(std::uint64_t)>("fake_module_of");
  // For the planted masks the last one is that of the pool.
  expect_shares_apart(pool, [=](std::uint64_t address) { return true_module(address) >> 3U & 1U; });
}

TEST(LentShare, of_remainders_is_changed_by_another_process_in_its_colour_alone) {
  const auto pool = lent_remainders();
  auto* true_side = test::fake_symbol<std::uint64_t(std::uint64_t)>("fake_side_of");
  expect_shares_apart(pool, [=](std::uint64_t address) { return true_side(address); });
}

void count_where_nothing_is(const ColoredPool& pool, const LentShare& lent, bool rewritten,
                            std::int64_t offset) {
  const auto share = borrow(pool, lent);
  ASSERT_TRUE(share) << share.error().message;
  const ptx::Module module = counting_module();
  const std::string text = rewritten ? *share->code().rewrite(module)->module.text : *module.text;
  testing::internal::CaptureStderr();
  const auto done = run_count(pool.arena().gpu(), text,
                              share->window().raw() + static_cast<std::uint64_t>(offset), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("out-of-bounds"));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("ILLEGAL_ADDRESS"));
}

TEST(LentShare, of_a_law_that_was_added_is_changed_in_its_bytes_alone) {
  const auto pool = lent_parities({1, 1});
  LentShare lent = pool->lend(0).value();
  for (const bool at_load : {false, true}) {
    lent.law = std::make_shared<const color::StripedLaw>(color::Stripes{at_load ? 1U : 0U});
    auto expected = arena_words(*pool);
    ASSERT_EQ(in_another_process([&] { count_as_borrower(*pool, lent, at_load); }), 0);
    for (std::uint32_t i = 0; i < words_to_count(lent.bytes); ++i) {
      expected[lent.law->position(color::LinearByte(i * step_bytes), {}).raw() / 4] += i + 1;
    }
    EXPECT_EQ(arena_words(*pool), expected);
  }
  lent.law = std::make_shared<const color::StripedLaw>(color::Stripes{2});
  EXPECT_EQ(borrow(*pool, lent).error().message, "there is no stripe 2");
}

TEST(LentShare, has_a_window_that_only_rewritten_kernels_reach_memory_through) {
  for (const auto& pool : {lent_parities({0, 0}), lent_remainders()}) {
    const LentShare lent = pool->lend(0).value();
    for (const std::int64_t offset : {std::int64_t{0}, static_cast<std::int64_t>(lent.bytes) - 4}) {
      EXPECT_EQ(in_another_process([&] { count_where_nothing_is(*pool, lent, false, offset); }), 0);
    }
    if (!lent.law->table_parts()) continue;
    // Remainders know where their share ends.
    const auto end = static_cast<std::int64_t>(lent.law->bytes({lent.page_bytes, lent.pages}));
    for (const std::int64_t offset : {std::int64_t{-4}, end}) {
      EXPECT_EQ(in_another_process([&] { count_where_nothing_is(*pool, lent, true, offset); }), 0);
    }
  }
}

TEST(LentShare, of_a_cap_is_no_longer_than_it) {
  constexpr ShareRequest capped[] = {{{0x1, 2}, 5000}, {{0x2, 2}, 0}};
  const auto pool = lent_parities({1, 1}, capped);
  const LentShare lent = pool->lend(0).value();
  EXPECT_EQ(lent.bytes, 5000U);
  EXPECT_EQ(borrow(*pool, lent)->bytes(), 5000U);
}

TEST(LentShare, is_refused_by_a_pool_that_cannot_lend_it) {
  const auto pool = lent_parities({1, 1});
  EXPECT_THAT(pool->lend(2).error().message, HasSubstr("share 2: the pool has 2"));
  {
    const auto buffer = pool->allocate(1, 1000).value();
    EXPECT_THAT(pool->lend(1).error().message,
                HasSubstr("share 1 cannot be lent: buffers of this process use 1024 bytes"));
    EXPECT_TRUE(pool->lend(0)) << "the other share has none";
  }
  EXPECT_TRUE(pool->lend(1));
  EXPECT_THAT(lent_parities({1, 1}, both_halves, Lending::none)->lend(0).error().message,
              HasSubstr("share 0: the pages of the pool were not made to be lent"));
}

// Which is whole groups where that is more than the pages of one constant.
TEST(LentShare, has_as_many_pages_as_one_law_serves) {
  const auto pages = [](const std::vector<std::uint32_t>& constants) {
    return lent_parities(constants)->lend(0).value().pages;
  };
  EXPECT_EQ(pages({1, 0}), 2U);
  EXPECT_EQ(pages({0, 0, 1, 0, 1, 0}), 4U) << "as many as have the most frequent constant";
  EXPECT_EQ(pages({1, 0, 1, 0, 1, 0, 1}), 6U);
  EXPECT_EQ(pages({1, 1, 0, 1}), 3U);
  EXPECT_EQ(pages({1, 1}), 2U);
  EXPECT_EQ(test::pool_of_constants(test::fake_gpu(), {1, 0, 1, 0}).value()->arena().pages(), 2U)
      << "what is not lent has the shorter law";
}

}  // namespace
}  // namespace demarc::cuda
