// Packets of text and file descriptors between a server and its clients on one machine: a Unix
// socket of whole packets (SOCK_SEQPACKET). No thread, no lock, no exception.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/owned_file.hpp"
#include "demarc/base/result.hpp"

namespace demarc::lease {

inline constexpr std::size_t packet_bytes = 64 * 1024;  // the longest text
inline constexpr std::size_t packet_files = 200;        // the most descriptors of a packet

struct Packet {
  std::string text;
  std::vector<OwnedFile> files;  // closed when a program is started
};

// Who connected, as the kernel knew it then. A process that this one cannot see is 0.
struct Peer {
  pid_t process = 0;
  uid_t user = 0;
  std::vector<gid_t> groups;  // of which its own is the first
};

class PacketSocket {
 public:
  // Errors name the path: missing_capability where nobody listens or this user may not.
  [[nodiscard]] static Result<PacketSocket> connect(const std::string& path);
  // Takes over an open socket of packets.
  explicit PacketSocket(OwnedFile file) : file_(std::move(file)) {}

  [[nodiscard]] int file() const { return file_.get(); }
  [[nodiscard]] Result<Peer> peer() const;

  // False: it would have had to wait, which a socket of a server does not; nothing was sent. An
  // error when the text or the number of files is beyond what a packet holds, or the other end is
  // gone.
  [[nodiscard]] Result<bool> send(std::string_view text, std::span<const int> files = {}) const;
  struct Received {
    std::optional<Packet> packet;
    bool ended = false;  // the other end is gone; without a packet and not ended: none is there yet
  };
  // An error for packets that are longer, or have more files, than a packet may have.
  [[nodiscard]] Result<Received> receive() const;

 private:
  OwnedFile file_;
};

// Where clients connect to. The path belongs to one listener at a time; that of a listener which is
// gone, however it ended, is taken over.
class PacketListener {
 public:
  // The socket's mode is 0600, and 0660 with the group's number where there is a group.
  // invalid_input when another one listens there or its lock() is held, when something else than a
  // socket has the path, or when the path is longer than a socket's may be.
  [[nodiscard]] static Result<PacketListener> listen(const std::string& path,
                                                     std::optional<gid_t> group);
  ~PacketListener();
  PacketListener(PacketListener&& other) noexcept = default;
  PacketListener& operator=(PacketListener&&) = delete;

  [[nodiscard]] int file() const { return file_.get(); }
  // As long as a copy of this descriptor is open in any process, nobody else can listen there:
  // whoever has one is not left behind by a listener that dies.
  [[nodiscard]] int lock() const { return lock_.get(); }
  // The next connection, which does not wait; nothing: none is there.
  [[nodiscard]] std::optional<PacketSocket> accept() const;

 private:
  PacketListener(std::string path, OwnedFile lock, OwnedFile file)
      : path_(std::move(path)), lock_(std::move(lock)), file_(std::move(file)) {}
  std::string path_;
  OwnedFile lock_;  // the kernel takes it back with the last copy
  OwnedFile file_;
};

}  // namespace demarc::lease
