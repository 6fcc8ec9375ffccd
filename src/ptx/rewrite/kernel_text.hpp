// Places in a kernel's text that passes change.
#pragma once

#include <string>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"
#include "rewrite/splice.hpp"

namespace demarc::ptx {

struct KernelText {
  std::size_t parameters_end = 0;  // offset of the ')' behind the parameters, or behind the name
  bool has_list = true;            // false: the kernel is written without parentheses
  std::size_t body = 0;            // offset behind the body's '{'
  std::size_t body_end = 0;        // offset of its '}'
};

// Errors name the line of the kernel.
[[nodiscard]] Result<KernelText> find_kernel_text(const Module& module, const Function& kernel);

// `text` declares parameters, which come behind the kernel's own.
[[nodiscard]] Splice added_parameters(const Function& kernel, const KernelText& places,
                                      std::string_view text);

// Replaces every `from` in `text`.
void replace_in(std::string& text, std::string_view from, std::string_view to);

// An instruction `ret` or `exit` made a branch to `label`, its predicate kept.
[[nodiscard]] std::string leave_by_branch(std::string_view written, std::string_view label);

}  // namespace demarc::ptx
