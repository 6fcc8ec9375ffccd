// The server of a card's division. It has one thread, which answers packets, ends what belongs to
// connections that end, and fills memory with zeros before it is given again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "demarc/cuda/control.hpp"
#include "demarc/lease/packet.hpp"
#include "demarc/serve/card_side.hpp"
#include "demarc/serve/ledger.hpp"

namespace demarc::serve {

struct ServerOptions {
  std::string socket;
  std::optional<gid_t> group;  // its members may have leases too
  std::string mps;             // of all leases
  uid_t user = 0;              // who may have leases, and grow, move and revoke them
  std::uint64_t scrub_bytes = std::uint64_t{256} << 20U;  // at a time, between answers
  // Checked before every grant. If it refuses the ledger, nothing is granted any more.
  std::function<Result<void>(const Book&)> proof = prove;
  // A line for the log.
  std::function<void(const std::string& line)> tell = [](const std::string&) {};
  // Ends the work of processes on the card, before they are killed or a signal ends them.
  std::function<Result<void>(std::span<const pid_t>)> end_work =
      [](std::span<const pid_t>) -> Result<void> { return {}; };
  // Descriptors that each program with a lease gets a copy of, beside that of the socket's lock.
  std::vector<int> locks = {};
  // Keeps the parts of the tenants from others that use the card. If it refuses, the tenants stay
  // as they were.
  std::function<Result<void>(const Book&)> claim = [](const Book&) -> Result<void> { return {}; };
};

class Server {
 public:
  // Proves the TPCs of all tenants on the card, then listens. `card` outlives the server.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(ServerOptions options, CardSide& card,
                                                             const std::vector<Terms>& tenants);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves what has come. It waits at most so many milliseconds (below 0: without limit). True if
  // `wake` (a descriptor; -1: none) is readable. missing_capability, once, if the card was reset or
  // the context on it died; from then on nothing is granted.
  [[nodiscard]] Result<bool> turn(int milliseconds, int wake = -1);

  // Changes the tenants without a restart. Returns a line about each tenant that is in use and
  // stays as it is. If the rest cannot be changed, it returns an error and nothing changes.
  [[nodiscard]] Result<std::vector<std::string>> reload(const std::vector<Terms>& tenants);
  // Ends all processes; from now on nothing is given. Call turn() until idle().
  void end_all();
  // There is no lease, and no memory that waits for zeros.
  [[nodiscard]] bool idle() const;

  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] std::vector<lease::TenantStatus> status() const;
  [[nodiscard]] const CardSide& card() const { return card_; }
  [[nodiscard]] std::size_t connections() const { return connections_.size(); }
  // The live counts of the programs of a tenant's leases.
  [[nodiscard]] std::vector<const cuda::ControlBlock*> blocks(const std::string& tenant) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Answer {
    std::string text;
    std::vector<OwnedFile> files = {};  // sent with the text
  };
  struct Connection {
    lease::PacketSocket socket;
    lease::Peer peer;
    OwnedFile process_file;  // pidfd of the peer
    std::list<Answer> answers = {};
    std::optional<LeaseId> lease = {};      // the lease that it opened
    std::optional<ProcessId> process = {};  // the process that it attached, and when:
    Clock::time_point attached_at = {};
    bool stalled = false;    // an answer could not be sent although it should have been
    bool ended = false;      // its other end is closed; its process may still run
    bool forgotten = false;  // to be removed from the list
  };
  struct LeaseFacts {
    std::string token;
    std::string control;  // empty: none
    std::shared_ptr<cuda::Control> block;
  };

  Server(ServerOptions options, CardSide& card, lease::PacketListener listener);

  // server.cpp
  void accept_all();
  void serve(Connection& connection, short events);
  void send_answers(Connection& connection);
  void end_connection(Connection& connection);
  void forget(Connection& connection);
  void scrub(const Unclean& piece);
  [[nodiscard]] Result<void> look_at_card();

  // requests.cpp
  void count_leases(lease::TenantStatus& status) const;
  void answer(Connection& connection, const lease::Packet& packet);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::OpenRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::AttachRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::PagesRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::TakeRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::GiveRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::ListRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::GrowRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::MoveRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::RevokeRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection,
                                       const lease::EndWorkRequest& request) const;
  void add_locks(Answer& answer) const;
  [[nodiscard]] Result<void> check_rules(const Connection& connection) const;
  [[nodiscard]] Result<lease::Lease> lease_of(const std::string& tenant) const;
  [[nodiscard]] Result<lease::Extent> take(ProcessId process, std::uint64_t bytes);
  [[nodiscard]] Result<void> proved() const;
  void end_processes(const std::string& tenant);

  ServerOptions options_;
  CardSide& card_;
  lease::PacketListener listener_;
  Ledger ledger_;
  OwnedFile table_;  // sealed; -1: none
  std::map<LeaseId, LeaseFacts> leases_;
  std::list<Connection> connections_;
  std::map<std::string, Clock::duration> attached_;  // of processes that ended, by tenant
  Clock::time_point looked_at_ = {};                 // the card
  bool dead_ = false;                                // it is
};

}  // namespace demarc::serve
