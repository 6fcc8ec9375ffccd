// The functions that load code, one row each. Layouts are those of CUDA's own header. A program
// also loads by them what it has linked.
#include "exec/managed_modules.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "demarc/fatbin/files.hpp"
#include "demarc/fatbin/managed.hpp"

namespace demarc::cuda {
namespace {

using Names = Result<std::vector<std::string>>;

// Of both the second argument says what is loaded. Null: the driver refuses it itself.
Names of_image(const DriverCall& call) {
  const auto* address = call.argument<const void*>(8);
  if (address == nullptr) return {};
  DEMARC_TRY(const auto image, fatbin::image_at(address, "the module"));
  return fatbin::managed_variables(image, "the module");
}

Names of_file(const DriverCall& call) {
  const auto* path = call.argument<const char*>(8);
  if (path == nullptr) return {};
  DEMARC_TRY(const auto file, fatbin::read_images(path));
  std::vector<std::string> names;
  for (const auto& one : file.images) {
    DEMARC_TRY(const auto found, fatbin::managed_variables(one.image, one.where));
    names.insert(names.end(), found.begin(), found.end());
  }
  return names;
}

struct Loader {
  std::string_view name;  // DriverCall::base_name()
  Names (*names)(const DriverCall& call);
};

constexpr Loader loaders[] = {
    {"cuModuleLoadData", of_image},      {"cuModuleLoadDataEx", of_image},
    {"cuModuleLoadFatBinary", of_image}, {"cuLibraryLoadData", of_image},
    {"cuModuleLoad", of_file},           {"cuLibraryLoadFromFile", of_file},
};

}  // namespace

std::optional<std::string> refused_module(const DriverCall& call) {
  const auto* row = std::find_if(std::begin(loaders), std::end(loaders), [&](const Loader& known) {
    return known.name == call.base_name();
  });
  if (row == std::end(loaders)) return std::nullopt;
  const auto names = row->names(call);
  if (!names) return names.error().message;
  if (names->empty()) return std::nullopt;
  return fmt::format("it has managed variables: {}", fmt::join(*names, ", "));
}

}  // namespace demarc::cuda
