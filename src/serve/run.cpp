// A server's life: configuration, card, MPS, socket, signals, end.
#include "demarc/serve/run.hpp"

#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "demarc/lease/client.hpp"
#include "demarc/serve/status.hpp"
#include "mps.hpp"
#include "pool_card.hpp"

namespace demarc::serve {
namespace {

constexpr int most_turns_to_end = 1000;  // of ten milliseconds
constexpr int idle_look = 100;           // milliseconds

// Signals as a file; as they were when it goes.
class SignalsAsFile {
 public:
  SignalsAsFile() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
    file_ = OwnedFile(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~SignalsAsFile() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsAsFile(const SignalsAsFile&) = delete;
  SignalsAsFile& operator=(const SignalsAsFile&) = delete;

  [[nodiscard]] int file() const { return file_.get(); }
  // 0: none has come.
  [[nodiscard]] int next() const {
    signalfd_siginfo info{};
    if (::read(file_.get(), &info, sizeof info) != sizeof info) return 0;
    return static_cast<int>(info.ssi_signo);
  }

 private:
  sigset_t before_{};
  OwnedFile file_;
};

// Tells when nobody was there for so many seconds, if that is to end anything.
class Idleness {
 public:
  explicit Idleness(std::optional<double> seconds) : seconds_(seconds) {}
  [[nodiscard]] bool is_over(bool somebody) {
    if (somebody) since_ = Clock::now();
    return seconds_ && std::chrono::duration<double>(Clock::now() - since_).count() >= *seconds_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<double> seconds_;
  Clock::time_point since_ = Clock::now();
};

// Pages are lent by descriptors, of which many are on their way at a time.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

Result<void> end_all(Server& server) {
  server.end_all();
  for (int i = 0; i < most_turns_to_end; ++i) {
    if (server.ledger().book().processes.empty()) return {};
    DEMARC_CHECK(server.turn(10));
  }
  return check_failed("{} processes with a lease have not ended",
                      server.ledger().book().processes.size());
}

}  // namespace

Result<Config> plan_config(const ServePlan& plan) {
  DEMARC_TRY(Config config, read_config(plan.config));
  if (plan.card) config.card = *plan.card;
  if (!plan.socket.empty()) config.socket = plan.socket;
  if (config.socket.empty()) config.socket = lease::default_socket();
  if (plan.mps) config.mps = *plan.mps;
  return config;
}

Result<void> serve_until_told(Server& server,
                              const std::function<Result<std::vector<Terms>>()>& terms,
                              const std::function<void(const std::string& line)>& tell,
                              std::optional<double> end_when_idle) {
  const SignalsAsFile signals;
  Idleness idleness(end_when_idle);
  for (;;) {
    DEMARC_TRY(const bool told, server.turn(end_when_idle ? idle_look : -1, signals.file()));
    if (idleness.is_over(server.connections() != 0)) return end_all(server);
    if (!told) continue;
    const int signal = signals.next();
    if (signal == SIGTERM || signal == SIGINT) return end_all(server);
    if (signal != SIGHUP) continue;
    const auto lines = [&]() -> Result<std::vector<std::string>> {
      DEMARC_TRY(const auto wanted, terms());
      return server.reload(wanted);
    }();
    if (!lines) {
      tell(fmt::format("the configuration stays as it was: {}", lines.error().message));
      continue;
    }
    for (const std::string& line : *lines) tell(line);
    tell("the configuration was read again");
  }
}

Result<void> run(const ServePlan& plan) {
  DEMARC_TRY(const Config config, plan_config(plan));
  // Before the card is touched, which measuring would disturb.
  if (lease::PacketSocket::connect(config.socket)) {
    return invalid_input("socket '{}': another demarc serve listens there; give another --socket",
                         config.socket);
  }
  const SignalsAsFile signals;  // before there are threads, which take this mask over
  allow_many_files();
  std::unique_ptr<StatusPages> pages;  // goes after the server, which its threads ask
  if (config.metrics) {
    DEMARC_TRY(pages, StatusPages::start(*config.metrics, config.socket));
  }
  DEMARC_TRY(const auto card, PoolCard::create(config));
  DEMARC_TRY(const auto tenants, terms_of(config, card->numbers()));
  DEMARC_TRY(const auto mps, Mps::start(config.mps, mps_folder(config.socket), card->uuid()));
  ServerOptions options;
  options.socket = config.socket;
  options.group = config.group;
  options.mps = mps->folder();
  options.user = ::geteuid();
  options.tell = plan.tell;
  options.end_work = [&](std::span<const pid_t> processes) { return mps->end_work_of(processes); };
  DEMARC_TRY(const auto server, Server::start(options, *card, tenants));
  plan.tell(fmt::format("{}: {} bytes in the colours of {} tenant{}, at {}{}", card->uuid(),
                        card->pages() * card->page_bytes(), tenants.size(),
                        tenants.size() == 1 ? "" : "s", config.socket,
                        mps->folder().empty() ? ", without MPS" : ", with MPS"));
  return serve_until_told(
      *server,
      [&]() -> Result<std::vector<Terms>> {
        DEMARC_TRY(const Config next, plan_config(plan));
        return terms_of(next, card->numbers());
      },
      plan.tell, plan.end_when_idle);
}

}  // namespace demarc::serve
