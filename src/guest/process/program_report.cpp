// Reports what a tenant's program did in its tenant's colours, for people and for programs.
#include "demarc/guest/program_report.hpp"

#include <algorithm>

#include "demarc/base/symbols.hpp"
#include "demarc/base/text.hpp"
#include "demarc/driver/page_mappings.hpp"

namespace demarc::cuda {
namespace {

// A section of the report.
struct RecordedKind {
  Recorded what;
  const char* key;  // in the JSON
  const char* heading;
  const char* none;
};
constexpr RecordedKind recorded_kinds[] = {
    {Recorded::kernel, "kernels", "kernels in the tenant's colours, by launches",
     "no kernel was launched"},
    {Recorded::plain_kernel, "plain_kernels", "kernels on memory WITHOUT A COLOUR, by launches",
     "no kernel ran on memory without a colour"},
    {Recorded::window_kernel, "window_kernels",
     "kernels in the tenant's colours by the page table, by launches",
     "no kernel reached memory by the page table"},
    {Recorded::window_code, "window_code", "code that runs as it is, with the reason, by loads",
     "no code runs as it is"},
    {Recorded::spilling_kernel, "spilling_kernels",
     "kernels of these that keep registers in local memory WITHOUT A COLOUR, by loads",
     "no kernel kept registers in local memory"},
    {Recorded::refused_kernel, "refused_kernels", "kernels refused, by loads",
     "no kernel was refused"},
    {Recorded::refused_code, "refused_code", "code refused, by loads", "no code was refused"},
    {Recorded::refused_call, "refused_calls", "calls of the driver refused, by calls",
     "no call was refused"},
    {Recorded::ended_context, "ended_contexts", "errors that have ended a context, by calls",
     "no context was ended by an error"},
};

std::vector<const RecordedName*> of_kind(const ProgramReport& report, Recorded what) {
  std::vector<const RecordedName*> names;
  for (const RecordedName& one : report.names) {
    if (one.what == what) names.push_back(&one);
  }
  return names;
}

}  // namespace

ProgramReport report_of(std::string tenant, const ProgramRecord& record) {
  ProgramReport report{std::move(tenant),
                       record.names(),
                       {},
                       record.max_bytes(),
                       record.max_window_bytes(),
                       record.max_window_mappings(),
                       record.refused_bytes(),
                       record.plain_bytes(),
                       record.staging_bytes()};
  for (const RecordedKind& kind : recorded_kinds) {
    report.unnamed[static_cast<std::size_t>(kind.what)] = record.unnamed(kind.what);
  }
  return report;
}

std::string report_to_text(const ProgramReport& report) {
  std::string text = fmt::format("tenant '{}'\n", report.tenant);
  for (const RecordedKind& kind : recorded_kinds) {
    const auto names = of_kind(report, kind.what);
    const std::uint64_t unnamed = report.unnamed[static_cast<std::size_t>(kind.what)];
    const bool none = names.empty() && unnamed == 0;
    append(text, "{}{}\n", none ? kind.none : kind.heading, none ? "" : ":");
    for (const RecordedName* one : names) {
      append(text, "{:>12}  {}{}{}\n", one->count, demangled(one->name),
             one->why.empty() ? "" : ": ", one->why);
    }
    if (unnamed != 0) append(text, "{:>12}  with names for which there was no room\n", unnamed);
  }
  append(text,
         "memory in the tenant's colours: at most {} bytes in one process; {} bytes were refused\n"
         "memory without a colour: {} bytes were asked for; {} bytes of copies went through "
         "such memory\n",
         report.max_bytes, report.refused_bytes, report.plain_bytes, report.staging_bytes);
  if (report.max_window_mappings != 0) {
    append(text, "windows: at most {} bytes in one process, by {} of the machine's {} mappings\n",
           report.max_window_bytes, report.max_window_mappings, max_mapped_pieces);
  }
  return text;
}

Json json_of(const ProgramReport& report) {
  Json json{{"schema", "demarc.exec.tenant/1"}, {"tenant", report.tenant}};
  for (const RecordedKind& kind : recorded_kinds) {
    Json names = Json::array();
    for (const RecordedName* one : of_kind(report, kind.what)) {
      Json name{{"name", one->name}, {"as_written", demangled(one->name)}, {"count", one->count}};
      if (!one->why.empty()) name["why"] = one->why;
      names.push_back(std::move(name));
    }
    json[kind.key] = std::move(names);
  }
  std::uint64_t unnamed = 0;
  Json by_kind = Json::object();
  for (const RecordedKind& kind : recorded_kinds) {
    const std::uint64_t count = report.unnamed[static_cast<std::size_t>(kind.what)];
    by_kind[kind.key] = count;
    unnamed += count;
  }
  json["unnamed"] = unnamed;
  json["unnamed_by_kind"] = std::move(by_kind);
  json["most_bytes"] = report.max_bytes;
  json["most_window_bytes"] = report.max_window_bytes;
  json["most_window_mappings"] = report.max_window_mappings;
  json["refused_bytes"] = report.refused_bytes;
  json["plain_bytes"] = report.plain_bytes;
  json["staging_bytes"] = report.staging_bytes;
  return json;
}

std::string report_to_json(const ProgramReport& report) {
  return json_text(json_of(report), 2) + "\n";
}

}  // namespace demarc::cuda
