// Sends and receives packets with descriptors over a Unix socket, and tells who is at the other
// end.
#include "demarc/lease/packet.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

#include "demarc/base/lock_file.hpp"

namespace demarc::lease {
namespace {

constexpr int waiting_connections = 64;
constexpr timeval patience{10, 0};  // with a listener that takes no connection, or no question

constexpr std::size_t control_bytes = CMSG_SPACE(sizeof(int) * packet_files);
static_assert(control_bytes == CMSG_LEN(sizeof(int) * packet_files), "too many are cut off");

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return invalid_input("socket '{}': its path has {} characters; give one of 1 to {}", path,
                         path.size(), sizeof address.sun_path - 1);
  }
  path.copy(address.sun_path, path.size());
  return address;
}

Result<OwnedFile> new_socket(int flags) {
  OwnedFile file(::socket(AF_UNIX, SOCK_SEQPACKET | flags, 0));
  if (file.get() < 0) return missing_capability("cannot make a socket: {}", std::strerror(errno));
  return file;
}

msghdr message_with(std::span<iovec> text, std::span<char> control) {
  msghdr message{};
  message.msg_iov = text.data();
  message.msg_iovlen = text.size();
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  return message;
}

// What would be received next, which stays there. Credentials take all room for what comes with a
// packet, so no descriptor is taken, and they tell an empty packet from the end.
enum class Next { nothing, text, text_with_files };
Next look_at_next(int file) {
  const int on = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
  msghdr message = message_with({}, control);
  if (::setsockopt(file, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      ::recvmsg(file, &message, MSG_PEEK | MSG_DONTWAIT) < 0 ||
      CMSG_FIRSTHDR(&message) == nullptr) {
    return Next::nothing;
  }
  return (message.msg_flags & MSG_CTRUNC) != 0 ? Next::text_with_files : Next::text;
}

// The files that came with a message, owned whatever else is wrong with it.
std::vector<OwnedFile> files_of(msghdr& message) {
  std::vector<OwnedFile> files;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(part) + i * sizeof file, sizeof file);
      files.emplace_back(file);
    }
  }
  return files;
}

}  // namespace

