// Which cooperative launches a mask of TPCs has room for, and which nodes of graphs may be one.
#include "process/cooperative_launches.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>

#include "confine_fixture.hpp"
#include "planted_call.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;
using testing::Optional;

// Two SMs of each TPC, each of which holds one block; TPCs in the first and the last word.
class CooperativeLaunchRules : public Confine {
 protected:
  using Size = std::array<unsigned, 3>;

  void SetUp() override {
    Confine::SetUp();
    mask.store({{~4U, ~0U, ~0U, ~0x80000000U}}, true);
  }
  template <class... Arguments>
  std::optional<std::string> asked(const char* name, Arguments... arguments) {
    return launches.refusal(test::PlantedCall(name, arguments...).read());
  }
  std::optional<std::string> launch(const Size& grid, const Size& block = {1, 1, 1},
                                    unsigned shared_bytes = 0) {
    return asked("cuLaunchCooperativeKernel", function, grid, block, shared_bytes);
  }
  std::optional<std::string> launch_with(const std::vector<CuLaunchAttribute>& attributes,
                                         unsigned count, const Size& grid,
                                         const Size& block = {1, 1, 1}, unsigned shared_bytes = 0) {
    const CuLaunchConfig config{{grid[0], grid[1], grid[2]},
                                {block[0], block[1], block[2]},
                                shared_bytes,
                                nullptr,
                                attributes.data(),
                                count};
    return asked("cuLaunchKernelEx", &config, function);
  }

  struct KernelNode {
    CuFunction function = nullptr;
    Size grid = {1, 1, 1};
    Size block = {1, 1, 1};
    unsigned shared_bytes = 0;
    void** arguments = nullptr;
    void** extra = nullptr;
    CuFunction kernel = nullptr;  // of a library
  };
  static_assert(sizeof(KernelNode) == 64);
  struct NodeOfAnyKind {
    int type;
    int reserved[3];
    KernelNode kernel;
  };
  // What every function that sets a kernel's node says of it.
  std::vector<std::optional<std::string>> node(const KernelNode& params) {
    const NodeOfAnyKind any{0, {}, params};
    return {asked("cuGraphKernelNodeSetParams_v2", node_, &params),
            asked("cuGraphExecKernelNodeSetParams_v2", graph_, node_, &params),
            asked("cuGraphNodeSetParams", node_, &any),
            asked("cuGraphExecNodeSetParams", graph_, node_, &any)};
  }

  static constexpr const char* five_of_four =
      "a cooperative launch of 5 blocks would wait for ever: the 4 SMs of the partition hold 4 of "
      "them at once; size the grid by these SMs, and not by the card's";
  static constexpr const char* not_told = "the driver does not tell how many blocks";

  CuFunction function = reinterpret_cast<CuFunction>(this);
  void* graph_ = this;
  void* node_ = this;
  SharedMask mask;
  CooperativeLaunches launches{mask, 2};
};

CuLaunchAttribute launched_with(int id, int flag) {
  CuLaunchAttribute attribute{};
  attribute.id = id;
  attribute.value.flag = flag;
  return attribute;
}

TEST_F(CooperativeLaunchRules, have_room_for_as_many_blocks_as_the_sms_of_the_mask_hold) {
  const std::vector<CuLaunchAttribute> cooperative{launched_with(2, 1)};
  const auto both = [&](const Size& grid, const Size& block, unsigned shared_bytes) {
    const auto called = launch(grid, block, shared_bytes);
    EXPECT_EQ(launch_with(cooperative, 1, grid, block, shared_bytes), called);
    return called;
  };
  for (const Size& fits : {Size{4, 1, 1}, Size{1, 4, 1}, Size{1, 1, 4}, Size{2, 2, 1}}) {
    EXPECT_EQ(both(fits, {8, 8, 16}, 0), std::nullopt);
  }
  for (const Size& large : {Size{5, 1, 1}, Size{1, 5, 1}, Size{1, 1, 5}}) {
    EXPECT_EQ(both(large, {1, 1, 1}, 0), five_of_four);
  }
  EXPECT_THAT(both({1 << 16U, 1 << 16U, 1}, {1, 1, 1}, 0), Optional(HasSubstr("4294967296 blocks")))
      << "more than 32 bits hold";
  for (const Size& wide : {Size{1025, 1, 1}, Size{1, 1025, 1}, Size{1, 1, 1025}, Size{8, 8, 17}}) {
    EXPECT_THAT(both({1, 1, 1}, wide, 0), Optional(HasSubstr(not_told))) << "no SM takes the block";
  }
  EXPECT_THAT(both({1, 1, 1}, {1, 1, 1}, 228 << 10U), Optional(HasSubstr("hold 0 of them")));
}

