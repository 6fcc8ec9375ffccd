// Which of the driver's functions a coloured program may call.
#include "calls/call_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "calls/copy_calls.hpp"
#include "calls/graph_calls.hpp"
#include "calls/link_calls.hpp"
#include "calls/mapping_calls.hpp"
#include "calls/memory_calls.hpp"
#include "calls/module_calls.hpp"
#include "calls/node_calls.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

constexpr const char* not_known = "this function, or its version, is not known";

// As DriverCall::base_name() cuts it off.
template <class Calls>
std::set<std::string> answered_by() {
  std::set<std::string> names;
  for (const auto& row : Calls::rows()) {
    names.insert(std::string(row.name.substr(0, row.name.find('_'))));
  }
  return names;
}

TEST(CallRules, NameEveryFunctionOnceAndInTheOrderOfTheAlphabet) {
  std::set<std::string_view> all;
  const auto look_at = [&](std::span<const std::string_view> names) {
    ASSERT_FALSE(names.empty());
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end())) << names.front();
    for (const std::string_view name : names) {
      EXPECT_TRUE(all.insert(name).second) << name << " is named twice";
      EXPECT_TRUE(name.starts_with("cu")) << name;
      EXPECT_EQ(name.find('_'), std::string_view::npos) << name << " has a version";
    }
  };
  look_at(passing_calls());
  for (const RefusedCalls& group : refused_calls()) look_at(group.names);
}

TEST(CallRules, SayWhyEachOfTheRefusedFunctionsIs) {
  for (const RefusedCalls& group : refused_calls()) {
    for (const std::string_view name : group.names) {
      EXPECT_FALSE(passes_colored(name)) << name;
      EXPECT_STREQ(why_refused(name), group.why) << name;
    }
  }
  for (const char* name : {"", "cu", "cuSomethingNew", "cuZ"}) {
    EXPECT_FALSE(passes_colored(name)) << name;
    EXPECT_STREQ(why_refused(name), not_known) << name;
  }
  for (const std::string_view name : passing_calls()) {
    EXPECT_TRUE(passes_colored(name)) << name;
    EXPECT_STREQ(why_refused(name), not_known) << name;
  }
}

TEST(CallRules, LetAContextGoBeforeAnythingIsMapped) {
  EXPECT_TRUE(passes_unmapped("cuCtxDestroy"));
  for (const char* name : {"cuMemAlloc", "cuModuleLoadData", "cuGraphLaunch", "cuSomethingNew"}) {
    EXPECT_FALSE(passes_unmapped(name)) << name;
  }
}

// What passes is not shown to those who answer.
TEST(CallRules, LetNothingPassThatIsAnswered) {
  std::set<std::string> seen;
  for (const auto& names :
       {answered_by<MemoryCalls>(), answered_by<CopyCalls>(), answered_by<ModuleCalls>(),
        answered_by<GraphCalls>(), answered_by<NodeCalls>(), answered_by<LinkCalls>(),
        answered_by<MappingCalls>()}) {
    EXPECT_FALSE(names.empty());
    for (const std::string& name : names) {
      EXPECT_FALSE(passes_colored(name)) << name;
      EXPECT_STREQ(why_refused(name), not_known) << name << " is refused as well";
      EXPECT_TRUE(seen.insert(name).second) << name << " is answered by two";
    }
  }
}

TEST(CallRules, RefuseWhatGivesMemoryOrCodeThatHasNoColour) {
  for (const auto& [name, why] :
       {std::pair{"cuArrayCreate", "textures and arrays"},
        std::pair{"cuTexRefSetAddress", "textures and arrays"},
        std::pair{"cuMemAllocManaged", "managed memory"},
        std::pair{"cuMemRetainAllocationHandle", "mapping memory"},
        std::pair{"cuMulticastBindMem", "mapping memory"},
        std::pair{"cuIpcOpenMemHandle", "of one process"},
        std::pair{"cuMemPoolImportPointer", "of one process"},
        std::pair{"cuCtxEnablePeerAccess", "of one card"},
        std::pair{"cuImportExternalMemory", "other interfaces"},
        std::pair{"cuGraphicsMapResources", "memory of graphics"},
        std::pair{"cuGraphAddMemAllocNode", "that a graph allocates"},
        std::pair{"cuGraphNodeSetParams", "functions of their own kinds"},
        std::pair{"cuStreamWriteValue32", "streams wait for"},
        std::pair{"cuTensorMapEncodeTiled", "tensor maps"},
        std::pair{"cuMemcpyBatchAsync", "batches"}, std::pair{"cuLaunchGrid", "not watched"},
        std::pair{"cuCheckpointProcessLock", "checkpoints"}}) {
    EXPECT_FALSE(passes_colored(name)) << name;
    EXPECT_THAT(why_refused(name), HasSubstr(why)) << name;
  }
  const auto answered = answered_by<MemoryCalls>();
  for (const char* name : {"cuMemAlloc", "cuMemAllocPitch", "cuMemAllocAsync",
                           "cuMemAllocFromPoolAsync", "cuMemFree", "cuMemFreeAsync"}) {
    EXPECT_TRUE(answered.contains(name)) << name;
  }
}

}  // namespace
}  // namespace demarc::cuda
