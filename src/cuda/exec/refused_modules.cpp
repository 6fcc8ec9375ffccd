// The functions that load code, one row each. Layouts are those of CUDA's own header. A program
// also loads by them what it has linked.
#include "exec/refused_modules.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "demarc/fatbin/device_runtime.hpp"
#include "demarc/fatbin/files.hpp"
#include "demarc/fatbin/managed.hpp"

namespace demarc::cuda {
namespace {

using Names = Result<std::vector<std::string>>;
using NamesIn = Names (*)(const fatbin::Image& image, std::string_view name);

// Of both the second argument says what is loaded. Null: the driver refuses it itself.
Names of_image(const DriverCall& call, NamesIn names_in) {
  const auto* address = call.argument<const void*>(8);
  if (address == nullptr) return {};
  DEMARC_TRY(const auto image, fatbin::image_at(address, "the module"));
  return names_in(image, "the module");
}

Names of_file(const DriverCall& call, NamesIn names_in) {
  const auto* path = call.argument<const char*>(8);
  if (path == nullptr) return {};
  DEMARC_TRY(const auto file, fatbin::read_images(path));
  std::vector<std::string> names;
  for (const auto& one : file.images) {
    DEMARC_TRY(const auto found, names_in(one.image, one.where));
    names.insert(names.end(), found.begin(), found.end());
  }
  return names;
}

constexpr std::string_view loader_names[] = {"cuModuleLoadData",      "cuModuleLoadDataEx",
                                             "cuModuleLoadFatBinary", "cuLibraryLoadData",
                                             "cuModuleLoad",          "cuLibraryLoadFromFile"};

struct Loader {
  std::string_view name;  // DriverCall::base_name()
  Names (*names)(const DriverCall& call, NamesIn names_in);
};

constexpr Loader loaders[] = {{loader_names[0], of_image}, {loader_names[1], of_image},
                              {loader_names[2], of_image}, {loader_names[3], of_image},
                              {loader_names[4], of_file},  {loader_names[5], of_file}};

// Nothing: the call loads nothing, or nothing with such names; else what they are, or why that
// cannot be told.
std::optional<std::string> loaded_names(const DriverCall& call, NamesIn names_in,
                                        const char* what) {
  const auto* row = std::find_if(std::begin(loaders), std::end(loaders), [&](const Loader& known) {
    return known.name == call.base_name();
  });
  if (row == std::end(loaders)) return std::nullopt;
  const auto names = row->names(call, names_in);
  if (!names) return names.error().message;
  if (names->empty()) return std::nullopt;
  return fmt::format("{}: {}", what, fmt::join(*names, ", "));
}

}  // namespace

std::optional<std::string> refused_module(const DriverCall& call) {
  return loaded_names(
      call,
      [](const fatbin::Image& image, std::string_view name) {
        return fatbin::managed_variables(image, name);
      },
      "it has managed variables");
}

std::span<const std::string_view> loading_functions() {
  return loader_names;
}

std::optional<std::string> launching_module(const DriverCall& call) {
  return loaded_names(
      call, &fatbin::device_runtime_functions,
      "its kernels may launch kernels, which would run outside of the partition; it calls");
}

}  // namespace demarc::cuda
