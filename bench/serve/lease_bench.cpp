// What a grant of memory takes: 1000 of them, asked for by 64 clients of one server in turn, beside
// round trips to the same server that grant nothing.
//   demarc_lease_bench                a server of its own on a card without memory: what is timed
//                                     is the protocol and the ledger
//   demarc_lease_bench SOCKET TENANT  demarc serve there, with its card
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "no_card.hpp"

namespace {

using namespace demarc;         // NOLINT: a program of its own
using namespace demarc::bench;  // NOLINT

constexpr int rounds = 1000;
constexpr int clients = 64;
Result<void> measure(const std::string& socket, const std::string& tenant) {
  DEMARC_TRY(auto owner, connect_to(socket));
  DEMARC_TRY(const auto opened, owner.open(tenant, ""));
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
    empty.push_back(microseconds_since(begin));
    begin = Clock::now();
    DEMARC_TRY(const auto extent,
               client.take(static_cast<std::uint64_t>(1 + i % 5) * lease::extent_step));
    grants.push_back(microseconds_since(begin));
    if (i % 2 == 0) continue;
    begin = Clock::now();
    DEMARC_CHECK(client.give(extent.first));
    returns.push_back(microseconds_since(begin));
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
    serve::ServerOptions options;
    options.user = ::geteuid();
    options.socket = socket;
    serve_forever(options);
    ::_exit(0);
  }
  const auto done = measure(socket, "a");
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  std::filesystem::remove_all(folder);
  return reported(done);
}
