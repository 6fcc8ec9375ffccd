// Runs points: forks, keeps the streams in memory, and picks the result's members by their
// pointers.
#include "runner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "demarc/base/json.hpp"
#include "demarc/base/text.hpp"
#include "impossible.hpp"
#include "select.hpp"

namespace demarc::sweep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t max_error = 2000;  // bytes of a message that are kept

Json to_json(const std::optional<Value>& value) {
  if (!value) return nullptr;
  return std::visit([](const auto& held) { return Json(held); }, *value);
}

std::string content_of(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return {};
  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t got =
        ::pread(file, content.data() + done, content.size() - done, static_cast<off_t>(done));
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  content.resize(done);
  return content;
}

void empty(int file) {
  [[maybe_unused]] const int cut = ::ftruncate(file, 0);
  ::lseek(file, 0, SEEK_SET);
}

// The loop of the process.
class PointLoop {
 public:
  PointLoop(const Plan& plan, const RunCommand& command, OwnedFile socket)
      : plan_(plan),
        command_(command),
        socket_(std::move(socket)),
        out_(::memfd_create("demarc-point-out", MFD_CLOEXEC)),
        err_(::memfd_create("demarc-point-err", MFD_CLOEXEC)),
        null_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

  int run() {
    if (out_.get() < 0 || err_.get() < 0 || null_.get() < 0) return 1;
    std::string buffer(max_message, '\0');
    while (true) {
      const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return 0;  // no more is wanted
      const Task task = task_of(buffer.substr(0, static_cast<std::size_t>(got)));
      const std::string answer = to_text(Report{task.index, carry_out(task)});
      if (::send(socket_.get(), answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return 1;
    }
  }

 private:
  Outcome carry_out(const Task& task) {
    empty(out_.get());
    empty(err_.get());
    const auto begin = Clock::now();
    const pid_t self = ::getpid();
    const pid_t child = ::fork();
    if (child < 0)
      return failed(fmt::format("no process can be started: {}", std::strerror(errno)));
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != self) ::_exit(1);
      const rlimit no_core{0, 0};
      ::setrlimit(RLIMIT_CORE, &no_core);
      ::dup2(null_.get(), STDIN_FILENO);
      ::dup2(out_.get(), STDOUT_FILENO);
      ::dup2(err_.get(), STDERR_FILENO);
      // What is measured on a card is measured alone: a point finds none.
      ::setenv("DEMARC_LIBCUDA", "/no-card-within-a-sweep", 1);
      const int code = command_(task.arguments);
      std::fflush(nullptr);
      ::_exit(code);
    }
    const bool in_time = wait_for(child);
    if (!in_time) ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    Outcome outcome = outcome_of(task, status, in_time);
    outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return outcome;
  }

  // False: it takes longer than it may.
  [[nodiscard]] bool wait_for(pid_t child) const {
    if (plan_.time_limit_s() <= 0) return true;
    const OwnedFile handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    if (handle.get() < 0) return true;
    const auto end = Clock::now() + std::chrono::duration<double>(plan_.time_limit_s());
    while (true) {
      const double left = std::chrono::duration<double>(end - Clock::now()).count();
      pollfd watched{handle.get(), POLLIN, 0};
      const int ready =
          ::poll(&watched, 1, static_cast<int>(std::clamp(std::ceil(left * 1000), 0.0, 1e9)));
      if (ready > 0) return true;
      if (ready == 0 && Clock::now() >= end) return false;
    }
  }

  static Outcome failed(std::string why) {
    Outcome outcome;
    outcome.error = std::move(why);
    outcome.exit_code = 1;
    return outcome;
  }

