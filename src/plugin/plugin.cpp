// Finds the tenants and the kubelet.
#include "plugin.hpp"

#include <sys/stat.h>

#include <algorithm>

namespace demarc::plugin {
namespace {

Result<lease::ServerStatus> ask(const std::string& socket) {
  DEMARC_TRY(const auto client, lease::LeaseClient::connect(socket));
  return client.list();
}

const lease::TenantStatus* usable(const lease::ServerStatus& status, const std::string& name) {
  const auto found = std::find_if(
      status.tenants.begin(), status.tenants.end(),
      [&](const lease::TenantStatus& tenant) { return tenant.name == name && !tenant.revoked; });
  return found == status.tenants.end() ? nullptr : &*found;
}

}  // namespace

Plugin::KubeletId Plugin::look_for_kubelet() const {
  struct stat status {};
  static_cast<void>(::stat(kubelet().c_str(), &status));
  return {status.st_dev, status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
}

// What was so a while ago is not believed: a container that starts outside of its tenant's part
// would be in none.
Result<Allocation> Plugin::allocate(const std::string& tenant) const {
  DEMARC_TRY(const auto places, serve::find_places(options_.places));
  DEMARC_TRY(const auto status, ask(places.socket));
  if (usable(status, tenant) == nullptr) {
    return missing_capability("the server has no tenant '{}' now, or the tenant was revoked",
                              tenant);
  }
  return Allocation{serve::container_edits(places, tenant), options_.cdi_devices};
}

Result<void> Plugin::listen(const std::string& name, Tenant& tenant) const {
  tenant.resource.reset();  // its socket's name becomes free
  DEMARC_TRY(
      tenant.resource,
      Resource::start({"demarc.dev/" + name, name, options_.folder + "/demarc-" + name + ".sock",
                       tenant.healthy, [this, name] { return allocate(name); }}));
  tenant.registered = {};
  return {};
}

Result<void> Plugin::register_again(const std::string& name, Tenant& tenant,
                                    const KubeletId& now) const {
  if (!tenant.resource || !tenant.resource->listens()) DEMARC_CHECK(listen(name, tenant));
  if (tenant.registered == now) return {};
  DEMARC_TRY(const auto registered, tenant.resource->register_with(kubelet()));
  if (registered == Resource::Registered::not_now) {
    if (tenant.silent == now) return {};
    tenant.silent = now;
    options_.tell(fmt::format("demarc.dev/{} waits: no kubelet answers at '{}'", name, kubelet()));
    return {};
  }
  tenant.registered = now;
  options_.tell(fmt::format("demarc.dev/{} is registered", name));
  return {};
}

void Plugin::look_at(const Result<lease::ServerStatus>& status) {
  if (status) {
    for (const auto& tenant : status->tenants) {
      const auto good = serve::check_device_name(tenant.name);
      if (good) {
        tenants_.try_emplace(tenant.name);
      } else if (left_out_.insert(tenant.name).second) {
        options_.tell("left out: " + good.error().message);
      }
    }
  }
  for (auto& [name, tenant] : tenants_) {
    const bool healthy = status && usable(*status, name) != nullptr;
    if (healthy == tenant.healthy) continue;
    tenant.healthy = healthy;
    if (tenant.resource) tenant.resource->set_healthy(healthy);
    options_.tell(fmt::format("demarc.dev/{} is {}{}", name, healthy ? "healthy" : "unhealthy",
                              status ? "" : ": " + status.error().message));
  }
}

Result<void> Plugin::turn() {
  look_at(ask(options_.places.socket));
  const KubeletId now = look_for_kubelet();
  if (now == KubeletId{}) return {};
  for (auto& [name, tenant] : tenants_) DEMARC_CHECK(register_again(name, tenant, now));
  return {};
}

}  // namespace demarc::plugin
