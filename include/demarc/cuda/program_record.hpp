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
  spilling_kernel,  // in the tenant's colours but for registers that the compiler spills: its loads
  refused_kernel,   // not loaded: how often it was to be
  refused_code,     // a module or library that could not be read: how often it was to be loaded
  refused_call,     // a function of the driver: its calls
};

struct RecordedName {
  Recorded what = Recorded::nothing;
  std::string name;  // of a kernel as the linker knows it
  std::string why;   // of what was refused
  std::uint64_t count = 0;
};

// Plain data. Several processes add names at the same time, and no name is ever removed.
class ProgramRecord {
 public:
  static constexpr std::uint32_t most_names = 1024;

  // The counter of a name. A new name is added. If there is no room for it, this is the counter of
  // all names without room. Long names are cut and end with a number that tells them apart.
  [[nodiscard]] std::atomic<std::uint64_t>& counter(Recorded what, std::string_view name,
                                                    std::string_view why = {});
  // A process has so many bytes of its tenant's memory.
  void note_bytes(std::uint64_t bytes);
  void note_refused_bytes(std::uint64_t bytes) { refused_bytes_.fetch_add(bytes); }
  // A process on plain memory asked the driver for so many.
  void note_plain_bytes(std::uint64_t bytes) { plain_bytes_.fetch_add(bytes); }

  // The names, grouped by kind, the most frequent first.
  [[nodiscard]] std::vector<RecordedName> names() const;
  // The counter of names for which there was no room.
  [[nodiscard]] std::uint64_t unnamed() const { return unnamed_; }
  [[nodiscard]] std::uint64_t most_bytes() const { return most_bytes_; }  // of one process
  [[nodiscard]] std::uint64_t refused_bytes() const { return refused_bytes_; }
  [[nodiscard]] std::uint64_t plain_bytes() const { return plain_bytes_; }

 private:
  struct Row {
    std::atomic<Recorded> what{Recorded::nothing};  // set when the rest is
    std::array<char, 384> name{};
    std::array<char, 232> why{};
    std::atomic<std::uint64_t> count{0};
  };
  std::atomic<std::uint32_t> taken_{0};
  std::atomic<std::uint64_t> unnamed_{0};
  std::atomic<std::uint64_t> most_bytes_{0};
  std::atomic<std::uint64_t> refused_bytes_{0};
  std::atomic<std::uint64_t> plain_bytes_{0};
  std::array<Row, most_names> rows_{};
};

// What `demarc exec --report` says of a program.
struct ProgramReport {
  std::string tenant;
  std::vector<RecordedName> names;
  std::uint64_t unnamed = 0;
  std::uint64_t most_bytes = 0;
  std::uint64_t refused_bytes = 0;
  std::uint64_t plain_bytes = 0;
};
[[nodiscard]] ProgramReport report_of(std::string tenant, const ProgramRecord& record);
// As tables, and as JSON (schema demarc.exec.tenant/1).
[[nodiscard]] std::string report_to_text(const ProgramReport& report);
[[nodiscard]] std::string report_to_json(const ProgramReport& report);

}  // namespace demarc::cuda
