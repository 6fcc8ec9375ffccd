// The server's claim of the card that it divides, and what becomes of programs that a server left.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "demarc/lease/card_claim.hpp"
#include "demarc/serve/ledger.hpp"
#include "demarc/serve/run.hpp"

namespace demarc::serve {

struct ClaimPlan {
  std::vector<std::string> files;  // files of lease::CardClaim
  std::string card;                // UUID
  Survivors survivors = Survivors::refuse;
  std::function<void(const std::string& line)> tell = [](const std::string&) {};
  std::function<bool()> told_to_end = [] { return false; };  // asked while it waits
  double patience_seconds = 120;                             // for a server that starts or ends
  int turn_patience_ms = 10'000;  // for a process that has locked the files of the claims
  int end_patience_ms = 10'000;   // for programs that are told to end, before they are killed
};

class ServerClaim {
 public:
  // Waits for a server that ends. missing_capability names a server that serves the card, and
  // programs of an ended one where `survivors` does not say what to do with them.
  // Nothing if it was told to end while it waited.
  [[nodiscard]] static Result<std::optional<ServerClaim>> take(const ClaimPlan& plan);

  // Domains that programs beside the server have.
  [[nodiscard]] Result<std::uint64_t> domains_beside() const;
  // Claims the parts of these tenants, in the place of those before. missing_capability names the
  // TPCs and domains that programs beside the server have; then all stays as it was.
  [[nodiscard]] Result<void> divide(const Book& book);
  // Kills what is left of a tenant's programs: processes that attached, and their children.
  // check_failed names those that do not end. It may run beside the thread that calls the others.
  [[nodiscard]] Result<void> end_left(const std::string& tenant) const;
  // From now on another server that starts is refused at once; before, and after end(), it waits.
  [[nodiscard]] Result<void> serve();
  void end();
  [[nodiscard]] bool serves() const { return serves_; }
  // If the driver's libraries were installed anew, claims the same on the new files, where programs
  // look that start from now on. `tell` names parts that a program has claimed there meanwhile.
  // missing_capability while another process has its turn on the new files: call it again later.
  [[nodiscard]] Result<void> follow(const std::function<void(const std::string& line)>& tell);
  // Descriptors for all processes with a lease: while one of these has a copy, the parts are held.
  [[nodiscard]] std::vector<int> files() const { return lent_.files(); }

 private:
  ServerClaim(std::string card, lease::CardClaim own, lease::CardClaim lent)
      : card_(std::move(card)), own_(std::move(own)), lent_(std::move(lent)) {}
  // False if it was told to end.
  [[nodiscard]] Result<bool> take_card(const ClaimPlan& plan);
  [[nodiscard]] Result<bool> take_parts(const ClaimPlan& plan);
  // The same open files, for a look at processes beside follow().
  [[nodiscard]] Result<lease::CardClaim> copy_of_own() const;
  [[nodiscard]] Result<void> check_free(const lease::CardClaim& lent,
                                        const lease::ClaimedPart& part) const;
  std::string card_;
  lease::CardClaim own_;     // ends with this process
  lease::CardClaim lent_;    // ends with the last process that has a lease
  lease::ClaimedPart part_;  // what all tenants have together
  bool serves_ = false;
  // follow() adds to the files of own_ under this, and holds it for no longer.
  std::unique_ptr<std::mutex> files_mutex_ = std::make_unique<std::mutex>();
};

}  // namespace demarc::serve
