// Packets of text and file descriptors between a server and its clients on one machine: a Unix
// socket of whole packets (SOCK_SEQPACKET). It uses no thread, no lock and no exception.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  // Errors name the path. missing_capability if no process listens there, if this user may not
  // connect, or if the listener takes no connection for 10 s. Questions of such a socket wait as
  // long at most.
  [[nodiscard]] static Result<PacketSocket> connect(const std::string& path);
  // Takes over an open socket of packets.
  explicit PacketSocket(OwnedFile file);
  ~PacketSocket();  // closes nothing that is_open() does not know
  PacketSocket(PacketSocket&&) noexcept = default;
  PacketSocket& operator=(PacketSocket&& other) noexcept;

  [[nodiscard]] int file() const { return file_.get(); }
  [[nodiscard]] OwnedFile release() { return std::exchange(file_, OwnedFile()); }
  // False: the program has closed the descriptor, whose number may be another file's now. It is
  // safe in a signal handler.
  [[nodiscard]] bool is_open() const;
  // Waits until a packet, or the end of the other side, can be received. False: neither came within
  // so many seconds.
  [[nodiscard]] bool wait(double seconds) const;
  [[nodiscard]] Result<Peer> peer() const;
  // A descriptor (pidfd) of the process that connected, which no other one with its number can be.
  // Linux before 6.5 does not tell it: there it is of the process that has the number now.
  [[nodiscard]] OwnedFile peer_process() const;

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
  // The same, but a packet with descriptors is an error and stays where it is: who takes a
  // descriptor has to close it, and a file system or a peer may let that last as long as it likes.
  [[nodiscard]] Result<Received> receive_text() const;

 private:
  struct Identity {
    std::uint64_t device = 0;
    std::uint64_t number = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  static Identity identity_of(int file);
  OwnedFile file_;
  Identity identity_;
};
// Ends a connection of which the other end is not trusted, and waits for nothing: what was not read
// may hold descriptors whose closing waits, so then a thread does it.
void close_apart(PacketSocket socket);

// Clients connect to it. The path belongs to one listener at a time. The path of a listener that is
// gone, however it ended, is taken over.
class PacketListener {
 public:
  // Keeps all others from listening at the path, as long as a copy of the descriptor is open in any
  // process. invalid_input if another one listens there; missing_capability if the lock is held all
  // the same, because a listener is still ending or programs of one that was killed run.
  [[nodiscard]] static Result<OwnedFile> claim(const std::string& path);
  // The file whose lock claim() gives. Who has the lock may remove the file.
  [[nodiscard]] static std::string lock_of(const std::string& path);
  // The socket's mode is 0600, or 0660 with the group's number if there is a group. `lock`: of
  // claim(), or none for a path beside one that is claimed. invalid_input if something else than a
  // socket has the path, or if the path is longer than a socket's may be.
  [[nodiscard]] static Result<PacketListener> listen(const std::string& path,
                                                     std::optional<gid_t> group, OwnedFile lock);
  // The same, after claim().
  [[nodiscard]] static Result<PacketListener> listen(const std::string& path,
                                                     std::optional<gid_t> group);
  ~PacketListener();
  PacketListener(PacketListener&& other) noexcept
      : path_(std::exchange(other.path_, {})),
        lock_(std::move(other.lock_)),
        file_(std::move(other.file_)) {}
  PacketListener& operator=(PacketListener&&) = delete;

  [[nodiscard]] int file() const { return file_.get(); }
  // As long as a copy of this descriptor is open in any process, no other can listen there. So
  // if a listener dies, no other takes its place while a process still has a copy.
  [[nodiscard]] int lock() const { return lock_.get(); }
  // The next connection, in a mode that does not wait. Nothing if there is none.
  [[nodiscard]] std::optional<PacketSocket> accept() const;
  // Takes no connection any more. The path and the lock stay until the object goes.
  void close() { file_ = OwnedFile(); }

 private:
  PacketListener(std::string path, OwnedFile lock, OwnedFile file)
      : path_(std::move(path)), lock_(std::move(lock)), file_(std::move(file)) {}
  std::string path_;
  OwnedFile lock_;  // the kernel takes it back with the last copy
  OwnedFile file_;
};

}  // namespace demarc::lease
