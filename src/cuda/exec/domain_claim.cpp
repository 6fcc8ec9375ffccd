// Claims domains by binding names that only one socket can have.
#include "exec/domain_claim.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace demarc::cuda {

Result<std::optional<DomainClaim>> DomainClaim::try_one(const std::string& uuid,
                                                        std::uint32_t domain) {
  DomainClaim claim(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), domain);
  if (claim.socket_ < 0) {
    return missing_capability("no domain can be claimed: no socket can be made: {}",
                              std::strerror(errno));
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A name that begins with a zero byte has no file.
  const std::string name = '\0' + fmt::format("demarc-domain-{}-{}", uuid, domain);
  const std::size_t length = name.copy(address.sun_path, sizeof address.sun_path);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  if (::bind(claim.socket_, reinterpret_cast<const sockaddr*>(&address), bytes) == 0) {
    return std::optional(std::move(claim));
  }
  if (errno == EADDRINUSE) return std::nullopt;
  return missing_capability("no domain can be claimed: {}", std::strerror(errno));
}

Result<DomainClaim> DomainClaim::take(const std::string& uuid, std::uint32_t count) {
  for (std::uint32_t domain = 1; domain < count; ++domain) {
    DEMARC_TRY(auto claim, try_one(uuid, domain));
    if (claim) return std::move(*claim);
  }
  return missing_capability(
      "other programs under demarc exec have all domains of the card but the common one");
}

DomainClaim::~DomainClaim() {
  if (socket_ >= 0) ::close(socket_);
}

DomainClaim::DomainClaim(DomainClaim&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), domain_(other.domain_) {}

}  // namespace demarc::cuda
