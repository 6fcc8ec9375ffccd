// Looks into the code that calls load. A program also loads by them what it has linked.
#include "process/refused_modules.hpp"

#include <fmt/ranges.h>

#include <vector>

#include "demarc/fatbin/device_runtime.hpp"
#include "demarc/fatbin/files.hpp"
#include "demarc/fatbin/managed.hpp"

namespace demarc::cuda {
namespace {

using Names = Result<std::vector<std::string>>;
using NamesIn = Names (*)(const fatbin::Image& image, std::string_view name);

// Null: the driver refuses it itself.
Names of_image(const void* address, NamesIn names_in) {
  if (address == nullptr) return {};
  DEMARC_TRY(const auto image, fatbin::image_at(address, "the module"));
  return names_in(image, "the module");
}

Names of_file(const char* path, NamesIn names_in) {
  if (path == nullptr) return {};
  DEMARC_TRY(const auto file, fatbin::read_images(path));
  std::vector<std::string> names;
  for (const auto& one : file.images) {
    DEMARC_TRY(const auto found, names_in(one.image, one.where));
    names.insert(names.end(), found.begin(), found.end());
  }
  return names;
}

// Nothing: the call loads nothing, or nothing with such names; else what they are, or why that
// cannot be told.
std::optional<std::string> loaded_names(const DriverCall& call, NamesIn names_in,
                                        const char* what) {
  if (!call.does(does::loads_image | does::loads_file)) return std::nullopt;
  // The parameters of all functions that load code begin with these two.
  const auto names = call.does(does::loads_image)
                         ? of_image(call.parameters<LoadCode>().image, names_in)
                         : of_file(call.parameters<LoadFile>().path, names_in);
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

std::optional<std::string> launching_module(const DriverCall& call) {
  return loaded_names(
      call, &fatbin::device_runtime_functions,
      "its kernels may launch kernels, which would run outside of the partition; it calls");
}

}  // namespace demarc::cuda
