// Gives every number of a tenant a name for Prometheus, and serves them at a port.
#include <functional>

#include "demarc/serve/status.hpp"

#ifdef DEMARC_NO_METRICS

namespace demarc::serve {
namespace {

tl::unexpected<Error> no_library() {
  return missing_capability(
      "this build has no metrics, because their libraries exist only as shared libraries");
}

}  // namespace

struct StatusPages::State {};
StatusPages::StatusPages(std::unique_ptr<State> state) : state_(std::move(state)) {}
StatusPages::~StatusPages() = default;

Result<std::string> status_to_metrics(const lease::ServerStatus&) {
  return no_library();
}
Result<std::unique_ptr<StatusPages>> StatusPages::start(std::uint16_t, const std::string&,
                                                        const PageLimits&) {
  return no_library();
}

}  // namespace demarc::serve

#else

#include <civetweb.h>
#include <prometheus/text_serializer.h>

#include <sstream>

#include "demarc/device/tpc_set.hpp"
#include "demarc/driver/launch_counters.hpp"

namespace demarc::serve {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

using Tenant = lease::TenantStatus;

// Nothing: it is not known, so the tenant is not in the metric.
using NumberOf = std::optional<double> (*)(const Tenant& tenant);

struct Number {
  const char* name;
  const char* help;
  MetricType type;
  NumberOf of;
};

template <auto member>
std::optional<double> value(const Tenant& tenant) {
  return static_cast<double>(tenant.*member);
}
template <auto member>
std::optional<double> seconds(const Tenant& tenant) {
  return static_cast<double>(tenant.*member) / 1000;
}
template <auto member>
std::optional<double> known(const Tenant& tenant) {
  return tenant.*member;
}
template <auto member>
std::optional<double> size(const Tenant& tenant) {
  return static_cast<double>((tenant.*member).size());
}
// "0-3,8" has five members.
template <auto member>
std::optional<double> members(const Tenant& tenant) {
  const auto set = gpu::parse_tpc_set(tenant.*member, gpu::TpcSet::capacity, "list");
  return set ? set->size() : 0;
}

// clang-format off
constexpr Number numbers[] = {
    {"demarc_tenant_tpcs", "TPCs that the tenant's kernels may run on", MetricType::Gauge, members<&Tenant::tpcs>},
    {"demarc_tenant_colors", "memory colours of the tenant", MetricType::Gauge, members<&Tenant::colors>},
    {"demarc_tenant_bytes", "bytes that the tenant may have", MetricType::Gauge, value<&Tenant::bytes>},
    {"demarc_tenant_given_bytes", "bytes that processes of the tenant have", MetricType::Gauge, value<&Tenant::given_bytes>},
    {"demarc_tenant_lost_bytes", "bytes that could not be filled with zeros and are never given again", MetricType::Gauge, value<&Tenant::lost_bytes>},
    {"demarc_tenant_window_bytes", "bytes that processes of the tenant may show by their page tables, together", MetricType::Gauge, value<&Tenant::window_bytes>},
    {"demarc_tenant_shown_bytes", "bytes that processes of the tenant show by their page tables", MetricType::Gauge, value<&Tenant::shown_bytes>},
    {"demarc_tenant_unclean_bytes", "bytes that came back and wait to be filled with zeros", MetricType::Gauge, value<&Tenant::unclean_bytes>},
    {"demarc_tenant_extents", "pieces of memory that processes of the tenant have", MetricType::Gauge, value<&Tenant::extents>},
    {"demarc_tenant_leases", "leases of the tenant", MetricType::Gauge, value<&Tenant::leases>},
    {"demarc_tenant_processes", "processes that are attached to a lease of the tenant", MetricType::Gauge, size<&Tenant::processes>},
    {"demarc_tenant_attached_seconds_total", "time for which processes of the tenant were on the card, all together", MetricType::Counter, seconds<&Tenant::attached_ms>},
    {"demarc_tenant_limit_seconds_total", "time for which nothing more of the tenant's memory could be given", MetricType::Counter, seconds<&Tenant::at_limit_ms>},
    {"demarc_tenant_launches_total", "kernel launches of the tenant's programs, also of those that have ended", MetricType::Counter, value<&Tenant::launches_total>},
    {"demarc_tenant_slo_misses_total", "misses of a service-level objective that were reported for the tenant", MetricType::Counter, value<&Tenant::slo_misses>},
    {"demarc_tenant_canary_slowdown", "time that reads of the tenant's canary take, over that without neighbours", MetricType::Gauge, known<&Tenant::canary_slowdown>},
    {"demarc_tenant_canary_baseline_cycles", "cycles that a read of the tenant's canary takes without neighbours", MetricType::Gauge, known<&Tenant::canary_baseline_cycles>},
    {"demarc_tenant_refused_takes_total", "times that memory was refused to the tenant", MetricType::Counter, value<&Tenant::refused_takes>},
    {"demarc_lease_refused_bytes", "bytes of allocations that were refused to living leases", MetricType::Gauge, value<&Tenant::refused_bytes>},
    {"demarc_lease_refused_calls", "driver calls that were refused to living leases", MetricType::Gauge, value<&Tenant::refused_calls>},
    {"demarc_lease_refused_kernels", "kernels that were refused to living leases", MetricType::Gauge, value<&Tenant::refused_kernels>},
};
// clang-format on

// By path of the launch; of leases that live, so that a number may fall.
struct LaunchNumber {
  const char* name;
  const char* help;
  std::vector<std::uint64_t> lease::TenantStatus::*counts;
};
constexpr LaunchNumber launch_numbers[] = {
    {"demarc_lease_launches", "launches of living leases that were confined",
     &lease::TenantStatus::launches},
    {"demarc_lease_unconfined_launches", "launches of living leases that were not confined",
     &lease::TenantStatus::unconfined},
    {"demarc_lease_refused_launches", "launches of living leases that could not be confined",
     &lease::TenantStatus::refused},
};

ClientMetric metric_of(MetricType type, double value, std::vector<ClientMetric::Label> labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  (type == MetricType::Gauge ? metric.gauge.value : metric.counter.value) = value;
  return metric;
}

std::vector<MetricFamily> families_of(const lease::ServerStatus& status) {
  std::vector<MetricFamily> families;
  families.push_back({"demarc_arena_bytes",
                      "bytes of coloured memory of all tenants",
                      MetricType::Gauge,
                      {metric_of(MetricType::Gauge, static_cast<double>(status.arena_bytes),
                                 {{"card", status.card}})}});
  families.push_back(
      {"demarc_mps",
       "1: programs of the tenants run side by side, by MPS; 0: they take turns, or "
       "its daemon has ended",
       MetricType::Gauge,
       {metric_of(MetricType::Gauge, status.mps == "on" ? 1 : 0, {{"card", status.card}})}});
  for (const Number& number : numbers) {
    families.push_back({number.name, number.help, number.type, {}});
    for (const auto& tenant : status.tenants) {
      if (const auto value = number.of(tenant)) {
        families.back().metric.push_back(metric_of(number.type, *value, {{"tenant", tenant.name}}));
      }
    }
    if (families.back().metric.empty()) families.pop_back();
  }
  for (const LaunchNumber& number : launch_numbers) {
    families.push_back({number.name, number.help, MetricType::Gauge, {}});
    for (const auto& tenant : status.tenants) {
      const auto& counts = tenant.*number.counts;
      for (std::size_t path = 0; path < counts.size() && path < cuda::launch_paths; ++path) {
        families.back().metric.push_back(metric_of(
            MetricType::Gauge, static_cast<double>(counts[path]),
            {{"tenant", tenant.name}, {"path", to_string(static_cast<cuda::LaunchPath>(path))}}));
      }
    }
  }
  return families;
}

struct Page {
  const char* type;
  std::function<Result<std::string>(const lease::ServerStatus&)> body;
  std::string socket;
};

Result<std::string> body_of(const Page& page) {
  DEMARC_TRY(const auto client, lease::LeaseClient::connect(page.socket));
  DEMARC_TRY(const auto status, client.list());
  return page.body(status);
}

int handle(mg_connection* connection, void* data) {
  const Page& page = *static_cast<const Page*>(data);
  const auto body = body_of(page);
  const std::string& text = body ? *body : body.error().message;
  mg_printf(connection,
            "HTTP/1.1 %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: %zu\r\n"
            "Connection: close\r\n\r\n",
            body ? "200 OK" : "503 Service Unavailable", body ? page.type : "text/plain",
            text.size());
  mg_write(connection, text.data(), text.size());
  return 1;  // it is answered
}

}  // namespace

