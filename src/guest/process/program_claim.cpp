// Claims TPCs and a domain for a program, and refuses what others have.
#include "demarc/guest/program_claim.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <iterator>
#include <mutex>
#include <string_view>

#include "demarc/base/numbers.hpp"
#include "demarc/base/owned_file.hpp"
#include "demarc/base/text.hpp"
#include "demarc/driver/driver.hpp"

namespace demarc::cuda {
namespace {

using gpu::TpcSet;
using lease::CardClaim;
using lease::ClaimedCard;
using lease::ClaimedPart;
using lease::ClaimRole;
using lease::PartOwner;

TpcSet tpcs_in(const lease::ClaimedPart& part) {
  return TpcSet::from_words(part.tpcs[0], part.tpcs[1]);
}

struct ProcessClaim {
  CardClaim claim;
  bool shares = false;  // the very locks of its demarc exec; else it has taken the same
  std::string control;
  ClaimedPart has;
  std::mutex mutex = {};
};
std::atomic<ProcessClaim*> claim_of_process{nullptr};

// The demarc exec of "/proc/PID/fd/N#TOKEN", as a pidfd.
OwnedFile process_of_control(const std::string& control) {
  constexpr std::string_view folder = "/proc/";
  if (!control.starts_with(folder)) return {};
  const std::string_view rest = std::string_view(control).substr(folder.size());
  const auto number = parse_u64(rest.substr(0, rest.find('/')), "a process");
  if (!number) return {};
  return OwnedFile(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(*number), 0)));
}

// False if it is none.
bool id_of_file(int file, std::uint64_t (&id)[2]) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return false;
  id[0] = status.st_dev;
  id[1] = status.st_ino;
  return true;
}

bool is_file(int file, const std::uint64_t (&id)[2]) {
  std::uint64_t found[2] = {};
  return id_of_file(file, found) && std::equal(std::begin(id), std::end(id), std::begin(found));
}

// False, too, while another process has its turn.
bool holds_in_its_turn(CardClaim& claim, const ControlBlock& block, PartOwner owner) {
  const auto turn = claim.turn(0);
  return turn && claim.hold(block.uuid, owner, block.claim) &&
         claim.keep(block.uuid, ClaimRole::program);
}

bool has_domain(const ClaimedCard& claimed, PartOwner owner, std::uint32_t domain) {
  return domain < 64 && ((claimed.of(owner).domains >> domain) & 1U) != 0;
}

}  // namespace

Result<ProgramClaim> ProgramClaim::open(bool shares_tpcs) {
  DEMARC_TRY(const auto files, Driver::files());
  DEMARC_TRY(auto claim, lease::CardClaim::open_all(files));
  return ProgramClaim(std::move(claim), shares_tpcs ? PartOwner::sharing : PartOwner::program);
}

std::string ProgramClaim::server_of(const std::string& card) const {
  // Programs of a server that was killed still have their parts.
  const bool serves = !claim_.claimers(card, ClaimRole::server).empty();
  return claim_.names(card, serves ? ClaimRole::server : ClaimRole::tenant);
}

Result<ProgramClaim> ProgramClaim::like(const ControlBlock& block) {
  DEMARC_TRY(ProgramClaim claim, open(block.claim_owner == PartOwner::sharing));
  claim.already_ = tpcs_in(block.claim);
  return claim;
}

Result<TpcSet> ProgramClaim::take_tpcs(const std::string& card, const Choose& choose) {
  DEMARC_TRY(const auto turn, claim_.turn());
  DEMARC_TRY(const ClaimedCard claimed, claim_.others(card));
  const TpcSet tenants = tpcs_in(claimed.of(PartOwner::tenants));
  TpcSet programs = tpcs_in(claimed.of(PartOwner::program));
  if (owner_ == PartOwner::program) programs = programs | tpcs_in(claimed.of(PartOwner::sharing));
  programs = programs - already_;
  auto tpcs = choose(tenants | programs);
  if (!tpcs && tpcs.error().kind == ErrorKind::missing_capability) {
    return missing_capability("{}: the TPCs {} of {} belong to {}", tpcs.error().message,
                              to_string(tenants | programs), card,
                              tenants.empty() ? claim_.names(card, ClaimRole::program)
                                              : "demarc serve, " + server_of(card));
  }
  if (!tpcs) return tpcs;
  if (const TpcSet both = *tpcs & tenants; !both.empty()) {
    return missing_capability(
        "the TPCs {} of {} belong to tenants of demarc serve ({}): choose others, or run the "
        "program as a tenant (--tenant)",
        to_string(both), card, server_of(card));
  }
  if (const TpcSet both = *tpcs & programs; !both.empty()) {
    return missing_capability(
        "the TPCs {} of {} belong to another demarc exec ({}): choose others, or give "
        "--allow-overlap to both",
        to_string(both), card, claim_.names(card, ClaimRole::program));
  }
  part_.tpcs = tpcs->words();
  DEMARC_CHECK(claim_.hold(card, owner_, part_));
  DEMARC_CHECK(claim_.keep(card, ClaimRole::program));
  return tpcs;
}

