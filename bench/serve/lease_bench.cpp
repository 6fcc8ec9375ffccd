// What a grant of memory takes: 1000 of them, asked for by 64 clients of one server in turn, beside
// round trips to the same server that grant nothing.
//   demarc_lease_bench                a server of its own on a card without memory: what is timed
//                                     is the protocol and the ledger
//   demarc_lease_bench SOCKET TENANT  demarc serve there, with its card
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "demarc/lease/client.hpp"
#include "demarc/serve/server.hpp"

namespace {

using namespace demarc;  // NOLINT: a program of its own
using Clock = std::chrono::steady_clock;

constexpr int rounds = 1000;
constexpr int clients = 64;
constexpr std::uint64_t share_bytes = std::uint64_t{64} << 30U;

class NoCard : public serve::CardSide {
 public:
  [[nodiscard]] const std::string& uuid() const override { return uuid_; }
  [[nodiscard]] std::uint64_t pages() const override { return 0; }
  [[nodiscard]] std::uint64_t page_bytes() const override { return lease::extent_step; }
  [[nodiscard]] Result<lease::Share> share(std::uint64_t) const override {
    return lease::Share{page_bytes(), 0, share_bytes, lease::Parities{{0xc4000}, 0}};
  }
  [[nodiscard]] std::vector<std::byte> table() const override { return {}; }
  [[nodiscard]] Result<std::vector<OwnedFile>> lend(std::uint64_t, std::uint64_t) const override {
    return std::vector<OwnedFile>{};
  }
  [[nodiscard]] Result<void> scrub(std::uint64_t, std::uint64_t, std::uint64_t) override {
    return {};
  }
  [[nodiscard]] Result<void> prove(const partition::TpcSet&) override { return {}; }
  [[nodiscard]] Result<lease::ProvedMask> mask(const partition::TpcSet&) const override {
    return lease::ProvedMask{};
  }
  [[nodiscard]] Result<void> move(const std::string&, const partition::TpcSet&) override {
    return {};
  }

 private:
  std::string uuid_ = "none";
};

void serve_forever(const std::string& socket) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  NoCard card;
  serve::ServerOptions options;
  options.socket = socket;
  options.user = ::geteuid();
  const std::uint64_t bytes = share_bytes;
  const auto server =
      serve::Server::start(options, card, {{"a", {0}, 1, {}, bytes, bytes}}).value();
  while (server->turn(-1)) {
  }
}

double microseconds(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

void print(const char* name, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  std::printf("%-28s median %8.1f us  p99 %8.1f us  longest %8.1f us\n", name,
              times[times.size() / 2], times[times.size() * 99 / 100], times.back());
}

Result<void> measure(const std::string& socket, const std::string& tenant) {
  auto owner = lease::LeaseClient::connect(socket);
  for (int i = 0; i < 1000 && !owner; ++i) {
    ::usleep(1000);
    owner = lease::LeaseClient::connect(socket);
  }
  if (!owner) return tl::unexpected(owner.error());
  DEMARC_TRY(const auto opened, owner->open(tenant, ""));
  std::vector<lease::LeaseClient> all;
  for (int i = 0; i < clients; ++i) {
    DEMARC_TRY(auto client, lease::LeaseClient::connect(socket));
    DEMARC_CHECK(client.attach(opened.token));
    all.push_back(std::move(client));
  }
  std::vector<double> empty, grants, returns;
  for (int i = 0; i < rounds; ++i) {
    const auto& client = all[static_cast<std::size_t>(i % clients)];
    auto begin = Clock::now();
    static_cast<void>(client.take(0));
    empty.push_back(microseconds(begin));
    begin = Clock::now();
    DEMARC_TRY(const auto extent,
               client.take(static_cast<std::uint64_t>(1 + i % 5) * lease::extent_step));
    grants.push_back(microseconds(begin));
    if (i % 2 == 0) continue;
    begin = Clock::now();
    DEMARC_CHECK(client.give(extent.first));
    returns.push_back(microseconds(begin));
  }
  std::printf("%d grants to %d clients of one server\n", rounds, clients);
  print("round trip, nothing granted", empty);
  print("grant", grants);
  print("return", returns);
  return {};
}

int reported(const Result<void>& done) {
  if (done) return 0;
  std::fprintf(stderr, "demarc_lease_bench: %s\n", done.error().message.c_str());
  return static_cast<int>(done.error().kind);
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3) return reported(measure(arguments[1], arguments[2]));
  if (count != 1) return reported(invalid_input("give a socket and a tenant, or nothing"));
  char folder[] = "/tmp/demarc-lease-bench.XXXXXX";
  if (::mkdtemp(folder) == nullptr) return 2;
  const std::string socket = std::string(folder) + "/socket";
  const pid_t server = ::fork();
  if (server == 0) {
    serve_forever(socket);
    ::_exit(0);
  }
  const auto done = measure(socket, "a");
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  std::filesystem::remove_all(folder);
  return reported(done);
}