  [[nodiscard]] Outcome outcome_of(const Task& task, int status, bool in_time) const {
    if (!in_time) {
      Outcome outcome = failed(fmt::format("took longer than {} s", plan_.time_limit_s()));
      outcome.exit_code = 128 + SIGKILL;
      return outcome;
    }
    if (WIFSIGNALED(status)) {
      const int signal = WTERMSIG(status);
      Outcome outcome = failed(fmt::format("ended by signal {} ({})", signal, ::strsignal(signal)));
      outcome.exit_code = 128 + signal;
      return outcome;
    }
    if (WEXITSTATUS(status) != 0) {
      const std::string written = content_of(err_.get());
      const std::string said(last_line(written).substr(0, max_error));
      Outcome outcome =
          failed(said.empty() ? fmt::format("exit code {}", WEXITSTATUS(status)) : said);
      outcome.exit_code = WEXITSTATUS(status);
      return outcome;
    }
    const auto result = parse_json(content_of(out_.get()), "the result");
    if (!result) return failed(result.error().message + "; does the command say --json?");
    if (auto wrong = impossible_rate(*result)) {
      Outcome outcome = failed(*std::move(wrong));
      outcome.exit_code = static_cast<int>(ErrorKind::check_failed);
      return outcome;
    }
    Outcome outcome;
    for (std::size_t m = 0; m < task.pointers.size(); ++m) {
      auto value = select(*result, task.pointers[m]);
      if (!value) {
        return failed(fmt::format("{}: {}", plan_.measures()[m].name, value.error().message));
      }
      outcome.kept.push_back(std::move(*value));
    }
    outcome.done = true;
    return outcome;
  }

  const Plan& plan_;
  const RunCommand& command_;
  OwnedFile socket_, out_, err_, null_;
};

// The part of this process's cores that is the runner's, so that what runs in it takes no more
// threads.
void keep_to(unsigned first, unsigned count) {
  cpu_set_t all{};
  if (count == 0 || ::sched_getaffinity(0, sizeof all, &all) != 0) return;
  cpu_set_t own{};
  unsigned number = 0;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    if (number >= first && number < first + count) CPU_SET(cpu, &own);
    ++number;
  }
  if (CPU_COUNT(&own) != 0) ::sched_setaffinity(0, sizeof own, &own);
}

}  // namespace

std::string to_text(const Task& task) {
  return json_text(Json{{"i", task.index}, {"a", task.arguments}, {"p", task.pointers}});
}

Task task_of(const std::string& text) {
  const Json json = own_json(text);
  return {json.at("i").get<std::uint64_t>(), json.at("a").get<std::vector<std::string>>(),
          json.at("p").get<std::vector<std::string>>()};
}

std::string to_text(const Report& report) {
  Json kept = Json::array();
  for (const auto& value : report.outcome.kept) kept.push_back(to_json(value));
  return json_text(Json{{"i", report.index},
                        {"d", report.outcome.done},
                        {"e", report.outcome.error},
                        {"c", report.outcome.exit_code},
                        {"s", report.outcome.seconds},
                        {"k", std::move(kept)}});
}

Report report_of(const std::string& text) {
  const Json json = own_json(text);
  Report report;
  report.index = json.at("i").get<std::uint64_t>();
  report.outcome.done = json.at("d").get<bool>();
  report.outcome.error = json.at("e").get<std::string>();
  report.outcome.exit_code = json.at("c").get<int>();
  report.outcome.seconds = json.at("s").get<double>();
  for (const Json& value : json.at("k")) report.outcome.kept.push_back(scalar(value));
  return report;
}

Result<Runner> Runner::start(const Plan& plan, const RunCommand& command, unsigned first,
                             unsigned cores) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return missing_capability("no socket can be made: {}", std::strerror(errno));
  }
  OwnedFile ours(ends[0]);
  OwnedFile theirs(ends[1]);
  std::fflush(nullptr);
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return missing_capability("no process can be started: {}", std::strerror(errno));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != self) ::_exit(1);
    // Nothing of the process that started it: its locks end with it, its ranks are its own.
    const int kept = theirs.get();
    ::close_range(3, static_cast<unsigned>(kept) - 1, 0);
    ::close_range(static_cast<unsigned>(kept) + 1, ~0U, 0);
    [[maybe_unused]] const int closed = ours.release();
    ::signal(SIGINT, SIG_IGN);  // of the terminal: the one that started it decides
    keep_to(first, cores);
    PointLoop loop(plan, command, std::move(theirs));
    ::_exit(loop.run());
  }
  return Runner(std::move(ours), pid);
}

Runner::~Runner() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool Runner::send(const std::string& task) const {
  return ::send(socket_.get(), task.data(), task.size(), MSG_NOSIGNAL) >= 0;
}

std::optional<std::string> Runner::receive() {
  const ssize_t got = ::recv(socket_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got <= 0) {
    gone_ = true;
    return {};
  }
  return buffer_.substr(0, static_cast<std::size_t>(got));
}

}  // namespace demarc::sweep
