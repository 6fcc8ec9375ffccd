// Tells a service manager by its socket, without a library.
#include "notify.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "demarc/base/owned_file.hpp"

namespace demarc::serve {

void tell_service_manager(std::string_view state) {
  const char* name = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = name == nullptr ? 0 : std::strlen(name);
  if (length == 0 || length >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, name, length);
  if (*name == '@') address.sun_path[0] = '\0';  // a name that no file system has
  const OwnedFile file(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  static_cast<void>(::sendto(file.get(), state.data(), state.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&address),
                             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length)));
}

}  // namespace demarc::serve
