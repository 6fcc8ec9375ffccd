// What the processes of a tenant's program loaded and launched, and what they were refused, by
// name. All processes share this memory, so it also tells about those that were killed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace demarc::cuda {

// What kind of thing a name is of, and what was counted.
enum class Recorded : std::uint32_t {
  nothing,
  kernel,           // in the tenant's colours: its launches; a captured launch counts once
  plain_kernel,     // of a process on plain memory: its launches
  window_kernel,    // as it is, in the tenant's colours by the page table: its launches
  window_code,      // a module of such kernels, named by the reason: how often it was loaded
  spilling_kernel,  // in the tenant's colours but for registers that the compiler spills: its loads
  refused_kernel,   // not loaded: how often it was to be
  refused_code,     // a module or library that could not be read: how often it was to be loaded
  refused_call,     // a function of the driver: its calls
  ended_context,    // an error that has ended a context: the calls that returned it
};

struct RecordedName {
  Recorded what = Recorded::nothing;
  std::string name;  // a kernel's is the linker's
  std::string why;   // the reason for a refusal, or for the end of a context
  std::uint64_t count = 0;
};

// How many names of each kind there is room for, by Recorded: no kind takes another's room.
inline constexpr std::array<std::uint32_t, 10> max_recorded_names{0,   2048, 1024, 2048, 128,
                                                                  512, 1024, 128,  512,  16};
// The rows of a kind begin there, behind those of the kinds before it.
constexpr std::uint32_t first_row_of(Recorded what) {
  std::uint32_t row = 0;
  for (std::size_t kind = 0; kind < static_cast<std::size_t>(what); ++kind) {
    row += max_recorded_names[kind];
  }
  return row;
}

// Plain data. Several processes add names at the same time, and no name is ever removed.
class ProgramRecord {
 public:
  static constexpr auto max_names = max_recorded_names;

  // The counter of a name. A new name is added. If there is no room for it, this is the counter of
  // all names of its kind without room. Long names are cut and end with a number that tells them
  // apart.
  [[nodiscard]] std::atomic<std::uint64_t>& counter(Recorded what, std::string_view name,
                                                    std::string_view why = {});
  // A process has so many bytes of its tenant's memory.
  void note_bytes(std::uint64_t bytes);
  void note_refused_bytes(std::uint64_t bytes) { refused_bytes_.fetch_add(bytes); }
  // So many bytes of a process lie at addresses of its window, by so many mappings.
  void note_window(std::uint64_t bytes, std::uint64_t mappings);
  // A process on plain memory asked the driver for so many.
  void note_plain_bytes(std::uint64_t bytes) { plain_bytes_.fetch_add(bytes); }
  // So many bytes of a copy went through memory without a colour, which Demarc took for it alone.
  void note_staging_bytes(std::uint64_t bytes) { staging_bytes_.fetch_add(bytes); }

  // The names, grouped by kind, the most frequent first.
  [[nodiscard]] std::vector<RecordedName> names() const;
  // The counter of names of a kind for which there was no room.
  [[nodiscard]] std::uint64_t unnamed(Recorded what) const { return table_of(what).unnamed; }
  [[nodiscard]] std::uint64_t max_bytes() const { return max_bytes_; }                // per process
  [[nodiscard]] std::uint64_t max_window_bytes() const { return max_window_bytes_; }  // likewise
  [[nodiscard]] std::uint64_t max_window_mappings() const { return max_window_mappings_; }
  [[nodiscard]] std::uint64_t refused_bytes() const { return refused_bytes_; }
  [[nodiscard]] std::uint64_t plain_bytes() const { return plain_bytes_; }
  [[nodiscard]] std::uint64_t staging_bytes() const { return staging_bytes_; }

 private:
  struct Row {
    std::atomic<bool> there{false};  // set when the rest is
    std::array<char, 384> name{};
    std::array<char, 232> why{};
    std::atomic<std::uint64_t> count{0};
  };
  struct Table {
    std::atomic<std::uint32_t> taken{0};
    std::atomic<std::uint64_t> unnamed{0};
  };
  [[nodiscard]] const Table& table_of(Recorded what) const {
    return tables_[static_cast<std::size_t>(what)];
  }
  [[nodiscard]] std::uint32_t rows_of(Recorded what) const;

  std::array<Table, max_names.size()> tables_{};
  std::atomic<std::uint64_t> max_bytes_{0};
  std::atomic<std::uint64_t> max_window_bytes_{0};
  std::atomic<std::uint64_t> max_window_mappings_{0};
  std::atomic<std::uint64_t> refused_bytes_{0};
  std::atomic<std::uint64_t> plain_bytes_{0};
  std::atomic<std::uint64_t> staging_bytes_{0};
  std::array<Row, first_row_of(Recorded{max_recorded_names.size()})>
      rows_{};  // one kind behind the other
};

// What `demarc exec --report` says of a program.
struct ProgramReport {
  std::string tenant;
  std::vector<RecordedName> names;
  // By kind, Recorded: what was counted of names for which there was no room.
  std::array<std::uint64_t, ProgramRecord::max_names.size()> unnamed{};
  std::uint64_t max_bytes = 0;
  std::uint64_t max_window_bytes = 0;  // per process, as the next one
  std::uint64_t max_window_mappings = 0;
  std::uint64_t refused_bytes = 0;
  std::uint64_t plain_bytes = 0;
  std::uint64_t staging_bytes = 0;
};
[[nodiscard]] ProgramReport report_of(std::string tenant, const ProgramRecord& record);
// As tables, and as JSON (schema demarc.exec.tenant/1).
[[nodiscard]] std::string report_to_text(const ProgramReport& report);
[[nodiscard]] std::string report_to_json(const ProgramReport& report);

}  // namespace demarc::cuda