Result<std::uint32_t> ProgramClaim::take_free_domain(const std::string& card, std::uint32_t count) {
  DEMARC_TRY(const auto turn, claim_.turn());
  DEMARC_TRY(const ClaimedCard claimed, claim_.others(card));
  for (std::uint32_t domain = 1; domain < std::min(count, 64U); ++domain) {
    if (has_domain(claimed, PartOwner::tenants, domain) ||
        has_domain(claimed, PartOwner::program, domain) ||
        has_domain(claimed, PartOwner::sharing, domain)) {
      continue;
    }
    part_.domains = std::uint64_t{1} << domain;
    DEMARC_CHECK(claim_.hold(card, owner_, part_));
    return domain;
  }
  return missing_capability(
      "other programs under demarc exec, and tenants, have all domains of the card but the common "
      "one");
}

Result<void> ProgramClaim::take_domain(const std::string& card, std::uint32_t domain,
                                       const Tell& tell) {
  if (domain == 0) return {};
  DEMARC_TRY(const auto turn, claim_.turn());
  DEMARC_TRY(const ClaimedCard claimed, claim_.others(card));
  if (has_domain(claimed, PartOwner::tenants, domain)) {
    return missing_capability(
        "the memory synchronisation domain {} of {} belongs to a tenant of demarc serve ({}): give "
        "--sync-domain free",
        domain, card, server_of(card));
  }
  if (tell && (has_domain(claimed, PartOwner::program, domain) ||
               has_domain(claimed, PartOwner::sharing, domain))) {
    tell(fmt::format("another demarc exec also has the memory synchronisation domain {}", domain));
  }
  if (domain < 64) part_.domains = std::uint64_t{1} << domain;
  return claim_.hold(card, owner_, part_);
}

void ProgramClaim::tell_of_server(const std::string& card, const Tell& tell) const {
  const auto claimed = claim_.others(card);
  if (!tell || !claimed || !claimed->lent) return;
  tell(fmt::format(
      "demarc serve ({}) divides {}: this program has none of its parts, and runs on the TPCs and "
      "in the memory of its tenants",
      server_of(card), card));
}

Result<void> ProgramClaim::pass_on(const std::string& card, ControlBlock& block) {
  DEMARC_CHECK(claim_.keep(card, ClaimRole::program));
  const auto files = claim_.files();
  if (files.size() > std::size(block.claim_files)) {
    return missing_capability("{} files of a claim; at most {} were expected", files.size(),
                              std::size(block.claim_files));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    block.claim_files[i] = files[i];
    static_cast<void>(id_of_file(files[i], block.claim_file_ids[i]));
  }
  block.claim_owner = owner_;
  block.claim = part_;
  return {};
}

void ProgramClaim::follow(ControlBlock& block) {
  if (auto renewed = claim_.on_new_files(); renewed && *renewed) {
    CardClaim& next = **renewed;
    if (holds_in_its_turn(next, block, owner_)) claim_.add(std::move(next));
  }
  const std::uint32_t wanted = block.claims_wanted.load(std::memory_order_acquire);
  if (wanted == block.claims_held.load(std::memory_order_relaxed)) return;
  lease::ClaimedPart next = block.claim;
  next.tpcs = (tpcs_in(block.claim) | tpcs_in(block.claim_wanted)).words();
  if (!claim_.hold(block.uuid, owner_, next)) return;
  block.claim = next;
  block.claims_held.store(wanted, std::memory_order_release);
}

