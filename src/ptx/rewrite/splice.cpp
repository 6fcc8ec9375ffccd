// Replaces pieces of a text.
#include "rewrite/splice.hpp"

#include <algorithm>

#include "demarc/ptx/parser.hpp"

namespace demarc::ptx {

std::string apply_splices(const std::string& text, std::vector<Splice> splices) {
  std::stable_sort(splices.begin(), splices.end(),
                   [](const Splice& a, const Splice& b) { return a.at < b.at; });
  std::string out;
  std::size_t at = 0;
  for (const Splice& splice : splices) {
    out.append(text, at, splice.at - at);
    out += splice.text;
    at = splice.at + splice.length;
  }
  return out.append(text, at);
}

Result<Module> spliced(const Module& module, std::vector<Splice> splices) {
  auto made = parse_whole(apply_splices(*module.text, std::move(splices)), module.source_name);
  if (!made) {
    return invalid_input("{}: what the rewritten text would be is not valid PTX:\n{}",
                         module.source_name, made.error().message);
  }
  return made;
}

}  // namespace demarc::ptx
