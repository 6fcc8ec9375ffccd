// How long `lease list` takes: asked 1000 times of a server that has nothing to do, and 1000 times
// of the same server with 1000 idle connections and ten hostile clients, one of each kind below.
//   demarc_attack_bench
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "no_card.hpp"

namespace {

using namespace demarc;         // NOLINT: a program of its own
using namespace demarc::bench;  // NOLINT

constexpr int questions = 1000;
constexpr int idle_connections = 1000;

struct Target {
  std::string socket, token;
};

lease::PacketSocket connected(const Target& target) {
  for (;;) {
    auto socket = lease::PacketSocket::connect(target.socket);
    if (socket) return *std::move(socket);
  }
}

// Sends this for ever, connects again where the connection ends, and reads what comes or does not.
void flood(const Target& target, const std::string& text, bool reads, std::span<const int> files) {
  for (;;) {
    const auto socket = connected(target);
    while (socket.send(text, files)) {
      if (reads && !socket.receive()->packet) break;
    }
  }
}

lease::LeaseClient attached(const Target& target) {
  auto client = connect_to(target.socket).value();
  static_cast<void>(client.attach(target.token).value());
  return client;
}

void lock_control_blocks(const Target& target) {
  const int block = ::memfd_create("block", MFD_ALLOW_SEALING);
  const int locked = ::open(fmt::format("/proc/self/fd/{}", block).c_str(), O_RDWR);
  ::flock(locked, LOCK_EX);
  const lease::Request open =
      lease::OpenRequest{"a", fmt::format("/proc/{}/fd/{}#00", ::getpid(), block)};
  flood(target, to_text(open), true, {});
}

void take_in_pieces(const Target& target) {
  const auto client = attached(target);
  for (;;) {
    std::vector<color::LinearByte> taken;
    for (int i = 0; i < 2000; ++i) {
      if (const auto extent = client.take(1)) taken.push_back(extent->first);
    }
    for (const color::LinearByte first : taken) static_cast<void>(client.give(first));
  }
}

void end_work(const Target& target) {
  const auto client = attached(target);
  flood(target, to_text(lease::Request(lease::EndWorkRequest{})), true, {});
}

const std::function<void(const Target&)> hostile[] = {
    [](const Target& target) { flood(target, "nonsense", true, {}); },
    [](const Target& target) { flood(target, std::string(60000, '['), true, {}); },
    [](const Target& target) {
      flood(target, to_text(lease::Request(lease::ListRequest{})), false, {});
    },
    [](const Target& target) {
      flood(target, to_text(lease::Request(lease::ListRequest{})), true, {});
    },
    [](const Target& target) {
      for (;;) static_cast<void>(connected(target));
    },
    [](const Target& target) {
      const std::vector<int> files(lease::packet_files, STDERR_FILENO);
      flood(target, to_text(lease::Request(lease::ListRequest{})), true, files);
    },
    lock_control_blocks,
    take_in_pieces,
    [](const Target& target) {
      const auto client = attached(target);
      for (;;) {
        if (const auto extent = client.take(NoCard::share_bytes / 4)) {
          static_cast<void>(client.give(extent->first));
        }
      }
    },
    end_work,
};

Result<void> ask(const char* name, const std::string& socket) {
  std::vector<double> times;
  for (int i = 0; i < questions; ++i) {
    const auto begin = Clock::now();
    DEMARC_TRY(const auto client, lease::LeaseClient::connect(socket));
    DEMARC_CHECK(client.list());
    times.push_back(microseconds_since(begin));
  }
  print(name, times);
  return {};
}

Result<void> measure(const std::string& socket, std::vector<pid_t>& attackers) {
  DEMARC_TRY(auto owner, connect_to(socket));
  DEMARC_TRY(const auto opened, owner.open("a", ""));
  std::printf("lease list, %d times each\n", questions);
  DEMARC_CHECK(ask("nothing else to do", socket));
  std::vector<lease::PacketSocket> idle;
  for (int i = 0; i < idle_connections; ++i) {
    DEMARC_TRY(auto connection, lease::PacketSocket::connect(socket));
    idle.push_back(std::move(connection));
  }
  DEMARC_CHECK(ask("1000 idle connections", socket));
  for (const auto& attack : hostile) {
    attackers.push_back(::fork());
    if (attackers.back() != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    attack({socket, opened.token});
  }
  ::usleep(200'000);
  return ask("and ten hostile clients", socket);
}

}  // namespace

int main() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  char folder[] = "/tmp/demarc-attack-bench.XXXXXX";
  if (::mkdtemp(folder) == nullptr) return 2;
  serve::ServerOptions options;
  options.user = ::geteuid();
  options.socket = std::string(folder) + "/socket";
  options.end_work = [](const std::vector<serve::WorkTarget>& targets) {
    ::sleep(5);  // as long as MPS may take
    return std::vector<Result<void>>(targets.size());
  };
  std::vector<pid_t> processes{::fork()};
  if (processes.back() == 0) {
    serve_forever(options);
    ::_exit(0);
  }
  const auto done = measure(options.socket, processes);
  for (const pid_t process : processes) {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
  }
  std::filesystem::remove_all(folder);
  if (done) return 0;
  std::fprintf(stderr, "demarc_attack_bench: %s\n", done.error().message.c_str());
  return static_cast<int>(done.error().kind);
}
