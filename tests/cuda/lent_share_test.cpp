// Shares of a pool that another process uses: what it changes lies in its colours, as the stand-in
// knows them, and has the content that it computed; whatever does not fit together is refused.
#include "demarc/cuda/lent_share.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <set>

#include "demarc/cuda/launch.hpp"
#include "demarc/ptx/parser.hpp"
#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;
using PageSource = std::function<Result<std::vector<OwnedFile>>()>;

constexpr std::uint64_t page_of_share = 2 << 20;
constexpr ShareRequest lent_halves[] = {{0x1, 0}, {0x2, 0}};
constexpr std::uint64_t lent_mask[] = {0xc4000};

std::int64_t objects_alive() {
  return test::fake_symbol<std::int64_t()>("fake_live_objects")();
}

// With what is said of its pages instead of what measuring finds.
std::shared_ptr<ColoredPool> lent_parities(const std::vector<std::uint32_t>& constants,
                                           std::span<const ShareRequest> shares = lent_halves,
                                           Lending lending = Lending::by_descriptor) {
  return ColoredPool::adopt(PageArena::create(test::fake_gpu(), constants.size(), lending).value(),
                            gpu::Coloring::make(lent_mask, page_of_share).value(), constants,
                            shares)
      .value();
}

// Measured once.
const std::shared_ptr<ColoredPool>& lent_remainders() {
  fake::FakeConfig config = fake::small_gpu();
  config.remainders = true;
  static const auto pool =
      ColoredPool::create(test::fake_card(config).value(),
                          gpu::color_scheme(gpu::find_device("h200").value(), 2).value(),
                          4 * page_of_share, lent_halves, PoolPages::one_region,
                          Lending::by_descriptor)
          .value();
  test::configure(config);
  return pool;
}

// The descriptors of all pages, `most` a batch; after them none.
PageSource pages_of_pool(const ColoredPool& pool, std::uint64_t most = 2) {
  return [&pool, most, next = std::uint64_t{0}]() mutable -> Result<std::vector<OwnedFile>> {
    std::vector<OwnedFile> batch;
    for (; batch.size() < most && next < pool.arena().pages(); ++next) {
      DEMARC_TRY(OwnedFile page, pool.arena().lend_page(next));
      batch.push_back(std::move(page));
    }
    return batch;
  };
}

Result<BorrowedShare> borrow(const ColoredPool& pool, const LentShare& lent) {
  return BorrowedShare::open(pool.arena().gpu(), lent, pool.table(), pages_of_pool(pool));
}

