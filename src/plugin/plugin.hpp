// The tenants of a server as resources of a kubelet: looks at both, again and again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/lease/client.hpp"
#include "demarc/serve/containers.hpp"
#include "resource.hpp"

namespace demarc::plugin {

inline constexpr const char* kubelet_folder = "/var/lib/kubelet/device-plugins";

struct PluginOptions {
  serve::ContainerPlaces places;
  std::string folder = kubelet_folder;                // where the kubelet listens, and the plugin
  std::vector<std::string> cdi_devices;               // that each container gets too, by name
  std::function<void(const std::string& line)> tell;  // a line for the log
};

class Plugin {
 public:
  explicit Plugin(PluginOptions options) : options_(std::move(options)) {}

  // Looks once at the server and at the kubelet: a resource for each new tenant, another health
  // where a tenant came or went, and a registration for each resource where the kubelet is new. An
  // error ends the plugin: a kubelet that refuses it, a socket that cannot be made.
  [[nodiscard]] Result<void> turn();

 private:
  // One kubelet from its start to its end.
  struct KubeletId {
    unsigned long device = 0, file = 0;
    long seconds = 0, nanoseconds = 0;
    friend bool operator==(const KubeletId&, const KubeletId&) = default;
  };
  struct Tenant {
    std::unique_ptr<Resource> resource;
    bool healthy = false;
    KubeletId registered;
    KubeletId silent;  // that did not answer, and was told of
  };
  [[nodiscard]] std::string kubelet() const { return options_.folder + "/kubelet.sock"; }
  [[nodiscard]] KubeletId look_for_kubelet() const;  // {}: there is none
  [[nodiscard]] Result<Allocation> allocate(const std::string& tenant) const;
  [[nodiscard]] Result<void> listen(const std::string& name, Tenant& tenant) const;
  [[nodiscard]] Result<void> register_again(const std::string& name, Tenant& tenant,
                                            const KubeletId& now) const;
  void look_at(const Result<lease::ServerStatus>& status);

  PluginOptions options_;
  std::map<std::string, Tenant> tenants_;
  std::set<std::string> left_out_;  // for their names
};

// The program: its exit code.
[[nodiscard]] int run_program(int argc, char** argv);

}  // namespace demarc::plugin
