#include "gpu/parse_complete.hpp"

namespace demarc::study {

Result<ptx::Module> parse_complete(const std::string& text, const std::string& name) {
  auto parsed = ptx::parse(text, name);
  if (!parsed.diagnostics.ok()) {
    return invalid_input("{}", ptx::format(parsed.diagnostics.list.front(), name));
  }
  return std::move(parsed.module);
}

}  // namespace demarc::study
