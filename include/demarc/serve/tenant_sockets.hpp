// A socket for each tenant beside the server's own one. Who comes by it has that tenant and no
// other one, whatever user it is: it is what a container gets.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "demarc/lease/packet.hpp"

namespace demarc::serve {

// For a tenant of the server at `socket`.
[[nodiscard]] std::string tenant_socket(const std::string& socket, const std::string& tenant);

class TenantSockets {
 public:
  using Tell = std::function<void(const std::string& line)>;

  // They lie in a folder of this user beside the server's socket. A line tells of each tenant that
  // gets none, and why.
  TenantSockets(const std::string& socket, std::optional<gid_t> group, Tell tell);
  ~TenantSockets();
  TenantSockets(const TenantSockets&) = delete;
  TenantSockets& operator=(const TenantSockets&) = delete;

  // These are the tenants now.
  void listen_for(const std::vector<std::string>& tenants);
  // By tenant. Takes no connection once close() was called.
  [[nodiscard]] const std::map<std::string, lease::PacketListener>& all() const { return all_; }
  void close() { all_.clear(); }

 private:
  std::string socket_, folder_;
  std::optional<gid_t> group_;
  Tell tell_;
  std::map<std::string, lease::PacketListener> all_;
};

}  // namespace demarc::serve
