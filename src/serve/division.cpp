// Finds the server of a divided card, or starts it as a daemon.
#include "demarc/serve/division.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <utility>

#include "demarc/base/files.hpp"
#include "demarc/base/lock_file.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/base/owned_file.hpp"
#include "demarc/base/text.hpp"
#include "demarc/lease/sockets.hpp"
#include "demarc/serve/config.hpp"

namespace demarc::serve {
namespace {

constexpr const char* idle_seconds = "5";
constexpr int look_milliseconds = 20;

std::string tenant_name(partition::Part part) {
  return fmt::format("part-{}-of-{}", part.index + 1, part.of);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// Removes files when it goes, as long as the locks that were taken before it are still held.
class Leftovers {
 public:
  Leftovers() = default;
  ~Leftovers() {
    for (const std::string& path : paths_) ::unlink(path.c_str());
  }
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;
  void add(std::string path) { paths_.push_back(std::move(path)); }
  // They stay.
  void keep() { paths_.clear(); }

 private:
  std::vector<std::string> paths_;
};

std::string start_lock(const DivisionPlan& plan) {
  return fmt::format("{}/demarc-cuda{}.start", lease::runtime_folder(), plan.card);
}

// Of programs that come at the same time, for whatever parts of the card, one starts a server.
Result<OwnedFile> lock_start(const DivisionPlan& plan) {
  const std::string path = start_lock(plan);
  const int looks = static_cast<int>(plan.starting_seconds * 1000 / look_milliseconds);
  for (int look = 0;; ++look) {
    auto lock = try_lock_file(path);
    if (!lock && lock.error().kind == ErrorKind::invalid_input) {
      return invalid_input("{}; XDG_RUNTIME_DIR names the folder, which must belong to you",
                           lock.error().message);
    }
    if (!lock || lock->get() >= 0) return lock;
    if (look == looks) {
      return missing_capability(
          "'{}': another demarc exec --part has started a server for {} s and holds this file: "
          "does it stand still?",
          path, plan.starting_seconds);
    }
    if (look == 50) {
      plan.tell(fmt::format(
          "another demarc exec --part starts a server of cuda:{}: this waits for it", plan.card));
    }
    ::usleep(look_milliseconds * 1000);
  }
}

// Where nothing listens for the parts that are wanted.
Result<void> refuse_other_divisions(const DivisionPlan& plan) {
  for (std::uint32_t parts = 2; parts <= partition::max_parts; ++parts) {
    if (!lease::PacketSocket::connect(division_socket(plan.card, parts))) continue;
    return invalid_input(
        "cuda:{} is divided into {} parts by programs that run: give --part K/{}, or wait until "
        "they have ended",
        plan.card, parts, parts);
  }
  return {};
}

// A server that ends gives its memory back and ends its MPS before it lets go of its socket, so the
// next one waits for it, whatever parts it had.
Result<void> wait_for_ending(const DivisionPlan& plan) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(plan.ending_seconds);
  bool told = false;
  for (std::uint32_t parts = 2; parts <= partition::max_parts; ++parts) {
    const std::string socket = division_socket(plan.card, parts);
    std::error_code ignored;
    if (!std::filesystem::exists(socket + ".lock", ignored)) continue;
    for (;;) {
      const auto free = lease::PacketListener::claim(socket);
      if (free || free.error().kind == ErrorKind::invalid_input) break;
      if (Clock::now() >= until) return tl::unexpected(free.error());
      if (!std::exchange(told, true)) {
        plan.tell(fmt::format("the last server of cuda:{} is still ending: this waits for it",
                              plan.card));
      }
      ::usleep(look_milliseconds * 1000);
    }
  }
  return {};
}

// Its orphans become children of this process while it lives, which can ask for their exit codes.
class Subreaper {
 public:
  Subreaper() {
    ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~Subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, before_); }
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;

