// The client's side of a connection to `demarc serve`. Each call asks a question and waits for the
// answer, but not for ever: a server that says nothing for 10 s is an error, or for 60 s where it
// has to fill memory with zeros, prove TPCs or end programs first. No call starts a thread, takes a
// lock or throws. Calls of one client must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "demarc/base/owned_file.hpp"
#include "demarc/base/result.hpp"
#include "demarc/lease/card_claim.hpp"
#include "demarc/lease/messages.hpp"
#include "demarc/lease/packet.hpp"

namespace demarc::lease {

// Environment of the processes of a program that has a lease: its token.
inline constexpr const char* token_variable = "DEMARC_LEASE";

// What attach() gives beside the connection.
struct Attachment {
  Lease lease;
  std::vector<std::byte> table;  // of remainders; empty for parities
};

struct ServerStatus {
  std::string card;  // UUID
  std::uint64_t arena_bytes = 0;
  std::vector<TenantStatus> tenants;
  std::string mps = {};  // as ListHead has it
};

class LeaseClient {
 public:
  // missing_capability if no server listens there, or if this user may not use it.
  [[nodiscard]] static Result<LeaseClient> connect(const std::string& socket,
                                                   double patience_seconds = 10);

  // The calls below return the server's own errors, in its words; missing_capability if it is gone,
  // does not answer, or if the program has closed the connection's descriptor, whose number may be
  // another file's now: that file is neither written nor read. check_failed if an answer cannot be
  // read. open() and attach() also bring a copy of PacketListener::lock(), and of the server's
  // claim of the card, which this process keeps whatever descriptors it closes: the next server
  // cannot start before the client is gone.
  [[nodiscard]] Result<Opened> open(const std::string& tenant, const std::string& control);
  // From then on the process belongs to the lease. When the process ends, all its memory in the
  // lease is given back.
  [[nodiscard]] Result<Attachment> attach(const std::string& token);
  // The descriptors of pages of the arena, in order: of all of the run (1 or more), or of as many
  // as come at a time.
  [[nodiscard]] Result<std::vector<OwnedFile>> pages(color::PageRun run) const;
  // Gives at least `bytes`, a multiple of extent_step, filled with zeros. missing_capability, with
  // what is left, if the tenant has no such run.
  [[nodiscard]] Result<Extent> take(std::uint64_t bytes) const;
  // Gives back what take() or borrow() gave at `first`. No kernel of this process may use it any
  // more.
  [[nodiscard]] Result<void> give(color::LinearByte first) const;
  // Gives the key by which other processes of the tenant borrow what take() gave at `first`, for
  // the allocation that begins at `place` in it.
  [[nodiscard]] Result<std::string> lend(color::LinearByte first, std::uint64_t place) const;
  // The allocation was freed: its key is of no use from then on.
  [[nodiscard]] Result<void> withdraw(color::LinearByte first, std::uint64_t place) const;
  // Gives what another process of the tenant has lent under this key; both have it from then on.
  // invalid_input if no process of the tenant has such bytes any more.
  [[nodiscard]] Result<Extent> borrow(const std::string& key) const;

  // Gets the mappings that it takes to show what take() gave at `first`, until it is given back.
  // missing_capability if the tenant has no more of them.
  [[nodiscard]] Result<void> show(color::LinearByte first) const;

  [[nodiscard]] Result<ServerStatus> list() const;
  [[nodiscard]] Result<void> grow(const std::string& tenant, std::uint64_t bytes) const;
  [[nodiscard]] Result<void> move(const std::string& tenant, const std::string& tpcs) const;
  [[nodiscard]] Result<void> revoke(const std::string& tenant) const;
  // Counts misses of a service-level objective, 1 to max_slo_misses, for a tenant that has a lease.
  [[nodiscard]] Result<void> count_slo_misses(const std::string& tenant,
                                              std::uint64_t misses) const;

  // Asks the tenant's processes to prove their windows again (0), or how far that has come (the
  // number of an earlier answer).
  [[nodiscard]] Result<Proving> prove(const std::string& tenant, std::uint64_t number) const;
  // A process says what its proof of this number has found in so many bytes of windows.
  [[nodiscard]] Result<void> proved(std::uint64_t number, std::uint64_t bytes,
                                    const std::string& failure) const;

  // What the server says unasked before it ends the connection, which is readable then: why.
  [[nodiscard]] std::string last_words() const;

  // A call found that the connection is of no use any more: its error is not the server's.
  [[nodiscard]] bool lost() const { return lost_; }
  // The descriptor of the connection, for code that must keep it from being closed.
  [[nodiscard]] int file() const { return socket_.file(); }

 private:
  LeaseClient(PacketSocket socket, double patience_seconds)
      : socket_(std::move(socket)), patience_seconds_(patience_seconds) {}
  [[nodiscard]] Result<Packet> receive(double seconds) const;
  [[nodiscard]] tl::unexpected<Error> no_answer_in_time() const;
  // `turns`: so many times as long as usual.
  [[nodiscard]] Result<Packet> ask(const Request& request, double turns = 1) const;
  [[nodiscard]] Result<void> keep(std::vector<OwnedFile> locks,
                                  const std::vector<off_t>& addresses);
  template <class Answer>
  [[nodiscard]] Result<Answer> answer(const Request& request, double turns = 1) const;

  PacketSocket socket_;
  double patience_seconds_;
  std::vector<KeptFile> locks_;
  mutable bool silent_ = false;  // a question had no answer in time, so no other one has one
  mutable bool lost_ = false;
};

}  // namespace demarc::lease
