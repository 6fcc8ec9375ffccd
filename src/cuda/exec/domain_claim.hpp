// Who has which memory synchronisation domain of a card, among the programs of `demarc exec`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "demarc/base/result.hpp"

namespace demarc::cuda {

// A domain that is this process's until the claim or the process goes, however it ends. Claims are
// names of sockets without files: those of one network namespace see each other's, whoever their
// user is, and a container that has a namespace of its own does not see those outside.
class DomainClaim {
 public:
  // One of 1 to `count` - 1 of the card with that UUID. missing_capability when others have them
  // all, or when none can be claimed.
  static Result<DomainClaim> take(const std::string& uuid, std::uint32_t count);
  // That one; nothing when another has it.
  static Result<std::optional<DomainClaim>> try_one(const std::string& uuid, std::uint32_t domain);
  ~DomainClaim();
  DomainClaim(DomainClaim&& other) noexcept;
  DomainClaim& operator=(DomainClaim&&) = delete;
  [[nodiscard]] std::uint32_t domain() const { return domain_; }

 private:
  DomainClaim(int socket, std::uint32_t domain) : socket_(socket), domain_(domain) {}
  int socket_;
  std::uint32_t domain_;
};

}  // namespace demarc::cuda
