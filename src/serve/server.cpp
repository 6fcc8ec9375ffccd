// The server's connections: who comes, what goes out, what ends.
#include "demarc/serve/server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace demarc::serve {
namespace {

constexpr std::size_t most_connections = 512;
constexpr std::chrono::seconds look_every(1);  // at the card
// Until a packet that should have gone is sent again: too many descriptors were on their way.
constexpr int stalled_ms = 5;

bool may_ask(const ServerOptions& options, const lease::Peer& peer) {
  return peer.user == options.user ||
         (options.group &&
          std::find(peer.groups.begin(), peer.groups.end(), *options.group) != peer.groups.end());
}

short ready(int file, short events, int milliseconds) {
  pollfd item{file, events, 0};
  while (::poll(&item, 1, milliseconds) < 0 && errno == EINTR) {
  }
  return item.revents;
}

// A file that nobody can change, with these bytes.
Result<OwnedFile> sealed_file(const std::vector<std::byte>& bytes) {
  if (bytes.empty()) return OwnedFile();
  OwnedFile file(::memfd_create("demarc-table", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  std::size_t written = 0;
  while (file.get() >= 0 && written < bytes.size()) {
    const ssize_t count = ::write(file.get(), bytes.data() + written, bytes.size() - written);
    if (count <= 0 && errno != EINTR) break;
    written += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  constexpr int all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  if (written < bytes.size() || ::fcntl(file.get(), F_ADD_SEALS, all_seals) != 0) {
    return missing_capability("the table of the colours cannot be kept: {}", std::strerror(errno));
  }
  return file;
}

}  // namespace

Server::Server(ServerOptions options, CardSide& card, lease::PacketListener listener)
    : options_(std::move(options)), card_(card), listener_(std::move(listener)) {}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, CardSide& card,
                                              const std::vector<Terms>& tenants) {
  Ledger ledger;
  DEMARC_CHECK(ledger.replace(tenants));
  DEMARC_CHECK(options.claim(ledger.book()));
  for (const Terms& tenant : tenants) DEMARC_CHECK(card.prove(tenant.tpcs));
  DEMARC_TRY(OwnedFile table, sealed_file(card.table()));
  DEMARC_TRY(auto listener, lease::PacketListener::listen(options.socket, options.group));
  std::unique_ptr<Server> server(new Server(std::move(options), card, std::move(listener)));
  server->ledger_ = std::move(ledger);
  server->table_ = std::move(table);
  return server;
}

Result<bool> Server::turn(int milliseconds, int wake) {
  std::vector<pollfd> items{{listener_.file(), POLLIN, 0}, {wake, POLLIN, 0}};
  for (const Connection& connection : connections_) {
    const auto wanted = static_cast<short>(connection.answers.empty() ? POLLIN : POLLOUT);
    if (connection.ended) {
      items.push_back({connection.process_file.get(), POLLIN, 0});
    } else {
      items.push_back({connection.stalled ? -1 : connection.socket.file(), wanted, 0});
    }
    if (connection.stalled) milliseconds = stalled_ms;
  }
  if (!dead_ && ledger_.next_unclean(options_.scrub_bytes)) milliseconds = 0;
  if (::poll(items.data(), items.size(), milliseconds) < 0 && errno != EINTR) {
    return missing_capability("poll: {}", std::strerror(errno));
  }
  auto item = items.begin() + 2;
  for (Connection& connection : connections_) serve(connection, (item++)->revents);
  connections_.remove_if([](const Connection& connection) { return connection.forgotten; });
  if (items[0].revents != 0) accept_all();
  if (dead_) return items[1].revents != 0;
  if (const auto piece = ledger_.next_unclean(options_.scrub_bytes)) scrub(*piece);
  DEMARC_CHECK(look_at_card());
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
      "tenants "
      "are ended; start demarc serve again",
      card_.uuid(), alive.error().message);
}

// Whoever may not ask is told so and is gone.
void Server::accept_all() {
  while (auto socket = listener_.accept()) {
    const auto peer = socket->peer();
    const auto refuse = [&](const Error& error) {
      options_.tell(error.message);
      static_cast<void>(socket->send(lease::to_text(error)));
    };
    if (!peer) {
      refuse(peer.error());
      continue;
    }
    if (!may_ask(options_, *peer)) {
      refuse(invalid_input("user {} may not have leases of this server", peer->user).value());
      continue;
    }
    if (connections_.size() >= most_connections) {
      refuse(
          missing_capability("this server already has {} connections, the largest possible number",
                             most_connections)
              .value());
      continue;
    }
    // As long as the connection is there its process is, and its number is no other's.
    OwnedFile process(static_cast<int>(::syscall(SYS_pidfd_open, peer->process, 0)));
    if (process.get() < 0 || (ready(socket->file(), 0, 0) & POLLHUP) != 0) {
      refuse(missing_capability("process {} at the other end cannot be watched: it is gone, or in "
                                "no process namespace below this one",
                                peer->process)
                 .value());
      continue;
    }
    connections_.push_back({std::move(*socket), *peer, std::move(process)});
  }
}

void Server::serve(Connection& connection, short events) {
  connection.stalled = false;
  if (connection.ended) {
    if (events != 0) forget(connection);  // the process is gone too
    return;
  }
  if (events == 0) return;
  if (!connection.answers.empty()) return send_answers(connection);
  auto received = connection.socket.receive();
  if (!received) {
    options_.tell(fmt::format("process {}: {}", connection.peer.process, received.error().message));
    static_cast<void>(connection.socket.send(lease::to_text(received.error())));
    return end_connection(connection);
  }
  if (received->ended) return end_connection(connection);
  if (!received->packet) return;
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
      // Not for the socket's room alone: of files on their way there is a limit too.
      connection.stalled = !answer.files.empty();
      return;
    }
    connection.answers.pop_front();
  }
}

