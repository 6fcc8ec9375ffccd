// Makes the sockets of tenants and takes them away.
#include "demarc/serve/tenant_sockets.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "demarc/serve/containers.hpp"

namespace demarc::serve {
namespace {

std::string folder_of(const std::string& socket) {
  return socket + ".d";
}

// A folder that others cannot put anything into.
Result<void> make_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    return missing_capability("'{}': {}", folder, std::strerror(errno));
  }
  struct stat facts {};
  const bool ours = ::lstat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) &&
                    facts.st_uid == ::geteuid() && (facts.st_mode & 022U) == 0;
  if (ours) return {};
  return missing_capability("'{}' is not a folder of this user alone", folder);
}

}  // namespace

std::string tenant_socket(const std::string& socket, const std::string& tenant) {
  return folder_of(socket) + "/" + tenant + ".sock";
}

TenantSockets::TenantSockets(const std::string& socket, std::optional<gid_t> group, Tell tell)
    : socket_(socket), folder_(folder_of(socket)), group_(group), tell_(std::move(tell)) {}

TenantSockets::~TenantSockets() {
  all_.clear();
  ::rmdir(folder_.c_str());
}

void TenantSockets::listen_for(const std::vector<std::string>& tenants) {
  std::erase_if(all_, [&](const auto& entry) {
    return std::find(tenants.begin(), tenants.end(), entry.first) == tenants.end();
  });
  for (const std::string& tenant : tenants) {
    if (all_.contains(tenant)) continue;
    const auto made = [&]() -> Result<void> {
      DEMARC_CHECK(check_device_name(tenant));
      DEMARC_CHECK(make_folder(folder_));
      DEMARC_TRY(auto listener, lease::PacketListener::listen(tenant_socket(socket_, tenant),
                                                              group_, OwnedFile()));
      all_.emplace(tenant, std::move(listener));
      return {};
    }();
    if (made) continue;
    tell_(fmt::format("tenant '{}' has no socket of its own, so no container can have it: {}",
                      tenant, made.error().message));
  }
}

}  // namespace demarc::serve
