// What processes have found that were asked to prove their windows again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "demarc/lease/messages.hpp"
#include "demarc/serve/ledger.hpp"

namespace demarc::serve {

class WindowProofs {
 public:
  // A process of a tenant, with the bytes of its windows now.
  struct Process {
    ProcessId id = 0;
    std::int64_t number = 0;  // the system's
    std::uint64_t shown = 0;
  };

  // Begins a proof of the tenant's windows and gives its number, which no other one has. A failure
  // that no result() has told is the new one's, too.
  std::uint64_t begin(const std::string& tenant, const std::vector<Process>& processes);
  // The answer of a process counts for the proof that it was asked for, and a failure for the one
  // that is under way. It must be about all of its windows.
  void note(const std::string& tenant, const Process& process, const lease::ProvedRequest& found);
  // What is known of this proof of the tenant's. `processes`: those that there are now. One that
  // had windows and has ended without an answer is a failure. check_failed if a later one has
  // begun, and invalid_input if none has.
  [[nodiscard]] Result<lease::Proving> result(const std::string& tenant, std::uint64_t number,
                                              const std::vector<Process>& processes);

 private:
  struct Found {
    std::int64_t number = 0;
    bool answered = false;
    std::uint64_t bytes = 0;
  };
  struct Proof {
    std::uint64_t number = 0;
    std::map<ProcessId, Found> found = {};
    std::string failure = {};  // the first one
    bool told = false;
  };

  std::map<std::string, Proof> proofs_;  // by tenant
  std::uint64_t last_ = 0;
};

}  // namespace demarc::serve
