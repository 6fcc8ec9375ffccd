// Claims a card for a server: after the last one, beside programs with parts of their own, and not
// over programs that the last one left.
#include "server_claim.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "demarc/base/owned_file.hpp"
#include "demarc/base/text.hpp"

namespace demarc::serve {
namespace {

using gpu::TpcSet;
using lease::ClaimedCard;
using lease::ClaimedPart;
using lease::Claimer;
using lease::ClaimRole;
using lease::PartOwner;
using ClaimClock = std::chrono::steady_clock;

constexpr std::uint32_t claim_look_ms = 100;
constexpr useconds_t claim_look = 1000 * claim_look_ms;
constexpr int kill_patience_ms = 10'000;
constexpr int left_patience_ms = 500;

ClaimedPart part_of(const Book& book) {
  TpcSet tpcs;
  ClaimedPart part;
  for (const auto& [name, tenant] : book.tenants) {
    tpcs = tpcs | tenant.terms.tpcs;
    const auto domain = tenant.terms.sync_domain;
    if (domain && *domain < 64) part.domains |= std::uint64_t{1} << *domain;
  }
  part.tpcs = tpcs.words();
  return part;
}

// What programs beside the server have.
ClaimedPart part_beside(const ClaimedCard& claimed) {
  ClaimedPart part = claimed.of(PartOwner::program);
  const ClaimedPart& sharing = claimed.of(PartOwner::sharing);
  part.domains |= sharing.domains;
  for (std::size_t word = 0; word < part.tpcs.size(); ++word) part.tpcs[word] |= sharing.tpcs[word];
  return part;
}

std::string domain_numbers(std::uint64_t domains) {
  std::vector<int> numbers;
  for (int domain = 0; domain < 64; ++domain) {
    if (((domains >> domain) & 1U) != 0) numbers.push_back(domain);
  }
  return joined(numbers, ",");
}

struct EndingStep {
  int signal;
  int patience_ms;
};

// They are watched by descriptors before they are looked for once more, so that no other process is
// meant that has got a number meanwhile. False if it was told to end while it waited.
bool end_keepers(
    const lease::CardClaim& claim, off_t address, std::initializer_list<EndingStep> steps,
    const std::function<bool()>& told_to_end = [] { return false; }) {
  struct Watched {
    pid_t process;
    OwnedFile file;
  };
  std::vector<Watched> watched;
  for (const Claimer& one : claim.keepers(address)) {
    watched.push_back(
        {one.process, OwnedFile(static_cast<int>(::syscall(SYS_pidfd_open, one.process, 0)))});
  }
  const std::vector<Claimer> still = claim.keepers(address);
  std::erase_if(watched, [&](const Watched& one) {
    return one.file.get() < 0 ||
           std::none_of(still.begin(), still.end(),
                        [&](const Claimer& other) { return other.process == one.process; });
  });
  for (const auto& [signal, patience_ms] : steps) {
    const auto until = ClaimClock::now() + std::chrono::milliseconds(patience_ms);
    for (const Watched& one : watched) {
      ::syscall(SYS_pidfd_send_signal, one.file.get(), signal, nullptr, 0);
    }
    for (const Watched& one : watched) {
      pollfd look{one.file.get(), POLLIN, {}};
      for (bool ended = false; !ended;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until - ClaimClock::now());
        const int wait = std::clamp(static_cast<int>(left.count()), 0, int{claim_look_ms});
        ended = ::poll(&look, 1, wait) > 0 || wait == 0;
        if (!ended && told_to_end()) return false;
      }
    }
  }
  return true;
}

}  // namespace

Result<Survivors> parse_survivors(std::string_view text) {
  if (text == "refuse") return Survivors::refuse;
  if (text == "wait") return Survivors::wait;
  if (text == "end") return Survivors::end;
  return invalid_input("'{}': refuse, wait or end was expected", text);
}

Result<std::optional<ServerClaim>> ServerClaim::take(const ClaimPlan& plan) {
  DEMARC_TRY(auto own, lease::CardClaim::open_all(plan.files));
  DEMARC_TRY(auto lent, lease::CardClaim::open_all(plan.files));
  ServerClaim claim(plan.card, std::move(own), std::move(lent));
  for (const auto step : {&ServerClaim::take_card, &ServerClaim::take_parts}) {
    DEMARC_TRY(const bool taken, (claim.*step)(plan));
    if (taken) continue;
    plan.tell("told to end before the card was free");
    return std::nullopt;
  }
  return claim;
}

Result<bool> ServerClaim::take_card(const ClaimPlan& plan) {
  const auto until = ClaimClock::now() + std::chrono::duration<double>(plan.patience_seconds);
  const auto patience = std::chrono::milliseconds(plan.turn_patience_ms);
  auto turn_until = ClaimClock::now() + patience;
  for (bool waits = false;; ::usleep(claim_look)) {
    const auto turn = own_.turn(claim_look_ms);
    if (!turn) {
      if (plan.told_to_end()) return false;
      if (ClaimClock::now() >= turn_until) return tl::unexpected(turn.error());
      continue;
    }
    turn_until = ClaimClock::now() + patience;
    DEMARC_TRY(const ClaimedCard claimed, own_.others(card_));
    if (!claimed.server) {
      DEMARC_CHECK(own_.hold_server(card_, false));
      DEMARC_CHECK(own_.keep(card_, ClaimRole::server));
      return true;
    }
    const std::string server = own_.names(card_, ClaimRole::server);
    if (claimed.serving || ClaimClock::now() >= until) {
      return missing_capability(
          "another demarc serve ({}) divides {}, whatever its socket and its user: use that one, "
          "or "
          "end it first",
          server, card_);
    }
    if (plan.told_to_end()) return false;
    if (!waits) {
      plan.tell(fmt::format("another demarc serve ({}) starts or ends on {}: waiting for it",
                            server, card_));
    }
    waits = true;
  }
}

