// Claims TPCs and a domain for a program, and refuses what others have.
#include "exec/program_claim.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "demarc/cuda/driver.hpp"

namespace demarc::cuda {
namespace {

using lease::ClaimedCard;
using lease::ClaimRole;
using lease::PartOwner;
using partition::TpcSet;

TpcSet tpcs_in(const lease::ClaimedPart& part) {
  return TpcSet::from_words(part.tpcs[0], part.tpcs[1]);
}

std::atomic<const lease::CardClaim*> claim_of_process{nullptr};

bool has_domain(const ClaimedCard& claimed, PartOwner owner, std::uint32_t domain) {
  return domain < 64 && ((claimed.of(owner).domains >> domain) & 1U) != 0;
}

}  // namespace

Result<ProgramClaim> ProgramClaim::open(bool shares_tpcs) {
  DEMARC_TRY(const auto files, Driver::files());
  DEMARC_TRY(auto claim, lease::CardClaim::open(files));
  return ProgramClaim(std::move(claim), shares_tpcs ? PartOwner::sharing : PartOwner::program);
}

std::string ProgramClaim::server_of(const std::string& card) const {
  const auto servers = claim_.claimers(card, ClaimRole::server);
  // Programs of a server that was killed still have their parts.
  return names_of(servers.empty() ? claim_.claimers(card, ClaimRole::tenant) : servers);
}

Result<ProgramClaim> ProgramClaim::like(const ControlBlock& block) {
  DEMARC_TRY(ProgramClaim claim, open(block.claim_owner == PartOwner::sharing));
  claim.already_ = tpcs_in(block.claim);
  return claim;
}

Result<void> ProgramClaim::take_tpcs(const std::string& card, const TpcSet& tpcs) {
  DEMARC_TRY(const auto turn, claim_.turn());
  DEMARC_TRY(const ClaimedCard claimed, claim_.others(card));
  if (const TpcSet both = tpcs & tpcs_in(claimed.of(PartOwner::tenants)); !both.empty()) {
    return missing_capability(
        "the TPCs {} of {} belong to tenants of demarc serve ({}): choose others, or run the "
        "program as a tenant (--tenant)",
        to_string(both), card, server_of(card));
  }
  TpcSet taken = tpcs_in(claimed.of(PartOwner::program));
  if (owner_ == PartOwner::program) taken = taken | tpcs_in(claimed.of(PartOwner::sharing));
  if (const TpcSet both = (tpcs - already_) & taken; !both.empty()) {
    return missing_capability(
        "the TPCs {} of {} belong to another demarc exec ({}): choose others, or give "
        "--allow-overlap to both",
        to_string(both), card, names_of(claim_.claimers(card, ClaimRole::program)));
  }
  part_.tpcs = tpcs.words();
  return claim_.hold(card, owner_, part_);
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
  std::copy(files.begin(), files.end(), std::begin(block.claim_files));
  block.claim_owner = owner_;
  block.claim = part_;
  return {};
}

void ProgramClaim::follow(ControlBlock& block) const {
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
  std::vector<std::string> files;
  for (const std::int32_t file : block.claim_files) {
    if (file >= 0) files.push_back(folder + std::to_string(file));
  }
  if (files.empty()) return {};
  DEMARC_TRY(auto claim, lease::CardClaim::open(files));
  DEMARC_CHECK(claim.hold(block.uuid, block.claim_owner, block.claim));
  DEMARC_CHECK(claim.keep(block.uuid, ClaimRole::program));
  // For ever: launches may come from the destructors of others.
  claim_of_process.store(new lease::CardClaim(std::move(claim)));
  return {};
}

Result<void> follow_claim(const ControlBlock& block) {
  const lease::CardClaim* claim = claim_of_process.load();
  if (claim == nullptr) return {};
  return claim->hold(block.uuid, block.claim_owner, block.claim);
}

}  // namespace demarc::cuda
