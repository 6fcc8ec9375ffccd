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
#include "demarc/base/files.hpp"
#include "driver/function_calls.hpp"
#include "driver/function_names.hpp"
#include "paths.hpp"

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

// Whatever its arguments mean, nobody has looked at it.
TEST(CallRules, RefuseTheVersionsOfPassingFunctionsThatAreNotKnown) {
  for (const char* known : {"cuCtxCreate", "cuCtxCreate_v2", "cuCtxCreate_v4", "cuEventRecord",
                            "cuStreamGetCaptureInfo_v3", "cuCtxSynchronize_v2"}) {
    EXPECT_TRUE(passes_colored(known)) << known;
  }
  for (const char* unknown : {"cuCtxCreate_v5", "cuEventRecord_v2", "cuStreamGetCaptureInfo_v4",
                              "cuInit_v2", "cuCtxCreate_"}) {
    EXPECT_FALSE(passes_colored(unknown)) << unknown;
  }
}

TEST(CallRules, KnowTheNumbersOfTheFunctionsWhoseCallbacksAreRead) {
  const auto names = function_names();
  ASSERT_EQ(names.size(), 807U);
  EXPECT_EQ(names[0], "");
  EXPECT_EQ(names[1], "cuInit");
  EXPECT_EQ(names[806], "cuDriverGetGpuCodeIsaVersion");
  for (const int id : launch_functions()) {
    EXPECT_THAT(std::string(names[static_cast<std::size_t>(id)]), testing::StartsWith("cuLaunch"));
  }
  std::set<std::string> others;
  for (const int id : stream_and_graph_functions()) {
    others.emplace(without_version(names[static_cast<std::size_t>(id)]));
  }
  EXPECT_EQ(others,
            (std::set<std::string>{"cuGraphExecDestroy", "cuGraphLaunch", "cuStreamDestroy"}));
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

// A row of docs/serve.md: "| why | `name`, `begin…` |".
struct ListedRefusals {
  std::vector<std::string> names;
  std::vector<std::string> beginnings;
  [[nodiscard]] bool have(std::string_view name) const {
    return std::find(names.begin(), names.end(), name) != names.end() ||
           std::any_of(beginnings.begin(), beginnings.end(),
                       [&](const std::string& begin) { return name.starts_with(begin); });
  }
};

ListedRefusals listed_in(const std::string& page, const std::string& why) {
  ListedRefusals listed;
  const std::size_t row = page.find("\n| " + why + " | ");
  if (row == std::string::npos) return listed;
  const std::string line = page.substr(row + 1, page.find('\n', row + 1) - row - 1);
  constexpr std::string_view more = "…";
  for (std::size_t at = line.find('`'); at != std::string::npos; at = line.find('`', at + 1)) {
    const std::size_t end = line.find('`', at + 1);
    std::string name = line.substr(at + 1, end - at - 1);
    at = end;
    if (!name.ends_with(more)) {
      listed.names.push_back(name);
    } else {
      name.resize(name.size() - more.size());
      listed.beginnings.push_back(name);
    }
  }
  return listed;
}

TEST(CallRules, AreListedInThePageOfTheServerAsTheyAre) {
  const std::string page = read_file(test::source_dir() / "docs" / "serve.md").value();
  std::set<std::string> others(passing_calls().begin(), passing_calls().end());
  for (const auto& names :
       {answered_by<MemoryCalls>(), answered_by<CopyCalls>(), answered_by<ModuleCalls>(),
        answered_by<GraphCalls>(), answered_by<NodeCalls>(), answered_by<LinkCalls>(),
        answered_by<MappingCalls>()}) {
    others.insert(names.begin(), names.end());
  }
  for (const RefusedCalls& group : refused_calls()) {
    const ListedRefusals listed = listed_in(page, group.why);
    for (const std::string_view name : group.names) EXPECT_TRUE(listed.have(name)) << name;
    for (const std::string& name : others) EXPECT_FALSE(listed.have(name)) << name;
    for (const std::string& name : listed.names) {
      EXPECT_STREQ(why_refused(name), group.why) << name << " is listed";
    }
    for (const std::string& begin : listed.beginnings) {
      EXPECT_TRUE(std::any_of(group.names.begin(), group.names.end(),
                              [&](std::string_view name) { return name.starts_with(begin); }))
          << begin << " is listed";
    }
  }
}

}  // namespace
}  // namespace demarc::cuda
