// Writes what a server says about itself: as a table, as JSON, as a page.
#include "demarc/serve/status.hpp"

#include <numeric>

#include "columns.hpp"
#include "demarc/base/json.hpp"
#include "demarc/base/text.hpp"

namespace demarc::serve {
namespace {

std::uint64_t sum(const std::vector<std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{} MiB", bytes >> 20U);
}

std::string domain_of(const lease::TenantStatus& tenant) {
  return tenant.sync_domain ? fmt::format("{}", *tenant.sync_domain) : "-";
}

// What its processes show, of what they may.
std::string windows_of(const lease::TenantStatus& tenant) {
  if (tenant.window_bytes == 0) return "-";
  return fmt::format("{} of {}", mebibytes(tenant.shown_bytes), mebibytes(tenant.window_bytes));
}

// The cells of a tenant's line, and their headings.
constexpr const char* headings[] = {"tenant",   "TPCs",      "colours",  "domain",
                                    "may have", "has",       "zeroed",   "lost",
                                    "windows",  "processes", "launches", "outside"};
std::vector<std::string> cells_of(const lease::TenantStatus& tenant) {
  return {tenant.name + (tenant.revoked ? " (revoked)" : ""),
          tenant.tpcs,
          tenant.colors,
          domain_of(tenant),
          mebibytes(tenant.bytes),
          mebibytes(tenant.given_bytes),
          mebibytes(tenant.unclean_bytes),
          mebibytes(tenant.lost_bytes),
          windows_of(tenant),
          fmt::format("{}", tenant.processes.size()),
          fmt::format("{}", sum(tenant.launches)),
          fmt::format("{}", sum(tenant.unconfined) + sum(tenant.refused))};
}

// How programs of different tenants share the card in time.
const char* words_of_mps(const std::string& mps) {
  if (mps == "on") return ", with MPS";
  if (mps == "ended") return "; the daemon of MPS has ended: start demarc serve again";
  return ", without MPS: programs take turns";
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

template <class Number>
Json json_of(const std::optional<Number>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json json_of(const lease::TenantStatus& tenant) {
  return Json{{"name", tenant.name},
              {"tpcs", tenant.tpcs},
              {"colors", tenant.colors},
              {"sync_domain", json_of(tenant.sync_domain)},
              {"bytes", tenant.bytes},
              {"given_bytes", tenant.given_bytes},
              {"unclean_bytes", tenant.unclean_bytes},
              {"lost_bytes", tenant.lost_bytes},
              {"window_bytes", tenant.window_bytes},
              {"shown_bytes", tenant.shown_bytes},
              {"extents", tenant.extents},
              {"leases", tenant.leases},
              {"processes", tenant.processes},
              {"attached_ms", tenant.attached_ms},
              {"at_limit_ms", tenant.at_limit_ms},
              {"refused_takes", tenant.refused_takes},
              {"refused_bytes", tenant.refused_bytes},
              {"refused_calls", tenant.refused_calls},
              {"refused_kernels", tenant.refused_kernels},
              {"launches_total", tenant.launches_total},
              {"slo_misses", tenant.slo_misses},
              {"canary_slowdown", json_of(tenant.canary_slowdown)},
              {"canary_baseline_cycles", json_of(tenant.canary_baseline_cycles)},
              {"launches", tenant.launches},
              {"unconfined_launches", tenant.unconfined},
              {"refused_launches", tenant.refused},
              {"revoked", tenant.revoked}};
}

}  // namespace

std::string status_to_text(const lease::ServerStatus& status) {
  std::vector<std::vector<std::string>> lines{{std::begin(headings), std::end(headings)}};
  for (const auto& tenant : status.tenants) lines.push_back(cells_of(tenant));
  return fmt::format("{}: {} of coloured memory{}\n", status.card, mebibytes(status.arena_bytes),
                     words_of_mps(status.mps)) +
         in_columns(lines);
}

std::string status_to_json(const lease::ServerStatus& status) {
  Json tenants = Json::array();
  for (const auto& tenant : status.tenants) tenants.push_back(json_of(tenant));
  const Json json{
      {"schema", "demarc.lease/1"},
      {"card", status.card},
      {"arena_bytes", status.arena_bytes},
      {"mps", status.mps},
      {"launch_paths", Json{"default stream", "stream", "graph", "unknown", "copy or fill"}},
      {"tenants", std::move(tenants)}};
  return json_text(json, 2) + "\n";
}

Result<void> check_free(const lease::ServerStatus& status, const std::string& tenant) {
  std::vector<std::string> names;
  for (const auto& one : status.tenants) {
    names.push_back(one.name);
    if (one.name != tenant) continue;
    if (one.leases == 0 && one.processes.empty()) return {};
    return check_failed("tenant '{}' is in use{}: leases: {}, processes: {}", tenant,
                        one.revoked ? " and was revoked" : "", one.leases,
                        one.processes.empty() ? "none yet" : joined(one.processes, ", "));
  }
  return invalid_input("there is no tenant '{}'; the tenants are: {}", tenant, joined(names, ", "));
}

std::string status_to_html(const lease::ServerStatus& status) {
  std::string page =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Demarc</title>"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><style>"
      "body{font:16px sans-serif;margin:1em;color-scheme:light dark}"
      "div{overflow-x:auto}table{border-collapse:collapse}"
      "td,th{padding:.3em .7em;text-align:left;border-bottom:1px solid #8888}"
      "</style></head><body><h1>Demarc</h1>";
  append(page, "<p>{}: {} of coloured memory{}</p><div><table><tr>", escaped(status.card),
         mebibytes(status.arena_bytes), words_of_mps(status.mps));
  for (const char* heading : headings) append(page, "<th>{}</th>", heading);
  page += "</tr>\n";
  for (const auto& tenant : status.tenants) {
    page += "<tr>";
    for (const auto& cell : cells_of(tenant)) append(page, "<td>{}</td>", escaped(cell));
    page += "</tr>\n";
  }
  return page + "</table></div><p><a href=\"/metrics\">metrics</a></p></body></html>\n";
}

}  // namespace demarc::serve