TEST_F(CooperativeLaunchRules, look_at_the_attributes_that_a_launch_has) {
  const Size large{5, 1, 1};
  const auto cooperative = launched_with(2, 1);
  const auto not_cooperative = launched_with(2, 0);
  const auto other = launched_with(6, 1);
  EXPECT_EQ(launch_with({other, not_cooperative}, 2, large), std::nullopt);
  EXPECT_EQ(launch_with({other, cooperative}, 1, large), std::nullopt) << "it has one attribute";
  EXPECT_EQ(asked("cuLaunchKernelEx", nullptr, function), std::nullopt) << "the driver refuses it";
  EXPECT_EQ(node({function, large}), std::vector(4, std::optional<std::string>()))
      << "nothing was launched so";
  EXPECT_EQ(launch_with({other, cooperative}, 2, large), five_of_four);
}

TEST_F(CooperativeLaunchRules, refuse_what_the_driver_does_not_tell) {
  function = nullptr;
  EXPECT_THAT(launch({1, 1, 1}), Optional(HasSubstr(not_told)));
  function = reinterpret_cast<CuFunction>(this);
  CooperativeLaunches unknown{mask, 0};
  EXPECT_THAT(unknown.refusal(test::PlantedCall("cuLaunchCooperativeKernel", function,
                                                Size{1, 1, 1}, Size{1, 1, 1}, 0U)
                                  .read()),
              Optional(HasSubstr(not_told)))
      << "how many SMs a TPC has";
  ::setenv("DEMARC_LIBCUDA", "/no/such/libcuda.so", 1);
  EXPECT_THAT(launch({1, 1, 1}), Optional(HasSubstr(not_told)));
}

TEST_F(CooperativeLaunchRules, refuse_launches_on_several_cards) {
  EXPECT_THAT(asked("cuLaunchCooperativeKernelMultiDevice", nullptr, 1U, 0U),
              Optional(HasSubstr("on several cards")));
}

TEST_F(CooperativeLaunchRules, refuse_nodes_that_are_made_cooperative_by_hand) {
  const int yes = 1;
  const int no = 0;
  const auto set = [&](int attribute, const int* value) {
    return asked("cuGraphKernelNodeSetAttribute", node_, attribute, value);
  };
  EXPECT_THAT(set(2, &yes), Optional(HasSubstr("made cooperative by hand")));
  EXPECT_EQ(set(2, &no), std::nullopt);
  EXPECT_EQ(set(2, nullptr), std::nullopt);
  EXPECT_EQ(set(1, &yes), std::nullopt);
}

