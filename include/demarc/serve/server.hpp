// The server of a card's division. One thread answers packets, ends what belongs to connections
// that end, and fills memory with zeros before it is given again. It waits for no client: sockets
// do not wait, no descriptor of a client is taken, and what MPS is asked is asked beside it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "demarc/guest/control.hpp"
#include "demarc/lease/packet.hpp"
#include "demarc/serve/admission.hpp"
#include "demarc/serve/canary_gauge.hpp"
#include "demarc/serve/card_side.hpp"
#include "demarc/serve/ledger.hpp"
#include "demarc/serve/tenant_sockets.hpp"
#include "demarc/serve/tenant_totals.hpp"
#include "demarc/serve/window_proofs.hpp"
#include "demarc/serve/work_ender.hpp"

namespace demarc::serve {

struct ServerOptions {
  std::string socket;
  std::optional<gid_t> group;  // its members may have leases too
  std::string mps;             // of all leases
  uid_t user = ~uid_t{};       // who may have leases, and grow, move and revoke them; no user yet
  std::uint64_t scrub_bytes = std::uint64_t{64} << 20U;  // at a time, between answers
  // Checked before every grant. If it refuses the ledger, nothing is granted any more.
  std::function<Result<void>(const Book&)> proof = prove;
  // A line for the log.
  std::function<void(const std::string& line)> tell = [](const std::string&) {};
  // Ends the work of processes on the card, before they are killed or a signal ends them. It runs
  // in a thread of its own.
  WorkEnder::End end_work = [](const std::vector<WorkTarget>& targets) {
    return std::vector<Result<void>>(targets.size());
  };
  // Ends processes of a tenant's programs that are left when those with a lease have been killed,
  // such as their children. It runs in that thread, too.
  std::function<Result<void>(const std::string& tenant)> end_left =
      [](const std::string&) -> Result<void> { return {}; };
  // From now on `end_work` returns within so many seconds.
  std::function<void(double seconds)> hurry = [](double) {};
  double ending_seconds = 2.5;  // for `end_work`, at the server's end
  double reading_seconds = 30;  // for a client to take an answer, before its connection is ended
  double farewell_seconds = 1;  // for one that is refused to read why
  int mps_process = -1;         // readable once the daemon of MPS has ended
  SeatLimits limits = {};
  // Descriptors that each program with a lease gets a copy of, beside that of the socket's lock.
  std::function<std::vector<int>()> locks = [] { return std::vector<int>(); };
  // Keeps the parts of the tenants from others that use the card. If it refuses, the tenants stay
  // as they were.
  std::function<Result<void>(const Book&)> claim = [](const Book&) -> Result<void> { return {}; };
  // Whether a process that opens a lease is a canary of this server. Its lease is not counted as a
  // program of the tenant.
  std::function<bool(pid_t process)> is_canary = [](pid_t) { return false; };
  std::function<CanaryReading(const std::string& tenant)> canary = [](const std::string&) {
    return CanaryReading();
  };
};

class Server {
 public:
  // Proves the TPCs of all tenants on the card, then listens. `card` lives as long as requests are
  // answered. `lock`: of lease::PacketListener::claim(), or none; then the path is claimed here.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(ServerOptions options, CardSide& card,
                                                             const std::vector<Terms>& tenants,
                                                             OwnedFile lock = OwnedFile());
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves what has come. It waits at most so many milliseconds (below 0: without limit). True if
  // `wake` (a descriptor; -1: none) is readable. missing_capability, once, if the card was reset or
  // the context on it died; from then on nothing is granted.
  [[nodiscard]] Result<bool> turn(int milliseconds, int wake = -1);

