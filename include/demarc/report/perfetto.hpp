// Traces in the Chrome JSON format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.
// Times are in microseconds, the unit of the format; simulated cycles may be written as such.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace demarc::report {

using TraceArguments = std::vector<std::pair<std::string, std::string>>;

class TraceWriter {
 public:
  TraceWriter();

  void process(std::uint32_t process, std::string_view name);
  void thread(std::uint32_t process, std::uint32_t thread, std::string_view name);
  // Something that takes time. Slices of one thread nest or follow each other.
  void slice(std::uint32_t process, std::uint32_t thread, std::string_view name, double start_us,
             double duration_us, const TraceArguments& arguments = {});
  void counter(std::uint32_t process, std::string_view name, double time_us, double value);
  // An arrow from a slice to another, e.g. a request and its answer. `id` is unique per arrow.
  void flow(std::uint64_t id, std::string_view name, std::uint32_t from_process,
            std::uint32_t from_thread, double from_us, std::uint32_t to_process,
            std::uint32_t to_thread, double to_us);

  // The whole trace; may be called at any time.
  [[nodiscard]] std::string json() const;

 private:
  void event(std::string_view phase, std::string_view name, std::uint32_t process,
             std::uint32_t thread, double time_us, std::string_view rest);

  std::string events_;
};

}  // namespace demarc::report
