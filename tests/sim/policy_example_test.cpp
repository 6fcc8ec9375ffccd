// The policy that docs/first-change.md shows: it is policy_example.hpp word for word, and it works.

// A reader of the page has a policy of the same name in the library.
#define make_last_fit make_policy_of_the_page
#include "policy_example.hpp"
#undef make_last_fit

#include <gtest/gtest.h>

#include <sstream>

#include "demarc/base/files.hpp"
#include "demarc/sim/dispatch/machine.hpp"
#include "demarc/sim/dispatch/policies.hpp"
#include "paths.hpp"

namespace demarc::sim {
namespace {

// A policy speaks of SMs, not of numbers.
template <class T>
concept AsksMachine = requires(const Occupancy& machine, T sm, BlockRequest block) {
  machine.fits(sm, block);
};
static_assert(AsksMachine<SmIndex> && !AsksMachine<std::uint32_t> && !AsksMachine<Cycles>);
template <class T>
concept PlacesOn = requires(Machine& machine, T sm, BlockRequest block) {
  machine.place(sm, block);
};
static_assert(PlacesOn<SmIndex> && !PlacesOn<std::uint32_t> && !PlacesOn<std::size_t>);
static_assert(std::is_same_v<decltype(no_sm), const SmIndex>);

TEST(PolicyExample, is_the_one_in_the_page_on_policies) {
  std::istringstream page(*read_file(test::source_dir() / "docs" / "first-change.md"));
  const std::string indent = "   ";
  std::string shown;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line == indent + "```cpp" && shown.empty()) {
      inside = true;
    } else if (line == indent + "```") {
      inside = false;
    } else if (inside) {
      shown += (line.starts_with(indent) ? line.substr(indent.size()) : line) + "\n";
    }
  }
  EXPECT_EQ(shown, *read_file(test::source_dir() / "tests" / "sim" / "policy_example.hpp"));
}

TEST(PolicyExample, picks_the_highest_numbered_sm_with_room) {
  Machine machine(SmSpec{3, 1, 1, {4}});
  const std::uint32_t request = 3;
  const BlockRequest block{{&request, 1}, {}, {}};
  const auto policy = make_policy_of_the_page({});
  SmIndex places[5];
  ASSERT_EQ(policy->choose_many(machine, block, places), 3U);
  EXPECT_EQ(places[0], SmIndex(2));
  EXPECT_EQ(places[1], SmIndex(1));
  EXPECT_EQ(places[2], SmIndex(0));
  EXPECT_EQ(policy->choose(machine, block), no_sm);
}

}  // namespace
}  // namespace demarc::sim
