// Looks mnemonics up in the table of forms.
#include "demarc/ptx/forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace demarc::ptx {
namespace {

struct NamedSet {
  std::string_view name;
  std::string_view words;
};
constexpr NamedSet named_sets[] = {
    {"int", "u16|u32|u64|s16|s32|s64"},
    {"int8", "u8|u16|u32|u64|s8|s16|s32|s64"},
    {"int32", "u32|u64|s32|s64"},
    {"bits", "b16|b32|b64"},
    {"rnd", "rn|rz|rm|rp"},
    {"irnd", "rni|rzi|rmi|rpi"},
    {"bool", "and|or|xor"},
    {"order", "lt|le|gt|ge"},
    {"unordered", "equ|neu|ltu|leu|gtu|geu|num|nan"},
    {"shared", "shared|shared::cta|shared::cluster"},
    {"scope", "cta|cluster|gpu|sys"},
    {"loads", "ca|cg|cs|lu|cv"},
    {"stores", "wb|cg|cs|wt"},
    {"L1", "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"},
    {"L2evict", "L2::evict_normal|L2::evict_first|L2::evict_last"},
    {"L2load", "L2::64B|L2::128B|L2::256B"},
    {"vsix", "u32|s32"},
};

// One place of a form: one of these words, or none where it may be left out.
struct Slot {
  std::set<std::string_view> words;
  bool may_be_missing = false;
};

struct Form {
  int part = 0;
  std::vector<Slot> types;
  std::vector<Slot> modifiers;
  std::uint32_t version = 0;
  int target = 0;          // negative: below that target, or before version 6.4
  bool takes_any = false;  // modifiers are not judged
};

// The pieces of `text` between `separator`.
std::vector<std::string_view> pieces(std::string_view text, char separator) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) found.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

std::vector<Slot> slots_of(std::string_view text) {
  std::vector<Slot> slots;
  for (std::string_view piece : pieces(text, ' ')) {
    Slot slot;
    slot.may_be_missing = piece.ends_with('?');
    if (slot.may_be_missing) piece.remove_suffix(1);
    for (const std::string_view word : pieces(piece, '|')) {
      const auto* const set =
          std::find_if(std::begin(named_sets), std::end(named_sets),
                       [&](const NamedSet& one) { return word.substr(1) == one.name; });
      if (word[0] != '$') {
        slot.words.insert(word);
      } else if (set != std::end(named_sets)) {
        for (const std::string_view one : pieces(set->words, '|')) slot.words.insert(one);
      }
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

const std::map<std::string_view, std::vector<Form>>& all_forms() {
  static const auto forms = [] {
    std::map<std::string_view, std::vector<Form>> made;
#define DEMARC_PTX_FORM(opcode, part, types, modifiers, version, target)               \
  made[opcode].push_back({part, slots_of(types), slots_of(modifiers), version, target, \
                          std::string_view(modifiers) == "any"});
#include "demarc/ptx/forms.def"
#undef DEMARC_PTX_FORM
    return made;
  }();
  return forms;
}

// Whether each word has a place of its own, and each place that needs a word has one.
bool fills(const std::vector<Slot>& slots, const std::vector<std::string_view>& words,
           std::size_t next, std::uint64_t taken) {
  if (next == words.size()) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (!slots[i].may_be_missing && (taken >> i & 1U) == 0) return false;
    }
    return true;
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if ((taken >> i & 1U) != 0 || !slots[i].words.contains(words[next])) continue;
    if (fills(slots, words, next + 1, taken | std::uint64_t{1} << i)) return true;
  }
  return false;
}

bool has_types(const Form& form, const std::vector<std::string_view>& types) {
  if (form.types.size() != types.size()) return false;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!form.types[i].words.contains(types[i])) return false;
  }
  return true;
}

