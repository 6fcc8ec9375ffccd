// A server's life: configuration, card, MPS, socket, signals, end.
#include "demarc/serve/run.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>

#include "canaries.hpp"
#include "demarc/card/mps_clients.hpp"
#include "demarc/lease/sockets.hpp"
#include "demarc/serve/status.hpp"
#include "log.hpp"
#include "mps.hpp"
#include "mps_processes.hpp"
#include "notify.hpp"
#include "pool_card.hpp"
#include "server_claim.hpp"
#include "signals.hpp"

namespace demarc::serve {
namespace {

constexpr std::chrono::seconds ending_patience{5};  // of the ten that a server has to end
constexpr int idle_look = 100;                      // milliseconds
constexpr std::chrono::milliseconds card_look{1000};
constexpr std::chrono::seconds canary_patience{5};  // until canaries have ended

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

std::size_t open_files() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

// Pages are lent by descriptors, of which many are on their way at a time.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

Result<void> end_all(Server& server, const ServeEvents& events) {
  tell_service_manager("STOPPING=1");
  events.ends();
  server.end_all();
  Result<void> turned;
  const auto until = std::chrono::steady_clock::now() + ending_patience;
  while (!server.ended() && std::chrono::steady_clock::now() < until) {
    if (const auto turn = server.turn(10); !turn) {
      if (turned) turned = tl::unexpected(turn.error());
      ::usleep(10'000);
    }
  }
  const auto left = server.all_ended();
  return left ? turned : left;
}

// Removes the file of the socket's lock if the server does not start. Its copy of the descriptor
// keeps the lock until then.
class FailedStart {
 public:
  FailedStart(const OwnedFile& lock, std::string path)
      : lock_(::fcntl(lock.get(), F_DUPFD_CLOEXEC, 0)), path_(std::move(path)) {}
  ~FailedStart() {
    if (lock_.get() >= 0) ::unlink(path_.c_str());
  }
  FailedStart(const FailedStart&) = delete;
  FailedStart& operator=(const FailedStart&) = delete;
  void is_none() { lock_ = OwnedFile(); }

 private:
  OwnedFile lock_;
  std::string path_;
};

Result<void> check_group(const Config& config) {
  if (!config.group || ::geteuid() == 0) return {};
  return missing_capability(
      "group {}: only a server of root can look after programs of other users; start it as root, "
      "or "
      "leave out group",
      *config.group);
}

// Which tenants the server has by which wishes. It changes with the configuration, tenant by
// tenant: those in use stay as they were.
class Wishes {
 public:
  Wishes(Config config, const PoolCard& card, const ServerClaim& claim)
      : now_(std::move(config)), card_(card), claim_(claim) {}

  [[nodiscard]] Result<std::vector<Terms>> terms_at_start() const {
    DEMARC_TRY(const CardNumbers numbers, card_numbers());
    return terms_of(now_, numbers, {});
  }
  // Tenants of whom the configuration says what it said keep what they have.
  [[nodiscard]] Result<std::vector<Terms>> terms_of_next(Config next, const Server& server) {
    DEMARC_TRY(next_, read_again(now_, std::move(next)));
    std::vector<Terms> kept;
    for (const TenantConfig& tenant : next_.tenants) {
      const TenantConfig* before = wish_of(now_, tenant.name);
      const Book::Tenant* there = server.ledger().tenant(tenant.name);
      if (before != nullptr && there != nullptr && same_wishes(*before, tenant)) {
        kept.push_back(there->terms);
      }
    }
    DEMARC_TRY(const CardNumbers numbers, card_numbers());
    DEMARC_TRY(wanted_, terms_of(next_, numbers, kept));
    return wanted_;
  }
  // The server has the next ones, but for those that stayed.
  void take_over(const Server& server) {
    for (const Terms& terms : wanted_) {
      const TenantConfig* before = wish_of(now_, terms.name);
      if (before == nullptr || server.ledger().tenant(terms.name)->terms == terms) continue;
      std::replace_if(
          next_.tenants.begin(), next_.tenants.end(),
          [&](const TenantConfig& tenant) { return tenant.name == terms.name; }, *before);
    }
    now_ = next_;
  }
  [[nodiscard]] std::vector<CanaryWish> canaries() const {
    std::vector<CanaryWish> wishes;
    for (const TenantConfig& tenant : now_.tenants) {
      if (tenant.canary) wishes.push_back({tenant.name, tenant.canary_baseline_cycles});
    }
    return wishes;
  }

 private:
  [[nodiscard]] static const TenantConfig* wish_of(const Config& config, const std::string& name) {
    const auto found =
        std::find_if(config.tenants.begin(), config.tenants.end(),
                     [&](const TenantConfig& tenant) { return tenant.name == name; });
    return found == config.tenants.end() ? nullptr : &*found;
  }
  [[nodiscard]] Result<CardNumbers> card_numbers() const {
    CardNumbers numbers = card_.numbers();
    DEMARC_TRY(numbers.domains_beside, claim_.domains_beside());
    return numbers;
  }

  Config now_;
  Config next_;
  std::vector<Terms> wanted_;
  const PoolCard& card_;
  const ServerClaim& claim_;
};

// The program of a canary, in a lease as other programs have it.
std::vector<std::string> canary_command(const std::string& program, const std::string& socket,
                                        const std::string& tenant) {
  return {program, "exec", "--tenant", tenant,  "--socket",
          socket,  "--",   program,    "lease", "canary"};
}

// Tenants that only a canary uses can be changed once it has ended.
void end_canaries(Canaries& canaries, Server& server) {
  if (canaries.ended()) return;
  canaries.ask_to_end();
  const auto until = std::chrono::steady_clock::now() + canary_patience;
  while (!(canaries.ended() && server.without_canaries()) &&
         std::chrono::steady_clock::now() < until) {
    if (!server.turn(10)) return;  // the next turn says it again
  }
}

// Programs that take turns do not disturb each other's reads, and a canary would take a turn.
std::vector<CanaryWish> wanted_canaries(const Wishes& wishes, bool mps,
                                        const std::function<void(const std::string& line)>& tell) {
  auto wanted = wishes.canaries();
  if (mps || wanted.empty()) return wanted;
  tell(
      "canary: programs take turns without MPS and do not interfere with each other's reads, so no "
      "canary runs");
  return {};
}

// A server has a context of its own for as long as it runs, beside those of MPS.
Result<cuda::GpuPointer> find_card(const Config& config) {
  DEMARC_TRY(const auto driver, cuda::Driver::load());
  DEMARC_TRY(const cuda::GpuPointer gpu, cuda::Gpu::find(driver, config.card));
  DEMARC_TRY(const int mode, gpu->attribute(cuda::attribute_compute_mode));
  if (config.mps != MpsUse::off && gpu->under_mps()) {
    return missing_capability(
        "mps: this process is itself a client of an MPS daemon, whose programs would take turns "
        "with those of the tenants: end that daemon (echo quit | {}), or give mps = \"off\"",
        cuda::mps_control);
  }
  if (mode == cuda::compute_mode_default) return gpu;
  return missing_capability(
      "{} ({}) is in compute mode {}, in which tenants cannot use it beside the server: switch to "
      "the default mode (nvidia-smi -i {} -c DEFAULT)",
      gpu->name(), gpu->uuid(),
      mode == cuda::compute_mode_prohibited ? "PROHIBITED" : "EXCLUSIVE_PROCESS", gpu->uuid());
}

void tell_of_domains(const std::vector<Terms>& tenants, std::uint32_t domains,
                     const std::function<void(const std::string& line)>& tell) {
  if (domains < 2) return;
  for (const Terms& tenant : tenants) {
    if (tenant.sync_domain) continue;
    tell(
        fmt::format("tenant '{}' has no memory synchronisation domain of its own: its kernels wait "
                    "for the accesses of all other programs without one",
                    tenant.name));
  }
}

}  // namespace

Result<Config> plan_config(const ServePlan& plan) {
  std::error_code ignored;
  const auto file = std::filesystem::status(plan.config, ignored);
  if (std::filesystem::exists(file) && !std::filesystem::is_regular_file(file)) {
    return invalid_input("{}: a regular file was expected, because SIGHUP reads it again",
                         plan.config);
  }
  DEMARC_TRY(Config config, read_config(plan.config));
  if (plan.card) config.card = *plan.card;
  if (!plan.socket.empty()) config.socket = plan.socket;
  if (config.socket.empty()) config.socket = lease::default_socket();
  // Its MPS is known by this path, whatever folder another server is in.
  config.socket = std::filesystem::absolute(config.socket);
  if (plan.mps) config.mps = *plan.mps;
  const bool canaries = std::any_of(config.tenants.begin(), config.tenants.end(),
                                    [](const TenantConfig& tenant) { return tenant.canary; });
  if (canaries && plan.end_when_idle) {
    return invalid_input(
        "{}: canary: a server with canaries always has connections, so it never ends when idle: "
        "leave out canary or --end-when-idle",
        plan.config);
  }
  return config;
}

Result<void> serve_until_told(Server& server, const Signals& signals,
                              const std::function<Result<std::vector<Terms>>()>& terms,
                              const std::function<void(const std::string& line)>& tell,
                              std::optional<double> end_when_idle, const ServeEvents& events) {
  using LoopClock = std::chrono::steady_clock;
  Idleness idleness(end_when_idle);
  const auto end_because = [&](const Error& why) -> Result<void> {
    if (const auto ended = end_all(server, events); !ended) tell(ended.error().message);
    return tl::unexpected(why);
  };
  for (auto look_at = LoopClock::now();;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(look_at - LoopClock::now()).count();
    const int until_look = std::max(0, static_cast<int>(left));
    const auto told =
        server.turn(end_when_idle ? std::min(idle_look, until_look) : until_look, signals.file());
    if (!told) return end_because(told.error());
    if (server.mps_ended() && server.ledger().book().leases.empty()) {
      return end_because(
          missing_capability("the daemon of MPS has ended: start demarc serve again").value());
    }
    const bool used = server.connections() != 0;
    events.used(used);
    if (LoopClock::now() >= look_at) {
      look_at = LoopClock::now() + card_look;
      events.looks();
    }
    if (idleness.is_over(used)) return end_all(server, events);
    const int signal = signals.next();
    if (signal == SIGTERM || signal == SIGINT) return end_all(server, events);
    if (signal != SIGHUP) continue;
    events.rests();
    const auto lines = [&]() -> Result<std::vector<std::string>> {
      DEMARC_TRY(const auto wanted, terms());
      return server.reload(wanted);
    }();
    if (!lines) {
      tell(fmt::format("the configuration stays as it was: {}", lines.error().message));
      continue;
    }
    events.changed();
    for (const std::string& line : *lines) tell(line);
    tell("the configuration was read again");
  }
}

Result<void> run(const ServePlan& plan) {
  DEMARC_TRY(const Config config, plan_config(plan));
  DEMARC_CHECK(check_without_card(config));
  const std::string folder = mps_folder(config.socket);
  // Before there are threads, which take the mask of signals over.
  const Signals signals(9, [folder] { kill_mps(folder, 0.5); });
  Log log(plan.tell);
  const auto tell = [&log](const std::string& line) { log.say(line); };
  DEMARC_CHECK(check_group(config));
  // Before the card is touched, which measuring would disturb.
  if (lease::PacketSocket::connect(config.socket)) {
    return invalid_input("socket '{}': another demarc serve listens there; give another --socket",
                         config.socket);
  }
  allow_many_files();
  DEMARC_TRY(const SeatLimits seats, SeatLimits::for_files(open_files()));
  std::unique_ptr<StatusPages> pages;  // goes after the connections that its threads ask by
  if (config.metrics) {
    DEMARC_TRY(pages, StatusPages::start(*config.metrics, config.socket));
  }
  ClaimPlan claiming;
  {
    DEMARC_TRY(const cuda::GpuPointer gpu, find_card(config));
    claiming.card = gpu->uuid();
  }
  DEMARC_TRY(claiming.files, cuda::Driver::files());
  claiming.survivors = plan.survivors;
  claiming.tell = tell;
  claiming.told_to_end = [&signals] {
    const int signal = signals.next();
    return signal == SIGTERM || signal == SIGINT;
  };
  // Goes last: the next server begins when nothing of this one is left on the card.
  DEMARC_TRY(auto taken, ServerClaim::take(claiming));
  if (!taken) return {};
  ServerClaim& claim = *taken;
  DEMARC_TRY(OwnedFile lock, lease::PacketListener::claim(config.socket));
  FailedStart failed(lock, lease::PacketListener::lock_of(config.socket));
  std::unique_ptr<Server> server;  // and its socket, after MPS and the memory
  Canaries canaries({[&config, &plan](const std::string& tenant) {
                       return canary_command(plan.program, config.socket, tenant);
                     },
                     tell});
  std::unique_ptr<Mps> mps;
  DEMARC_TRY(const auto card, PoolCard::create(config));
  Wishes wishes(config, *card, claim);
  DEMARC_TRY(const auto tenants, wishes.terms_at_start());
  DEMARC_TRY(mps, Mps::start({config.mps, folder, card->uuid(), tell}));
  ServerOptions options;
  options.socket = config.socket;
  options.group = config.group;
  options.mps = mps->folder();
  options.user = ::geteuid();
  options.tell = tell;
  options.end_work = [&](const std::vector<WorkTarget>& targets) {
    return mps->end_work_of(targets);
  };
  options.end_left = [&claim](const std::string& tenant) { return claim.end_left(tenant); };
  options.hurry = [&](double seconds) { mps->hurry(seconds); };
  options.mps_process = mps->process_file();
  options.limits = seats;
  options.locks = [&claim] { return claim.files(); };
  options.claim = [&claim](const Book& book) { return claim.divide(book); };
  options.is_canary = [&canaries](pid_t process) { return canaries.has(process); };
  options.canary = [&canaries](const std::string& tenant) {
    return canaries.reading(tenant, Canaries::Clock::now());
  };
  DEMARC_TRY(server, Server::start(options, *card, tenants, std::move(lock)));
  failed.is_none();
  // A server that is about to end for want of programs is waited for.
  const auto set_serving = [&](bool used) -> Result<void> {
    const bool stays = used || !plan.end_when_idle;
    if (stays == claim.serves()) return {};
    if (stays) return claim.serve();
    claim.end();
    return {};
  };
  auto done = [&]() -> Result<void> {
    DEMARC_CHECK(set_serving(false));
    tell_of_domains(tenants, card->numbers().sync_domains, tell);
    tell(fmt::format("{}: {} bytes in the colours of {} tenant{}, at {}{}", card->uuid(),
                     card->pages() * card->page_bytes(), tenants.size(),
                     tenants.size() == 1 ? "" : "s", config.socket,
                     mps->folder().empty() ? ", without MPS" : ", with MPS"));
    const bool with_mps = !mps->folder().empty();
    canaries.want(wanted_canaries(wishes, with_mps, tell));
    tell_service_manager("READY=1");
    return serve_until_told(*server, signals,
                            [&]() -> Result<std::vector<Terms>> {
                              DEMARC_TRY(Config next, plan_config(plan));
                              return wishes.terms_of_next(std::move(next), *server);
                            },
                            tell, plan.end_when_idle,
                            {[&] { end_canaries(canaries, *server); },
                             [&] {
                               wishes.take_over(*server);
                               canaries.want(wanted_canaries(wishes, with_mps, tell));
                             },
                             [&](bool used) { static_cast<void>(set_serving(used)); },
                             [&, last = std::string()]() mutable {
                               canaries.look(Canaries::Clock::now(), server->quiet(),
                                             server->ledger());
                               const auto followed = claim.follow(tell);
                               const std::string why = followed ? "" : followed.error().message;
                               if (!why.empty() && why != last) tell(why);
                               last = why;
                             },
                             [&claim] { claim.end(); }});
  }();
  server->close();
  return done;
}

}  // namespace demarc::serve