Result<PacketSocket> PacketSocket::connect(const std::string& path) {
  DEMARC_TRY(const sockaddr_un address, address_of(path));
  DEMARC_TRY(OwnedFile file, new_socket(SOCK_CLOEXEC));
  ::setsockopt(file.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  while (::connect(file.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      return missing_capability(
          "socket '{}': demarc serve has taken no connection for {} s: it stands still, or others "
          "ask it too much",
          path, patience.tv_sec);
    }
    return missing_capability(
        "socket '{}': {}: demarc serve does not run there, or you may not use it", path,
        std::strerror(errno));
  }
  return PacketSocket(std::move(file));
}

PacketSocket::Identity PacketSocket::identity_of(int file) {
  struct stat status {};
  static_cast<void>(::fstat(file, &status));  // zeros where it is not open
  return {status.st_dev, status.st_ino};
}

PacketSocket::PacketSocket(OwnedFile file)
    : file_(std::move(file)), identity_(identity_of(file_.get())) {}

PacketSocket::~PacketSocket() {
  if (!is_open()) static_cast<void>(file_.release());
}

PacketSocket& PacketSocket::operator=(PacketSocket&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(identity_, other.identity_);
  return *this;
}

bool PacketSocket::is_open() const {
  return identity_ != Identity{} && identity_of(file()) == identity_;
}

bool PacketSocket::wait(double seconds) const {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  const auto until = Clock::now() + Seconds(seconds);
  for (;;) {
    const Seconds left = std::max<Seconds>(until - Clock::now(), Seconds::zero());
    const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(left);
    pollfd items[]{{file(), POLLIN, {}}};
    const int ready = ::poll(items, std::size(items), static_cast<int>(rounded.count()));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

Result<Peer> PacketSocket::peer() const {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(file(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return missing_capability("a socket does not say who is at its other end: {}",
                              std::strerror(errno));
  }
  Peer peer{credentials.pid, credentials.uid, {credentials.gid}};
  std::vector<gid_t> more;
  socklen_t bytes{};  // the kernel tells how many are needed when the room is too small
  while (::getsockopt(file(), SOL_SOCKET, SO_PEERGROUPS, more.data(), &bytes) != 0) {
    if (errno != ERANGE) {
      return missing_capability("a socket does not say the groups of its other end: {}",
                                std::strerror(errno));
    }
    more.resize(bytes / sizeof(gid_t));
  }
  peer.groups.insert(peer.groups.end(), more.begin(), more.end());
  return peer;
}

OwnedFile PacketSocket::peer_process() const {
  constexpr int peer_pidfd = 77;  // SO_PEERPIDFD
  int process = -1;
  socklen_t length = sizeof process;
  if (::getsockopt(file(), SOL_SOCKET, peer_pidfd, &process, &length) == 0) {
    return OwnedFile(process);
  }
  if (errno != ENOPROTOOPT) return {};
  const auto other = peer();
  if (!other) return {};
  return OwnedFile(static_cast<int>(::syscall(SYS_pidfd_open, other->process, 0)));
}

Result<bool> PacketSocket::send(std::string_view text, std::span<const int> files) const {
  if (text.empty() || text.size() > packet_bytes || files.size() > packet_files) {
    return invalid_input(
        "a packet of {} bytes with {} files is not possible: it has 1 to {} bytes and at most {} "
        "files",
        text.size(), files.size(), packet_bytes, packet_files);
  }
  iovec data[]{{const_cast<char*>(text.data()), text.size()}};
  msghdr message = message_with(data, {});
  alignas(cmsghdr) std::array<char, control_bytes> control{};
  if (!files.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(part), files.data(), files.size_bytes());
  }
  while (::sendmsg(file(), &message, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    // Too many descriptors of this user are on their way: the other end has to take some first.
    if (errno == EAGAIN || errno == ETOOMANYREFS) return false;
    return missing_capability("a packet could not be sent: {}", std::strerror(errno));
  }
  return true;
}

Result<PacketSocket::Received> PacketSocket::receive() const {
  Packet packet;
  packet.text.resize(packet_bytes);
  iovec data[]{{packet.text.data(), packet.text.size()}};
  alignas(cmsghdr) std::array<char, control_bytes> control{};
  msghdr message = message_with(data, control);
  ssize_t bytes{};
  while ((bytes = ::recvmsg(file(), &message, MSG_CMSG_CLOEXEC)) < 0) {
    // A reset, which is told once: the other end left a question unread. What it said before may
    // still lie here.
    if (errno == EINTR || errno == ECONNRESET) continue;
    if (errno == EAGAIN) return Received{};
    return missing_capability("a packet could not be received: {}", std::strerror(errno));
  }
  packet.files = files_of(message);
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return invalid_input("a packet with more than {} bytes came", packet_bytes);
  }
  // Also when this process may have no more descriptors open.
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return missing_capability(
        "this process could not take all descriptors of a packet: the packet has more than {}, or "
        "too many files are open here (ulimit -n)",
        packet_files);
  }
  if (bytes == 0) return Received{std::nullopt, true};
  packet.text.resize(static_cast<std::size_t>(bytes));
  return Received{std::move(packet), false};
}

Result<PacketSocket::Received> PacketSocket::receive_text() const {
  if (look_at_next(file()) == Next::text_with_files) {
    return invalid_input("a question with descriptors came, but a question has none");
  }
  return receive();
}

void close_apart(PacketSocket socket) {
  const int file = socket.file();
  ::shutdown(file, SHUT_RDWR);
  Next next = look_at_next(file);
  for (; next == Next::text; next = look_at_next(file)) {
    char unread{};
    static_cast<void>(::recv(file, &unread, sizeof unread, MSG_DONTWAIT));
  }
  if (next == Next::nothing) return;
  const int left = socket.release().release();
  try {
    std::thread([left] { ::close(left); }).detach();
  } catch (const std::system_error&) {
    // Without a thread it stays open: the other end has seen its end already.
  }
}

std::string PacketListener::lock_of(const std::string& path) {
  return path + ".lock";
}

Result<OwnedFile> PacketListener::claim(const std::string& path) {
  DEMARC_CHECK(address_of(path));
  // The path itself cannot be locked: who listens is told by a file beside it.
  const std::string lock_path = lock_of(path);
  DEMARC_TRY(OwnedFile lock, try_lock_file(lock_path));
  if (lock.get() >= 0) return lock;
  if (PacketSocket::connect(path)) {
    return invalid_input(
        "socket '{}': another demarc serve listens there: end it, or give another --socket", path);
  }
  return missing_capability(
      "socket '{}': a demarc serve that listened there is still ending, or programs of one that "
      "has ended still run: wait, end them, or give another --socket",
      path);
}

Result<PacketListener> PacketListener::listen(const std::string& path, std::optional<gid_t> group,
                                              OwnedFile lock) {
  DEMARC_TRY(const sockaddr_un address, address_of(path));
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) {
      return invalid_input("socket '{}': there is a file of this name that is not a socket", path);
    }
    ::unlink(path.c_str());
  }
  DEMARC_TRY(OwnedFile file, new_socket(SOCK_CLOEXEC | SOCK_NONBLOCK));
  // Before the path exists, so that it is never open to more than it should be.
  const mode_t before = ::umask(0177);
  const int bound = ::bind(file.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int code = errno;
  ::umask(before);
  if (bound != 0) return invalid_input("socket '{}': {}", path, std::strerror(code));
  PacketListener listener(path, std::move(lock), std::move(file));
  if (group &&
      (::lchown(path.c_str(), ::geteuid(), *group) != 0 || ::chmod(path.c_str(), 0660) != 0)) {
    return invalid_input("socket '{}': it cannot be given to group {}: {}", path, *group,
                         std::strerror(errno));
  }
  if (::listen(listener.file(), waiting_connections) != 0) {
    return missing_capability("socket '{}': {}", path, std::strerror(errno));
  }
  return listener;
}

Result<PacketListener> PacketListener::listen(const std::string& path, std::optional<gid_t> group) {
  DEMARC_TRY(OwnedFile lock, claim(path));
  return listen(path, group, std::move(lock));
}

PacketListener::~PacketListener() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

std::optional<PacketSocket> PacketListener::accept() const {
  OwnedFile file(::accept4(file_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (file.get() < 0) return std::nullopt;
  return PacketSocket(std::move(file));
}

}  // namespace demarc::lease
