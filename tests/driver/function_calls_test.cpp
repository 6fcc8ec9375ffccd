// What the driver's function callbacks tell, byte by byte as the driver lays it out.
#include "demarc/driver/function_calls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>

namespace demarc::cuda {
namespace {

using Call = FunctionCall::Kind;

// A callback's parameters, with arguments of which each word is its own number.
struct PlantedCall {
  std::uint64_t arguments[8] = {100, 101, 102, 103, 104, 105, 106, 107};
  std::uint64_t config[8] = {200, 201, 202, 203, 204, 205, 206, 207};
  std::uint64_t params[11] = {88};

  explicit PlantedCall(int id, bool leaving = false) {
    params[7] = reinterpret_cast<std::uint64_t>(arguments);
    params[10] = static_cast<std::uint64_t>(id) | (leaving ? std::uint64_t{1} << 32 : 0);
    if (id == 652 || id == 653) arguments[0] = reinterpret_cast<std::uint64_t>(config);
  }
};

std::uint64_t number(const void* handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}

TEST(FunctionCalls, show_the_stream_of_every_way_to_launch) {
  for (const int id : {307, 442, 477, 478}) {
    const PlantedCall planted(id);
    const FunctionCall call = read_function_call(id, planted.params);
    EXPECT_EQ(call.kind, Call::launch) << id;
    EXPECT_EQ(number(call.stream), 105U) << id;
    EXPECT_FALSE(call.leaving);
    const PlantedCall gone(id, true);
    EXPECT_TRUE(read_function_call(id, gone.params).leaving);
    PlantedCall far(id);
    far.params[10] = 0xffffffff;  // no bit of the function's number says that it is left
    EXPECT_FALSE(read_function_call(id, far.params).leaving);
  }
  for (const int id : {652, 653}) {
    const PlantedCall planted(id);
    const FunctionCall call = read_function_call(id, planted.params);
    EXPECT_EQ(call.kind, Call::launch) << id;
    EXPECT_EQ(number(call.stream), 204U) << id;
    PlantedCall without(id);
    without.arguments[0] = 0;  // the driver refuses it
    EXPECT_EQ(read_function_call(id, without.params).kind, Call::other) << id;
  }
}

TEST(FunctionCalls, show_the_graph_and_the_stream_of_a_launch_of_a_graph) {
  for (const int id : {514, 515}) {
    const PlantedCall planted(id);
    const FunctionCall call = read_function_call(id, planted.params);
    EXPECT_EQ(call.kind, Call::graph_launch) << id;
    EXPECT_EQ(number(call.graph), 100U) << id;
    EXPECT_EQ(number(call.stream), 101U) << id;
  }
}

TEST(FunctionCalls, show_an_uploads_stream_and_its_graph_once_it_has_succeeded) {
  for (const int id : {580, 581, 656, 657}) {
    const std::uint64_t how[2] = {2, 301};  // the flag of uploads
    const std::uint64_t made = 400;
    const auto planted = [&](bool leaving) {
      auto call = std::make_unique<PlantedCall>(id, leaving);
      if (id >= 656) call->arguments[0] = reinterpret_cast<std::uint64_t>(&made);
      if (id >= 656) call->arguments[2] = reinterpret_cast<std::uint64_t>(&how);
      return call;
    };
    const auto entering = planted(false);
    const FunctionCall begun = read_function_call(id, entering->params);
    EXPECT_EQ(begun.kind, Call::graph_upload) << id;
    EXPECT_FALSE(begun.leaving);
    EXPECT_EQ(begun.graph, nullptr) << id << ": not yet";
    EXPECT_EQ(number(begun.stream), id >= 656 ? 301U : 101U) << id;
    const auto leaving = planted(true);
    EXPECT_EQ(read_function_call(id, leaving->params).graph, nullptr) << id << ": no result";
    std::uint32_t result = 1;
    leaving->params[5] = reinterpret_cast<std::uint64_t>(&result);
    EXPECT_EQ(read_function_call(id, leaving->params).graph, nullptr) << id << ": an error";
    result = 0;
    const FunctionCall done = read_function_call(id, leaving->params);
    EXPECT_EQ(done.kind, Call::graph_upload) << id;
    EXPECT_TRUE(done.leaving);
    EXPECT_EQ(number(done.graph), id >= 656 ? 400U : 100U) << id;
    EXPECT_EQ(number(done.stream), id >= 656 ? 301U : 101U) << id;
  }
}

TEST(FunctionCalls, that_instantiate_without_an_upload_build_nothing) {
  PlantedCall planted(656);
  const std::uint64_t how[2] = {13, 301};  // all flags but that one
  planted.arguments[2] = reinterpret_cast<std::uint64_t>(&how);
  EXPECT_EQ(read_function_call(656, planted.params).kind, Call::other);
  planted.arguments[2] = 0;  // the driver refuses it
  EXPECT_EQ(read_function_call(656, planted.params).kind, Call::other);
}

TEST(FunctionCalls, show_what_is_destroyed_before_it_is_and_not_again_afterwards) {
  for (const int id : {127, 326, 516}) {
    const PlantedCall planted(id);
    const FunctionCall call = read_function_call(id, planted.params);
    EXPECT_EQ(call.kind, id == 516 ? Call::graph_gone : Call::stream_gone) << id;
    EXPECT_EQ(number(call.graph), id == 516 ? 100U : 0U) << id;
    EXPECT_EQ(number(call.stream), id == 516 ? 0U : 100U) << id;
    const PlantedCall gone(id, true);
    EXPECT_EQ(read_function_call(id, gone.params).kind, Call::other) << id;
  }
}

TEST(FunctionCalls, that_copy_or_fill_are_told_whatever_their_parameters) {
  for (const int id : {220, 251, 280}) {
    PlantedCall planted(id);
    planted.params[7] = 0;
    EXPECT_EQ(read_function_call(id, planted.params).kind, Call::copy_or_fill) << id;
  }
}

TEST(FunctionCalls, with_other_parameters_than_known_are_unreadable) {
  PlantedCall planted(307);
  EXPECT_EQ(read_function_call(307, nullptr).kind, Call::unreadable);
  planted.params[0] = 87;
  EXPECT_EQ(read_function_call(307, planted.params).kind, Call::unreadable);
  planted.params[0] = 88;
  EXPECT_EQ(read_function_call(307, planted.params).kind, Call::launch);
  for (const int id : {307, 652, 514, 580, 326}) {
    PlantedCall without(id);
    without.params[7] = 0;
    EXPECT_EQ(read_function_call(id, without.params).kind, Call::unreadable) << id;
  }
}

TEST(FunctionCalls, are_asked_for_by_numbers_seen_on_the_driver) {
  const auto launches = launch_functions();
  const std::set<int> numbers(launches.begin(), launches.end());
  EXPECT_THAT(numbers, testing::IsSupersetOf({307, 442, 477, 478, 652, 653}));
  EXPECT_THAT(numbers, testing::IsSupersetOf({220, 251})) << "fills of 32-bit words";
  EXPECT_THAT(stream_and_graph_functions(),
              testing::ElementsAre(127, 326, 514, 515, 516, 580, 581, 656, 657));
}

TEST(FunctionCalls, of_other_functions_are_not_looked_into) {
  for (const int id : {0, 39, 243, 308, 651, 654}) {
    EXPECT_EQ(read_function_call(id, PlantedCall(id).params).kind, Call::other) << id;
  }
  PlantedCall without(17);  // cuCtxSynchronize has no arguments
  without.params[7] = 0;
  EXPECT_EQ(read_function_call(17, without.params).kind, Call::other);
}

}  // namespace
}  // namespace demarc::cuda