  // Changes the tenants without a restart. Returns a line about each tenant that is in use and
  // stays as it is. If the rest cannot be changed, it returns an error and nothing changes.
  [[nodiscard]] Result<std::vector<std::string>> reload(const std::vector<Terms>& tenants);
  // Ends all leases and processes; from now on nothing is given. Call turn() until ended().
  void end_all();
  // Nothing is left of the tenants' programs, and those whose leases have ended know it.
  [[nodiscard]] bool ended() const;
  // check_failed says what is left although it was to end.
  [[nodiscard]] Result<void> all_ended() const;
  // Ends all connections and takes no other one. The socket's path and its lock stay: the next
  // server starts when this object goes.
  void close();
  // There is no lease, and no memory that waits for zeros.
  [[nodiscard]] bool idle() const;

  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] std::vector<lease::TenantStatus> status() const;
  [[nodiscard]] const CardSide& card() const { return card_; }
  [[nodiscard]] std::size_t connections() const;  // without those that were refused
  // The daemon of MPS has ended: no program is let in any more.
  [[nodiscard]] bool mps_ended() const { return mps_ended_; }
  // No program has a lease; canaries may.
  [[nodiscard]] bool quiet() const {
    return std::all_of(leases_.begin(), leases_.end(),
                       [](const auto& entry) { return entry.second.canary; });
  }
  // No canary has a lease, and no memory waits for zeros.
  [[nodiscard]] bool without_canaries() const {
    return !ledger_.next_unclean(options_.scrub_bytes) &&
           std::none_of(leases_.begin(), leases_.end(),
                        [](const auto& entry) { return entry.second.canary; });
  }
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
    std::string tenant;  // by whose socket it came; empty: by the server's own
    std::uint64_t number = 0;
    lease::Peer peer = {};
    OwnedFile process_file = {};  // pidfd of the peer
    Clock::time_point used = {};  // when it asked last
    std::list<Answer> answers = {};
    std::optional<LeaseId> lease = {};      // the lease that it opened
    std::optional<ProcessId> process = {};  // the process that it attached, and when:
    Clock::time_point attached_at = {};
    std::optional<std::uint64_t> take = {};    // bytes that it waits for, until enough are zeros
    bool ends_work = false;                    // it waits until work on the card has ended
    std::optional<Clock::time_point> limit{};  // of taking its answers
    bool stalled = false;    // an answer could not be sent although it should have been
    bool refused = false;    // it is told why and ends
    bool ended = false;      // its other end is closed; its process may still run
    bool forgotten = false;  // to be removed from the list

    [[nodiscard]] bool waits() const { return take || ends_work; }
    [[nodiscard]] bool holds() const { return lease || process; }
  };
  // What is done when the work of processes has ended.
  struct Ending {
    std::uint64_t connection = 0;  // that gets the answer; 0: none
    std::string tenant = {};       // all of whose processes are killed then; empty: of none
  };
  struct LeaseFacts {
    std::string tenant;
    std::string token = {};
    std::string control = {};  // empty: none
    std::shared_ptr<cuda::Control> block = {};
    bool canary = false;
  };

  Server(ServerOptions options, CardSide& card, lease::PacketListener listener);

  // server.cpp
  void listen_for_tenants();
  void accept_all(const lease::PacketListener& listener, const std::string& tenant);
  [[nodiscard]] Result<void> admit(Connection& connection);
  void refuse(Connection connection, const Error& error);
  [[nodiscard]] Result<void> seat(const Connection& connection);
  void serve(Connection& connection, short events);
  void send_answers(Connection& connection);
  void end_connection(Connection& connection);
  void forget(Connection& connection);
  void forget_ended_leases();
  void note_limits();
  [[nodiscard]] bool is_of_canary(ProcessId process) const {
    return leases_.at(ledger_.book().processes.at(process).lease).canary;
  }
  void scrub(const Unclean& piece);
  [[nodiscard]] Result<void> look_at_card();
  void scrub_next();
  void end_tenant(const std::string& tenant, Connection* asker);
  void end_lease(Connection& connection, const Connection* asker);
  void begin_ending(std::vector<WorkTarget> targets, Ending ending, Connection* asker,
                    WorkEnder::Then then = {});
  void finish_endings();
  void kill_in_time();

  // requests.cpp
  void answer(Connection& connection, const lease::Packet& packet);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::OpenRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::AttachRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::PagesRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::TakeRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::GiveRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::ShowRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::LendRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection,
                                       const lease::WithdrawRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::BorrowRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::ListRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::GrowRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::MoveRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::RevokeRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection,
                                       const lease::EndWorkRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::SloRequest& request);
  [[nodiscard]] std::vector<OwnedFile> locks() const;
  [[nodiscard]] Result<void> check_rules(const Connection& connection) const;
  [[nodiscard]] static Result<void> check_tenant(const Connection& connection,
                                                 const std::string& tenant);
  [[nodiscard]] Result<void> check_new(const Connection& connection) const;
  [[nodiscard]] Result<void> check_not_ending(const std::string& tenant) const;
  [[nodiscard]] Result<lease::Lease> lease_of(const std::string& tenant) const;
  [[nodiscard]] Result<void> take(Connection& connection);
  [[nodiscard]] Result<void> proved() const;

  // window_proofs.cpp
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::ProveRequest& request);
  [[nodiscard]] Result<void> carry_out(Connection& connection, const lease::ProvedRequest& request);
  [[nodiscard]] std::vector<WindowProofs::Process> processes_with_windows(
      const std::string& tenant) const;

  ServerOptions options_;
  CardSide& card_;
  lease::PacketListener listener_;
  Ledger ledger_;
  OwnedFile table_;  // sealed; -1: none
  std::map<LeaseId, LeaseFacts> leases_;
  std::list<Connection> connections_;
  std::uint64_t last_connection_ = 0;
  std::map<std::string, TenantTotals> totals_;  // by tenant
  WindowProofs proofs_;
  Clock::time_point looked_at_ = {};  // the card
  bool dead_ = false;                 // it is
  std::string last_scrubbed_;         // the tenant for whom bytes were filled last
  TenantSockets tenant_sockets_;
  bool mps_ended_ = false;
  bool ends_ = false;                             // end_all() was called
  std::set<std::string> former_tenants_;          // their programs may have left children
  std::map<std::string, std::string> not_ended_;  // what of a tenant has not ended, in words
  std::optional<Clock::time_point> kill_at_;      // all processes are killed from then on
  std::map<WorkEnder::Job, Ending> endings_;
  std::unique_ptr<WorkEnder> ender_;
};

}  // namespace demarc::serve
