// What a server says of itself, for people, for programs and for Prometheus.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/lease/client.hpp"

namespace demarc::serve {

// A line a tenant, beneath a line of headings.
[[nodiscard]] std::string status_to_text(const lease::ServerStatus& status);
[[nodiscard]] std::string status_to_json(const lease::ServerStatus& status);  // demarc.lease/1
// A page of its own, which a phone shows too.
[[nodiscard]] std::string status_to_html(const lease::ServerStatus& status);
// Whether nobody uses a tenant. invalid_input where there is none of that name, check_failed, with
// who it is, where somebody does or what was revoked has not ended.
[[nodiscard]] Result<void> check_free(const lease::ServerStatus& status, const std::string& tenant);
// The text format of Prometheus. missing_capability in a build without its library (the preset
// `static`).
[[nodiscard]] Result<std::string> status_to_metrics(const lease::ServerStatus& status);

// Serves `/` and `/metrics` at a port of 127.0.0.1, each time with what the server at `socket` says
// then, until the object goes. In threads of its own.
class StatusPages {
 public:
  // missing_capability when the port is taken, and in a build without the library.
  [[nodiscard]] static Result<std::unique_ptr<StatusPages>> start(std::uint16_t port,
                                                                  const std::string& socket);
  ~StatusPages();
  StatusPages(const StatusPages&) = delete;
  StatusPages& operator=(const StatusPages&) = delete;

 private:
  struct State;
  explicit StatusPages(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace demarc::serve