TEST_F(CooperativeLaunchRules, hold_for_nodes_once_the_program_launches_so) {
  EXPECT_EQ(asked("cuGraphKernelNodeCopyAttributes", node_, node_), std::nullopt);
  ASSERT_EQ(launch({1, 1, 1}), std::nullopt);
  EXPECT_THAT(asked("cuGraphKernelNodeCopyAttributes", node_, node_),
              Optional(HasSubstr("may become cooperative")));
  for (const Size& large : {Size{5, 1, 1}, Size{1, 5, 1}, Size{1, 1, 5}}) {
    EXPECT_EQ(node({function, large}), std::vector(4, std::optional<std::string>(five_of_four)));
  }
  EXPECT_EQ(node({function, {2, 2, 1}, {8, 8, 16}}), std::vector(4, std::optional<std::string>()));
  for (const Size& wide : {Size{1025, 1, 1}, Size{1, 1025, 1}, Size{1, 1, 1025}, Size{8, 8, 17}}) {
    for (const auto& said : node({function, {1, 1, 1}, wide})) {
      EXPECT_THAT(said, Optional(HasSubstr(not_told)));
    }
  }
  for (const auto& said : node({function, {1, 1, 1}, {1, 1, 1}, 228 << 10U})) {
    EXPECT_THAT(said, Optional(HasSubstr("hold 0 of them")));
  }
  EXPECT_EQ(node({nullptr, {4, 1, 1}, {1, 1, 1}, 0, nullptr, nullptr, function}),
            std::vector(4, std::optional<std::string>()));
  for (const auto& said : node({})) EXPECT_THAT(said, Optional(HasSubstr(not_told)));
}

// The first version of their parameters ends in front of the kernel of a library.
TEST_F(CooperativeLaunchRules,
       hold_for_nodes_of_the_first_version_without_reading_behind_their_parameters) {
  ASSERT_EQ(launch({1, 1, 1}), std::nullopt);
  const KernelNode large{function, {5, 1, 1}};
  const KernelNode of_library{nullptr, {4, 1, 1}, {1, 1, 1}, 0, nullptr, nullptr, function};
  const auto both = [&](const KernelNode& params) {
    const auto set = asked("cuGraphKernelNodeSetParams", node_, &params);
    EXPECT_EQ(asked("cuGraphExecKernelNodeSetParams", graph_, node_, &params), set);
    return set;
  };
  EXPECT_EQ(both(large), five_of_four);
  EXPECT_THAT(both(of_library), Optional(HasSubstr(not_told)));
}

TEST_F(CooperativeLaunchRules, hold_for_nodes_once_a_launch_had_the_attribute) {
  ASSERT_EQ(launch_with({launched_with(2, 1)}, 1, {1, 1, 1}), std::nullopt);
  EXPECT_EQ(node({function, {5, 1, 1}}), std::vector(4, std::optional<std::string>(five_of_four)));
}

TEST_F(CooperativeLaunchRules, leave_nodes_of_other_kinds_and_calls_that_the_driver_refuses_to_it) {
  ASSERT_EQ(launch({1, 1, 1}), std::nullopt);
  const NodeOfAnyKind copy{1, {}, {function, {5, 1, 1}}};
  const void* none = nullptr;
  for (const void* params : {static_cast<const void*>(&copy), none}) {
    EXPECT_EQ(asked("cuGraphNodeSetParams", node_, params), std::nullopt);
    EXPECT_EQ(asked("cuGraphExecNodeSetParams", graph_, node_, params), std::nullopt);
  }
  EXPECT_EQ(asked("cuGraphKernelNodeSetParams", node_, none), std::nullopt);
  EXPECT_EQ(asked("cuGraphExecKernelNodeSetParams", graph_, node_, none), std::nullopt);
  EXPECT_EQ(launches.refusal(test::PlantedCall("cuGraphAddNode", node_, &copy, &copy).read()),
            std::nullopt);
}

TEST_F(CooperativeLaunchRules, hold_under_a_mask_alone) {
  mask.store({}, false);
  const int yes = 1;
  EXPECT_EQ(launch({5, 1, 1}), std::nullopt);
  EXPECT_EQ(asked("cuLaunchCooperativeKernelMultiDevice", nullptr, 1U, 0U), std::nullopt);
  EXPECT_EQ(asked("cuGraphKernelNodeSetAttribute", node_, 2, &yes), std::nullopt);
  EXPECT_EQ(asked("cuGraphKernelNodeCopyAttributes", node_, node_), std::nullopt);
  EXPECT_EQ(node({function, {5, 1, 1}}), std::vector(4, std::optional<std::string>()));
}

}  // namespace
}  // namespace demarc::cuda
