// Tells the user, and writes down, what of a program's code is not loaded as it is.
#include "calls/code_notes.hpp"

#include <algorithm>
#include <span>

#include "demarc/base/text.hpp"
#include "demarc/fatbin/kernels.hpp"

namespace demarc::cuda {
namespace {

// "a, b and 3 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t told = 8;
  const std::size_t shown = std::min(names.size(), told);
  const std::string text = joined(std::span(names).first(shown), ", ");
  return names.size() == shown ? text : fmt::format("{} and {} more", text, names.size() - shown);
}

// The end of a line that tells of one kernel of a module. Reasons of the others may differ.
std::string and_more(std::size_t kernels, std::string_view what) {
  if (kernels == 1) return "";
  return fmt::format("; {} more {} of this module {} (--report says which and why)", kernels - 1,
                     kernels == 2 ? "kernel" : "kernels", what);
}

}  // namespace

CuResult CodeNotes::refused(const std::string& name, const std::string& why) const {
  tell_(why);
  record_.counter(Recorded::refused_code, name, why).fetch_add(1);
  return cu_error_no_binary;
}

// By the names of its kernels where machine code is all that there is.
CuResult CodeNotes::refused(const fatbin::Image& image, const Error& error) const {
  const auto kernels = fatbin::machine_code_kernels(image, "a module of the program");
  if (error.kind != ErrorKind::missing_capability || !kernels || kernels->empty()) {
    return refused("a module of the program", error.message);
  }
  for (const std::string& kernel : *kernels) {
    record_.counter(Recorded::refused_kernel, kernel, error.message).fetch_add(1);
  }
  counters_.left_out.fetch_add(kernels->size());
  tell_(fmt::format("{}; kernels: {}", error.message, some_of(*kernels)));
  return cu_error_no_binary;
}

// One line for a module, because a library may have hundreds of such kernels that its program never
// launches.
void CodeNotes::left_out(const ColoredImage& image) const {
  const auto& refused = image.refused();
  for (const auto& [name, why] : refused) {
    record_.counter(Recorded::refused_kernel, name, why).fetch_add(1);
  }
  counters_.left_out.fetch_add(refused.size());
  if (refused.empty()) return;
  tell_(refused.begin()->second + and_more(refused.size(), "not loaded either"));
}

void CodeNotes::spilling(const ColoredImage& image) const {
  const auto& spilling = image.spilling();
  for (const auto& [name, bytes] : spilling) {
    record_.counter(Recorded::spilling_kernel, name, fmt::format("{} bytes per thread", bytes))
        .fetch_add(1);
  }
  if (spilling.empty()) return;
  const auto& [name, bytes] = *spilling.begin();
  tell_(
      fmt::format("{}: kernel '{}': ptxas keeps {} bytes per thread in local memory, which has "
                  "no colour (--allow-spills){}",
                  image.name(), name, bytes, and_more(spilling.size(), "with local memory")));
}

void CodeNotes::calm(const ColoredImage& image, const Spilling& before) const {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : before) names.push_back(name);
  tell_(
      fmt::format("{}: compiled with less optimisation, because some kernels would keep values in "
                  "local memory, which has no colour: {}",
                  image.name(), some_of(names)));
}

}  // namespace demarc::cuda
