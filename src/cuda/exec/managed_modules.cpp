// The functions that load or link code, a row each; layouts as in CUDA's own header.
#include "exec/managed_modules.hpp"

#include <algorithm>
#include <vector>

#include "demarc/fatbin/files.hpp"
#include "demarc/fatbin/managed.hpp"

namespace demarc::cuda {
namespace {

using Names = Result<std::vector<std::string>>;

// An image without a length, as cuModuleLoadData gets it. Null: the driver refuses it itself.
Names of_image(const DriverCall& call) {
  const auto* address = call.argument<const void*>(8);
  if (address == nullptr) return {};
  DEMARC_TRY(const auto image, fatbin::image_at(address, "the module"));
  return fatbin::managed_variables(image, "the module");
}

Names of_file(const char* path) {
  if (path == nullptr) return {};
  DEMARC_TRY(const auto file, fatbin::read_images(path));
  std::vector<std::string> names;
  for (const auto& one : file.images) {
    DEMARC_TRY(const auto found, fatbin::managed_variables(one.image, one.where));
    names.insert(names.end(), found.begin(), found.end());
  }
  return names;
}

// cuLinkAddData: state, kind, data, bytes.
Names of_linked_data(const DriverCall& call) {
  const auto* data = call.argument<const char*>(16);
  if (data == nullptr) return {};
  DEMARC_TRY(const auto image,
             fatbin::image_in({data, call.argument<std::size_t>(24)}, "what is linked"));
  return fatbin::managed_variables(image, "what is linked");
}

struct Row {
  std::string_view name;  // without what tells versions apart
  Names (*names)(const DriverCall& call);
};

constexpr Row rows[] = {
    {"cuModuleLoadData", of_image},
    {"cuModuleLoadDataEx", of_image},
    {"cuModuleLoadFatBinary", of_image},
    {"cuLibraryLoadData", of_image},
    {"cuModuleLoad", [](const DriverCall& call) { return of_file(call.argument<const char*>(8)); }},
    {"cuLibraryLoadFromFile",
     [](const DriverCall& call) { return of_file(call.argument<const char*>(8)); }},
    {"cuLinkAddData", of_linked_data},
    {"cuLinkAddFile",
     [](const DriverCall& call) { return of_file(call.argument<const char*>(16)); }},
};

}  // namespace

std::optional<std::string> refused_module(const DriverCall& call) {
  const std::string_view name = base_name(call);
  const auto* row = std::find_if(std::begin(rows), std::end(rows),
                                 [&](const Row& known) { return known.name == name; });
  if (row == std::end(rows)) return std::nullopt;
  const auto names = row->names(call);
  if (!names) return names.error().message;
  if (names->empty()) return std::nullopt;
  return fmt::format("it has managed variables: {}", fmt::join(*names, ", "));
}

}  // namespace demarc::cuda
