// What a server says of itself, for people, for programs and for Prometheus.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/lease/client.hpp"

namespace demarc::serve {

// One line per tenant, below a line of headings.
[[nodiscard]] std::string status_to_text(const lease::ServerStatus& status);
[[nodiscard]] std::string status_to_json(const lease::ServerStatus& status);  // demarc.lease/1
// A self-contained page, which also fits a phone.
[[nodiscard]] std::string status_to_html(const lease::ServerStatus& status);
// Checks that no program uses a tenant. invalid_input if there is no tenant of that name.
// check_failed, with its name, if one uses it or if revoked programs have not ended.
[[nodiscard]] Result<void> check_free(const lease::ServerStatus& status, const std::string& tenant);
// The text format of Prometheus. missing_capability in a build without its library (the preset
// `static`).
[[nodiscard]] Result<std::string> status_to_metrics(const lease::ServerStatus& status);

// So many are read at a time, and who has not asked after so long makes room for the next one.
struct PageLimits {
  int readers = 32;
  int milliseconds = 1000;
};

// Serves `/` and `/metrics` at a port of 127.0.0.1, in threads of its own, until the object is
// destroyed. Each time it asks the server at `socket`.
class StatusPages {
 public:
  // missing_capability if the port is taken, and in a build without the library.
  [[nodiscard]] static Result<std::unique_ptr<StatusPages>> start(std::uint16_t port,
                                                                  const std::string& socket,
                                                                  const PageLimits& limits = {});
  ~StatusPages();
  StatusPages(const StatusPages&) = delete;
  StatusPages& operator=(const StatusPages&) = delete;

 private:
  struct State;
  explicit StatusPages(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// What `demarc lease prove` says of a tenant once no process is waited for any more. check_failed
// if a process found a page that leads elsewhere, or has not answered within these seconds.
[[nodiscard]] Result<std::string> proving_to_text(const std::string& tenant,
                                                  const lease::Proving& proving, double seconds);

}  // namespace demarc::serve