// Memory stays a process's until the process is gone and nobody who has its files is left: kernels
// of a process may run until then.
void Server::end_connection(Connection& connection) {
  connection.ended = true;
  connection.answers.clear();
  connection.socket = lease::PacketSocket(OwnedFile());  // so that the other end sees it
  if (!connection.process || ready(connection.process_file.get(), POLLIN, 0) != 0) {
    forget(connection);
  }
}

void Server::forget(Connection& connection) {
  connection.forgotten = true;
  if (connection.process) {
    attached_[ledger_.tenant_of(*connection.process)] += Clock::now() - connection.attached_at;
    ledger_.detach(*connection.process);
    connection.process.reset();
  }
  if (connection.lease) {
    ledger_.close(*connection.lease);
    connection.lease.reset();
  }
  std::erase_if(leases_,
                [&](const auto& entry) { return !ledger_.book().leases.contains(entry.first); });
}

void Server::scrub(const Unclean& piece) {
  const std::uint64_t colors = ledger_.tenant(piece.tenant)->terms.colors;
  if (const auto done = card_.scrub(colors, piece.first, piece.bytes); !done) {
    ledger_.lose(piece);
    looked_at_ = {};  // the reason may be the card's
    return options_.tell(
        fmt::format("tenant '{}': memory at {} could not be filled with zeros and "
                    "is not given any more: {}",
                    piece.tenant, piece.first, done.error().message));
  }
  ledger_.cleaned(piece);
}

void Server::end_all() {
  for (const auto& [name, tenant] : ledger_.book().tenants) {
    static_cast<void>(ledger_.revoke(name));
    end_processes(name);
  }
}

void Server::end_processes(const std::string& tenant) {
  const auto send = [](int process, int signal) {
    return ::syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0) == 0;
  };
  std::vector<pid_t> processes;
  std::vector<int> files;
  for (const Connection& connection : connections_) {
    if (!connection.process || ledger_.tenant_of(*connection.process) != tenant) continue;
    const int file = connection.process_file.get();
    if (!send(file, 0)) continue;  // it has ended, and its number may be another's
    processes.push_back(connection.peer.process);
    files.push_back(file);
  }
  if (processes.empty()) return;
  if (const auto ended = options_.end_work(processes); !ended) {
    options_.tell(
        fmt::format("tenant '{}': its processes are killed while they have work on the card, and "
                    "the work of others may fail: {}",
                    tenant, ended.error().message));
  }
  for (const int file : files) send(file, SIGKILL);
}

bool Server::idle() const {
  return ledger_.book().leases.empty() && !ledger_.next_unclean(options_.scrub_bytes);
}

std::vector<const cuda::ControlBlock*> Server::blocks(const std::string& tenant) const {
  std::vector<const cuda::ControlBlock*> blocks;
  for (const auto& [id, facts] : leases_) {
    if (!facts.block || ledger_.book().leases.at(id).tenant != tenant) continue;
    blocks.push_back(&facts.block->block());
  }
  return blocks;
}

}  // namespace demarc::serve
