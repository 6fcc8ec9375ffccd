// Sorts the images of a file by what a card can do with them.
#include "demarc/fatbin/card_code.hpp"

#include <algorithm>

#include "demarc/fatbin/best_ptx.hpp"
#include "demarc/fatbin/entry.hpp"
#include "formats.hpp"
#include "listed.hpp"
#include "symbols.hpp"

namespace demarc::fatbin {
namespace {

bool is_ptx_for(const Entry& entry, std::uint32_t sm) {
  return entry.kind == EntryKind::ptx && runs_ptx(sm, entry.target);
}

bool is_machine_code_for(const Entry& entry, std::uint32_t sm) {
  return entry.kind == EntryKind::cubin && runs_machine_code(sm, entry.target);
}

// Names of the kernels of all machine code that the card runs.
Result<CardCode> machine_code_of(const std::vector<Entry>& entries, std::uint32_t sm) {
  std::set<std::string> names;
  for (const Entry& entry : entries) {
    if (!is_machine_code_for(entry, sm)) continue;
    DEMARC_TRY(const std::string content, content_of(entry));
    DEMARC_CHECK(add_symbols_with(SymbolBit::kernel, content, entry.where, names));
  }
  CardCode found;
  found.kind = names.empty() ? CardCodeKind::none : CardCodeKind::machine_code;
  found.kernels.assign(names.begin(), names.end());
  return found;
}

}  // namespace

Result<CardCode> card_code(const FileImage& image, std::uint32_t sm) {
  DEMARC_TRY(const std::vector<Entry> entries, entries_of(image));
  const auto any = [&entries](const auto& condition) {
    return std::any_of(entries.begin(), entries.end(), condition);
  };
  CardCode found;
  if (any([sm](const Entry& entry) { return is_ptx_for(entry, sm); })) {
    DEMARC_TRY(PtxCode code, best_ptx(entries, sm, image.where));
    found.kind = CardCodeKind::ptx;
    found.ptx = std::move(code.text);
    return found;
  }
  if (any([sm](const Entry& entry) { return is_machine_code_for(entry, sm); })) {
    return machine_code_of(entries, sm);
  }
  if (any([](const Entry& entry) { return entry.kind == EntryKind::unknown; })) {
    found.kind = CardCodeKind::unknown;
  } else if (any([](const Entry& entry) { return entry.kind == EntryKind::lto; })) {
    found.kind = CardCodeKind::for_linking;
  } else if (!entries.empty()) {
    found.kind = CardCodeKind::other_cards;
  }
  return found;
}

Result<std::vector<CardCode>> card_codes(const std::vector<FileImage>& images, std::uint32_t sm) {
  std::vector<CardCode> loaded;
  std::vector<CardCode> linked_from;
  for (const FileImage& image : images) {
    DEMARC_TRY(CardCode code, card_code(image, sm));
    (image.section == linked_section ? linked_from : loaded).push_back(std::move(code));
  }
  if (linked_from.size() != 1 || linked_from.front().kind != CardCodeKind::ptx) return loaded;
  const auto is_linked = [](const CardCode& code) {
    return code.kind == CardCodeKind::machine_code;
  };
  // It is not known which one of several was linked.
  if (std::count_if(loaded.begin(), loaded.end(), is_linked) == 1) {
    *std::find_if(loaded.begin(), loaded.end(), is_linked) = linked_from.front();
  }
  return loaded;
}

}  // namespace demarc::fatbin
