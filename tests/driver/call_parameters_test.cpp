// The parameters of the driver's functions lie where CUDA's own header has them: the kept facts
// come from CUDA 13.0, and every header on this machine must say the same.
#include "demarc/driver/call_parameters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "demarc/base/files.hpp"
#include "kept.hpp"
#include "not_run.hpp"

namespace demarc::cuda {
namespace {

struct PlacedMember {
  std::size_t offset = 0, bytes = 0;
  bool operator==(const PlacedMember&) const = default;
};
using PlacedMembers = std::vector<PlacedMember>;
using FunctionsWithParameters = std::map<std::string, PlacedMembers>;

struct AnyMember {
  template <class T>
  operator T() const;  // NOLINT: stands for a value of each type
};

template <class T, std::size_t... Each>
constexpr bool has_members(std::index_sequence<Each...>) {
  return requires {
    T{(static_cast<void>(Each), AnyMember{})...};
  };
}

template <class T, std::size_t Count = 11>
constexpr std::size_t count_members() {
  if constexpr (has_members<T>(std::make_index_sequence<Count>())) {
    return Count;
  } else {
    return count_members<T, Count - 1>();
  }
}

template <class T>
PlacedMembers members_of() {
  const T value{};
  const auto place = [&](const auto&... member) {
    const auto* begin = reinterpret_cast<const char*>(&value);
    return PlacedMembers{
        PlacedMember{static_cast<std::size_t>(reinterpret_cast<const char*>(&member) - begin),
                     sizeof member}...};
  };
  constexpr std::size_t count = count_members<T>();
  static_assert(count >= 1 && count <= 11);
  // clang-format off
  if constexpr (count == 1) { const auto& [a] = value; return place(a); }
  if constexpr (count == 2) { const auto& [a, b] = value; return place(a, b); }
  if constexpr (count == 3) { const auto& [a, b, c] = value; return place(a, b, c); }
  if constexpr (count == 4) { const auto& [a, b, c, d] = value; return place(a, b, c, d); }
  if constexpr (count == 5) { const auto& [a, b, c, d, e] = value; return place(a, b, c, d, e); }
  if constexpr (count == 6) { const auto& [a, b, c, d, e, f] = value; return place(a, b, c, d, e, f); }
  if constexpr (count == 7) { const auto& [a, b, c, d, e, f, g] = value; return place(a, b, c, d, e, f, g); }
  if constexpr (count == 8) { const auto& [a, b, c, d, e, f, g, h] = value; return place(a, b, c, d, e, f, g, h); }
  if constexpr (count == 9) { const auto& [a, b, c, d, e, f, g, h, i] = value; return place(a, b, c, d, e, f, g, h, i); }
  if constexpr (count == 10) { const auto& [a, b, c, d, e, f, g, h, i, j] = value; return place(a, b, c, d, e, f, g, h, i, j); }
  if constexpr (count == 11) { const auto& [a, b, c, d, e, f, g, h, i, j, k] = value; return place(a, b, c, d, e, f, g, h, i, j, k); }
  // clang-format on
}

template <class Parameters>
void add_struct(FunctionsWithParameters& all, const char* function) {
  if constexpr (!std::is_same_v<Parameters, Unread>) {
    if constexpr (std::is_empty_v<Parameters>) {
      all[function];
    } else {
      all[function] = members_of<Parameters>();
    }
  }
}

FunctionsWithParameters structs_of_the_table() {
  FunctionsWithParameters all;
#define DEMARC_CALL(function, rule, does, Parameters) add_struct<Parameters>(all, #function);
#include "demarc/driver/functions.def"
  return all;
}

// A line per function: "cuMemAlloc_v2 0:8 8:8".
std::string text_of(const FunctionsWithParameters& functions) {
  std::string text;
  for (const auto& [name, members] : functions) {
    text += name;
    for (const PlacedMember& one : members) text += fmt::format(" {}:{}", one.offset, one.bytes);
    text += '\n';
  }
  return text;
}

FunctionsWithParameters kept_functions() {
  FunctionsWithParameters kept;
  std::istringstream lines(
      read_file(test::source_dir() / "tests/driver/golden/call_parameters.txt").value());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    auto& members = kept[name];
    for (PlacedMember one; words >> one.offset && words.get() == ':' && words >> one.bytes;) {
      members.push_back(one);
    }
  }
  return kept;
}

// The bytes of a member that the header declares so; 0 if its type is not known.
std::size_t bytes_of_declared(const std::string& declaration) {
  static const std::map<std::string, std::size_t> sizes = {{"CUdeviceptr", 8},
                                                           {"size_t", 8},
                                                           {"unsigned long long", 8},
                                                           {"CUmemGenericAllocationHandle", 8},
                                                           {"CUcontext", 8},
                                                           {"CUstream", 8},
                                                           {"CUmodule", 8},
                                                           {"CUlibrary", 8},
                                                           {"CUfunction", 8},
                                                           {"CUkernel", 8},
                                                           {"CUlinkState", 8},
                                                           {"CUgraph", 8},
                                                           {"CUgraphExec", 8},
                                                           {"CUgraphNode", 8},
                                                           {"CUmemoryPool", 8},
                                                           {"CUipcMemHandle", 64},
                                                           {"unsigned int", 4},
                                                           {"int", 4},
                                                           {"CUlimit", 4},
                                                           {"CUpointer_attribute", 4},
                                                           {"CUdevice_attribute", 4},
                                                           {"CUdevice", 4},
                                                           {"CUjitInputType", 4},
                                                           {"CUmemAllocationType", 4},
                                                           {"CUkernelNodeAttrID", 4},
                                                           {"unsigned short", 2},
                                                           {"unsigned char", 1}};
  if (declaration.find('*') != std::string::npos) return 8;
  const auto found = sizes.find(declaration.substr(0, declaration.rfind(' ')));
  return found == sizes.end() ? 0 : found->second;
}

// Those of the functions that `wanted` names; the header lacks what is not there.
FunctionsWithParameters read_header(const std::filesystem::path& path,
                                    const FunctionsWithParameters& wanted) {
  const std::string header = read_file(path).value();
  static const std::regex whole(R"(typedef struct (\w+)_params_st \{([^}]*)\})");
  static const std::regex member(R"(\s*([^;]+);)");
  FunctionsWithParameters functions;
  for (std::sregex_iterator one(header.begin(), header.end(), whole), end; one != end; ++one) {
    const std::string name = (*one)[1];
    if (!wanted.contains(name)) continue;
    const std::string body = (*one)[2];
    auto& members = functions[name];
    std::size_t offset = 0;
    for (std::sregex_iterator next(body.begin(), body.end(), member); next != end; ++next) {
      const std::size_t bytes = bytes_of_declared((*next)[1]);
      EXPECT_NE(bytes, 0U) << name << ": " << (*next)[1];
      if (bytes == 0) break;
      const std::size_t alignment = std::min<std::size_t>(bytes, 8);
      offset = (offset + alignment - 1) / alignment * alignment;
      members.push_back({offset, bytes});
      offset += bytes;
    }
  }
  return functions;
}

TEST(CallParameters, lie_where_the_kept_facts_have_them) {
  const auto kept = kept_functions();
  const auto structs = structs_of_the_table();
  ASSERT_EQ(structs.size(), 118U);
  for (const auto& [name, members] : structs) {
    const auto found = kept.find(name);
    ASSERT_NE(found, kept.end()) << name;
    PlacedMembers first = found->second;
    ASSERT_LE(members.size(), first.size()) << name << " has fewer";
    first.resize(members.size());
    EXPECT_EQ(text_of({{name, members}}), text_of({{name, first}}));
    EXPECT_EQ(members.empty(), found->second.empty()) << name << " takes some";
  }
  for (const auto& [name, members] : kept) EXPECT_TRUE(structs.contains(name)) << name;
}

TEST(CallParameters, are_kept_as_every_header_of_cuda_on_this_machine_has_them) {
  const auto structs = structs_of_the_table();
  std::vector<std::filesystem::path> headers;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/local")) {
    const auto header = entry.path() / "include/generated_cuda_meta.h";
    if (entry.path().filename().string().starts_with("cuda") && std::filesystem::exists(header)) {
      headers.push_back(header);
    }
  }
  if (headers.empty()) DEMARC_NOT_RUN("no headers of CUDA");
  const auto kept = kept_functions();
  for (const auto& header : headers) {
    const auto functions = read_header(header, structs);
    EXPECT_GE(functions.size(), 100U) << header;
    for (const auto& [name, members] : functions) {
      const auto found = kept.find(name);
      ASSERT_NE(found, kept.end()) << name;
      EXPECT_EQ(text_of({{name, members}}), text_of({{name, found->second}})) << header;
    }
  }
}

}  // namespace
}  // namespace demarc::cuda
