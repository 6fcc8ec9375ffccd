// One resource of a kubelet: a tenant, which is its only device, served over a socket of its own.
// What speaks gRPC stays in resource.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/serve/containers.hpp"

namespace demarc::plugin {

// What a container gets; by name what another CDI file describes, such as the driver's.
struct Allocation {
  serve::ContainerEdits edits;
  std::vector<std::string> cdi_devices;
};

struct ResourceOptions {
  std::string name;    // what a pod asks for
  std::string device;  // its only one
  std::string socket;  // path, in the folder of the kubelet's
  bool healthy;        // at first
  // Asked for each container, on a thread of gRPC's; an error keeps the container from starting.
  std::function<Result<Allocation>()> allocate;
};

class Resource {
 public:
  // Listens. missing_capability where that cannot be.
  [[nodiscard]] static Result<std::unique_ptr<Resource>> start(ResourceOptions options);
  ~Resource();  // ends all calls and removes the socket
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;

  // The kubelets that watch are told, if it is new.
  void set_healthy(bool healthy);
  // False: another process has removed its socket, as a kubelet does that starts.
  [[nodiscard]] bool listens() const;

  enum class Registered { yes, not_now };
  // not_now: no kubelet answers there. missing_capability: it refuses the resource, in its words.
  [[nodiscard]] Result<Registered> register_with(const std::string& kubelet) const;

 private:
  struct State;
  explicit Resource(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace demarc::plugin
