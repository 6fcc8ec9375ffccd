// The device plugin's side of gRPC: answers the calls of a kubelet, and makes our one call to it.
#include "resource.hpp"

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "device_plugin.grpc.pb.h"

namespace demarc::plugin {
namespace {

using grpc::ServerContext;
using grpc::Status;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::system_clock;

constexpr const char* api_version = "v1beta1";
constexpr seconds patience{5};          // with a kubelet
constexpr milliseconds look_pause{50};  // between two looks for what is new

class Service final : public v1beta1::DevicePlugin::Service {
 public:
  explicit Service(ResourceOptions options)
      : options_(std::move(options)), healthy_(options_.healthy) {}

  void set_healthy(bool healthy) { healthy_ = healthy; }
  void stop() { stopped_ = true; }
  [[nodiscard]] const ResourceOptions& options() const { return options_; }

  Status GetDevicePluginOptions(ServerContext*, const v1beta1::Empty*,
                                v1beta1::DevicePluginOptions*) override {
    return Status::OK;  // neither of them is needed
  }

  Status ListAndWatch(ServerContext* context, const v1beta1::Empty*,
                      grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    for (std::optional<bool> told; !stopped_ && !context->IsCancelled();) {
      const bool healthy = healthy_;
      if (told == healthy) {
        std::this_thread::sleep_for(look_pause);
        continue;
      }
      told = healthy;
      v1beta1::ListAndWatchResponse list;
      v1beta1::Device* device = list.add_devices();
      device->set_id(options_.device);
      device->set_health(healthy ? "Healthy" : "Unhealthy");
      if (!writer->Write(list)) return Status::OK;
    }
    return Status::OK;
  }

  Status GetPreferredAllocation(ServerContext*, const v1beta1::PreferredAllocationRequest* request,
                                v1beta1::PreferredAllocationResponse* response) override {
    for (const auto& asked : request->container_requests()) {
      auto* chosen = response->add_container_responses();
      for (const auto& id : asked.must_include_deviceids()) chosen->add_deviceids(id);
      for (const auto& id : asked.available_deviceids()) {
        if (chosen->deviceids_size() >= asked.allocation_size()) break;
        if (asked.must_include_deviceids_size() == 0) chosen->add_deviceids(id);
      }
    }
    return Status::OK;
  }

  Status Allocate(ServerContext*, const v1beta1::AllocateRequest* request,
                  v1beta1::AllocateResponse* response) override {
    for (const auto& asked : request->container_requests()) {
      if (Status wrong = check(asked.devices_ids()); !wrong.ok()) return wrong;
      const auto allocation = options_.allocate();
      if (!allocation) {
        return {grpc::StatusCode::FAILED_PRECONDITION,
                fmt::format("{}: {}", options_.name, allocation.error().message)};
      }
      auto* container = response->add_container_responses();
      for (const auto& [name, value] : allocation->edits.environment) {
        (*container->mutable_envs())[name] = value;
      }
      for (const auto& mount : allocation->edits.mounts) {
        auto* added = container->add_mounts();
        added->set_host_path(mount.host);
        added->set_container_path(mount.container);
        added->set_read_only(mount.read_only);
      }
      for (const auto& name : allocation->cdi_devices) container->add_cdi_devices()->set_name(name);
    }
    return Status::OK;
  }

  Status PreStartContainer(ServerContext*, const v1beta1::PreStartContainerRequest* request,
                           v1beta1::PreStartContainerResponse*) override {
    return check(request->devices_ids());
  }

 private:
  template <class Ids>
  [[nodiscard]] Status check(const Ids& ids) const {
    if (ids.size() == 1 && ids[0] == options_.device) return Status::OK;
    std::string given;
    for (const auto& id : ids) given += " '" + id + "'";
    return {grpc::StatusCode::INVALID_ARGUMENT,
            fmt::format("{}: devices{}: '{}' alone was expected", options_.name,
                        given.empty() ? " none" : given, options_.device)};
  }

  const ResourceOptions options_;
  std::atomic<bool> healthy_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace

struct Resource::State {
  explicit State(ResourceOptions options) : service(std::move(options)) {}
  Service service;
  std::unique_ptr<grpc::Server> server;
  ino_t socket{};  // its number in the file system; 0: it is gone
};

Resource::Resource(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Resource>> Resource::start(ResourceOptions options) {
  const std::string path = options.socket;
  auto state = std::make_unique<State>(std::move(options));
  ::unlink(path.c_str());  // of a plugin that was killed
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(&state->service);
  state->server = builder.BuildAndStart();
  if (state->server == nullptr) {
    return missing_capability("'{}': nothing can listen there", path);
  }
  // A kubelet that starts takes all sockets away: then it is gone already.
  struct stat status {};
  static_cast<void>(::stat(path.c_str(), &status));
  state->socket = status.st_ino;
  return std::unique_ptr<Resource>(new Resource(std::move(state)));
}

// The server goes with the state: it waits for its calls, and takes its socket away.
Resource::~Resource() {
  state_->service.stop();
}

void Resource::set_healthy(bool healthy) {
  state_->service.set_healthy(healthy);
}

bool Resource::listens() const {
  struct stat status {};
  return ::stat(state_->service.options().socket.c_str(), &status) == 0 &&
         status.st_ino == state_->socket;
}

Result<Resource::Registered> Resource::register_with(const std::string& kubelet) const {
  const ResourceOptions& options = state_->service.options();
  v1beta1::RegisterRequest request;
  request.set_version(api_version);
  request.set_endpoint(options.socket.substr(options.socket.rfind('/') + 1));
  request.set_resource_name(options.name);
  grpc::ClientContext context;
  context.set_deadline(system_clock::now() + patience);
  v1beta1::Empty answer;
  const auto channel = grpc::CreateChannel("unix:" + kubelet, grpc::InsecureChannelCredentials());
  const Status status =
      v1beta1::Registration::NewStub(channel)->Register(&context, request, &answer);
  if (status.ok()) return Registered::yes;
  const auto code = status.error_code();
  if (code == grpc::StatusCode::UNAVAILABLE || code == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return Registered::not_now;
  }
  return missing_capability("the kubelet at '{}' refuses {}: {}", kubelet, options.name,
                            status.error_message());
}

}  // namespace demarc::plugin