Result<void> hand_over(ControlBlock& block, const TpcSet& tpcs, int looks) {
  block.claim_wanted.tpcs = tpcs.words();
  const std::uint32_t wanted = block.claims_wanted.fetch_add(1) + 1;
  for (int look = 0; look < looks; ++look) {
    if (block.claims_held.load(std::memory_order_acquire) == wanted) return {};
    ::usleep(10'000);
  }
  return missing_capability(
      "the program's demarc exec stands still and has not claimed the TPCs {}: the program keeps "
      "those that it has",
      to_string(tpcs));
}

Result<void> keep_claim(const std::string& control, const ControlBlock& block) {
  const std::string folder = control.substr(0, control.rfind('/') + 1);  // "/proc/PID/fd/"
  std::vector<std::string> names;
  std::vector<OwnedFile> same;
  const OwnedFile exec = process_of_control(control);
  const auto ids = std::begin(block.claim_file_ids);
  for (const std::int32_t file : block.claim_files) {
    if (file < 0) break;
    names.push_back(folder + std::to_string(file));
    same.emplace_back(static_cast<int>(::syscall(SYS_pidfd_getfd, exec.get(), file, 0)));
  }
  const bool shares =
      std::equal(same.begin(), same.end(), ids,
                 [](const auto& file, const auto& id) { return is_file(file.get(), id); });
  DEMARC_TRY(auto claim,
             shares ? Result<CardClaim>(CardClaim::of(std::move(same))) : CardClaim::open(names));
  const auto files = claim.files();
  if (!std::equal(files.begin(), files.end(), ids,
                  [](int file, const auto& id) { return is_file(file, id); })) {
    return missing_capability(
        "{}: these are no longer the files on which demarc exec has claimed the card: it has ended "
        "meanwhile; start the program again",
        joined(names, ", "));
  }
  if (!shares) DEMARC_CHECK(claim.hold(block.uuid, block.claim_owner, block.claim));
  DEMARC_CHECK(claim.keep(block.uuid, ClaimRole::program));
  // For ever: launches may come from the destructors of others.
  claim_of_process.store(new ProcessClaim{std::move(claim), shares, control, block.claim});
  return {};
}

namespace {

// TPCs that a process of the same program has claimed, which lives.
TpcSet taken_by_siblings(const ControlBlock& block, const CardClaim& claim) {
  const auto others = claim.claimers(block.uuid, ClaimRole::program);
  const auto takes = [&](std::int32_t taker) {
    return std::any_of(others.begin(), others.end(),
                       [&](const lease::Claimer& other) { return other.process == taker; });
  };
  const bool lives =
      std::any_of(std::begin(block.claim_takers), std::end(block.claim_takers), takes);
  return lives ? tpcs_in(block.claim_taken) : TpcSet();
}

void note_taker(ControlBlock& block) {
  if (block.claim_taken != block.claim)
    std::fill(std::begin(block.claim_takers), std::end(block.claim_takers), 0);
  block.claim_taken = block.claim;
  for (std::int32_t& taker : block.claim_takers) {
    if (taker != 0 && taker != ::getpid() && ::kill(taker, 0) == 0) continue;
    taker = ::getpid();
    return;
  }
}

}  // namespace

Result<void> follow_claim(ControlBlock& block) {
  ProcessClaim* own = claim_of_process.load();
  if (own == nullptr || own->shares) return {};
  const std::lock_guard lock(own->mutex);
  DEMARC_TRY(const auto turn, own->claim.turn());
  TpcSet added = tpcs_in(block.claim) - tpcs_in(own->has);
  // A demarc exec that lives has had them all the time.
  if (!added.empty() && !Control::open(own->control)) {
    added = added - taken_by_siblings(block, own->claim);
    DEMARC_TRY(const ClaimedCard claimed, own->claim.others(block.uuid));
    TpcSet taken =
        tpcs_in(claimed.of(PartOwner::tenants)) | tpcs_in(claimed.of(PartOwner::program));
    if (block.claim_owner == PartOwner::program) {
      taken = taken | tpcs_in(claimed.of(PartOwner::sharing));
    }
    if (const TpcSet both = added & taken; !both.empty()) {
      return missing_capability(
          "this program was moved to TPCs of which another one ({}) has {} by now, because its "
          "demarc exec was killed before the program used them: start it again",
          own->claim.names(block.uuid, ClaimRole::program), to_string(both));
    }
  }
  DEMARC_CHECK(own->claim.hold(block.uuid, block.claim_owner, block.claim));
  own->has = block.claim;
  note_taker(block);
  return {};
}

}  // namespace demarc::cuda
