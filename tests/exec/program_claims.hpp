// Programs under `demarc exec`, and what another process sees of their claims.
#pragma once

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>

#include "confine_fixture.hpp"
#include "demarc/guest/program_claim.hpp"
#include "own_process.hpp"

namespace demarc::cuda {

using gpu::TpcSet;
using lease::CardClaim;
using lease::ClaimedPart;
using lease::ClaimRole;
using lease::PartOwner;

class ProgramClaims : public Confine {
 protected:
  // Claims of this process, which stands for a server or for another demarc exec.
  CardClaim held(PartOwner owner, const ClaimedPart& part, ClaimRole role) {
    CardClaim claim = CardClaim::open(Driver::files().value()).value();
    EXPECT_TRUE(claim.hold(program.card, owner, part));
    EXPECT_TRUE(claim.keep(program.card, role));
    return claim;
  }
  [[nodiscard]] ClaimedPart seen(PartOwner owner) const {
    return CardClaim::open(Driver::files().value())->others(program.card)->of(owner);
  }
  // Whether another process finds this one by a program's claim on these files.
  [[nodiscard]] bool is_found(const std::vector<std::string>& files) const {
    return Supervised::apart([&] {
             const auto found = CardClaim::open(files)->claimers(program.card, ClaimRole::program);
             return std::any_of(found.begin(), found.end(), [](const lease::Claimer& one) {
               return one.process == ::getppid();
             });
           }) == 1;
  }
  // What a run on TPCs 1 and 3 says, or "held".
  std::string outcome_of(const std::function<void(ConfinePlan&)>& change = {}) {
    const auto said = test::fresh_folder("said") / "text";
    const int code = Supervised::apart([&] {
      auto plan = plan_for(program, {"context", "launch"});
      plan.tell = [&](const std::string& line) { std::ofstream(said, std::ios::app) << line; };
      if (change) change(plan);
      const auto outcome = run_confined(plan);
      if (outcome) return outcome->holds() ? 0 : complain(warnings(*outcome));
      std::ofstream(said) << outcome.error().message;
      return static_cast<int>(outcome.error().kind);
    });
    return fmt::format("{} {}", code, read_file(said).value_or(""));
  }
  // Whether the program has launched something before its demarc exec has ended.
  [[nodiscard]] bool has_counted(pid_t exec) const {
    siginfo_t ended{};
    while (program.log().find("count") == std::string::npos) {
      ::waitid(P_PID, static_cast<id_t>(exec), &ended, WEXITED | WNOHANG | WNOWAIT);
      if (ended.si_pid == exec) return false;
      ::usleep(1000);
    }
    return true;
  }
  // The run's own process has the claims of this one mapped too.
  static auto names_this_process(const std::string& begin) {
    return testing::AllOf(testing::StartsWith(begin),
                          testing::HasSubstr(fmt::format("{} (", ::getpid())));
  }
  static ClaimedPart part_of(const TpcSet& tpcs, std::uint64_t domains = 0) {
    return {tpcs.words(), domains};
  }
};

}  // namespace demarc::cuda