 private:
  int before_{};
};

// A process in a session of its own, which outlives this one; what it says goes into a file. Gives
// a descriptor that is readable once it has ended.
Result<OwnedFile> start_daemon(const std::vector<std::string>& command, const std::string& log) {
  OwnedFile said(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (said.get() < 0) return invalid_input("'{}': {}", log, std::strerror(errno));
  int ends[2];
  // It is read when the process that writes to it has ended, so nothing waits for its other end.
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return missing_capability("pipe: {}", std::strerror(errno));
  }
  const OwnedFile read_end(ends[0]);
  const OwnedFile write_end(ends[1]);
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const Subreaper reaper;
  const pid_t first = ::fork();
  if (first < 0) return missing_capability("fork: {}", std::strerror(errno));
  if (first == 0) {
    ::setsid();
    const pid_t daemon = ::fork();
    if (daemon != 0) {
      static_cast<void>(!::write(write_end.get(), &daemon, sizeof daemon));
      ::_exit(0);
    }
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDOUT_FILENO);
    ::dup2(said.get(), STDERR_FILENO);
    // What the caller has open would stay locked, or without an end, as long as the server lives.
    ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
    ::execv(words[0], words.data());
    ::_exit(static_cast<int>(ErrorKind::missing_capability));
  }
  while (::waitpid(first, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_t daemon = -1;
  if (::read(read_end.get(), &daemon, sizeof daemon) != sizeof daemon || daemon < 0) {
    return missing_capability("{} cannot be started: there are too many processes", command[0]);
  }
  return OwnedFile(static_cast<int>(::syscall(SYS_pidfd_open, daemon, 0)));
}

bool has_ended(const OwnedFile& process) {
  pollfd look{process.get(), POLLIN, {}};
  return process.get() < 0 || ::poll(&look, 1, look_milliseconds) > 0;
}

Result<lease::PacketSocket> wait_for(const std::string& socket, const OwnedFile& server,
                                     const std::string& log) {
  for (bool ended = false; !ended;) {
    ended = has_ended(server);
    if (auto connected = lease::PacketSocket::connect(socket)) return connected;
  }
  const auto said = read_file(log);
  siginfo_t end{};
  const bool exited = ::waitid(P_PIDFD, static_cast<id_t>(server.get()), &end, WEXITED) == 0 &&
                      end.si_code == CLD_EXITED;
  const bool wrong = exited && end.si_status == static_cast<int>(ErrorKind::invalid_input);
  const bool failed = exited && end.si_status == static_cast<int>(ErrorKind::check_failed);
  return tl::unexpected(
      Error{wrong ? ErrorKind::invalid_input
                  : (failed ? ErrorKind::check_failed : ErrorKind::missing_capability),
            fmt::format("the server that divides the card has ended: {}",
                        said && !said->empty() ? *said : "it said nothing")});
}

// What can be seen before a server is started.
Result<void> check_wishes(const DivisionPlan& plan) {
  const std::string source = "the configuration of these parts";  // it is not a file
  const auto config = parse_config(division_config(plan), source);
  const Result<void> good =
      config ? check_without_card(*config) : Result<void>(tl::unexpected(config.error()));
  if (good) return {};
  std::string options = fmt::format("--part {}", to_string(plan.part));
  if (!plan.memory.empty()) append(options, ", --memory '{}'", plan.memory);
  if (!plan.description.empty()) append(options, ", --description '{}'", plan.description);
  std::string_view why = good.error().message;
  if (why.starts_with(source + ":")) why.remove_prefix(why.find(": ") + 2);
  return invalid_input("{}: {}", options, why);
}

}  // namespace

std::string division_socket(std::uint32_t card, std::uint32_t parts) {
  return fmt::format("{}/demarc-cuda{}-{}.sock", lease::runtime_folder(), card, parts);
}

std::string division_config(const DivisionPlan& plan) {
  std::string text = fmt::format("card = {}\n", plan.card);
  if (!plan.memory.empty()) append(text, "memory = {}\n", quoted(plan.memory));
  if (!plan.description.empty()) append(text, "description = {}\n", quoted(plan.description));
  for (partition::Part part{0, plan.part.of}; part.index < part.of; ++part.index) {
    append(text, "[tenants.{}]\ntpcs = \"{}\"\ncolors = \"{}\"\n", tenant_name(part),
           to_string(part), to_string(part));
  }
  return text;
}

Result<JoinedDivision> join_division(const DivisionPlan& plan) {
  const std::string socket = division_socket(plan.card, plan.part.of);
  const std::string tenant = tenant_name(plan.part);
  DEMARC_CHECK(check_wishes(plan));
  DEMARC_TRY(const OwnedFile lock, lock_start(plan));
  Leftovers always;
  always.add(start_lock(plan));
  DEMARC_CHECK(wait_for_ending(plan));
  if (auto found = lease::PacketSocket::connect(socket)) {
    if (!plan.memory.empty() || !plan.description.empty()) {
      plan.tell(fmt::format(
          "a server already divides cuda:{} into {} parts, and its memory cannot be changed",
          plan.card, plan.part.of));
    }
    return JoinedDivision{socket, tenant, std::move(*found)};
  }
  DEMARC_CHECK(refuse_other_divisions(plan));
  const std::string config = socket + ".toml";
  const std::string log = socket + ".log";
  Leftovers of_failure;
  of_failure.add(config);
  of_failure.add(log);
  DEMARC_CHECK(write_file(config, division_config(plan)));
  plan.tell(fmt::format(
      "cuda:{} is not divided into {} parts yet, so a server is started (log: {}); it takes {} of "
      "the card's memory, whose colours it measures in about 0.35 s per GiB, and ends {} s after "
      "the last program",
      plan.card, plan.part.of, log, plan.memory.empty() ? "what is free, less 6 GiB," : plan.memory,
      idle_seconds));
  DEMARC_TRY(const OwnedFile server,
             start_daemon({plan.program, "serve", "--config", config, "--socket", socket,
                           "--end-when-idle", idle_seconds},
                          log));
  DEMARC_TRY(auto connection, wait_for(socket, server, log));
  of_failure.keep();
  return JoinedDivision{socket, tenant, std::move(connection)};
}

}  // namespace demarc::serve
