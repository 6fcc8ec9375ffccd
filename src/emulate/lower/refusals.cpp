// Collects instructions that are not covered, and writes the error about them.
#include "lower/refusals.hpp"

#include <fmt/format.h>

namespace demarc::emulate {

namespace {

constexpr std::size_t max_message_bytes = 2000;  // beyond it "…" stands for the rest

}  // namespace

void Refusals::add(const ptx::Instruction& instruction, std::string_view reason) {
  entries_.push_back(
      {instruction.line, std::string(module_.text_of(instruction)), std::string(reason)});
}

void Refusals::add(const ptx::Function& function, std::string reason) {
  entries_.push_back({function.line, std::string(function.name), std::move(reason)});
}

bool Refusals::fits(const ptx::Variable& variable, const MemoryUse& use) {
  if (use.bytes <= use.most) return true;
  entries_.push_back({variable.line, std::string(variable.name),
                      fmt::format("{} bytes of {} memory; at most {} are possible", use.bytes,
                                  use.memory, use.most)});
  return false;
}

Result<void> Refusals::verdict(std::string_view source) const {
  std::string message;
  for (const Entry& entry : entries_) {
    if (message.size() > max_message_bytes) {
      message += "\n…";
      break;
    }
    message += fmt::format("{}{}:{}: {}: {}", message.empty() ? "" : "\n", source, entry.line,
                           entry.reason, entry.text);
  }
  if (message.empty()) return {};
  return invalid_input("{}", message);
}

}  // namespace demarc::emulate
