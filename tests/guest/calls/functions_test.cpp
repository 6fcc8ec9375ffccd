// What the table of the driver's functions says of them.
#include "demarc/driver/functions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "calls/copy_calls.hpp"
#include "calls/graph_calls.hpp"
#include "calls/ipc_calls.hpp"
#include "calls/link_calls.hpp"
#include "calls/mapping_calls.hpp"
#include "calls/memory_calls.hpp"
#include "calls/module_calls.hpp"
#include "calls/node_calls.hpp"
#include "demarc/base/files.hpp"
#include "demarc/driver/function_calls.hpp"
#include "paths.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

constexpr const char* not_known = "this function, or its version, is not known";

bool is_refused(Rule rule) {
  return !needs_no_share(rule) && rule != Rule::answered;
}

bool passes(std::string_view name) {
  return facts_of(name).rule == Rule::passes;
}

const char* why(std::string_view name) {
  return why_refused(facts_of(name).rule);
}

TEST(FunctionTable, has_one_row_per_function_or_version) {
  const auto rows = function_rows();
  const auto known = function_names();
  ASSERT_FALSE(rows.empty());
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_LT(rows[i - 1].name, rows[i].name) << "twice, or not in order";
  }
  for (const FunctionRow& row : rows) {
    EXPECT_TRUE(row.name.starts_with("cu")) << row.name;
    const bool refused_alone = is_refused(row.facts.rule) && row.facts.rule != Rule::unknown;
    EXPECT_TRUE(refused_alone || std::ranges::find(known, row.name) != known.end())
        << row.name << " has no callback";
    EXPECT_NE(row.facts.rule, Rule::unknown) << row.name;
    EXPECT_TRUE(row.facts.function != DriverFunction::listed || row.all_versions) << row.name;
  }
}

// What no row lists is refused, and so are versions that no row lists: what their parameters mean
// was not looked at.
TEST(FunctionTable, refuses_what_it_does_not_list) {
  for (const char* name :
       {"", "cu", "cuSomethingNew", "cuZ", "cuMemAlloc", "cuMemAlloc_v3", "cuMemcpy_v2",
        "cuCtxCreate_v5", "cuEventRecord_v2", "cuStreamGetCaptureInfo_v4", "cuInit_v2",
        "cuCtxCreate_", "cuCtxSynchronize_v3", "cuLaunchKernel_v2"}) {
    EXPECT_EQ(facts_of(name).rule, Rule::unknown) << name;
    EXPECT_STREQ(why(name), not_known) << name;
  }
  for (const char* name : {"cuCtxCreate", "cuCtxCreate_v2", "cuCtxCreate_v4", "cuEventRecord",
                           "cuStreamGetCaptureInfo_v3", "cuCtxSynchronize_v2",
                           "cuIpcGetEventHandle", "cuIpcOpenEventHandle"}) {
    EXPECT_TRUE(passes(name)) << name;
  }
  EXPECT_EQ(facts_of("cuGLMapBufferObject_v9").rule, Rule::graphics) << "refused in any version";
}

TEST(FunctionTable, says_of_an_unknown_version_what_the_others_do) {
  EXPECT_EQ(facts_of("cuMemHostAlloc_v9").does, does::pins_host_memory);
  EXPECT_EQ(facts_of("cuModuleLoadData_v9").does, does::loads_image);
  EXPECT_TRUE(facts_of("cuCtxSynchronize_v9").shows_parameters);
}

TEST(FunctionTable, is_the_same_for_both_default_streams) {
  for (const char* name : {"cuLaunchKernel", "cuMemcpyHtoD_v2", "cuStreamQuery", "cuMemcpy"}) {
    for (const char* ending : {"_ptds", "_ptsz"}) {
      const CallFacts facts = facts_of(std::string(name) + ending);
      EXPECT_EQ(facts.function, facts_of(name).function) << name;
      EXPECT_EQ(facts.rule, facts_of(name).rule) << name;
    }
  }
}

