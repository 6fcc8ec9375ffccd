// Packets of text and file descriptors between a server and its clients on one machine: a Unix
// socket of whole packets (SOCK_SEQPACKET). It uses no thread, no lock and no exception.
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
inline constexpr std::size_t packet_files = 200;        // the largest number of descriptors per
                                                        // packet

struct Packet {
  std::string text;
  std::vector<OwnedFile> files;  // closed when a program is started
};

// Who connected, as the kernel knew it at that time. The process is 0 if this one cannot see it.
struct Peer {
  pid_t process = 0;
  uid_t user = 0;
  std::vector<gid_t> groups;  // the first one is its own
};

class PacketSocket {
 public:
  // Errors name the path. missing_capability if nobody listens there or this user may not connect.
  [[nodiscard]] static Result<PacketSocket> connect(const std::string& path);
  // Takes over an open socket of packets.
  explicit PacketSocket(OwnedFile file) : file_(std::move(file)) {}

  [[nodiscard]] int file() const { return file_.get(); }
  [[nodiscard]] Result<Peer> peer() const;

  // False: nothing was sent, because it would have had to wait and a server's socket does not wait.
  // It is an error if the text or the number of files is beyond what a packet holds, or if the
  // other end is gone.
  [[nodiscard]] Result<bool> send(std::string_view text, std::span<const int> files = {}) const;
  struct Received {
    std::optional<Packet> packet;
    bool ended = false;  // the other end is gone; no packet and not ended: none has come yet
  };
  // A packet that is longer, or has more files, than a packet may have is an error.
  [[nodiscard]] Result<Received> receive() const;

 private:
  OwnedFile file_;
};

// Clients connect to it. The path belongs to one listener at a time. The path of a listener that is
// gone, however it ended, is taken over.
class PacketListener {
 public:
  // The socket's mode is 0600, or 0660 with the group's number if there is a group. invalid_input
  // if another listener is there or its lock() is held, if something else than a socket has the
  // path, or if the path is longer than a socket's may be.
  [[nodiscard]] static Result<PacketListener> listen(const std::string& path,
                                                     std::optional<gid_t> group);
  ~PacketListener();
  PacketListener(PacketListener&& other) noexcept = default;
  PacketListener& operator=(PacketListener&&) = delete;

  [[nodiscard]] int file() const { return file_.get(); }
  // As long as a copy of this descriptor is open in any process, nobody else can listen there. So
  // if a listener dies, no other takes its place while a process still has a copy.
  [[nodiscard]] int lock() const { return lock_.get(); }
  // The next connection, in a mode that does not wait. Nothing if there is none.
  [[nodiscard]] std::optional<PacketSocket> accept() const;

 private:
  PacketListener(std::string path, OwnedFile lock, OwnedFile file)
      : path_(std::move(path)), lock_(std::move(lock)), file_(std::move(file)) {}
  std::string path_;
  OwnedFile lock_;  // the kernel takes it back with the last copy
  OwnedFile file_;
};

}  // namespace demarc::lease
