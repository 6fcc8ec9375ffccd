// Requests and sectors of runs, and the runs of one kind of access.
#include "demarc/locality/runs.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <tuple>

namespace demarc::locality {
namespace {

AccessRuns one_block(std::uint32_t threads, std::vector<locality::Run> runs,
                     std::uint32_t accesses = 1) {
  AccessRuns made;
  made.block = {threads, 1, 1};
  made.accesses.resize(accesses);
  made.runs = std::move(runs);
  return made;
}

double sectors_of(const std::vector<locality::Run>& runs, std::uint32_t bytes = 4) {
  AccessRuns made = one_block(32, runs);
  made.accesses[0].bytes = bytes;
  count_requests(made);
  EXPECT_EQ(made.accesses[0].requests, 1U);
  return made.accesses[0].sectors_per_request;
}

TEST(Requests, sectors_are_those_that_some_lane_touches) {
  EXPECT_EQ(sectors_of({{.address = 0, .stride = 4, .count = 32}}), 4);
  EXPECT_EQ(sectors_of({{.address = 4, .stride = 4, .count = 32}}), 5);
  EXPECT_EQ(sectors_of({{.address = 32, .stride = 32, .count = 8}}), 8);
  EXPECT_EQ(sectors_of({{.address = 0, .stride = 36, .count = 8}}), 8);
  EXPECT_EQ(sectors_of({{.address = 0, .stride = 64, .count = 8}}), 8) << "those between are not";
  EXPECT_EQ(sectors_of({{.address = 448, .stride = -64, .count = 8}}), 8);
  EXPECT_EQ(sectors_of({{.address = 124, .stride = -4, .count = 32}}), 4);
  EXPECT_EQ(sectors_of({{.address = 24, .stride = 64, .count = 3}}, 16), 6) << "two for each lane";
  EXPECT_EQ(sectors_of({{.address = 0, .stride = 0, .count = 32}}), 1);
}

TEST(Requests, sectors_that_parts_of_a_warp_share_count_once) {
  EXPECT_EQ(sectors_of({{.address = 0, .stride = 4, .count = 4},
                        {.address = 16, .stride = 4, .count = 28, .thread = 4}}),
            4);
  EXPECT_EQ(sectors_of({{.address = 96, .stride = 4, .count = 8},
                        {.address = 0, .stride = 4, .count = 24, .thread = 8}}),
            4);
  EXPECT_EQ(sectors_of({{.address = 0, .stride = 4, .count = 16},
                        {.address = 128, .stride = 4, .count = 8, .thread = 16},
                        {.address = 32, .stride = 4, .count = 8, .thread = 24}}),
            3);
}

// As count_requests, lane by lane.
struct Plain {
  std::uint64_t executed = 0;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> requests;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t>> sectors;
};
std::vector<Plain> plainly(const AccessRuns& runs) {
  std::vector<Plain> all(runs.accesses.size());
  for (const locality::Run& run : runs.runs) {
    Plain& of = all[run.access];
    for (std::uint32_t k = 0; k < run.count; ++k) {
      const std::uint32_t warp = (run.thread + k) / 32;
      const std::uint64_t address = run.address + static_cast<std::uint64_t>(run.stride) * k;
      ++of.executed;
      of.requests.insert({run.block, warp, run.request});
      for (std::uint64_t at = address; at < address + runs.accesses[run.access].bytes; ++at)
        of.sectors.insert({run.block, warp, run.request, at / 32});
    }
  }
  return all;
}

RC_GTEST_PROP(Requests, are_what_they_are_lane_by_lane, ()) {
  AccessRuns runs;
  runs.grid = {2, 1, 1};
  runs.block = {100, 1, 1};
  runs.accesses.resize(2);
  runs.accesses[1].bytes = 16;
  for (std::uint32_t block = 0; block < 2; ++block) {
    for (std::uint32_t n = *rc::gen::inRange(0U, 8U); n > 0; --n) {
      locality::Run run;
      run.block = block;
      run.access = *rc::gen::element<std::uint16_t>(0, 1);
      run.request = *rc::gen::inRange(0U, 3U);
      run.thread = static_cast<std::uint16_t>(*rc::gen::inRange(0U, 100U));
      run.count = *rc::gen::inRange(1U, 101U - run.thread);
      run.stride = *rc::gen::element(0, 4, 16, 32, 36, 100, -4, -64);
      run.address = 0x10000 + 4 * *rc::gen::inRange<std::uint64_t>(0, 200);
      runs.runs.push_back(run);
    }
  }
  const std::vector<Plain> plain = plainly(runs);
  count_requests(runs);
  for (std::size_t a = 0; a < 2; ++a) {
    RC_ASSERT(runs.accesses[a].executed == plain[a].executed);
    RC_ASSERT(runs.accesses[a].requests == plain[a].requests.size());
    const double sectors = runs.accesses[a].sectors_per_request;
    const auto requests = static_cast<double>(plain[a].requests.size());
    RC_ASSERT(std::llround(sectors * requests) == static_cast<long long>(plain[a].sectors.size()));
  }
}

TEST(Runs, of_one_kind_are_renumbered_and_the_others_are_gone) {
  AccessRuns runs = one_block(64, {}, 4);
  runs.grid = {3, 1, 1};
  constexpr AccessKind kinds[] = {AccessKind::store, AccessKind::load, AccessKind::atomic,
                                  AccessKind::load};
  for (std::uint16_t a = 0; a < 4; ++a) {
    runs.accesses[a].kind = kinds[a];
    runs.accesses[a].line = 10U + a;
    runs.runs.push_back({.address = 100U * a, .block = 2, .thread = a, .access = a});
  }
  const auto lines_of = [&](AccessKind kind) {
    const AccessRuns some = only(runs, kind);
    EXPECT_EQ(some.grid, runs.grid);
    EXPECT_EQ(some.block, runs.block);
    std::vector<std::uint32_t> lines;
    for (const locality::Run& run : some.runs) {
      EXPECT_EQ(run.block, 2U);
      EXPECT_EQ(run.address, 100U * run.thread);
      lines.push_back(some.accesses.at(run.access).line);
    }
    EXPECT_EQ(some.accesses.size(), lines.size());
    return lines;
  };
  EXPECT_EQ(lines_of(AccessKind::load), (std::vector<std::uint32_t>{11, 13}));
  EXPECT_EQ(lines_of(AccessKind::store), (std::vector<std::uint32_t>{10}));
  EXPECT_EQ(lines_of(AccessKind::atomic), (std::vector<std::uint32_t>{12}));
}

TEST(Runs, of_a_block_lie_between_its_start_and_the_next) {
  AccessRuns runs = one_block(32, {{.block = 1}, {.block = 1}, {.block = 3}});
  runs.grid = {5, 1, 1};
  EXPECT_EQ(block_starts(runs), (std::vector<std::size_t>{0, 0, 2, 2, 3, 3}));
}

}  // namespace
}  // namespace demarc::locality