bool allows(const FormLimits& limits, const Form& form) {
  if (form.target < 0) {
    return limits.version < 64 ||
           (limits.target != 0 && limits.target < static_cast<std::uint32_t>(-form.target));
  }
  return limits.version >= form.version &&
         (limits.target == 0 || limits.target >= static_cast<std::uint32_t>(form.target));
}

// Types and other modifiers of a mnemonic apart, without those that belong to the opcode's name.
struct Words {
  std::vector<std::string_view> types;
  std::vector<std::string_view> modifiers;
};

// The longest name with rows that the mnemonic begins with, and the words behind it.
const std::vector<Form>* find_forms(const Mnemonic& mnemonic, Words& words) {
  const auto& forms = all_forms();
  std::string name(info(mnemonic.opcode).name);
  auto found = forms.find(name);
  std::size_t behind = 0;
  for (std::size_t i = 0; i < mnemonic.modifiers.size(); ++i) {
    name += fmt::format(".{}", mnemonic.modifiers[i].text);
    const auto longer = forms.find(name);
    if (longer == forms.end()) continue;
    found = longer;
    behind = i + 1;
  }
  if (found == forms.end()) {
    // "mul24" by itself, of which only "mul24.lo" and "mul24.hi" have rows.
    static const std::vector<Form> none;
    const std::string stem = fmt::format("{}.", info(mnemonic.opcode).name);
    const auto longer = forms.lower_bound(stem);
    return longer != forms.end() && longer->first.starts_with(stem) &&
                   find_opcode(longer->first).opcode == mnemonic.opcode
               ? &none
               : nullptr;
  }
  for (std::size_t i = behind; i < mnemonic.modifiers.size(); ++i) {
    const ModifierUse& use = mnemonic.modifiers[i];
    (type_of(use.id) != Type::none ? words.types : words.modifiers).push_back(use.text);
  }
  return &found->second;
}

// The modifiers that rows of that part name.
std::vector<std::string_view> judged_by(const std::vector<Form>& forms, int part,
                                        const std::vector<std::string_view>& modifiers) {
  std::vector<std::string_view> judged;
  for (const std::string_view word : modifiers) {
    const bool is_named = std::any_of(forms.begin(), forms.end(), [&](const Form& form) {
      return form.part == part &&
             std::any_of(form.modifiers.begin(), form.modifiers.end(),
                         [&](const Slot& slot) { return slot.words.contains(word); });
    });
    if (is_named) judged.push_back(word);
  }
  return judged;
}

}  // namespace

std::string why_no_form(const Mnemonic& mnemonic, const FormLimits& limits) {
  Words words;
  const std::vector<Form>* forms = find_forms(mnemonic, words);
  if (forms == nullptr || !mnemonic.understood) return {};
  std::string none = fmt::format("'{}' takes no such types and modifiers together (PTX ISA {})",
                                 info(mnemonic.opcode).name, info(mnemonic.opcode).section);
  if (forms->empty()) return none;
  std::size_t judged_words = 0;
  for (int part = 0; part <= forms->back().part; ++part) {
    const auto judged = judged_by(*forms, part, words.modifiers);
    judged_words += judged.size();
    const Form* newer = nullptr;
    bool is_form = false;
    for (const Form& form : *forms) {
      if (form.part != part || (part == 0 && !has_types(form, words.types)) ||
          (!form.takes_any && !fills(form.modifiers, judged, 0, 0))) {
        continue;
      }
      is_form = is_form || allows(limits, form);
      newer = &form;
    }
    if (is_form) continue;
    if (newer == nullptr) return none;
    if (newer->target < 0) {
      return fmt::format("from PTX 6.4 and sm_{} on '{}' needs '.sync'", -newer->target,
                         info(mnemonic.opcode).name);
    }
    return fmt::format("this form of '{}' needs PTX {}.{} and sm_{} or later",
                       info(mnemonic.opcode).name, newer->version / 10, newer->version % 10,
                       newer->target);
  }
  return judged_words == words.modifiers.size() || forms->front().takes_any ? std::string() : none;
}

}  // namespace demarc::ptx
