// Code of a program that is to be coloured: its PTX, which kernels of it can be, and what was found
// against the others.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calls/kernel_arguments.hpp"
#include "demarc/fatbin/image.hpp"
#include "demarc/guest/colored_code.hpp"

namespace demarc::cuda {

// What kernels do otherwise than their text says.
struct KernelChanges {
  ptx::ColoredPrinting printing = ptx::ColoredPrinting::refused;
  // They are launched before the one in front of them in their stream has ended, and wait
  // themselves.
  bool overlapped = false;
};

class ColoredImage {
 public:
  // `target`: 90 for compute capability 9.0. Errors: there is no PTX for it, or it cannot be read.
  static Result<ColoredImage> read(const fatbin::Image& image, std::uint32_t target,
                                   const std::string& name, const KernelChanges& changes);

  // The text with the kernels that are left, for places that are known when it is loaded.
  [[nodiscard]] Result<std::string> text(const ColoredCode& code);
  // Kernels that are left.
  [[nodiscard]] std::vector<std::string> kernels() const;
  // Those that are not left, and why.
  [[nodiscard]] const std::map<std::string, std::string>& refused() const { return refused_; }
  // For a kernel of which ptxas keeps values in local memory: more registers, where its text limits
  // them. True: the text is another one.
  bool give_registers(const std::string& kernel);
  // It keeps so many bytes per thread there all the same: the kernel is refused, unless that many
  // are allowed. True: the text is another one.
  bool spills(const std::string& kernel, std::uint32_t bytes, std::uint32_t allowed);
  // Kernels that are left although they do, and with how many bytes per thread.
  [[nodiscard]] const std::map<std::string, std::uint32_t>& spilling() const { return spilling_; }

  [[nodiscard]] std::vector<KernelParameter> parameters(const std::string& kernel) const;

  // For the last text().
  [[nodiscard]] const ptx::ColoredNeeds& needs() const { return needs_; }
  [[nodiscard]] const std::string& name() const { return module_.source_name; }

 private:
  ColoredImage(ptx::Module module, ptx::ColoredPrinting printing)
      : module_(std::move(module)), printing_(printing) {}
  [[nodiscard]] std::optional<std::uint32_t> max_threads(const std::string& kernel) const;
  void refuse(const std::vector<ptx::ColoredKernel>& kernels);

  ptx::Module module_;
  ptx::ColoredPrinting printing_;
  std::vector<std::string> all_;
  ptx::ColoredNeeds needs_;
  std::map<std::string, std::string> refused_;
  std::map<std::string, std::uint32_t> spilling_;
  std::map<std::string, std::uint32_t> with_most_registers_;  // with the threads of a block
};

}  // namespace demarc::cuda
