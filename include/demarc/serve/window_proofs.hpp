// What processes have found that were asked to prove their windows again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/lease/messages.hpp"

namespace demarc::serve {

class WindowProofs {
 public:
  // The number of a new proof of the tenant's windows. What an earlier one found is forgotten.
  [[nodiscard]] std::uint64_t begin(const std::string& tenant);
  // invalid_input if no proof has this number, such as that of an earlier one.
  [[nodiscard]] Result<void> note(const std::string& tenant, std::int64_t process,
                                  const lease::ProvedRequest& found);
  // `processes`: those that have windows now. What others have found stays.
  [[nodiscard]] Result<lease::Proving> result(const std::string& tenant, std::uint64_t number,
                                              const std::vector<std::int64_t>& processes) const;

 private:
  struct Found {
    std::uint64_t bytes = 0;
    std::string failure = {};
  };
  struct Proof {
    std::uint64_t number = 0;
    std::map<std::int64_t, Found> found = {};  // by process
  };
  [[nodiscard]] Result<const Proof*> proof(const std::string& tenant, std::uint64_t number) const;

  std::map<std::string, Proof> proofs_;  // by tenant
  std::uint64_t last_ = 0;
};

}  // namespace demarc::serve