// What this process expects in a child counts as its own: the child's failures are printed and make
// its exit code.
template <class Work>
int in_another_process(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
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

Result<void> run_count(const GpuPointer& gpu, const std::string& text, DevicePointer pointer,
                       std::uint32_t words) {
  DEMARC_TRY(const Module module, Module::load(gpu, text, "count.ptx"));
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

void count_as_borrower(const ColoredPool& pool, const LentShare& lent) {
  const std::int64_t before = objects_alive();
  {
    const auto share = borrow(pool, lent);
    ASSERT_TRUE(share) << share.error().message;
    EXPECT_NE(share->arena(), pool.arena().address());
    EXPECT_EQ(share->bytes(), lent.bytes);
    const ColoredCode code = share->code();
    EXPECT_EQ(code.pointer(0), share->window());
    EXPECT_EQ(code.pointer(4096), share->window() + 4096);
    const auto rewritten = code.rewrite(counting_module());
    ASSERT_TRUE(rewritten) << rewritten.error().message;
    const auto done = run_count(pool.arena().gpu(), *rewritten->module.text, share->window(),
                                words_to_count(lent.bytes));
    EXPECT_TRUE(done) << done.error().message;
  }
  EXPECT_EQ(objects_alive(), before) << "with its mappings, its window and its table";
}

// Contents of the whole share, by way of the owner's own buffers.
std::vector<std::uint32_t> share_words(const std::shared_ptr<ColoredPool>& pool,
                                       std::size_t share) {
  const std::uint64_t bytes = pool->usage(share).capacity_bytes;
  const auto buffer = pool->allocate(share, bytes).value();
  EXPECT_EQ(buffer.first(), 0U);
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
    ASSERT_EQ(in_another_process([&] { count_as_borrower(*pool, lent); }), 0);
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

TEST(LentShare, OfParitiesIsChangedByAnotherProcessInItsColourAlone) {
  const auto pool = ColoredPool::create(test::fake_gpu(), lent_mask, 6 * page_of_share, lent_halves,
                                        PoolPages::one_region, Lending::by_descriptor)
                        .value();
  auto* true_module = test::fake_symbol<std::uint64_t(std::uint64_t)>("fake_module_of");
  // Of the planted masks the last one is that of the pool.
  expect_shares_apart(pool, [=](std::uint64_t address) { return true_module(address) >> 3U & 1U; });
}

TEST(LentShare, OfRemaindersIsChangedByAnotherProcessInItsColourAlone) {
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
  const auto done =
      run_count(pool.arena().gpu(), text, share->window() + static_cast<std::uint64_t>(offset), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("out-of-bounds"));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("ILLEGAL_ADDRESS"));
}

TEST(LentShare, HasAWindowThatOnlyRewrittenKernelsReachMemoryThrough) {
  for (const auto& pool : {lent_parities({0, 0}), lent_remainders()}) {
    const LentShare lent = pool->lend(0).value();
    for (const std::int64_t offset : {std::int64_t{0}, static_cast<std::int64_t>(lent.bytes) - 4}) {
      EXPECT_EQ(in_another_process([&] { count_where_nothing_is(*pool, lent, false, offset); }), 0);
    }
    if (std::holds_alternative<ptx::ColoredAddressing>(lent.colors)) continue;
    // Remainders know where their share ends.
    const auto& steps = std::get<gpu::RemainderSteps>(lent.colors);
    const std::int64_t end = std::int64_t{steps.end - steps.begin} << steps.chunk_shift;
    for (const std::int64_t offset : {std::int64_t{-4}, end}) {
      EXPECT_EQ(in_another_process([&] { count_where_nothing_is(*pool, lent, true, offset); }), 0);
    }
  }
}

TEST(LentShare, OfACapIsNoLongerThanIt) {
  constexpr ShareRequest capped[] = {{0x1, 5000}, {0x2, 0}};
  const auto pool = lent_parities({1, 1}, capped);
  const LentShare lent = pool->lend(0).value();
  EXPECT_EQ(lent.bytes, 5000U);
  EXPECT_EQ(borrow(*pool, lent)->bytes(), 5000U);
}

TEST(LentShare, IsRefusedByAPoolThatCannotLendIt) {
  const auto pool = lent_parities({1, 1});
  EXPECT_THAT(pool->lend(2).error().message, HasSubstr("share 2: the pool has 2"));
  {
    const auto buffer = pool->allocate(1, 1000).value();
    EXPECT_THAT(pool->lend(1).error().message,
                HasSubstr("share 1 cannot be lent: buffers of this process use 1024 bytes"));
    EXPECT_TRUE(pool->lend(0)) << "the other share has none";
  }
  EXPECT_TRUE(pool->lend(1));
  EXPECT_THAT(lent_parities({1, 1}, lent_halves, Lending::none)->lend(0).error().message,
              HasSubstr("share 0: the pages of the pool were not made to be lent"));
  EXPECT_THAT(lent_parities({1, 0})->lend(0).error().message, HasSubstr("2 regions"));
}

// Of what is lent, `change` is made; nothing is left behind.
void expect_refused(const ColoredPool& pool, const std::string& reason,
                    const std::function<void(LentShare&)>& change,
                    const std::function<void(std::vector<std::byte>&)>& change_table = {}) {
  LentShare lent = pool.lend(1).value();
  std::vector<std::byte> table = pool.table();
  change(lent);
  if (change_table) change_table(table);
  const std::int64_t before = objects_alive();
  const auto share = BorrowedShare::open(pool.arena().gpu(), lent, table, pages_of_pool(pool));
  ASSERT_FALSE(share) << reason;
  EXPECT_EQ(share.error().kind, ErrorKind::invalid_input);
  EXPECT_THAT(share.error().message, HasSubstr(reason));
  EXPECT_EQ(objects_alive(), before);
}

TEST(BorrowedShare, OfAnotherCardOrOtherPagesIsRefused) {
  const auto pool = lent_parities({0, 0});
  const std::string own = pool->arena().gpu()->uuid();
  expect_refused(*pool,
                 "a share that is lent of card GPU-00 cannot be used on Fake GPU, which is " + own,
                 [](LentShare& lent) { lent.card = "GPU-00"; });
  expect_refused(*pool, "in pages of 4194304 bytes; those of Fake GPU have 2097152",
                 [](LentShare& lent) { lent.page_bytes *= 2; });
  expect_refused(*pool, "of 0 pages; Fake GPU has 1 to 512",
                 [](LentShare& lent) { lent.pages = 0; });
  expect_refused(*pool, "of 513 pages; Fake GPU has 1 to 512",
                 [](LentShare& lent) { lent.pages = 513; });
}

TEST(BorrowedShare, OfMoreBytesThanItsPagesHaveRoomForIsRefused) {
  for (const auto& pool : {lent_parities({0, 0}), lent_remainders()}) {
    const LentShare lent = pool->lend(1).value();
    std::uint64_t room = lent.pages * page_of_share / 2;
    if (const auto* steps = std::get_if<gpu::RemainderSteps>(&lent.colors)) {
      room = std::uint64_t{steps->end - steps->begin} << steps->chunk_shift;
    }
    const std::string reason = fmt::format("its {} pages have room for 1 to {}", lent.pages, room);
    expect_refused(*pool, reason, [=](LentShare& changed) { changed.bytes = room + 1; });
    expect_refused(*pool, reason, [](LentShare& changed) { changed.bytes = 0; });
    LentShare whole = lent;
    whole.bytes = room;
    EXPECT_TRUE(borrow(*pool, whole));
  }
}

TEST(BorrowedShare, OfParitiesThatAreNoneOrHaveATableIsRefused) {
  const auto pool = lent_parities({0, 0});
  expect_refused(*pool, "mask 0x200000 reaches beyond a page", [](LentShare& lent) {
    std::get<ptx::ColoredAddressing>(lent.colors).masks = {0x200000};
  });
  expect_refused(
      *pool, "whose colours are parities is lent with a table of 4 bytes", [](LentShare&) {},
      [](std::vector<std::byte>& table) { table.resize(4); });
}

TEST(BorrowedShare, OfRemaindersWhoseNumbersDoNotFitIsRefused) {
  const auto pool = lent_remainders();
  using Change = void (*)(gpu::RemainderSteps&);
  for (const Change change : {Change{[](auto& steps) { steps.chunk_shift = 13; }},
                              Change{[](auto& steps) { steps.page_shift = 17; }},
                              Change{[](auto& steps) { steps.reciprocal_shift = 32; }},
                              Change{[](auto& steps) { steps.begin = steps.end + 1; }},
                              Change{[](auto& steps) { steps.page_shift -= 1; }}}) {
    expect_refused(*pool, "these do not fit", [&](LentShare& lent) {
      auto& steps = std::get<gpu::RemainderSteps>(lent.colors);
      change(steps);
      if (steps.chunk_shift == 13) steps.page_shift = 8;  // still 2 MiB
      if (steps.page_shift == 17) steps.chunk_shift = 4;
    });
  }
}

TEST(BorrowedShare, OfATableThatDoesNotLeadToItsPagesIsRefused) {
  const auto pool = lent_remainders();
  const auto nothing = [](LentShare&) {};
  const auto steps_of = [](LentShare& lent) -> gpu::RemainderSteps& {
    return std::get<gpu::RemainderSteps>(lent.colors);
  };
  const std::size_t size = pool->table().size();
  const std::uint64_t pages = pool->arena().pages();
  const std::string length = "the table of a lent share has ";
  for (const std::size_t wrong : {std::size_t{0}, size - 4, size + 4, size - 1}) {
    expect_refused(*pool, length + std::to_string(wrong), nothing,
                   [&](std::vector<std::byte>& table) { table.resize(wrong); });
  }
  // Numbers that read the table elsewhere.
  for (const std::uint32_t moved : {4U, 2U, 0U - 4U}) {
    expect_refused(*pool, length, [&](LentShare& lent) { steps_of(lent).pages_at += moved; });
  }
  // As much further as the table is longer, or shorter.
  expect_refused(
      *pool, length, [&](LentShare& lent) { steps_of(lent).pages_at += 2; },
      [](std::vector<std::byte>& table) { table.resize(table.size() + 2); });
  expect_refused(
      *pool, length, [&](LentShare& lent) { steps_of(lent).pages_at = 16380; },
      [&](std::vector<std::byte>& table) {
        LentShare lent = pool->lend(1).value();
        table.resize(size - (steps_of(lent).pages_at - 16380));
      });
  expect_refused(*pool, length, [](LentShare& lent) { lent.pages = 200; });
  expect_refused(*pool, "leads to page 262144 of the arena from byte",
                 [](LentShare& lent) { lent.pages += 1; });
  const auto leads_to = [](std::vector<std::byte>& table, std::size_t at, std::uint32_t page) {
    const std::uint32_t value = page << 13U;
    std::memcpy(table.data() + at, &value, sizeof value);
  };
  // The last page to the first; what stands before and behind the pages into them.
  for (const auto& [at, page] : std::vector<std::pair<std::size_t, std::uint32_t>>{
           {size - 8, 0}, {size - 4, 0}, {size - 4 * (pages + 2), 0}, {16384, 1}}) {
    expect_refused(*pool, fmt::format("leads to page {} of the arena from byte {}", page, at),
                   nothing, [&, at = at, page = page](auto& table) { leads_to(table, at, page); });
  }
  expect_refused(*pool, "leads beyond a page from byte 16382", nothing,
                 [](std::vector<std::byte>& table) { table[16383] = std::byte{0x20}; });
}

TEST(BorrowedShare, OfTooFewTooManyOrOtherDescriptorsIsRefused) {
  const auto pool = lent_parities({0, 0, 0, 0, 0});
  const LentShare lent = pool->lend(0).value();
  const std::uint64_t pages = lent.pages;
  ASSERT_GT(pages, 2U);
  const std::int64_t before = objects_alive();
  const auto refusal = [&](const PageSource& source) {
    const auto share = BorrowedShare::open(pool->arena().gpu(), lent, {}, source);
    EXPECT_FALSE(share);
    EXPECT_EQ(objects_alive(), before);
    return share ? Error{} : share.error();
  };
  PageSource all = pages_of_pool(*pool, 1);
  std::uint64_t given = 0;
  EXPECT_EQ(refusal([&]() -> Result<std::vector<OwnedFile>> {
              if (++given == pages) return std::vector<OwnedFile>();
              return all();
            }),
            (Error{ErrorKind::invalid_input,
                   fmt::format("a share is lent of {} pages; there came descriptors of {}", pages,
                               pages - 1)}));
  EXPECT_EQ(refusal([&]() -> Result<std::vector<OwnedFile>> {
              std::vector<OwnedFile> batch = pages_of_pool(*pool, pages)().value();
              batch.push_back(pool->arena().lend_page(0).value());
              return batch;
            }),
            (Error{ErrorKind::invalid_input,
                   fmt::format("a share is lent of {} pages; there came descriptors of {}", pages,
                               pages + 1)}));
  PageSource two = pages_of_pool(*pool, 2);
  const Error other = refusal([&]() -> Result<std::vector<OwnedFile>> {
    DEMARC_TRY(auto batch, two());
    batch[1] = OwnedFile(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return batch;
  });
  EXPECT_EQ(other.kind, ErrorKind::invalid_input);
  EXPECT_THAT(other.message, HasSubstr("page 1 of a lent share: file descriptor "));
  EXPECT_EQ(refusal([]() -> Result<std::vector<OwnedFile>> { return check_failed("gone"); }),
            (Error{ErrorKind::check_failed, "gone"}));
}

TEST(BorrowedShare, KeepsNoDescriptor) {
  const auto pool = lent_parities({0, 0, 0, 0, 0});
  std::vector<int> given;
  const PageSource all = pages_of_pool(*pool);
  const auto share = BorrowedShare::open(
      pool->arena().gpu(), pool->lend(0).value(), {}, [&]() -> Result<std::vector<OwnedFile>> {
        for (const int file : given) EXPECT_EQ(::fcntl(file, F_GETFD), -1) << "a batch is closed";
        given.clear();
        DEMARC_TRY(auto batch, all());
        for (const OwnedFile& file : batch) given.push_back(file.get());
        return batch;
      });
  ASSERT_TRUE(share) << share.error().message;
  for (const int file : given) EXPECT_EQ(::fcntl(file, F_GETFD), -1);
}

// Requests for addresses that the driver does not fulfil: so many of those with a wish, and of
// those with an alignment of more than a page.
std::uint32_t wishes_unheard = 0;
std::uint32_t places_unaligned = 0;

GpuPointer card_with_wishes_unheard() {
  static CuResult (*reserve)(DevicePointer*, std::size_t, std::size_t, DevicePointer,
                             unsigned long long) = nullptr;
  DriverApi api = test::fake_driver()->api();
  reserve = api.cuMemAddressReserve;
  api.cuMemAddressReserve = [](DevicePointer* address, std::size_t bytes, std::size_t alignment,
                               DevicePointer wanted, unsigned long long flags) {
    if (wanted != 0 && wishes_unheard > 0) {
      --wishes_unheard;
      wanted = 0;
    }
    if (alignment > page_of_share && places_unaligned > 0) {
      --places_unaligned;
      wanted = 0x4b00'0000'0000 + page_of_share;
    }
    return reserve(address, bytes, alignment, wanted, flags);
  };
  return Gpu::open(Driver::from_table(api, "deaf").value(), 0).value();
}

TEST(BorrowedShare, LiesElsewhereWhereTheDriverHasNoWindowForItsFirstPlace) {
  const auto pool = lent_parities({0, 0});
  const GpuPointer gpu = card_with_wishes_unheard();
  const LentShare lent = pool->lend(0).value();
  const auto open = [&] { return BorrowedShare::open(gpu, lent, {}, pages_of_pool(*pool)); };
  const std::int64_t before = objects_alive();
  wishes_unheard = 1;
  {
    const auto share = open();
    ASSERT_TRUE(share) << share.error().message;
    EXPECT_EQ(share->arena(), 0x4800'0000'0000U);
    EXPECT_EQ(share->window(), 0x2400'0000'0000U);
  }
  places_unaligned = 1;
  {
    const auto share = open();
    ASSERT_TRUE(share) << share.error().message;
    EXPECT_EQ(share->arena(), 0x4800'0000'0000U);
  }
  // A wish for a window at the first place, then two at each of the others.
  wishes_unheard = 7;
  const auto refused = open();
  EXPECT_EQ(wishes_unheard, 0U);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(refused.error().message,
              HasSubstr("those of its arena divided by 2 are taken, at 4 places"));
  EXPECT_EQ(objects_alive(), before);
}

}  // namespace
}  // namespace demarc::cuda
