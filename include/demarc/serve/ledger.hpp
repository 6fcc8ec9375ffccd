// Who has what of a card: tenants, their leases, the processes of the leases, and the extents of
// memory that the processes took. It is plain bookkeeping, without a card, a socket or a clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/color/color_set.hpp"
#include "demarc/device/tpc_set.hpp"
#include "demarc/lease/messages.hpp"

namespace demarc::serve {

using LeaseId = std::uint64_t;    // from 1 on, never used again
using ProcessId = std::uint64_t;  // a number of the ledger, not of the system; from 1 on, never
                                  // used again

// A tenant's part of the card.
struct Terms {
  std::string name;
  gpu::TpcSet tpcs;
  color::ColorSet colors;
  std::optional<std::uint32_t> sync_domain{};  // from 1 on; no two tenants have the same one
  std::uint64_t share_bytes = 0;               // linear bytes that the colours hold
  std::uint64_t bytes = 0;                     // number of those, from the first on, that may be
                                               // taken
  std::uint64_t window_bytes = 0;  // bytes that processes may show at a time, all together
  friend bool operator==(const Terms&, const Terms&) = default;
};

// A process that has bytes of its tenant, alone or together with others.
struct Owner {
  bool shown = false;  // the process reaches the bytes by its page table
};
using Owners = std::map<ProcessId, Owner>;

// Bytes of a tenant, from the key of its map on.
struct Holding {
  enum class State {
    given,    // to `owners`
    unclean,  // given back or left behind: belongs to no process until it is filled with zeros
    lost,     // could not be filled with zeros: belongs to no process for ever
  };
  std::uint64_t bytes = 0;
  Owners owners = {};  // none, unless given
  State state = State::given;
  // By these keys other processes of the tenant borrow the bytes: where an allocation begins in
  // them
  // -> its key.
  std::map<std::uint64_t, std::string> keys = {};
};
using Holdings = std::map<color::LinearByte, Holding>;

// Everything that the ledger knows, as plain data. prove() checks it.
struct Book {
  struct Tenant {
    Terms terms;
    Holdings holdings;
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
  // What was lost of shares that no tenant has now, by their colours.
  std::map<color::ColorSet, Holdings> lost = {};
};

// Checks that no two tenants share a TPC, a colour or a synchronisation domain, that no two
// holdings share a byte, that each given holding has an owner, that all owners of a holding are
// processes of its tenant, and that the owner of each process and lease exists. check_failed names
// the first two that break this.
[[nodiscard]] Result<void> prove(const Book& book);

// Bytes that wait to be filled with zeros.
struct Unclean {
  std::string tenant;
  color::Extent extent;
};

// What processes of the tenant show by their page tables. Bytes that several of them show count
// for each, because each needs mappings of its own.
[[nodiscard]] std::uint64_t shown_bytes(const Book::Tenant& tenant);
// Nothing more can be given to the tenant until some of its memory comes back or its maximum grows.
// Bytes that wait for zeros are on their way back, so they count as free.
[[nodiscard]] bool is_full(const Book::Tenant& tenant);

class Ledger {
 public:
  [[nodiscard]] const Book& book() const { return book_; }
  [[nodiscard]] const Book::Tenant* tenant(const std::string& name) const;
  // invalid_input lists the known tenants.
  [[nodiscard]] Result<const Book::Tenant*> known_tenant(const std::string& name) const;
  // Whether it has leases, or memory that waits for zeros.
  [[nodiscard]] bool busy(const std::string& name) const;
  [[nodiscard]] const std::string& tenant_of(ProcessId process) const;
  [[nodiscard]] std::uint64_t processes_of(const std::string& name) const;

  // Adds a tenant, or gives one other terms. This is refused, and nothing changes, if the tenant
  // would share something with another one, if it has no TPC or no colour, or if it has more bytes
  // than its share. For a busy tenant it is also refused if its colours or its domain change or if
  // holdings lie beyond its bytes.
  [[nodiscard]] Result<void> set(const Terms& terms);
  // Sets all tenants at once, so that they may exchange what they have. Tenants that are not named
  // are removed. This is refused as by set(), and if a busy tenant would be removed.
  [[nodiscard]] Result<void> replace(const std::vector<Terms>& terms);

  // Opens a lease. A revoked tenant gets none until its last process has ended.
  [[nodiscard]] Result<LeaseId> open(const std::string& tenant);
  // The owner of the lease is gone; the lease ends with its last process.
  void close(LeaseId lease);
  [[nodiscard]] Result<ProcessId> attach(LeaseId lease);
  // The process has ended; its memory becomes unclean, but for what other processes have, too.
  void detach(ProcessId process);
  // Gives memory, rounded up to a multiple of extent_step. missing_capability, with what is left,
  // if no such run is free.
  [[nodiscard]] Result<lease::Extent> take(ProcessId process, std::uint64_t bytes);
  // Counts a take() that was finally refused.
  void count_refusal(ProcessId process);
  // The process no longer has what begins at `first`. It becomes unclean once its last owner gave
  // it back or ended.
  [[nodiscard]] Result<void> give(ProcessId process, color::LinearByte first);
  // Other processes of the tenant may borrow what the process has at `first` by the key of its
  // allocation at this place. Gives the allocation's key, which is the first one that it got.
  // missing_capability if the tenant has lent as many allocations as it may.
  [[nodiscard]] Result<std::string> lend(ProcessId process, color::LinearByte first,
                                         std::uint64_t place, const std::string& key);
  // The key of this allocation is forgotten.
  [[nodiscard]] Result<void> withdraw(ProcessId process, color::LinearByte first,
                                      std::uint64_t place);
  // The process has, together with their other owners, the bytes of its tenant that have this key.
  // invalid_input if there are none; missing_capability if the tenant was revoked.
  [[nodiscard]] Result<lease::Extent> borrow(ProcessId process, const std::string& key);
  // The process shows what it holds from `first` on. missing_capability, with what is left, if the
  // tenant's processes would show more than it may.
  [[nodiscard]] Result<void> show(ProcessId process, color::LinearByte first);
  // What the process shows.
  [[nodiscard]] std::uint64_t shown_bytes_of(ProcessId process) const;
  // From now on nothing is given to the tenant, until its last lease has ended.
  [[nodiscard]] Result<void> revoke(const std::string& tenant);

  // The beginning of a piece that waits to be cleaned, of the tenant, or of any tenant if none is
  // named. It has at most so many bytes, but at least one step. Nothing: all is clean.
  [[nodiscard]] std::optional<Unclean> next_unclean(std::uint64_t most,
                                                    const std::string& tenant = {}) const;
  // Those bytes hold zeros now and are free.
  void cleaned(const Unclean& piece);
  // They could not be filled with zeros: no process gets their holding any more.
  void lose(const Unclean& piece);

 private:
  [[nodiscard]] Book::Tenant& tenant_with(ProcessId process);
  // What begins there and belongs to the process, perhaps among others.
  [[nodiscard]] Result<Holding*> owned(ProcessId process, color::LinearByte first);
  void end_lease_without_users(LeaseId lease);
  Book book_;
  std::uint64_t last_id_ = 0;  // of leases and processes
};

}  // namespace demarc::serve
