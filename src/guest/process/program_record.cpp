// Adds names without a lock, because a process that is killed would keep the lock.
#include "demarc/guest/program_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace demarc::cuda {
namespace {

// As much of a name as fits before a closing zero; what is cut ends with a number of the whole.
template <std::size_t Size>
std::string fitted(std::string_view name) {
  if (name.size() < Size) return std::string(name);
  const std::string number = fmt::format("~{:016x}", std::hash<std::string_view>()(name));
  return std::string(name.substr(0, Size - 1 - number.size())) + number;
}

template <std::size_t Size>
void keep_text(std::string_view text, std::array<char, Size>& to) {
  std::copy_n(text.begin(), std::min(text.size(), Size - 1), to.begin());
}

void raise_to(std::atomic<std::uint64_t>& most, std::uint64_t value) {
  std::uint64_t now = most.load();
  while (value > now && !most.compare_exchange_weak(now, value)) {
  }
}

}  // namespace

std::atomic<std::uint64_t>& ProgramRecord::counter(Recorded what, std::string_view name,
                                                   std::string_view why) {
  const std::string wanted = fitted<std::tuple_size_v<decltype(Row::name)>>(name);
  const auto kind = static_cast<std::size_t>(what);
  const std::uint32_t first = first_row_of(what);
  const std::uint32_t there = rows_of(what);
  for (std::uint32_t i = first; i < first + there; ++i) {
    Row& row = rows_[i];
    if (row.there.load(std::memory_order_acquire) && wanted == row.name.data()) return row.count;
  }
  // Two processes may add the same name at once: it is one name where it is read.
  if (there == max_names[kind]) return tables_[kind].unnamed;
  const std::uint32_t own = tables_[kind].taken.fetch_add(1, std::memory_order_acq_rel);
  if (own >= max_names[kind]) return tables_[kind].unnamed;
  Row& row = rows_[first + own];
  keep_text(wanted, row.name);
  keep_text(why, row.why);
  row.there.store(true, std::memory_order_release);
  return row.count;
}

std::uint32_t ProgramRecord::rows_of(Recorded what) const {
  return std::min(table_of(what).taken.load(std::memory_order_acquire),
                  max_names[static_cast<std::size_t>(what)]);
}

void ProgramRecord::note_bytes(std::uint64_t bytes) {
  raise_to(max_bytes_, bytes);
}

void ProgramRecord::note_window(std::uint64_t bytes, std::uint64_t mappings) {
  raise_to(max_window_bytes_, bytes);
  raise_to(max_window_mappings_, mappings);
}

std::vector<RecordedName> ProgramRecord::names() const {
  std::map<std::pair<Recorded, std::string>, RecordedName> found;
  for (std::uint32_t kind = 1; kind < max_names.size(); ++kind) {
    const Recorded what{kind};
    for (std::uint32_t i = first_row_of(what); i < first_row_of(what) + rows_of(what); ++i) {
      const Row& row = rows_[i];
      if (!row.there.load(std::memory_order_acquire)) continue;
      const std::string name = row.name.data();
      auto& one = found.try_emplace({what, name}, RecordedName{what, name, row.why.data(), 0})
                      .first->second;
      one.count += row.count.load();
    }
  }
  std::vector<RecordedName> names;
  names.reserve(found.size());
  for (auto& [key, one] : found) names.push_back(std::move(one));
  std::stable_sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
    return a.what != b.what ? a.what < b.what : a.count > b.count;
  });
  return names;
}

}  // namespace demarc::cuda