// The driver of another version may number others than are known.
TEST(FunctionTable, is_read_by_number_where_the_name_is_that_of_the_number) {
  const auto names = function_names();
  ASSERT_EQ(names.size(), 807U);
  EXPECT_EQ(names[0], "");
  EXPECT_EQ(names[1], "cuInit");
  EXPECT_EQ(names[806], "cuDriverGetGpuCodeIsaVersion");
  for (std::uint32_t number = 1; number < names.size(); ++number) {
    for (const std::uint32_t shown : {number, number + 1, 807U, ~0U}) {
      EXPECT_EQ(facts_of(names[number], shown).function, facts_of(names[number]).function);
      EXPECT_EQ(facts_of(names[number], shown).rule, facts_of(names[number]).rule);
    }
    EXPECT_EQ(facts_of(number).rule, facts_of(names[number]).rule) << number;
  }
  EXPECT_EQ(facts_of(807U).rule, Rule::unknown);
}

std::set<std::string> names_of(const std::vector<int>& numbers) {
  std::set<std::string> names;
  for (const int number : numbers) {
    names.emplace(without_version(function_names()[static_cast<std::size_t>(number)]));
  }
  return names;
}

TEST(FunctionTable, numbers_the_functions_that_do_one_of_these_things) {
  using Names = std::set<std::string>;
  EXPECT_EQ(names_of(numbers_of_functions(does::launches)),
            (Names{"cuLaunchKernel", "cuLaunchCooperativeKernel", "cuLaunchKernelEx"}));
  EXPECT_EQ(names_of(numbers_of_functions(does::launches_graph | does::ends_graph)),
            (Names{"cuGraphLaunch", "cuGraphExecDestroy"}));
  EXPECT_EQ(names_of(numbers_of_functions(does::ends_stream)), Names{"cuStreamDestroy"});
  EXPECT_EQ(names_of(numbers_of_functions(does::makes_context)),
            (Names{"cuDevicePrimaryCtxRetain", "cuCtxCreate", "cuCtxFromGreenCtx"}));
  EXPECT_EQ(names_of(numbers_of_functions(does::ends_context)), Names{"cuCtxDestroy"});
  EXPECT_EQ(names_of(numbers_of_functions(does::gives_tables)), Names{"cuGetExportTable"});
  EXPECT_EQ(names_of(numbers_of_functions(does::pins_host_memory)),
            (Names{"cuMemHostAlloc", "cuMemAllocHost", "cuMemHostRegister"}));
  EXPECT_EQ(names_of(numbers_of_functions(does::loads_image)),
            (Names{"cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleLoadFatBinary",
                   "cuLibraryLoadData"}));
  EXPECT_EQ(names_of(numbers_of_functions(does::loads_file)),
            (Names{"cuModuleLoad", "cuLibraryLoadFromFile"}));
  EXPECT_EQ(names_of(numbers_of_functions(does::begins_capture)),
            (Names{"cuStreamBeginCapture", "cuStreamBeginCaptureToGraph"}));
  EXPECT_EQ(
      names_of(numbers_of_functions(does::may_cooperate)),
      (Names{"cuLaunchCooperativeKernel", "cuLaunchCooperativeKernelMultiDevice",
             "cuLaunchKernelEx", "cuGraphKernelNodeSetAttribute", "cuGraphKernelNodeCopyAttributes",
             "cuGraphKernelNodeSetParams", "cuGraphExecKernelNodeSetParams", "cuGraphNodeSetParams",
             "cuGraphExecNodeSetParams"}));
  EXPECT_TRUE(numbers_of_functions(does::nothing).empty());
}

template <class... Calls>
std::multiset<DriverFunction> answered_by() {
  std::multiset<DriverFunction> functions;
  const auto add = [&](const auto& rows) {
    EXPECT_FALSE(rows.empty());
    for (const auto& row : rows) functions.insert(row.function);
  };
  (add(Calls::rows()), ...);
  return functions;
}

