// Names as small numbers, and what they mean in the scope being read.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "demarc/base/hash.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

inline std::uint64_t load_bytes(const char* p, std::size_t count) {
  std::uint64_t value = 0;
  std::memcpy(&value, p, count);
  return value;
}

// Equality of two texts of the same length, without a call for the short ones that names are.
inline bool same_bytes(const char* a, const char* b, std::size_t size) {
  if (size < 8) {
    for (std::size_t i = 0; i < size; ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }
  for (std::size_t i = 0; i + 8 < size; i += 8) {
    if (load_bytes(a + i, 8) != load_bytes(b + i, 8)) return false;
  }
  return load_bytes(a + size - 8, 8) == load_bytes(b + size - 8, 8);
}

// Text -> number, dense from 0. Open addressing, at most half full.
class InternTable {
 public:
  InternTable() : slots_(1024) {}

  std::uint32_t intern(std::string_view text) {
    const std::uint64_t hash = hash_of(text);
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[i];
      if (slot.number == no_index) return insert(slot, text, tag);
      if (slot.tag != tag) continue;
      const std::string_view known = texts_[slot.number];
      if (known.size() == text.size() && same_bytes(known.data(), text.data(), text.size())) {
        return slot.number;
      }
    }
  }
  [[nodiscard]] std::string_view text(std::uint32_t number) const { return texts_[number]; }
  [[nodiscard]] std::size_t size() const { return texts_.size(); }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t number = no_index;
  };

  std::uint32_t insert(Slot& slot, std::string_view text, std::uint32_t tag) {
    const auto number = static_cast<std::uint32_t>(texts_.size());
    slot = {tag, number};
    texts_.push_back(text);
    if (texts_.size() * 2 > slots_.size()) grow();
    return number;
  }
  void grow() {
    std::vector<Slot> bigger(slots_.size() * 2);
    for (std::uint32_t number = 0; number < texts_.size(); ++number) {
      const std::uint64_t hash = hash_of(texts_[number]);
      std::size_t i = hash & (bigger.size() - 1);
      while (bigger[i].number != no_index) i = (i + 1) & (bigger.size() - 1);
      bigger[i] = {static_cast<std::uint32_t>(hash >> 32), number};
    }
    slots_ = std::move(bigger);
  }

  std::vector<Slot> slots_;
  std::vector<std::string_view> texts_;
};

// What a name stands for. `range` bindings are those of `%r<10>`: the name is the stem.
struct Binding {
  Base base = Base::none;  // none: nothing
  std::uint16_t depth = 0;
  std::uint32_t index = 0;
};

// Scoped bindings. A name may at once be a stem of registers and a name of its own.
class NameTable {
 public:
  std::uint32_t intern(std::string_view text) {
    const std::uint32_t number = names_.intern(text);
    if (number >= entries_.size()) entries_.resize(number + 1);
    return number;
  }
  // The same for a short name that comes often, such as the stem of registers: a cache comes first.
  std::uint32_t intern_short(std::string_view text) {
    if (text.size() > 8 || text.empty()) return intern(text);
    std::uint64_t key = 0;
    for (const char c : text) key = key << 8U | static_cast<unsigned char>(c);
    ShortName& entry = short_names_[key * 0x9E3779B97F4A7C15ULL >> 56U];
    if (entry.key != key) entry = {key, intern(text)};
    return entry.name;
  }
  [[nodiscard]] std::string_view text(std::uint32_t name) const { return names_.text(name); }
  [[nodiscard]] const Binding& binding(std::uint32_t name) const { return entries_[name].exact; }
  [[nodiscard]] const Binding& stem(std::uint32_t name) const { return entries_[name].stem; }
  [[nodiscard]] bool stem_is_shadowed(std::uint32_t name) const { return entries_[name].shadowed; }
  void shadow_stem(std::uint32_t name) {
    entries_[name].shadowed = true;
    ++stem_version_;
  }
  // Another number whenever the meaning of a stem may have changed.
  [[nodiscard]] std::uint32_t stem_version() const { return stem_version_; }
  [[nodiscard]] std::uint32_t& pending(std::uint32_t name) { return entries_[name].pending; }

  [[nodiscard]] std::uint16_t depth() const { return depth_; }
  void open_scope() {
    marks_.push_back(undo_.size());
    ++depth_;
  }
  // Calls `leaving(name, binding)` for every exact name that was bound in the scope.
  template <class F>
  void close_scope(F&& leaving) {
    const std::size_t mark = marks_.back();
    marks_.pop_back();
    --depth_;
    while (undo_.size() > mark) {
      const Undo undo = undo_.back();
      undo_.pop_back();
      Entry& entry = entries_[undo.name];
      if (undo.is_stem) {
        entry.stem = undo.old;
        ++stem_version_;
      } else {
        leaving(undo.name, entry.exact);
        entry.exact = undo.old;
      }
    }
  }
  // False when the name is already bound in this very scope; the new binding counts.
  bool bind(std::uint32_t name, Base base, std::uint32_t index) {
    return set(entries_[name].exact, name, false, base, index);
  }
  // Binds in the outermost scope, beneath whatever inner scopes say.
  void bind_outermost(std::uint32_t name, Base base, std::uint32_t index) {
    Binding* slot = &entries_[name].exact;
    for (Undo& undo : undo_) {
      if (undo.name == name && !undo.is_stem) {
        slot = &undo.old;
        break;
      }
    }
    *slot = {base, 0, index};
  }
  // Whether a register by itself, declared in this scope, has a name that `is` says yes to.
  template <class Is>
  [[nodiscard]] bool has_register_here(Is&& is) const {
    for (std::size_t i = marks_.empty() ? 0 : marks_.back(); i < undo_.size(); ++i) {
      const bool is_register = !undo_[i].is_stem && entries_[undo_[i].name].exact.base == Base::reg;
      if (is_register && is(names_.text(undo_[i].name))) return true;
    }
    return false;
  }
  bool bind_stem(std::uint32_t name, std::uint32_t index) {
    ++stem_version_;
    return set(entries_[name].stem, name, true, Base::reg, index);
  }

 private:
  struct Entry {
    Binding exact;
    Binding stem;
    std::uint32_t pending = no_index;  // newest forward reference, see PendingReference
    bool shadowed = false;  // some register declared by itself looks like one of this stem's range
  };
  struct ShortName {
    std::uint64_t key = 0;
    std::uint32_t name = 0;
  };
  struct Undo {
    std::uint32_t name;
    bool is_stem;
    Binding old;
  };

  bool set(Binding& slot, std::uint32_t name, bool is_stem, Base base, std::uint32_t index) {
    const bool fresh = slot.base == Base::none || slot.depth != depth_;
    if (depth_ > 0) undo_.push_back({name, is_stem, slot});
    slot = {base, depth_, index};
    return fresh;
  }

  InternTable names_;
  std::array<ShortName, 256> short_names_;
  std::vector<Entry> entries_;
  std::vector<Undo> undo_;
  std::vector<std::size_t> marks_;
  std::uint32_t stem_version_ = 0;
  std::uint16_t depth_ = 0;
};

}  // namespace demarc::ptx
