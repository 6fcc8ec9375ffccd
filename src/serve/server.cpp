// The server's connections: who comes, what goes out, what ends.
#include "demarc/serve/server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

namespace demarc::serve {
namespace {

constexpr std::chrono::seconds look_every(1);  // at the card
// Until a packet that should have gone is sent again: too many descriptors were on their way.
constexpr int stalled_ms = 5;
constexpr int max_accepted = 16;  // in a turn, so that those who are there are answered
constexpr std::size_t max_refused = 256;

bool may_ask(const ServerOptions& options, const lease::Peer& peer) {
  return peer.user == options.user ||
         (options.group &&
          std::find(peer.groups.begin(), peer.groups.end(), *options.group) != peer.groups.end());
}

int sooner(int milliseconds, int other) {
  return milliseconds < 0 ? other : std::min(milliseconds, other);
}

bool hung_up(int file) {
  pollfd item{file, {}, {}};  // without a wish the end alone is told
  return ::poll(&item, 1, 0) > 0;
}

std::chrono::steady_clock::time_point in_seconds(double seconds) {
  using Clock = std::chrono::steady_clock;
  return Clock::now() + std::chrono::ceil<Clock::duration>(std::chrono::duration<double>(seconds));
}

OwnedFile copy_of(const OwnedFile& file) {
  return OwnedFile(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
}

// A sealed file with these bytes.
Result<OwnedFile> sealed_file(const std::vector<std::byte>& bytes) {
  if (bytes.empty()) return OwnedFile();
  OwnedFile file(::memfd_create("demarc-table", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  constexpr int all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  if (file.get() < 0 ||
      std::cmp_not_equal(::write(file.get(), bytes.data(), bytes.size()), bytes.size()) ||
      ::fcntl(file.get(), F_ADD_SEALS, all_seals) != 0) {
    return missing_capability("the table of the colours cannot be kept: {}", std::strerror(errno));
  }
  return file;
}

}  // namespace

Server::Server(ServerOptions options, CardSide& card, lease::PacketListener listener)
    : options_(std::move(options)),
      card_(card),
      listener_(std::move(listener)),
      tenant_sockets_(options_.socket, options_.group, options_.tell),
      ender_(std::make_unique<WorkEnder>(options_.end_work)) {}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, CardSide& card,
                                              const std::vector<Terms>& tenants, OwnedFile lock) {
  Ledger ledger;
  DEMARC_CHECK(ledger.replace(tenants));
  DEMARC_CHECK(options.claim(ledger.book()));
  for (const Terms& tenant : tenants) DEMARC_CHECK(card.prove(tenant.tpcs));
  DEMARC_TRY(OwnedFile table, sealed_file(card.table()));
  if (lock.get() < 0) {
    DEMARC_TRY(lock, lease::PacketListener::claim(options.socket));
  }
  DEMARC_TRY(auto listener,
             lease::PacketListener::listen(options.socket, options.group, std::move(lock)));
  std::unique_ptr<Server> server(new Server(std::move(options), card, std::move(listener)));
  server->ledger_ = std::move(ledger);
  server->table_ = std::move(table);
  server->listen_for_tenants();
  return server;
}

Server::~Server() {
  close();
}

void Server::close() {
  if (ender_) options_.hurry(0);
  ender_.reset();
  listener_.close();
  tenant_sockets_.close();
  for (Connection& connection : connections_) lease::close_apart(std::move(connection.socket));
  connections_.clear();
}

void Server::listen_for_tenants() {
  std::vector<std::string> names;
  for (const auto& [name, tenant] : ledger_.book().tenants) names.push_back(name);
  tenant_sockets_.listen_for(names);
}

Result<bool> Server::turn(int milliseconds, int wake) {
  std::vector<pollfd> items{{listener_.file(), POLLIN, {}},
                            {wake, POLLIN, {}},
                            {ender_->file(), POLLIN, {}},
                            {mps_ended_ ? -1 : options_.mps_process, POLLIN, {}}};
  const std::size_t first_door = items.size();
  for (const auto& [tenant, door] : tenant_sockets_.all())
    items.push_back({door.file(), POLLIN, {}});
  const std::size_t first_connection = items.size();
  const auto until = [&](Clock::time_point time) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now()).count();
    milliseconds = sooner(milliseconds, left > 0 ? static_cast<int>(left) : 0);
  };
  for (const Connection& connection : connections_) {
    const short wanted = connection.waits() ? short{0} : POLLIN;
    if (connection.ended) {
      items.push_back({connection.process_file.get(), POLLIN, {}});
    } else {
      items.push_back({connection.stalled ? -1 : connection.socket.file(),
                       connection.answers.empty() ? wanted : short{POLLOUT},
                       {}});
    }
    if (connection.stalled) milliseconds = sooner(milliseconds, stalled_ms);
    if (connection.limit) until(*connection.limit);
  }
  if (!dead_ && ledger_.next_unclean(options_.scrub_bytes)) milliseconds = 0;
  if (::poll(items.data(), items.size(), milliseconds) < 0 && errno != EINTR) {
    return missing_capability("poll: {}", std::strerror(errno));
  }
  auto item = items.begin() + static_cast<std::ptrdiff_t>(first_connection);
  for (Connection& connection : connections_) serve(connection, (item++)->revents);
  if (items[2].revents != 0) finish_endings();
  if (items[3].revents != 0) {
    mps_ended_ = true;
    options_.tell(
        "the daemon of MPS has ended: programs that run may have failed with it, or take turns "
        "from "
        "now on. No program is let in any more; start the server again when the last one has "
        "ended");
  }
  kill_in_time();
  connections_.remove_if([](const Connection& connection) { return connection.forgotten; });
  if (items[0].revents != 0) accept_all(listener_, "");
  auto door = items.begin() + static_cast<std::ptrdiff_t>(first_door);
  for (const auto& [tenant, listener] : tenant_sockets_.all()) {
    if ((door++)->revents != 0) accept_all(listener, tenant);
  }
  if (!dead_) {
    scrub_next();
    DEMARC_CHECK(look_at_card());
  }
  return items[1].revents != 0;
}

Result<void> Server::look_at_card() {
  if (Clock::now() - looked_at_ < look_every) return {};
  looked_at_ = Clock::now();
  const auto alive = card_.check_alive();
  if (alive) return {};
  dead_ = true;
  return missing_capability(
      "{}: the card was reset, or the server's context on it died ({}): the programs of all "
      "tenants are ended; start demarc serve again",
      card_.uuid(), alive.error().message);
}

void Server::accept_all(const lease::PacketListener& listener, const std::string& tenant) {
  for (int i = 0; i < max_accepted; ++i) {
    auto socket = listener.accept();
    if (!socket) return;
    if (hung_up(socket->file())) {  // nothing can be told to it
      lease::close_apart(*std::move(socket));
      continue;
    }
    Connection connection{std::move(*socket), tenant, ++last_connection_};
    connection.used = Clock::now();
    if (const auto admitted = admit(connection); !admitted) {
      refuse(std::move(connection), admitted.error());
    } else {
      connections_.push_back(std::move(connection));
    }
  }
}

Result<void> Server::admit(Connection& connection) {
  DEMARC_TRY(connection.peer, connection.socket.peer());
  const lease::Peer& peer = connection.peer;
  if (!may_ask(options_, peer)) {
    return invalid_input("user {} may not have leases of this server", peer.user);
  }
  connection.process_file = connection.socket.peer_process();
  if (peer.process == 0 || connection.process_file.get() < 0 || hung_up(connection.socket.file())) {
    return missing_capability(
        "process {} at the other end cannot be watched: it is gone, or in no process namespace "
        "below this one",
        peer.process);
  }
  return seat(connection);
}

// The words are sent at once, but the connection stays until the question has come, because a
// socket that is closed before loses them.
void Server::refuse(Connection connection, const Error& error) {
  options_.tell(error.message);
  const auto refused = std::count_if(connections_.begin(), connections_.end(),
                                     [](const Connection& other) { return other.refused; });
  if (static_cast<std::size_t>(refused) >= max_refused) {
    static_cast<void>(connection.socket.send(lease::to_text(error)));
    return lease::close_apart(std::move(connection.socket));
  }
  connection.refused = true;
  connection.answers.push_back({lease::to_text(error)});
  connection.limit = in_seconds(options_.farewell_seconds);
  connections_.push_back(std::move(connection));
  send_answers(connections_.back());
}

// A place for one more, which an idle connection may have to leave.
Result<void> Server::seat(const Connection& connection) {
  const SeatLimits& limits = options_.limits;
  const bool own = connection.tenant.empty() && connection.peer.user == options_.user;
  const auto room = own ? limits.all : std::min(limits.of_a_party, limits.all - limits.reserve);
  if (connections_.size() < room) return {};
  std::vector<Seat> seats;
  std::vector<Connection*> seated;
  std::set<pid_t> holders;
  for (const Connection& other : connections_) {
    if (other.holds()) holders.insert(other.peer.process);
  }
  const auto party_of = [](const Connection& one) {
    return one.tenant.empty() ? fmt::format("user {}", one.peer.user)
                              : fmt::format("tenant '{}'", one.tenant);
  };
  for (Connection& other : connections_) {
    if (other.refused || other.forgotten) continue;
    // A process with a lease may keep another connection, for the question that ends its work.
    const bool needed = other.holds() || other.waits() || holders.erase(other.peer.process) != 0;
    seats.push_back({party_of(other), needed, other.used});
    seated.push_back(&other);
  }
  DEMARC_TRY(const auto leaves, make_room(seats, party_of(connection), own, limits));
  if (!leaves) return {};
  Connection& idle = *seated.at(leaves.value());
  const auto error = missing_capability(
      "this connection was idle, and another one needed its place: connect again");
  static_cast<void>(idle.socket.send(lease::to_text(error.value())));
  end_connection(idle);
  return {};
}

void Server::serve(Connection& connection, short events) {
  connection.stalled = false;
  if (connection.ended) {
    if (events != 0) forget(connection);  // the process is gone too
    return;
  }
  if (connection.limit && Clock::now() >= *connection.limit) {
    if (!connection.refused) {
      options_.tell(fmt::format("process {} does not take its answers: its connection is ended",
                                connection.peer.process));
    }
    return end_connection(connection);
  }
  if (events == 0) return;
  if (!connection.answers.empty()) return send_answers(connection);
  // A question that waits leaves the rest unread, and one that was refused is heard out.
  if (connection.waits() || connection.refused) return end_connection(connection);
  auto received = connection.socket.receive_text();
  if (!received) {
    options_.tell(fmt::format("process {}: {}", connection.peer.process, received.error().message));
    static_cast<void>(connection.socket.send(lease::to_text(received.error())));
    return end_connection(connection);
  }
  if (received->ended) return end_connection(connection);
  if (!received->packet) return;
  connection.used = Clock::now();
  answer(connection, *received->packet);
  send_answers(connection);
}

void Server::send_answers(Connection& connection) {
  while (!connection.answers.empty()) {
    const Answer& answer = connection.answers.front();
    std::vector<int> numbers;
    for (const OwnedFile& file : answer.files) numbers.push_back(file.get());
    const auto sent = connection.socket.send(answer.text, numbers);
    if (!sent) return end_connection(connection);
    if (!*sent) {
      if (!connection.limit) connection.limit = in_seconds(options_.reading_seconds);
      // Not for the socket's room alone: of files on their way there is a limit too.
      connection.stalled = !answer.files.empty();
      return;
    }
    connection.answers.pop_front();
  }
  if (!connection.refused) connection.limit.reset();
}

// Memory stays a process's until the process is gone and no holder of its files is left: kernels
// of a process may run until then.
void Server::end_connection(Connection& connection) {
  connection.ended = true;
  connection.answers.clear();
  connection.take.reset();
  connection.ends_work = false;
  connection.limit.reset();
  lease::close_apart(std::move(connection.socket));  // so that the other end sees it
  pollfd process{connection.process_file.get(), POLLIN, {}};
  if (!connection.process || ::poll(&process, 1, 0) != 0) forget(connection);
}

void Server::forget(Connection& connection) {
  connection.forgotten = true;
  if (const auto process = std::exchange(connection.process, std::nullopt)) {
    if (!is_of_canary(*process)) {
      totals_[ledger_.tenant_of(*process)].attached += Clock::now() - connection.attached_at;
    }
    ledger_.detach(*process);
    note_limits();
  }
  if (const auto lease = std::exchange(connection.lease, std::nullopt)) ledger_.close(*lease);
  forget_ended_leases();
}

void Server::forget_ended_leases() {
  std::erase_if(leases_, [&](const auto& entry) {
    const auto& [id, facts] = entry;
    if (ledger_.book().leases.contains(id)) return false;
    if (facts.block && !facts.canary) totals_[facts.tenant].add_ended(facts.block->block());
    return true;
  });
}

void Server::note_limits() {
  const auto now = Clock::now();
  for (const auto& [name, tenant] : ledger_.book().tenants) {
    totals_[name].at_limit.note(is_full(tenant), now);
  }
}

void Server::scrub(const Unclean& piece) {
  const color::ColorSet colors = ledger_.tenant(piece.tenant)->terms.colors;
  if (const auto done = card_.scrub(colors, piece.extent); !done) {
    ledger_.lose(piece);
    note_limits();
    looked_at_ = {};  // the reason may be the card's
    return options_.tell(
        fmt::format("tenant '{}': memory at {} could not be filled with zeros and "
                    "is not given any more: {}",
                    piece.tenant, piece.extent.first, done.error().message));
  }
  ledger_.cleaned(piece);
}

// Pieces for those who wait come first, one for each tenant in turn.
void Server::scrub_next() {
  std::set<std::string> waiting;
  for (const Connection& connection : connections_) {
    if (connection.take) waiting.insert(ledger_.tenant_of(*connection.process));
  }
  auto next = waiting.upper_bound(last_scrubbed_);
  if (next == waiting.end()) next = waiting.begin();
  if (next != waiting.end()) last_scrubbed_ = *next;
  const auto piece = ledger_.next_unclean(options_.scrub_bytes,
                                          next == waiting.end() ? std::string() : last_scrubbed_);
  if (piece) scrub(*piece);
  for (Connection& connection : connections_) {
    if (!connection.take) continue;
    if (const auto taken = take(connection); !taken) {
      connection.answers.push_back({lease::to_text(taken.error())});
    }
    send_answers(connection);
  }
}

void Server::end_all() {
  ends_ = true;
  options_.hurry(options_.ending_seconds);
  kill_at_ = in_seconds(1.2 * options_.ending_seconds);
  std::set<std::string> names = former_tenants_;
  for (const auto& entry : ledger_.book().tenants) names.insert(entry.first);
  ender_->gather(true);
  for (const std::string& name : names) end_tenant(name, nullptr);
  ender_->gather(false);
}

bool Server::ended() const {
  return endings_.empty() && ledger_.book().processes.empty() &&
         std::none_of(connections_.begin(), connections_.end(),
                      [](const Connection& connection) { return connection.refused; });
}

void Server::end_tenant(const std::string& tenant, Connection* asker) {
  static_cast<void>(ledger_.revoke(tenant));
  std::vector<WorkTarget> targets;
  for (Connection& connection : connections_) {
    if (connection.lease && ledger_.book().leases.at(*connection.lease).tenant == tenant) {
      end_lease(connection, asker);
    }
    if (!connection.process || ledger_.tenant_of(*connection.process) != tenant) continue;
    WorkTarget target{connection.peer.process, copy_of(connection.process_file)};
    if (target.lives()) targets.push_back(std::move(target));
  }
  begin_ending(std::move(targets), {.tenant = tenant}, asker,
               [this, tenant] { return options_.end_left(tenant); });
}

// Its owner keeps the claim of the card until it has heard of this, so it is heard out.
void Server::end_lease(Connection& connection, const Connection* asker) {
  const std::string tenant = ledger_.book().leases.at(*connection.lease).tenant;
  ledger_.close(*std::exchange(connection.lease, std::nullopt));
  forget_ended_leases();
  if (&connection == asker) return;
  const auto why =
      missing_capability("tenant '{}' was revoked: this lease of it has ended", tenant);
  connection.answers.push_back({lease::to_text(why.value())});
  connection.refused = true;
  connection.limit = in_seconds(options_.farewell_seconds);
  send_answers(connection);
}

void Server::begin_ending(std::vector<WorkTarget> targets, Ending ending, Connection* asker,
                          WorkEnder::Then then) {
  if (asker != nullptr) {
    ending.connection = asker->number;
    asker->ends_work = true;
  }
  endings_.emplace(ender_->begin(std::move(targets), std::move(then)), std::move(ending));
}

void Server::finish_endings() {
  for (const WorkEnder::Done& done : ender_->take_done()) {
    const auto found = endings_.extract(done.job);
    const Ending& ending = found.mapped();
    const bool kills = !ending.tenant.empty();
    if (kills && !done.result) {
      options_.tell(
          fmt::format("tenant '{}': its processes are killed while they have work on the card, and "
                      "the work of others may fail: {}",
                      ending.tenant, done.result.error().message));
    }
    const Result<void> result = kills ? done.after : done.result;
    if (kills && !result) {
      const auto line = fmt::format("tenant '{}': {}", ending.tenant, result.error().message);
      options_.tell(line);
      not_ended_[ending.tenant] = line;
    } else if (kills) {
      not_ended_.erase(ending.tenant);
    }
    for (Connection& connection : connections_) {
      if (connection.number != ending.connection || connection.ended) continue;
      connection.ends_work = false;
      connection.answers.push_back(
          {result ? lease::to_text(lease::Done{}) : lease::to_text(result.error())});
      send_answers(connection);
    }
  }
}

// At the server's end MPS is not waited for any longer than this.
void Server::kill_in_time() {
  if (!kill_at_ || Clock::now() < *kill_at_) return;
  for (const Connection& connection : connections_) {
    if (connection.process) {
      WorkTarget{connection.peer.process, copy_of(connection.process_file)}.kill();
    }
  }
}

std::size_t Server::connections() const {
  return static_cast<std::size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [](const Connection& connection) { return !connection.refused; }));
}

bool Server::idle() const {
  return ledger_.book().leases.empty() && !ledger_.next_unclean(options_.scrub_bytes);
}

std::vector<const cuda::ControlBlock*> Server::blocks(const std::string& tenant) const {
  std::vector<const cuda::ControlBlock*> blocks;
  for (const auto& [id, facts] : leases_) {
    if (!facts.block || facts.canary || facts.tenant != tenant) continue;
    blocks.push_back(&facts.block->block());
  }
  return blocks;
}

}  // namespace demarc::serve
