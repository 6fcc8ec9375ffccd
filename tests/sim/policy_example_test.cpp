// The policy that docs/policies.md shows: it is policy_example.hpp word for word, and it works.
#include "policy_example.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "demarc/base/files.hpp"
#include "paths.hpp"

namespace demarc::sim {
namespace {

TEST(PolicyExample, is_the_one_in_the_page_on_policies) {
  std::istringstream page(*read_file(test::source_dir() / "docs" / "policies.md"));
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
  const BlockRequest block{{&request, 1}, 0, 0};
  const auto policy = make_last_fit({});
  std::uint32_t places[5];
  ASSERT_EQ(policy->choose_many(machine, block, places), 3U);
  EXPECT_EQ(places[0], 2U);
  EXPECT_EQ(places[1], 1U);
  EXPECT_EQ(places[2], 0U);
  EXPECT_EQ(policy->choose(machine, block), no_sm);
}

}  // namespace
}  // namespace demarc::sim
