// A server on a card without memory, so that what is timed is the protocol and the ledger; and how
// times are printed.
#pragma once

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "demarc/lease/client.hpp"
#include "demarc/serve/server.hpp"

namespace demarc::bench {

using Clock = std::chrono::steady_clock;

class NoCard : public serve::CardSide {
 public:
  static constexpr std::uint64_t share_bytes = std::uint64_t{64} << 30U;

  [[nodiscard]] const std::string& uuid() const override { return uuid_; }
  [[nodiscard]] std::uint64_t pages() const override { return 0; }
  [[nodiscard]] std::uint64_t page_bytes() const override { return lease::extent_step; }
  [[nodiscard]] Result<lease::Share> share(const color::ColorSet&) const override {
    return lease::Share{page_bytes(), 0, share_bytes,
                        color::make_law(color::Parities{{0xc4000}, 0})};
  }
  [[nodiscard]] std::vector<std::byte> table() const override { return {}; }
  [[nodiscard]] Result<std::vector<OwnedFile>> lend(const color::PageRun&) const override {
    return std::vector<OwnedFile>{};
  }
  [[nodiscard]] Result<void> scrub(const color::ColorSet&, const color::Extent&) override {
    return {};
  }
  [[nodiscard]] Result<void> check_alive() const override { return {}; }
  [[nodiscard]] Result<void> prove(const gpu::TpcSet&) override { return {}; }
  [[nodiscard]] Result<lease::ProvedMask> mask(const gpu::TpcSet&) const override {
    return lease::ProvedMask{};
  }
  [[nodiscard]] Result<void> move(const std::string&, const gpu::TpcSet&) override { return {}; }

 private:
  std::string uuid_ = "none";
};

// In a process of its own, until that is killed. One tenant, "a".
inline void serve_forever(serve::ServerOptions options) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  NoCard card;
  options.user = ::geteuid();
  constexpr std::uint64_t bytes = NoCard::share_bytes;
  const auto server =
      serve::Server::start(std::move(options), card, {{"a", {0}, {1, 2}, {}, bytes, bytes}})
          .value();
  while (server->turn(-1)) {
  }
}

// For a server that may still be starting.
inline Result<lease::LeaseClient> connect_to(const std::string& socket) {
  auto client = lease::LeaseClient::connect(socket);
  for (int i = 0; i < 1000 && !client; ++i) {
    ::usleep(1000);
    client = lease::LeaseClient::connect(socket);
  }
  return client;
}

inline double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

inline void print(const char* name, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  std::printf("%-28s median %8.1f us  p99 %8.1f us  longest %8.1f us\n", name,
              times[times.size() / 2], times[times.size() * 99 / 100], times.back());
}

}  // namespace demarc::bench