Result<bool> ServerClaim::take_parts(const ClaimPlan& plan) {
  Survivors survivors = plan.survivors;
  for (bool waits = false;; ::usleep(claim_look)) {
    // With this server's claim no other server lends anything: there is no turn to take.
    DEMARC_TRY(const ClaimedCard claimed, own_.others(card_));
    const auto left = own_.claimers(card_, ClaimRole::tenant);
    if (!claimed.lent && left.empty()) {
      DEMARC_CHECK(lent_.hold_lent(card_));
      return true;
    }
    if (survivors == Survivors::refuse) {
      return missing_capability(
          "programs of a demarc serve that has ended still have its parts of {}: {}: end them, or "
          "start with --survivors wait or --survivors end",
          card_, own_.names(card_, ClaimRole::tenant));
    }
    if (plan.told_to_end()) return false;
    const bool ends = survivors == Survivors::end;
    if (!waits) {
      plan.tell(fmt::format(
          "programs of a demarc serve that has ended still have its parts of {}: "
          "{}: {}",
          card_, own_.names(card_, ClaimRole::tenant), ends ? "ending them" : "waiting for them"));
    }
    waits = true;
    if (!ends) continue;
    if (!end_keepers(own_, claim_address(card_, ClaimRole::tenant),
                     {{SIGTERM, plan.end_patience_ms}, {SIGKILL, kill_patience_ms}},
                     plan.told_to_end)) {
      return false;
    }
    survivors = Survivors::refuse;  // those that are not seen, or do not end
  }
}

Result<std::uint64_t> ServerClaim::domains_beside() const {
  DEMARC_TRY(const ClaimedCard claimed, lent_.others(card_));
  return part_beside(claimed).domains;
}

Result<void> ServerClaim::check_free(const lease::CardClaim& lent, const ClaimedPart& part) const {
  DEMARC_TRY(const ClaimedCard claimed, lent.others(card_));
  const ClaimedPart beside = part_beside(claimed);
  const TpcSet tpcs = TpcSet::from_words(part.tpcs[0], part.tpcs[1]) &
                      TpcSet::from_words(beside.tpcs[0], beside.tpcs[1]);
  const auto who = [&] { return lent.names(card_, ClaimRole::program); };
  if (!tpcs.empty()) {
    return missing_capability(
        "the TPCs {} of {} belong to a program under demarc exec ({}): wait until it has ended, or "
        "give the tenants others",
        to_string(tpcs), card_, who());
  }
  if (const std::uint64_t both = part.domains & beside.domains; both != 0) {
    return missing_capability(
        "the memory synchronisation domain {} of {} belongs to a program under demarc exec ({}): "
        "wait until it has ended, or give the tenants others",
        domain_numbers(both), card_, who());
  }
  return {};
}

Result<void> ServerClaim::divide(const Book& book) {
  const ClaimedPart part = part_of(book);
  DEMARC_TRY(const auto turn, own_.turn());
  DEMARC_CHECK(check_free(lent_, part));
  DEMARC_CHECK(lent_.hold(card_, PartOwner::tenants, part));
  part_ = part;
  return {};
}

Result<void> ServerClaim::serve() {
  serves_ = true;
  return own_.hold_server(card_, true);
}

void ServerClaim::end() {
  serves_ = false;
  static_cast<void>(own_.hold_server(card_, false));
}

Result<void> ServerClaim::follow(const std::function<void(const std::string& line)>& tell) {
  DEMARC_TRY(auto own, own_.on_new_files());
  if (!own) return {};
  DEMARC_TRY(auto lent, lent_.on_new_files());
  if (!lent) return {};
  Result<void> free;
  {
    DEMARC_TRY(const auto turn, own->turn(0));
    free = check_free(*lent, part_);
    DEMARC_CHECK(own->hold_server(card_, serves_));
    DEMARC_CHECK(own->keep(card_, ClaimRole::server));
    DEMARC_CHECK(lent->hold_lent(card_));
    DEMARC_CHECK(lent->hold(card_, PartOwner::tenants, part_));
  }
  {
    const std::lock_guard lock(*files_mutex_);
    own_.add(*std::move(own));
  }
  lent_.add(*std::move(lent));
  tell(
      "the driver's libraries were installed anew: the claim of the card is on the new files, too");
  if (!free)
    tell(fmt::format("before that claim, and so beside the tenants: {}", free.error().message));
  return {};
}

Result<lease::CardClaim> ServerClaim::copy_of_own() const {
  const std::lock_guard lock(*files_mutex_);
  std::vector<OwnedFile> copies;
  for (const int file : own_.files()) {
    copies.emplace_back(::fcntl(file, F_DUPFD_CLOEXEC, 0));
    if (copies.back().get() < 0) {
      return missing_capability("what is left of its programs cannot be looked for: {}",
                                std::strerror(errno));
    }
  }
  return lease::CardClaim::of(std::move(copies));
}

Result<void> ServerClaim::end_left(const std::string& tenant) const {
  DEMARC_TRY(const lease::CardClaim own, copy_of_own());
  const off_t address = lease::tenant_address(card_, tenant);
  // Some may be started by others until those have been killed.
  constexpr int max_rounds = 8;
  std::vector<Claimer> left = own.keepers(address);
  for (int round = 0; round < max_rounds && !left.empty(); ++round) {
    static_cast<void>(end_keepers(own, address, {{SIGKILL, left_patience_ms}}));
    left = own.keepers(address);
  }
  if (left.empty()) return {};
  return check_failed("{} of its programs, which has been killed, has not ended", names_of(left));
}

}  // namespace demarc::serve
