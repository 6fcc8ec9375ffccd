// What is lent and does not fit together is refused by the process that would borrow it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "demarc/card/remainder_colors.hpp"
#include "lent_pools.hpp"

namespace demarc::cuda {
namespace {

const color::RemainderSteps& steps_of(const LentShare& lent) {
  return *lent.law->device_numbers().steps;
}

using color::LinearByte;
using test::borrow;
using test::lent_parities;
using test::lent_remainders;
using test::objects_alive;
using test::page_of_share;
using test::pages_of_pool;
using testing::HasSubstr;

// Of what is lent, `change` is made; nothing is left behind.
void expect_refused(const ColoredPool& pool, const std::string& reason,
                    const std::function<void(LentShare&)>& change,
                    const std::function<void(std::vector<std::byte>&)>& change_table = {}) {
  LentShare lent = pool.lend(1).value();
  const auto shared = pool.colors().table();
  std::vector<std::byte> table(shared.begin(), shared.end());
  change(lent);
  if (change_table) change_table(table);
  const std::int64_t before = objects_alive();
  const auto share = BorrowedShare::open(pool.arena().gpu(), lent, table, pages_of_pool(pool));
  ASSERT_FALSE(share) << reason;
  EXPECT_EQ(share.error().kind, ErrorKind::invalid_input);
  EXPECT_THAT(share.error().message, HasSubstr(reason));
  EXPECT_EQ(objects_alive(), before);
}

TEST(BorrowedShare, of_another_card_or_other_pages_is_refused) {
  const auto pool = lent_parities({0, 0});
  const std::string own = pool->arena().gpu()->uuid();
  expect_refused(*pool,
                 "a share is lent by card GPU-00 and cannot be used on Fake GPU, which is " + own,
                 [](LentShare& lent) { lent.card = "GPU-00"; });
  expect_refused(*pool, "in pages of 4194304 bytes; those of Fake GPU have 2097152",
                 [](LentShare& lent) { lent.page_bytes *= 2; });
  expect_refused(*pool, "of 0 pages; Fake GPU has 1 to 512",
                 [](LentShare& lent) { lent.pages = 0; });
  expect_refused(*pool, "of 513 pages; Fake GPU has 1 to 512",
                 [](LentShare& lent) { lent.pages = 513; });
}

TEST(BorrowedShare, of_more_bytes_than_its_pages_have_room_for_is_refused) {
  for (const auto& pool : {lent_parities({0, 0}), lent_remainders()}) {
    const LentShare lent = pool->lend(1).value();
    std::uint64_t room = lent.pages * page_of_share / 2;
    if (const auto* steps = lent.law->device_numbers().steps) {
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

TEST(BorrowedShare, of_parities_that_are_none_or_have_a_table_is_refused) {
  const auto pool = lent_parities({0, 0});
  for (const auto& [masks, why] :
       {std::pair{std::vector<std::uint64_t>{0x400000},
                  "with masks that reach up to 0x400000: the pages are no whole groups"},
        std::pair{std::vector<std::uint64_t>{}, "of 0 masks; 1 to 8 were expected"},
        std::pair{std::vector<std::uint64_t>(9, 0xc4000), "of 9 masks; 1 to 8 were expected"}}) {
    expect_refused(*pool, why, [&masks = masks](LentShare& lent) {
      lent.law = color::make_law(color::Parities{masks, 0});
    });
  }
  // Bits that are inserted at places that no address has, that no mask has, or that two have.
  for (const auto& [law, why] :
       {std::pair{color::Parities{{0xc4000}, 1, {200}}, "mask 0xc4000 does not fit"},
        std::pair{color::Parities{{0xc4000}, 1, {15}}, "mask 0xc4000 does not fit"},
        std::pair{color::Parities{{0xc4000}, 1, {14, 18}}, "2 bits are inserted for 1 masks"},
        std::pair{color::Parities{{0xc4000, 0x88000}, 1, {18, 19}},
                  "the inserted bit of mask 0x88000 is also in mask 0xc4000"},
        std::pair{color::Parities{{0xc4000}, 2, {19}}, "there is no colour 2"}}) {
    expect_refused(*pool, why, [&law = law](LentShare& lent) { lent.law = color::make_law(law); });
  }
  expect_refused(
      *pool, "is lent with a table, but its law has none: {\"parities\"", [](LentShare&) {},
      [](std::vector<std::byte>& table) { table.resize(4); });
}

TEST(BorrowedShare, of_remainders_whose_numbers_do_not_fit_is_refused) {
  const auto pool = lent_remainders();
  using Change = void (*)(color::RemainderSteps&);
  for (const Change change : {Change{[](auto& steps) { steps.chunk_shift = 13; }},
                              Change{[](auto& steps) { steps.page_shift = 17; }},
                              Change{[](auto& steps) { steps.reciprocal_shift = 32; }},
                              Change{[](auto& steps) { steps.begin = steps.end + 1; }},
                              Change{[](auto& steps) { steps.page_shift -= 1; }}}) {
    expect_refused(*pool, "these do not fit", [&](LentShare& lent) {
      color::RemainderSteps steps = steps_of(lent);
      change(steps);
      if (steps.chunk_shift == 13) steps.page_shift = 8;  // still 2 MiB
      if (steps.page_shift == 17) steps.chunk_shift = 4;
      lent.law = color::make_law(steps);
    });
  }
}

TEST(BorrowedShare, of_a_table_that_is_not_as_long_as_its_pages_need_is_refused) {
  const auto pool = lent_remainders();
  const auto nothing = [](LentShare&) {};
  const std::size_t size = pool->colors().table().size();
  const std::string length = "the table of a lent share has ";
  for (const std::size_t wrong : {std::size_t{0}, size - 1, size + 1}) {
    expect_refused(*pool, length + std::to_string(wrong), nothing,
                   [&](std::vector<std::byte>& table) { table.resize(wrong); });
  }
  const auto put_pages_at = [](LentShare& lent, std::uint32_t at) {
    color::RemainderSteps steps = steps_of(lent);
    steps.pages_at = at;
    lent.law = color::make_law(steps);
  };
  for (const std::uint32_t moved : {1U, 0U - 1U}) {
    expect_refused(*pool, length,
                   [&](LentShare& lent) { put_pages_at(lent, steps_of(lent).pages_at + moved); });
  }
  // Places of pages among the patterns.
  const auto shorter = [&](std::vector<std::byte>& table) {
    LentShare lent = pool->lend(1).value();
    table.resize(size - (steps_of(lent).pages_at - 1023));
  };
  expect_refused(
      *pool, length, [&](LentShare& lent) { put_pages_at(lent, 1023); }, shorter);
  expect_refused(*pool, length, [](LentShare& lent) { lent.pages += 1; });
}

// Where chunks that are none of the share's lead: as many pages in front as its colour needs (a
// pool keeps those that any needs), and one behind.
TEST(BorrowedShare, of_remainders_keeps_the_addresses_beside_its_arena_free) {
  const auto pool = lent_remainders();
  const GpuPointer gpu = pool->arena().gpu();
  EXPECT_EQ(pool->arena().guards().in_front, 47U);
  EXPECT_EQ(pool->arena().guards().behind, 1U);
  const LentShare lent = pool->lend(1).value();
  const std::uint64_t in_front = steps_of(lent).first_page;
  ASSERT_GT(in_front, 0U);
  const auto share = borrow(*pool, lent).value();
  EXPECT_FALSE(test::is_free(gpu, share.arena().raw() - in_front * page_of_share));
  EXPECT_FALSE(test::is_free(gpu, share.arena().raw() + lent.pages * page_of_share));
}

// Where its kernels read them.
color::RemainderConstants constants_of(const BorrowedShare& share) {
  const std::vector<std::byte> bytes = share.code().constants({});
  color::RemainderConstants constants;
  std::memcpy(&constants, bytes.data() + sizeof(ptx::ColoredPlaces), sizeof constants);
  return constants;
}

// In a page that cannot be written through the share.
TEST(BorrowedShare, reads_the_tables_that_its_lender_put_into_its_colours) {
  const auto pool = lent_remainders();
  const auto table = pool->colors().table();
  for (const std::size_t i : {0U, 1U}) {
    const LentShare lent = pool->lend(i).value();
    ASSERT_TRUE(lent.patterns_at && lent.places_at);
    const auto share = borrow(*pool, lent).value();
    EXPECT_EQ(share.tables().size(), 1U);
    const color::RemainderSteps& steps = steps_of(lent);
    const auto constants = constants_of(share);
    const auto& api = pool->arena().gpu()->api();
    const auto expect_read_only = [&](DevicePointer at, std::span<const std::byte> wanted) {
      std::vector<std::byte> found(wanted.size());
      ASSERT_EQ(api.cuMemcpyDtoH_v2(found.data(), at, found.size()), cu_success);
      EXPECT_TRUE(std::equal(found.begin(), found.end(), wanted.begin()));
      EXPECT_NE(api.cuMemcpyHtoD_v2(at, found.data(), found.size()), cu_success);
    };
    expect_read_only(constants.table, std::span(table).first(1024));
    expect_read_only(constants.pages + steps.first_page,
                     std::span(table).subspan(steps.pages_at + steps.first_page));
  }
}

TEST(BorrowedShare, whose_tables_on_the_card_are_not_that_one_is_refused) {
  const auto pool = lent_remainders();
  const LentShare lent = pool->lend(1).value();
  const std::uint32_t page = 2U << 20U;
  for (const std::uint32_t wrong : {page - 1023, page, 0U - 1U}) {
    expect_refused(*pool, fmt::format("with patterns at {} of a page", wrong),
                   [wrong](LentShare& changed) { changed.patterns_at = wrong; });
  }
  const color::RemainderSteps& steps = steps_of(lent);
  ASSERT_GT(steps.first_page, 0U);
  const auto places = static_cast<std::uint32_t>(lent.pages + 1);
  for (const std::uint32_t wrong : {steps.first_page - 1, page - places + 1, 0U - 1U}) {
    expect_refused(*pool, fmt::format("with places at {} of a page", wrong),
                   [wrong](LentShare& changed) { changed.places_at = wrong; });
  }
  const auto nothing = [](LentShare&) {};
  const std::string patterns = "the patterns of a lent share are not those of its table";
  expect_refused(*pool, patterns, [](LentShare& changed) { *changed.patterns_at += 2; });
  expect_refused(*pool, patterns, nothing,
                 [](std::vector<std::byte>& table) { table[1022] ^= std::byte{1}; });
  const std::string of_pages = "the places of a lent share are not those of its table";
  expect_refused(*pool, of_pages, [](LentShare& changed) { *changed.places_at += 1; });
  expect_refused(*pool, of_pages, nothing,
                 [](std::vector<std::byte>& table) { table[table.size() - 2] ^= std::byte{1}; });
  const auto none =
      BorrowedShare::open(pool->arena().gpu(), lent, pool->colors().table(),
                          [](const color::PageRun&) { return std::vector<OwnedFile>(); });
  EXPECT_THAT(none.error().message, HasSubstr("there came 0 descriptors"));
  const auto parities = lent_parities({0, 0});
  const std::string not_theirs = "is lent with a table, but its law has none: {\"parities\"";
  expect_refused(*parities, not_theirs, [](LentShare& changed) { changed.patterns_at = 0; });
  expect_refused(*parities, not_theirs, [](LentShare& changed) { changed.places_at = 0; });
}

// Too few remainders for patterns, or a page that is full.
TEST(BorrowedShare, without_tables_of_its_own_reads_others) {
  const auto pool = lent_remainders();
  for (const bool has_patterns : {false, true}) {
    LentShare lent = pool->lend(1).value();
    const color::RemainderSteps& steps = steps_of(lent);
    (has_patterns ? lent.places_at : lent.patterns_at).reset();
    const auto share = borrow(*pool, lent);
    ASSERT_TRUE(share) << share.error().message;
    ASSERT_EQ(share->tables().size(), 2U);
    const DevicePointer other = share->tables().front().first;
    const auto constants = constants_of(*share);
    EXPECT_EQ(constants.table == other, !has_patterns);
    EXPECT_EQ(constants.pages == other + steps.pages_at, has_patterns);
  }
}

TEST(BorrowedShare, whose_chunks_lead_beside_its_pages_is_refused) {
  const auto pool = lent_remainders();
  const std::string pages = "the chunks of a lent share lie on pages ";
  using Change = void (*)(color::RemainderSteps&);
  for (const Change change :
       {Change{[](auto& steps) { steps.begin = 0; }},
        Change{[](auto& steps) { steps.end += 8192; }}, Change{[](auto& steps) { steps.end -= 1; }},
        Change{[](auto& steps) { steps.reciprocal *= 2; }}}) {
    expect_refused(*pool, pages, [&](LentShare& lent) {
      color::RemainderSteps steps = steps_of(lent);
      change(steps);
      lent.law = color::make_law(steps);
      lent.bytes = std::min<std::uint64_t>(lent.bytes, 4096);
    });
  }
}

TEST(BorrowedShare, of_a_table_that_leads_to_other_pages_is_refused) {
  const auto pool = lent_remainders();
  const auto nothing = [](LentShare&) {};
  for (const std::size_t at : {std::size_t{0}, std::size_t{1022}}) {
    expect_refused(
        *pool,
        fmt::format("the table of a lent share changes more than 9 bits from byte {} on", at),
        nothing, [&](std::vector<std::byte>& table) { table[at + 1] = std::byte{2}; });
  }
}

// What a borrower is told of its own pages is so; it is told of nothing that it did not ask for.
class Borrowing : public testing::Test {
 protected:
  using Batch = Result<std::vector<OwnedFile>>;
  [[nodiscard]] Result<BorrowedShare> open(BorrowedShare::Lender lender) const {
    return BorrowedShare::open(pool->arena().gpu(), lent, pool->colors().table(),
                               std::move(lender));
  }
  [[nodiscard]] Error refusal(BorrowedShare::Lender lender) const {
    auto share = open(std::move(lender)).value();
    const auto mapped = share.map({{}, lent.bytes});
    EXPECT_FALSE(mapped);
    return mapped ? Error{} : mapped.error();
  }
  std::shared_ptr<ColoredPool> pool = lent_parities({0, 0, 0, 0, 0, 0});
  LentShare lent = pool->lend(0).value();
};

TEST_F(Borrowing, too_few_too_many_or_other_descriptors_are_refused) {
  ASSERT_EQ(lent.pages, 6U);
  const std::int64_t before = objects_alive();
  EXPECT_EQ(refusal([](const color::PageRun&) -> Batch { return std::vector<OwnedFile>(); }),
            (Error{ErrorKind::invalid_input,
                   "of 6 pages of a lent share from page 0 on there came 0 descriptors"}));
  const auto all = pages_of_pool(*pool, 10);
  EXPECT_EQ(refusal([&](const color::PageRun& run) -> Batch {
              auto batch = all(run).value();
              batch.push_back(pool->arena().lend_page({}).value());
              return batch;
            }),
            (Error{ErrorKind::invalid_input,
                   "of 6 pages of a lent share from page 0 on there came 7 descriptors"}));
  const Error other = refusal([&](const color::PageRun& run) -> Batch {
    DEMARC_TRY(auto batch, all({run.first, 2}));
    if (run.first != color::ArenaPage())
      batch[1] = OwnedFile(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return batch;
  });
  EXPECT_EQ(other.kind, ErrorKind::invalid_input);
  EXPECT_THAT(other.message, HasSubstr("page 3 of a lent share: file descriptor "));
  EXPECT_EQ(refusal([](const color::PageRun&) -> Batch { return check_failed("gone"); }),
            (Error{ErrorKind::check_failed, "gone"}));
  EXPECT_EQ(objects_alive(), before);
}

TEST_F(Borrowing, keeps_no_descriptor) {
  std::vector<int> given;
  const auto all = pages_of_pool(*pool);
  auto share = open([&](const color::PageRun& run) -> Batch {
                 for (const int file : given) {
                   EXPECT_EQ(::fcntl(file, F_GETFD), -1) << "a batch is closed";
                 }
                 given.clear();
                 DEMARC_TRY(auto batch, all(run));
                 for (const OwnedFile& file : batch) given.push_back(file.get());
                 return batch;
               }).value();
  ASSERT_TRUE(share.map({{}, lent.bytes}));
  for (const int file : given) EXPECT_EQ(::fcntl(file, F_GETFD), -1);
}

// Which pages a borrower asks for.
using AskedPages = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

TEST_F(Borrowing, asks_for_the_pages_of_what_it_uses_once) {
  AskedPages asked;
  const auto all = pages_of_pool(*pool, 10);
  auto share = open([&](const color::PageRun& run) {
                 asked.emplace_back(run.first.raw(), run.count);
                 return all(run);
               }).value();
  EXPECT_EQ(asked, AskedPages{});
  const std::uint64_t half = page_of_share / 2;  // of a page is the share's
  const auto map = [&](std::uint64_t first, std::uint64_t bytes) {
    return share.map({LinearByte(first), bytes});
  };
  EXPECT_TRUE(map(2 * half, 1));
  EXPECT_TRUE(map(3 * half - 1, 1));
  EXPECT_EQ(asked, (AskedPages{{2, 1}}));
  EXPECT_TRUE(map(half - 1, 3 * half));
  EXPECT_EQ(asked, (AskedPages{{2, 1}, {0, 2}, {3, 1}}));
  EXPECT_TRUE(map(lent.bytes - 1, 1));
  EXPECT_TRUE(share.map({{}, lent.bytes}));
  EXPECT_EQ(asked, (AskedPages{{2, 1}, {0, 2}, {3, 1}, {5, 1}, {4, 1}}));
  for (const auto& [first, bytes] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, 0}, {0, lent.bytes + 1}, {lent.bytes, 1}, {1, 0ULL - 1}}) {
    EXPECT_EQ(map(first, bytes).error().message,
              fmt::format("{} bytes from {} on of a lent share of {}", bytes, first, lent.bytes));
  }
}

// Else kernels would reach, later, pages without access.
TEST_F(Borrowing, a_batch_that_cannot_be_mapped_whole_is_asked_for_again) {
  AskedPages asked;
  const auto all = pages_of_pool(*pool, 3);
  bool spoilt = true;
  auto share = open([&](const color::PageRun& run) -> Batch {
                 asked.emplace_back(run.first.raw(), run.count);
                 DEMARC_TRY(auto batch, all(run));
                 if (run.first == color::ArenaPage(3) && std::exchange(spoilt, false)) {
                   batch[2] = OwnedFile(::open("/dev/null", O_RDONLY | O_CLOEXEC));
                 }
                 return batch;
               }).value();
  EXPECT_THAT(share.map({{}, lent.bytes}).error().message, HasSubstr("page 5 of a lent share"));
  EXPECT_TRUE(share.map({{}, lent.bytes}));
  EXPECT_EQ(asked, (AskedPages{{0, 6}, {3, 3}, {3, 3}}));
  std::vector<char> bytes(share.arena_bytes());
  EXPECT_EQ(
      pool->arena().gpu()->api().cuMemcpyDtoH_v2(bytes.data(), share.arena().raw(), bytes.size()),
      cu_success);
}

TEST_F(Borrowing, pages_without_access_are_not_left_mapped) {
  DriverApi api = test::fake_driver()->api();
  static bool refused = true;
  static CuResult (*set_access)(DevicePointer, std::size_t, const CuAccess*, std::size_t) = nullptr;
  set_access = api.cuMemSetAccess;
  api.cuMemSetAccess = [](DevicePointer address, std::size_t size, const CuAccess* access,
                          std::size_t count) {
    return refused ? CuResult{999} : set_access(address, size, access, count);
  };
  const auto gpu = Gpu::open(Driver::from_table(api, "shy").value(), 0).value();
  auto share = BorrowedShare::open(gpu, lent, {}, pages_of_pool(*pool, 10)).value();
  EXPECT_FALSE(share.map({{}, lent.bytes}));
  refused = false;
  EXPECT_TRUE(share.map({{}, lent.bytes}));
  std::vector<char> bytes(share.arena_bytes());
  EXPECT_EQ(gpu->api().cuMemcpyDtoH_v2(bytes.data(), share.arena().raw(), bytes.size()),
            cu_success);
}

// As rewritten code finds them: the pages of a remainder's bytes are those that the table leads to.
TEST(BorrowedRemainders, asks_for_the_pages_that_its_table_leads_to) {
  const auto& pool = lent_remainders();
  for (const std::size_t color : {0U, 1U}) {
    const LentShare lent = pool->lend(color).value();
    const auto& coloring = pool->colors().remainders()->coloring;
    for (LinearByte at; at.raw() < lent.bytes; at = at + lent.bytes / 23) {
      AskedPages asked;
      const auto all = pages_of_pool(*pool, 10);
      auto share = BorrowedShare::open(pool->arena().gpu(), lent, pool->colors().table(),
                                       [&](const color::PageRun& run) {
                                         asked.emplace_back(run.first.raw(), run.count);
                                         return all(run);
                                       })
                       .value();
      const std::uint64_t page =
          coloring.position(at, static_cast<std::uint32_t>(color)).raw() / page_of_share;
      EXPECT_EQ(asked, (AskedPages{{lent.pages, 1}})) << "the one with the patterns";
      asked.clear();
      ASSERT_TRUE(share.map({at, 1}));
      EXPECT_EQ(asked, (AskedPages{{page, 1}})) << at;
    }
  }
}

TEST(BorrowedShare, leaves_no_address_of_its_window_to_anybody_else) {
  for (const auto& pool : {lent_parities({0, 0, 0, 0, 0}), lent_remainders()}) {
    const GpuPointer gpu = pool->arena().gpu();
    const auto share = borrow(*pool, pool->lend(0).value());
    ASSERT_TRUE(share) << share.error().message;
    EXPECT_EQ(share->window().raw() % page_of_share, 0U);
    const std::uint64_t last = (share->bytes() - 1) / page_of_share * page_of_share;
    EXPECT_GT(last, 0U);
    for (const std::uint64_t at : {std::uint64_t{0}, last}) {
      const DevicePointer taken = share->window().raw() + at;
      EXPECT_NE(AddressRange::reserve(gpu, page_of_share, 0, taken)->address(), taken);
    }
  }
}

// Requests for addresses that the driver does not fulfil: so many of those with a wish.
std::uint32_t wishes_unheard = 0;

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
    return reserve(address, bytes, alignment, wanted, flags);
  };
  return Gpu::open(Driver::from_table(api, "deaf").value(), 0).value();
}

TEST(BorrowedShare, lies_elsewhere_where_the_driver_has_no_window_for_its_first_place) {
  const auto pool = lent_parities({0, 0});
  const GpuPointer gpu = card_with_wishes_unheard();
  const LentShare lent = pool->lend(0).value();
  const auto open = [&] { return BorrowedShare::open(gpu, lent, {}, pages_of_pool(*pool)); };
  const std::int64_t before = objects_alive();
  {
    const auto share = open();
    ASSERT_TRUE(share) << share.error().message;
    EXPECT_NE(share->arena().raw(), 0x4800'0000'0000U) << "the driver's own choice does";
    EXPECT_EQ(share->window().raw(), share->arena().raw() / 2);
  }
  wishes_unheard = 1;
  {
    const auto share = open();
    ASSERT_TRUE(share) << share.error().message;
    EXPECT_EQ(share->arena().raw(), 0x4800'0000'0000U);
    EXPECT_EQ(share->window().raw(), 0x2400'0000'0000U);
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
