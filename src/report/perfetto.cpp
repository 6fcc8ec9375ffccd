// Writes traces in the JSON format that Perfetto opens.
#include "demarc/report/perfetto.hpp"

#include <fmt/format.h>

#include "demarc/base/json.hpp"

namespace demarc::report {
namespace {

std::string quoted_text(std::string_view text) {
  return json_text(Json(std::string(text)));
}

std::string arguments_json(const TraceArguments& arguments) {
  std::string out;
  for (const auto& [name, value] : arguments) {
    if (!out.empty()) out += ',';
    out += quoted_text(name) + ':' + quoted_text(value);
  }
  return out;
}

}  // namespace

TraceWriter::TraceWriter() = default;

void TraceWriter::event(std::string_view phase, std::string_view name, std::uint32_t process,
                        std::uint32_t thread, double time_us, std::string_view rest) {
  if (!events_.empty()) events_ += ",\n";
  events_ += fmt::format(R"({{"ph":"{}","name":{},"pid":{},"tid":{},"ts":{})", phase,
                         quoted_text(name), process, thread, time_us);
  events_ += rest;
  events_ += '}';
}

void TraceWriter::process(std::uint32_t process, std::string_view name) {
  event("M", "process_name", process, 0, 0,
        fmt::format(R"(,"args":{{"name":{}}})", quoted_text(name)));
}

void TraceWriter::thread(std::uint32_t process, std::uint32_t thread, std::string_view name) {
  event("M", "thread_name", process, thread, 0,
        fmt::format(R"(,"args":{{"name":{}}})", quoted_text(name)));
  event("M", "thread_sort_index", process, thread, 0,
        fmt::format(R"(,"args":{{"sort_index":{}}})", thread));
}

void TraceWriter::slice(std::uint32_t process, std::uint32_t thread, std::string_view name,
                        double start_us, double duration_us, const TraceArguments& arguments) {
  std::string rest = fmt::format(R"(,"dur":{})", duration_us);
  if (!arguments.empty()) rest += R"(,"args":{)" + arguments_json(arguments) + "}";
  event("X", name, process, thread, start_us, rest);
}

void TraceWriter::counter(std::uint32_t process, std::string_view name, double time_us,
                          double value) {
  event("C", name, process, 0, time_us, fmt::format(R"(,"args":{{"value":{}}})", value));
}

void TraceWriter::flow(std::uint64_t id, std::string_view name, std::uint32_t from_process,
                       std::uint32_t from_thread, double from_us, std::uint32_t to_process,
                       std::uint32_t to_thread, double to_us) {
  event("s", name, from_process, from_thread, from_us, fmt::format(R"(,"cat":"flow","id":{})", id));
  event("f", name, to_process, to_thread, to_us,
        fmt::format(R"(,"cat":"flow","bp":"e","id":{})", id));
}

std::string TraceWriter::json() const {
  return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + events_ + "\n]}\n";
}

}  // namespace demarc::report
