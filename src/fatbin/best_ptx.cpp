// Chooses the PTX that a card can compile.
#include "demarc/fatbin/best_ptx.hpp"

#include <algorithm>
#include <set>

#include "demarc/base/text.hpp"
#include "elf.hpp"
#include "ptx_text.hpp"

namespace demarc::fatbin {
namespace {

// "PTX for sm_90a, machine code for sm_75, sm_80"
std::string what_there_is(std::span<const Entry> entries) {
  std::set<std::string> kinds;
  for (const Entry& entry : entries) kinds.insert(kind_name(entry));
  std::vector<std::string> parts;
  for (const std::string& kind : kinds) {
    std::set<Target> targets;
    for (const Entry& entry : entries) {
      if (kind_name(entry) == kind) targets.insert(entry.target);
    }
    std::vector<std::string> names;
    names.reserve(targets.size());
    for (const Target& target : targets) names.push_back(fatbin::name(target));
    parts.push_back(fmt::format("{} for {}", kind, joined(names, ", ")));
  }
  return parts.empty() ? "nothing" : joined(parts, "; ");
}

tl::unexpected<Error> no_ptx(std::uint32_t sm, std::string_view there_is, std::string_view name) {
  return missing_capability("{}: has no PTX that sm_{} can run; there is {}", name, sm, there_is);
}

}  // namespace

Result<PtxCode> best_ptx(std::span<const Entry> entries, std::uint32_t sm, std::string_view name) {
  const Entry* best = nullptr;
  for (const Entry& entry : entries) {
    if (entry.kind != EntryKind::ptx || !runs_ptx(sm, entry.target)) continue;
    if (best != nullptr && best->target == entry.target) {
      return invalid_input("{} and {} are both PTX for {}: it is not known which one is meant",
                           best->where, entry.where, fatbin::name(entry.target));
    }
    if (best == nullptr || best->target < entry.target) best = &entry;
  }
  if (best == nullptr) return no_ptx(sm, what_there_is(entries), name);
  PtxCode code;
  code.target = best->target;
  code.options = best->options;
  DEMARC_TRY(code.text, content_of(*best));
  DEMARC_TRY(const Target stated, stated_target(code.text, best->where));
  if (stated != best->target) {
    return invalid_input("{}: is PTX for {}, but its text says {}", best->where,
                         fatbin::name(best->target), fatbin::name(stated));
  }
  return code;
}

Result<PtxCode> best_ptx(const Image& image, std::uint32_t sm, std::string_view name) {
  if (image.kind == ImageKind::fat_binary) {
    DEMARC_TRY(const std::vector<Entry> entries, read_entries(image.bytes, name));
    if (image.prelinked.empty()) return best_ptx(entries, sm, name);
    if (image.prelinked.size() == 1) {
      DEMARC_TRY(const std::vector<Entry> whole, read_entries(image.prelinked.front(), name));
      return best_ptx(whole, sm, name);
    }
    return missing_capability(
        "{}: was linked from {} fat binaries (nvcc -rdc=true); Demarc cannot link the PTX of such "
        "programs again",
        name, image.prelinked.size());
  }
  if (image.kind == ImageKind::cubin) {
    DEMARC_TRY(const Elf elf, Elf::read(image.bytes, name));
    DEMARC_TRY(const std::uint32_t code_sm, sm_of(elf, name));
    return no_ptx(sm, fmt::format("machine code for sm_{}", code_sm), name);
  }
  DEMARC_TRY(const Target target, stated_target(image.bytes, name));
  if (!runs_ptx(sm, target)) return no_ptx(sm, "PTX for " + fatbin::name(target), name);
  return PtxCode{.target = target, .options = {}, .text = std::string(image.bytes)};
}

}  // namespace demarc::fatbin
