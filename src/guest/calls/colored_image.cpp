// Turns an image that a program gives to the driver into text whose kernels keep to the window.
#include "calls/colored_image.hpp"

#include <algorithm>
#include <iterator>

#include "demarc/fatbin/best_ptx.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/ptx/registers.hpp"
#include "demarc/ptx/timed.hpp"

namespace demarc::cuda {

Result<ColoredImage> ColoredImage::read(const fatbin::Image& image, std::uint32_t target,
                                        const std::string& name, const KernelChanges& changes) {
  DEMARC_TRY(fatbin::PtxCode code, fatbin::best_ptx(image, target, name));
  DEMARC_TRY(ptx::Module module, ptx::parse_whole(std::move(code.text), name));
  if (changes.overlapped) {
    DEMARC_TRY(module, ptx::rewrite_timed(module, {.stamps = false, .overlapped = true}));
  }
  ColoredImage read(std::move(module), changes.printing);
  DEMARC_TRY(const auto needs,
             ptx::find_colored_needs(read.module_, {.printing = changes.printing}));
  for (const ptx::ColoredKernel& kernel : needs.kernels) read.all_.push_back(kernel.name);
  read.refuse(needs.kernels);
  return read;
}

void ColoredImage::refuse(const std::vector<ptx::ColoredKernel>& kernels) {
  for (const ptx::ColoredKernel& kernel : kernels) {
    if (!kernel.accepted()) {
      refused_.emplace(kernel.name, ptx::describe_refusals(kernel, name()));
    }
  }
}

std::vector<std::string> ColoredImage::kernels() const {
  std::vector<std::string> left;
  std::copy_if(all_.begin(), all_.end(), std::back_inserter(left),
               [&](const std::string& kernel) { return !refused_.contains(kernel); });
  return left;
}

Result<std::string> ColoredImage::text(const ColoredCode& code) {
  ptx::ColoredOptions options;
  options.printing = printing_;
  options.places = ptx::PlacesAtLoad{};
  options.kernels = kernels();
  needs_ = {};
  // No kernels would mean all of them.
  if (options.kernels.empty()) {
    return fmt::format(".version {}.{}\n.target {}\n.address_size 64\n", module_.version.major,
                       module_.version.minor, module_.targets.at(0));
  }
  DEMARC_TRY(auto made, code.rewrite(module_, options));
  // Rewriting knows the colours, so it may refuse more. Then what is left is placed without them.
  refuse(made.kernels);
  if (kernels().size() < options.kernels.size()) return text(code);
  DEMARC_TRY(needs_, ptx::find_colored_needs(module_, options));
  for (const auto& [kernel, threads] : with_most_registers_) {
    DEMARC_TRY(made.module, ptx::with_most_registers(std::move(made.module), kernel, threads));
  }
  return *made.module.text;
}

std::vector<KernelParameter> ColoredImage::parameters(const std::string& kernel) const {
  std::vector<KernelParameter> found;
  if (const ptx::Function* function = module_.find_function(kernel)) {
    for (const ptx::Variable& one : function->parameters) {
      found.push_back({one.byte_size(), one.alignment()});
    }
  }
  return found;
}

// As the text limits the threads of a block.
std::optional<std::uint32_t> ColoredImage::max_threads(const std::string& kernel) const {
  const ptx::Function* function = module_.find_function(kernel);
  if (function == nullptr) return std::nullopt;
  for (const char* name : {"reqntid", "maxntid"}) {
    const ptx::PerformanceDirective* directive = function->directive(name);
    if (directive == nullptr) continue;
    std::uint64_t threads = 1;
    for (const std::uint64_t value : directive->values) threads *= value;
    return static_cast<std::uint32_t>(threads);
  }
  return std::nullopt;
}

bool ColoredImage::give_registers(const std::string& kernel) {
  const auto threads = max_threads(kernel);
  return threads && with_most_registers_.emplace(kernel, *threads).second;
}

bool ColoredImage::spills(const std::string& kernel, std::uint32_t bytes, std::uint32_t allowed) {
  if (bytes <= allowed) {
    spilling_[kernel] = bytes;
    return false;
  }
  with_most_registers_.erase(kernel);
  refused_.emplace(kernel, fmt::format("{}: kernel '{}': ptxas keeps {} bytes per thread in local "
                                       "memory, which has no colour",
                                       name(), kernel, bytes));
  return true;
}

}  // namespace demarc::cuda