TEST(FunctionTable, names_what_is_answered_and_one_room_answers_it) {
  const auto answered = answered_by<MemoryCalls, CopyCalls, ModuleCalls, GraphCalls, NodeCalls,
                                    LinkCalls, MappingCalls, IpcCalls>();
  std::size_t rows = 0;
  for (const FunctionRow& row : function_rows()) {
    const bool wanted = row.facts.rule == Rule::answered;
    if (wanted) ++rows;
    EXPECT_EQ(row.facts.function == DriverFunction::listed ? std::size_t{0}
                                                           : answered.count(row.facts.function),
              wanted ? 1U : 0U)
        << row.name;
  }
  EXPECT_EQ(answered.size(), rows);
}

TEST(FunctionTable, refuses_what_gives_memory_or_code_that_has_no_colour) {
  for (const auto& [name, reason] :
       {std::pair{"cuArrayCreate", "textures and arrays"},
        std::pair{"cuTexRefSetAddress", "textures and arrays"},
        std::pair{"cuMemAllocManaged", "managed memory"},
        std::pair{"cuMemRetainAllocationHandle", "mapping memory"},
        std::pair{"cuMulticastBindMem", "mapping memory"},
        std::pair{"cuMemExportToShareableHandle", "only by cuIpcGetMemHandle"},
        std::pair{"cuMemPoolImportPointer", "only by cuIpcGetMemHandle"},
        std::pair{"cuCtxEnablePeerAccess", "for one card"},
        std::pair{"cuImportExternalMemory", "other interfaces"},
        std::pair{"cuGraphicsMapResources", "memory of graphics"},
        std::pair{"cuGraphAddMemAllocNode", "that a graph allocates"},
        std::pair{"cuGraphNodeSetParams", "this kind of node"},
        std::pair{"cuStreamWriteValue32", "streams wait for"},
        std::pair{"cuTensorMapEncodeTiled", "tensor maps"},
        std::pair{"cuMemcpyBatchAsync", "batches"}, std::pair{"cuLaunchGrid", "not watched"},
        std::pair{"cuCheckpointProcessLock", "checkpoints"}}) {
    EXPECT_TRUE(is_refused(facts_of(name).rule)) << name;
    EXPECT_THAT(why(name), HasSubstr(reason)) << name;
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

ListedRefusals listed_in(const std::string& text, const std::string& why) {
  ListedRefusals listed;
  const std::size_t row = text.find("\n| " + why + " | ");
  if (row == std::string::npos) return listed;
  const std::string line = text.substr(row + 1, text.find('\n', row + 1) - row - 1);
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

TEST(FunctionTable, is_listed_in_the_page_of_the_server_as_it_is) {
  const std::string text = read_file(test::source_dir() / "docs" / "serve.md").value();
  std::map<Rule, ListedRefusals> listed;
  for (const FunctionRow& row : function_rows()) {
    const Rule rule = row.facts.rule;
    if (is_refused(rule)) listed.emplace(rule, listed_in(text, why_refused(rule)));
  }
  for (const FunctionRow& row : function_rows()) {
    const std::string_view name = without_version(row.name);
    for (const auto& [rule, refusals] : listed) {
      EXPECT_EQ(refusals.have(name), rule == row.facts.rule) << name << ": " << why_refused(rule);
    }
  }
  for (const auto& [rule, refusals] : listed) {
    for (const std::string& name : refusals.names) {
      EXPECT_EQ(facts_of(name).rule, rule) << name << " is listed";
    }
    for (const std::string& begin : refusals.beginnings) {
      EXPECT_TRUE(std::ranges::any_of(function_rows(),
                                      [&, of = rule](const FunctionRow& row) {
                                        return row.facts.rule == of && row.name.starts_with(begin);
                                      }))
          << begin << " is listed";
    }
  }
}

}  // namespace
}  // namespace demarc::cuda
