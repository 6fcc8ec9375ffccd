// Answers the requests of clients. A request is carried out as a whole, or refused, and then
// nothing changes.
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "asker.hpp"
#include "columns.hpp"
#include "demarc/base/text.hpp"
#include "demarc/serve/server.hpp"

namespace demarc::serve {
namespace {

using gpu::TpcSet;

Result<std::string> new_token() {
  std::uint64_t words[2];
  if (::getentropy(words, sizeof words) != 0) {
    return missing_capability("no random numbers: {}", std::strerror(errno));
  }
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

// Bytes that were sent and that the other end has not read.
bool has_unread(int socket) {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes != 0;
}

std::uint64_t milliseconds_of(std::chrono::steady_clock::duration time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

}  // namespace

void Server::answer(Connection& connection, const lease::Packet& packet) {
  auto done = [&]() -> Result<void> {
    DEMARC_TRY(const lease::Request request, lease::parse_request(packet.text));
    return std::visit([&](const auto& asked) { return carry_out(connection, asked); }, request);
  }();
  if (!done) connection.answers.push_back({lease::to_text(done.error()), {}});
}

Result<void> Server::proved() const {
  if (dead_) return missing_capability("the card was reset, or the server's context on it died");
  return options_.proof(ledger_.book());
}

// Not every client may change terms of other tenants.
Result<void> Server::check_rules(const Connection& connection) const {
  if (!connection.tenant.empty()) {
    return invalid_input(
        "this is the socket of tenant '{}', whose programs may have leases; tenants are changed at "
        "the server's own socket, {}",
        connection.tenant, options_.socket);
  }
  if (connection.peer.user != options_.user) {
    return invalid_input("user {} may have leases; only user {} may change tenants",
                         connection.peer.user, options_.user);
  }
  if (!in_container(connection.peer.process)) return {};
  return invalid_input(
      "process {} is in a container (a process namespace of its own), from which no tenant is "
      "changed: ask from outside",
      connection.peer.process);
}

// Which tenant a process may be of is told by the socket by which it came.
Result<void> Server::check_tenant(const Connection& connection, const std::string& tenant) {
  if (connection.tenant.empty() || connection.tenant == tenant) return {};
  return invalid_input("this is the socket of tenant '{}', which gives no lease of tenant '{}'",
                       connection.tenant, tenant);
}

// Before a connection gets a lease or a process.
Result<void> Server::check_new(const Connection& connection) const {
  if (connection.holds()) {
    return invalid_input("this connection has a lease already; it can have only one");
  }
  if (ends_) return missing_capability("this server ends: start it again");
  if (mps_ended_) {
    return missing_capability(
        "the daemon of MPS of this server has ended, so programs would take turns on the card: "
        "start the server again");
  }
  const auto holders = std::count_if(connections_.begin(), connections_.end(),
                                     [](const Connection& other) { return other.holds(); });
  if (static_cast<std::size_t>(holders) < options_.limits.holders()) return {};
  return missing_capability("this server already has {} leases and processes, the largest number",
                            holders);
}

// What is left of a revoked tenant's programs is still looked for, and a new one would be taken for
// one of these.
Result<void> Server::check_not_ending(const std::string& tenant) const {
  const bool ending = std::any_of(endings_.begin(), endings_.end(),
                                  [&](const auto& entry) { return entry.second.tenant == tenant; });
  if (!ending) return {};
  return missing_capability("tenant '{}' was revoked: its processes must end first", tenant);
}

Result<lease::Lease> Server::lease_of(const std::string& tenant) const {
  const Terms& terms = ledger_.tenant(tenant)->terms;
  DEMARC_TRY(lease::Share share, card_.share(terms.colors));
  DEMARC_TRY(lease::ProvedMask mask, card_.mask(terms.tpcs));
  return lease::Lease{tenant,           card_.uuid(),      to_string(terms.tpcs),
                      std::move(mask),  terms.sync_domain, terms.bytes,
                      std::move(share), options_.mps,      terms.window_bytes};
}

std::vector<OwnedFile> Server::locks() const {
  std::vector<OwnedFile> copies;
  copies.emplace_back(::dup(listener_.lock()));
  for (const int file : options_.locks()) copies.emplace_back(::dup(file));
  return copies;
}

Result<void> Server::carry_out(Connection& connection, const lease::OpenRequest& request) {
  DEMARC_CHECK(check_new(connection));
  DEMARC_CHECK(check_tenant(connection, request.tenant));
  DEMARC_CHECK(check_not_ending(request.tenant));
  LeaseFacts facts{.tenant = request.tenant, .canary = options_.is_canary(connection.peer.process)};
  DEMARC_TRY(facts.token, new_token());
  if (!request.control.empty()) {
    DEMARC_TRY(facts.control, control_of(request.control, connection.peer.process));
    DEMARC_TRY(cuda::Control control, cuda::Control::open(facts.control));
    facts.block = std::make_shared<cuda::Control>(std::move(control));
  }
  DEMARC_CHECK(ledger_.known_tenant(request.tenant));
  DEMARC_TRY(lease::Lease lease, lease_of(request.tenant));
  DEMARC_TRY(const LeaseId id, ledger_.open(request.tenant));
  auto sound = proved();
  // From here on a tenant that is moved moves this program too, so its first TPCs are the server's
  // to write as well.
  if (sound && facts.block) {
    sound = card_.move(facts.control, ledger_.tenant(request.tenant)->terms.tpcs);
  }
  if (!sound) {
    ledger_.close(id);
    return sound;
  }
  connection.lease = id;
  auto files = locks();
  connection.answers.push_back(
      {to_text(lease::Opened{std::move(lease), facts.token, files.size()}), std::move(files)});
  leases_.emplace(id, std::move(facts));
  return {};
}

Result<void> Server::carry_out(Connection& connection, const lease::AttachRequest& request) {
  DEMARC_CHECK(check_new(connection));
  const auto found = std::find_if(leases_.begin(), leases_.end(), [&](const auto& entry) {
    return entry.second.token == request.token;
  });
  if (found == leases_.end()) {
    return invalid_input("no lease has this token: the lease has ended, or never existed");
  }
  const std::string tenant = ledger_.book().leases.at(found->first).tenant;
  DEMARC_CHECK(check_tenant(connection, tenant));
  DEMARC_TRY(lease::Lease lease, lease_of(tenant));
  DEMARC_TRY(const ProcessId process, ledger_.attach(found->first));
  if (auto sound = proved(); !sound) {
    ledger_.detach(process);
    return sound;
  }
  connection.process = process;
  connection.attached_at = Clock::now();
  Answer answer{"", locks()};
  answer.text = to_text(lease::Attached{std::move(lease), answer.files.size()});
  if (table_.get() >= 0) answer.files.emplace_back(::dup(table_.get()));
  connection.answers.push_back(std::move(answer));
  return {};
}

Result<void> Server::carry_out(Connection& connection, const lease::PagesRequest& request) {
  if (!connection.process) return invalid_input("attach to a lease before pages are lent");
  // With the one that holds tables.
  const color::ArenaPage behind(card_.pages() + (table_.get() >= 0 ? 1 : 0));
  const auto& [first, count] = request.run;
  if (count == 0 || count > lease::packet_files || first > behind || count > behind - first) {
    return invalid_input("{} pages from {} on: 1 to {} of the arena's {} were expected", count,
                         first, lease::packet_files, behind);
  }
  // Of descriptors on their way there is a number that all share.
  if (has_unread(connection.socket.file())) {
    return invalid_input("read the answer before, and its pages, before more are asked for");
  }
  DEMARC_TRY(auto files, card_.lend(request.run));
  connection.answers.push_back({to_text(lease::PageBatch{request.run}), std::move(files)});
  return {};
}

// The answer waits as long as enough bytes of the tenant wait for zeros.
Result<void> Server::take(Connection& connection) {
  const ProcessId process = *connection.process;
  const auto extent = ledger_.take(process, *connection.take);
  if (!extent && extent.error().kind == ErrorKind::missing_capability &&
      ledger_.next_unclean(options_.scrub_bytes, ledger_.tenant_of(process))) {
    return {};
  }
  connection.take.reset();
  if (!extent) {
    ledger_.count_refusal(process);
    return tl::unexpected(extent.error());
  }
  note_limits();
  // What was written down is a process's, and is not told to it: it is unused.
  DEMARC_CHECK(proved());
  connection.answers.push_back({lease::to_text(*extent), {}});
  return {};
}

Result<void> Server::carry_out(Connection& connection, const lease::TakeRequest& request) {
  if (!connection.process) return invalid_input("attach to a lease before memory is taken");
  connection.take = request.bytes;
  return take(connection);
}

Result<void> Server::carry_out(Connection& connection, const lease::GiveRequest& request) {
  if (!connection.process) return invalid_input("attach to a lease before memory is given back");
  DEMARC_CHECK(ledger_.give(*connection.process, request.first));
  note_limits();
  connection.answers.push_back({to_text(lease::Done{}), {}});
  return {};
}

Result<void> Server::carry_out(Connection& connection, const lease::ShowRequest& request) {
  if (!connection.process) return invalid_input("attach to a lease before memory is shown");
  DEMARC_CHECK(ledger_.show(*connection.process, request.first));
  connection.answers.push_back({to_text(lease::Done{}), {}});
  return {};
}

Result<void> Server::carry_out(Connection& connection, const lease::LendRequest& request) {
  if (!connection.process) return invalid_input("attach to a lease before memory is lent");
  DEMARC_TRY(const std::string key, new_token());
  DEMARC_TRY(std::string lent,
             ledger_.lend(*connection.process, request.first, request.place, key));
  connection.answers.push_back({to_text(lease::Lent{std::move(lent)}), {}});
  return {};
}

Result<void> Server::carry_out(Connection& connection, const lease::WithdrawRequest& request) {
  if (!connection.process) return invalid_input("attach to a lease before memory is withdrawn");
  DEMARC_CHECK(ledger_.withdraw(*connection.process, request.first, request.place));
  connection.answers.push_back({to_text(lease::Done{}), {}});
  return {};
}

Result<void> Server::carry_out(Connection& connection, const lease::BorrowRequest& request) {
  if (!connection.process) return invalid_input("attach to a lease before memory is borrowed");
  Ledger before = ledger_;
  DEMARC_TRY(const lease::Extent extent, ledger_.borrow(*connection.process, request.key));
  if (auto sound = proved(); !sound) {
    ledger_ = std::move(before);
    return sound;
  }
  connection.answers.push_back({lease::to_text(extent), {}});
  return {};
}

Result<void> Server::carry_out(Connection& connection, const lease::ListRequest&) {
  auto tenants = status();
  std::erase_if(tenants, [&](const lease::TenantStatus& tenant) {
    return !connection.tenant.empty() && tenant.name != connection.tenant;
  });
  const char* mps = mps_ended_ ? "ended" : options_.mps.empty() ? "off" : "on";
  connection.answers.push_back(
      {to_text(
           lease::ListHead{card_.uuid(), card_.pages() * card_.page_bytes(), tenants.size(), mps}),
       {}});
  for (const auto& tenant : tenants) connection.answers.push_back({to_text(tenant), {}});
  return {};
}

Result<void> Server::carry_out(Connection& connection, const lease::GrowRequest& request) {
  DEMARC_CHECK(check_rules(connection));
  DEMARC_TRY(const Book::Tenant* tenant, ledger_.known_tenant(request.tenant));
  Terms terms = tenant->terms;
  terms.bytes = request.bytes;
  DEMARC_CHECK(ledger_.set(terms));
  note_limits();
  connection.answers.push_back({to_text(lease::Done{}), {}});
  return {};
}

Result<void> Server::carry_out(Connection& connection, const lease::MoveRequest& request) {
  DEMARC_CHECK(check_rules(connection));
  DEMARC_TRY(const Book::Tenant* tenant, ledger_.known_tenant(request.tenant));
  const TpcSet before = tenant->terms.tpcs;
  Terms terms = tenant->terms;
  DEMARC_TRY(terms.tpcs, gpu::parse_tpc_set(request.tpcs, TpcSet::capacity, "TPCs"));
  Ledger next = ledger_;
  DEMARC_CHECK(next.set(terms));
  std::vector<const LeaseFacts*> moved;
  for (const auto& [id, facts] : leases_) {
    if (ledger_.book().leases.at(id).tenant != request.tenant) continue;
    if (!facts.block) {
      return missing_capability(
          "a program of tenant '{}' cannot be moved: the server knows nothing about it",
          request.tenant);
    }
    if (facts.block->block().counters.has_graphs()) {
      return missing_capability(
          "a program of tenant '{}' has launched or uploaded CUDA graphs, which keep "
          "their TPCs: end it, then move the tenant",
          request.tenant);
    }
    moved.push_back(&facts);
  }
  DEMARC_CHECK(options_.claim(next.book()));
  auto done = card_.prove(terms.tpcs);
  for (auto facts = moved.begin(); done && facts != moved.end(); ++facts) {
    done = card_.move((*facts)->control, terms.tpcs);
    if (done) continue;
    for (auto other = moved.begin(); other != facts; ++other) {
      static_cast<void>(card_.move((*other)->control, before));
    }
  }
  if (!done) {
    DEMARC_CHECK(options_.claim(ledger_.book()));
    return done;
  }
  ledger_ = std::move(next);
  connection.answers.push_back({to_text(lease::Done{}), {}});
  return {};
}

Result<void> Server::carry_out(Connection& connection, const lease::RevokeRequest& request) {
  DEMARC_CHECK(check_rules(connection));
  DEMARC_CHECK(ledger_.known_tenant(request.tenant));
  end_tenant(request.tenant, &connection);
  return {};
}

// MPS knows processes by their numbers, so it is told the number of none that has ended.
Result<void> Server::carry_out(Connection& connection, const lease::EndWorkRequest&) {
  const pid_t process = connection.peer.process;
  WorkTarget target{process, OwnedFile(::fcntl(connection.process_file.get(), F_DUPFD_CLOEXEC, 0))};
  if (!target.lives()) {
    return check_failed(
        "process {}, which made this connection, has ended: its number may be another's now, whose "
        "work is not ended",
        process);
  }
  bool attached = false;
  for (const Connection& other : connections_) {
    if (other.peer.process != process) continue;
    attached = attached || other.process;
    if (other.ends_work) return invalid_input("process {} has asked this already", process);
  }
  if (!attached) {
    return invalid_input("process {} has no lease: it has no work that this server could end",
                         process);
  }
  std::vector<WorkTarget> targets;
  targets.push_back(std::move(target));
  begin_ending(std::move(targets), {}, &connection);
  return {};
}

// Not only the program itself knows: what waits for its answers may be another one.
Result<void> Server::carry_out(Connection& connection, const lease::SloRequest& request) {
  DEMARC_CHECK(check_tenant(connection, request.tenant));
  DEMARC_CHECK(ledger_.known_tenant(request.tenant));
  if (request.misses == 0 || request.misses > lease::max_slo_misses) {
    return invalid_input("{} SLO misses: a number from 1 to {} was expected", request.misses,
                         lease::max_slo_misses);
  }
  if (std::none_of(leases_.begin(), leases_.end(), [&](const auto& entry) {
        return entry.second.tenant == request.tenant && !entry.second.canary;
      })) {
    return invalid_input(
        "tenant '{}' has no lease, so none of its programs runs that could miss its SLO",
        request.tenant);
  }
  totals_[request.tenant].add_slo_misses(request.misses);
  connection.answers.push_back({to_text(lease::Done{}), {}});
  return {};
}

Result<std::vector<std::string>> Server::reload(const std::vector<Terms>& tenants) {
  std::vector<Terms> next;
  std::vector<std::string> stays;
  for (const Terms& wanted : tenants) {
    const Book::Tenant* now = ledger_.tenant(wanted.name);
    const bool keeps = now != nullptr && ledger_.busy(wanted.name) && now->terms != wanted;
    next.push_back(keeps ? now->terms : wanted);
    if (keeps) stays.push_back(wanted.name);
  }
  for (const auto& entry : ledger_.book().tenants) {
    const std::string& name = entry.first;
    const bool named = std::any_of(tenants.begin(), tenants.end(),
                                   [&](const Terms& wanted) { return wanted.name == name; });
    if (named || !ledger_.busy(name)) continue;
    next.push_back(entry.second.terms);
    stays.push_back(name);
  }
  Ledger changed = ledger_;
  DEMARC_CHECK(changed.replace(next));
  DEMARC_CHECK(options_.claim(changed.book()));
  for (const Terms& terms : next) {
    const Book::Tenant* now = ledger_.tenant(terms.name);
    if (now != nullptr && now->terms.tpcs == terms.tpcs) continue;
    if (auto proof = card_.prove(terms.tpcs); !proof) {
      DEMARC_CHECK(options_.claim(ledger_.book()));
      return tl::unexpected(proof.error());
    }
  }
  for (const auto& entry : ledger_.book().tenants) former_tenants_.insert(entry.first);
  ledger_ = std::move(changed);
  note_limits();
  listen_for_tenants();
  for (std::string& line : stays) {
    line = fmt::format("tenant '{}' is in use and stays as it is", line);
  }
  return stays;
}

Result<void> Server::all_ended() const {
  std::vector<std::string> left;
  for (const auto& [tenant, line] : not_ended_) left.push_back(line);
  if (const auto processes = ledger_.book().processes.size(); processes != 0) {
    left.push_back(fmt::format("{} processes with a lease have not ended", processes));
  }
  for (const auto& [job, ending] : endings_) {
    if (ending.tenant.empty()) continue;
    left.push_back(fmt::format(
        "tenant '{}': whether all of its programs have ended is not known yet", ending.tenant));
  }
  if (left.empty()) return {};
  return check_failed("{}", joined(left, "; "));
}

std::vector<lease::TenantStatus> Server::status() const {
  std::vector<lease::TenantStatus> all;
  for (const auto& [name, tenant] : ledger_.book().tenants) {
    lease::TenantStatus status;
    status.name = name;
    status.tpcs = to_string(tenant.terms.tpcs);
    status.colors = list_of(tenant.terms.colors);
    status.sync_domain = tenant.terms.sync_domain;
    status.bytes = tenant.terms.bytes;
    status.window_bytes = tenant.terms.window_bytes;
    status.shown_bytes = shown_bytes(tenant);
    for (const auto& [first, holding] : tenant.holdings) {
      const bool given = holding.state == Holding::State::given;
      const bool lost = holding.state == Holding::State::lost;
      std::uint64_t& bytes = lost ? status.lost_bytes : status.unclean_bytes;
      (given ? status.given_bytes : bytes) += holding.bytes;
      if (given) ++status.extents;
    }
    for (const auto& [id, facts] : leases_) {
      if (facts.tenant == name && !facts.canary) ++status.leases;
    }
    const auto counted = totals_.find(name);
    const TenantTotals totals = counted == totals_.end() ? TenantTotals() : counted->second;
    auto attached = totals.attached;
    for (const Connection& connection : connections_) {
      if (!connection.process || ledger_.tenant_of(*connection.process) != name) continue;
      if (is_of_canary(*connection.process)) continue;
      status.processes.push_back(connection.peer.process);
      attached += Clock::now() - connection.attached_at;
    }
    status.attached_ms = milliseconds_of(attached);
    status.at_limit_ms = milliseconds_of(totals.at_limit.total(Clock::now()));
    status.refused_takes = tenant.refused_takes;
    status.launches_total = totals.launches;
    status.slo_misses = totals.slo_misses;
    for (auto* counts : {&status.launches, &status.unconfined, &status.refused}) {
      counts->resize(cuda::launch_paths);
    }
    for (const cuda::ControlBlock* block : blocks(name)) add_living(status, *block);
    const CanaryReading canary = options_.canary(name);
    status.canary_slowdown = canary.slowdown;
    status.canary_baseline_cycles = canary.baseline_cycles;
    status.revoked = tenant.revoked;
    all.push_back(std::move(status));
  }
  return all;
}

}  // namespace demarc::serve
