// Who has what of a card: tenants, their leases, the processes of these, and the extents of memory
// that the processes took. Plain bookkeeping: no card, no socket, no clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/lease/messages.hpp"
#include "demarc/partition/tpc_set.hpp"

namespace demarc::serve {

using LeaseId = std::uint64_t;    // from 1 on, never used again
using ProcessId = std::uint64_t;  // of the ledger, not of the system; the same

// A tenant's part of the card.
struct Terms {
  std::string name;
  partition::TpcSet tpcs;
  std::uint64_t colors = 0;                    // bit c: colour c
  std::optional<std::uint32_t> sync_domain{};  // no two tenants have the same one, but 0
  std::uint64_t share_bytes = 0;               // linear bytes that the colours hold
  std::uint64_t bytes = 0;                     // of those, the first ones, which may be taken
  friend bool operator==(const Terms&, const Terms&) = default;
};

// Linear bytes of a tenant, from the key of its map on.
struct Holding {
  enum class State {
    given,    // to `process`
    unclean,  // given back or left behind: nobody's until it was filled with zeros
    lost,     // could not be filled with zeros: nobody's for good
  };
  std::uint64_t bytes = 0;
  ProcessId process = 0;  // 0: none, unless given
  State state = State::given;
};

// All that is written down. Plain data, which prove() looks at.
struct Book {
  struct Tenant {
    Terms terms;
    std::map<std::uint64_t, Holding> holdings;
    bool revoked = false;
    std::uint64_t refused_takes = 0;
  };
  struct Lease {
    std::string tenant;
    bool open = true;  // its owner's connection is there
  };
  struct Process {
    LeaseId lease = 0;
  };
  std::map<std::string, Tenant> tenants;
  std::map<LeaseId, Lease> leases;
  std::map<ProcessId, Process> processes;
};

// That no two tenants share a TPC, a colour or a synchronisation domain, no two holdings a byte,
// and that each holding, process and lease belongs to one that is there. check_failed names the
// first two that do not.
[[nodiscard]] Result<void> prove(const Book& book);

// Linear bytes that wait to be filled with zeros.
struct Unclean {
  std::string tenant;
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;
};

class Ledger {
 public:
  [[nodiscard]] const Book& book() const { return book_; }
  [[nodiscard]] const Book::Tenant* tenant(const std::string& name) const;
  // invalid_input names those that there are.
  [[nodiscard]] Result<const Book::Tenant*> known_tenant(const std::string& name) const;
  // Whether it has leases, or memory that is not clean yet.
  [[nodiscard]] bool busy(const std::string& name) const;
  [[nodiscard]] const std::string& tenant_of(ProcessId process) const;
  [[nodiscard]] std::uint64_t processes_of(const std::string& name) const;

  // A new tenant, or other terms for one. Refused, and nothing changed, where it would share
  // something with another tenant, has no TPC or no colour, or more bytes than its share; for a
  // busy tenant also when its colours or its domain change or holdings lie beyond its bytes.
  [[nodiscard]] Result<void> set(const Terms& terms);
  // All tenants at once, so that they may exchange what they have; those that are not named are
  // taken away. Refused as set() refuses, and where a busy tenant would be taken away.
  [[nodiscard]] Result<void> replace(const std::vector<Terms>& terms);

  // A revoked tenant has none until its last process has ended.
  [[nodiscard]] Result<LeaseId> open(const std::string& tenant);
  // Its owner is gone; the lease ends with its last process.
  void close(LeaseId lease);
  [[nodiscard]] Result<ProcessId> attach(LeaseId lease);
  // The process has ended: what it had is unclean.
  void detach(ProcessId process);
  // Rounded up to whole extent_step. missing_capability, with what is left, where no run is free.
  [[nodiscard]] Result<lease::Extent> take(ProcessId process, std::uint64_t bytes);
  // A take() that was refused for good.
  void count_refusal(ProcessId process);
  [[nodiscard]] Result<void> give(ProcessId process, std::uint64_t first);
  // From now on nothing is given to the tenant, until its last lease has ended.
  [[nodiscard]] Result<void> revoke(const std::string& tenant);

  // The first steps of one that waits, at most so many bytes but one step; nothing: all is clean.
  // Of the tenant, or of any where none is named.
  [[nodiscard]] std::optional<Unclean> next_unclean(std::uint64_t most,
                                                    const std::string& tenant = {}) const;
  // Those bytes hold zeros, and are free.
  void cleaned(const Unclean& piece);
  // They could not be filled: nobody gets the holding that they are of any more.
  void lose(const Unclean& piece);

 private:
  [[nodiscard]] Book::Tenant& tenant_with(ProcessId process);
  void end_lease_without_users(LeaseId lease);
  Book book_;
  std::uint64_t last_id_ = 0;  // of leases and processes
};

}  // namespace demarc::serve
