// Looks into the files that are mapped as code.
#include "process/machine_code.hpp"

#include "demarc/base/files.hpp"
#include "demarc/fatbin/files.hpp"
#include "demarc/fatbin/kernels.hpp"
#include "demarc/guest/code_files.hpp"

namespace demarc::cuda {
namespace {

Result<std::optional<std::string>> machine_code_in(const std::string& path, std::uint32_t sm) {
  DEMARC_TRY(const std::string content, read_file(path));
  DEMARC_TRY(const auto images, fatbin::images_of_program(content, path));
  for (const fatbin::FileImage& one : images) {
    DEMARC_TRY(const bool alone, fatbin::is_machine_code_alone(one.image, sm, one.where));
    if (alone) return fmt::format("{}: kernels without PTX that sm_{} can run", one.where, sm);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> machine_code_in_process(std::uint32_t sm) {
  const auto files = code_files_of("thread-self");
  if (!files) return "/proc/thread-self/maps cannot be read, so the libraries are not known";
  for (const std::string& path : *files) {
    if (is_of_the_driver(path)) continue;
    auto found = machine_code_in(path, sm);
    if (!found) return found.error().message;
    if (*found) return std::move(*found);
  }
  return std::nullopt;
}

}  // namespace demarc::cuda