struct StatusPages::State {
  Page metrics, page;
  mg_context* context = nullptr;
  ~State() {
    if (context != nullptr) mg_stop(context);
  }
};

StatusPages::StatusPages(std::unique_ptr<State> state) : state_(std::move(state)) {}
StatusPages::~StatusPages() = default;

Result<std::string> status_to_metrics(const lease::ServerStatus& status) {
  return prometheus::TextSerializer().Serialize(families_of(status));
}

Result<std::unique_ptr<StatusPages>> StatusPages::start(std::uint16_t port,
                                                        const std::string& socket,
                                                        const PageLimits& limits) {
  auto state = std::make_unique<State>();
  state->metrics = {"text/plain; version=0.0.4", status_to_metrics, socket};
  state->page = {"text/html", status_to_html, socket};
  const std::string address = fmt::format("127.0.0.1:{}", port);
  const std::string readers = std::to_string(limits.readers);
  const std::string patience = std::to_string(limits.milliseconds);
  const char* options[] = {"listening_ports",    address.c_str(),  "num_threads", readers.c_str(),
                           "request_timeout_ms", patience.c_str(), nullptr};
  const mg_callbacks none{};
  state->context = mg_start(&none, nullptr, options);
  if (state->context == nullptr) {
    return missing_capability(
        "metrics: cannot listen at port {} of 127.0.0.1: it is taken, or you may not use it", port);
  }
  mg_set_request_handler(state->context, "/metrics$", handle, &state->metrics);
  mg_set_request_handler(state->context, "/$", handle, &state->page);
  return std::unique_ptr<StatusPages>(new StatusPages(std::move(state)));
}

}  // namespace demarc::serve

#endif
