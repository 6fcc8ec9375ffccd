// Places in a kernel's text that passes change.
#pragma once

#include <string>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

struct KernelText {
  std::size_t parameters_end = 0;  // offset of the ')' behind the parameters
  std::size_t body = 0;            // offset behind the body's '{'
  std::size_t body_end = 0;        // offset of its '}'
};

// Errors name the line of the kernel.
[[nodiscard]] Result<KernelText> find_kernel_text(const Module& module, const Function& kernel);

// Replaces every `from` in `text`.
void replace_in(std::string& text, std::string_view from, std::string_view to);

// An instruction `ret` or `exit` made a branch to `label`, its predicate kept.
[[nodiscard]] std::string leave_by_branch(std::string_view written, std::string_view label);

}  // namespace demarc::ptx
