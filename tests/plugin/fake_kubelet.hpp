// The part of a kubelet that a device plugin sees: a server for its registration, and a client of
// what it registers. It refuses what a kubelet refuses.
#pragma once

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <regex>
#include <string>

#include "device_plugin.grpc.pb.h"

namespace demarc::test {

class FakeKubelet final : public v1beta1::Registration::Service {
 public:
  // Removes what lies in the folder, as a kubelet does that starts, then listens at kubelet.sock.
  explicit FakeKubelet(std::filesystem::path folder, grpc::Status refusal = grpc::Status::OK)
      : folder_(std::move(folder)), refusal_(std::move(refusal)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      std::filesystem::remove(entry.path());
    }
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + (folder_ / "kubelet.sock").string(),
                             grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeKubelet() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    std::filesystem::remove(folder_ / "kubelet.sock");
  }

  grpc::Status Register(grpc::ServerContext* context, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty*) override {
    const std::lock_guard lock(mutex_);
    const std::string fault = fault_of(*context, *request);
    if (!refusal_.ok() || !fault.empty()) {
      ++refused_;
      changed_.notify_all();
      return refusal_.ok() ? grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, fault) : refusal_;
    }
    ++registered_[request->resource_name()];
    endpoints_[request->resource_name()] = request->endpoint();
    changed_.notify_all();
    return grpc::Status::OK;
  }

  // False: it has not come so often in 30 s.
  bool wait_for(const std::string& resource, int times = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] {
      return registered_[resource] >= times || refused_ != 0;
    }) && refused_ == 0;
  }
  [[nodiscard]] std::map<std::string, int> registered() {
    const std::lock_guard lock(mutex_);
    std::erase_if(registered_, [](const auto& one) { return one.second == 0; });
    return registered_;
  }
  // As a kubelet calls it.
  [[nodiscard]] std::unique_ptr<v1beta1::DevicePlugin::Stub> plugin(const std::string& resource) {
    const std::lock_guard lock(mutex_);
    return v1beta1::DevicePlugin::NewStub(
        grpc::CreateChannel("unix:" + (folder_ / endpoints_.at(resource)).string(),
                            grpc::InsecureChannelCredentials()));
  }

 private:
  static std::string fault_of(const grpc::ServerContext& context,
                              const v1beta1::RegisterRequest& request) {
    // That of Go refuses a path as the name of a host.
    if (context.ExperimentalGetAuthority() != "localhost") return "the name of the host";
    const auto patience = context.deadline() - std::chrono::system_clock::now();
    if (patience > std::chrono::milliseconds(5500)) return "a caller that waits too long";
    const std::string label = "[a-z0-9]([a-z0-9-]*[a-z0-9])?";
    const std::regex name(label + "(\\." + label +
                          ")+/[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?");
    if (request.version() != "v1beta1") return "version " + request.version();
    if (!std::regex_match(request.resource_name(), name)) return request.resource_name();
    const std::string& endpoint = request.endpoint();
    if (endpoint.empty() || endpoint.find('/') != std::string::npos) return "endpoint " + endpoint;
    return {};
  }

  std::filesystem::path folder_;
  grpc::Status refusal_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> registered_;  // how often
  std::map<std::string, std::string> endpoints_;
  int refused_ = 0;
};

// The healths of a resource's devices as a kubelet sees them come.
class Watch {
 public:
  explicit Watch(std::unique_ptr<v1beta1::DevicePlugin::Stub> stub) : stub_(std::move(stub)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    reader_ = stub_->ListAndWatch(&context_, v1beta1::Empty());
  }
  ~Watch() {
    context_.TryCancel();
    if (!finished_) reader_->Finish();
  }
  // The plugin has ended it, and not the connection.
  bool ended() {
    v1beta1::ListAndWatchResponse list;
    while (reader_->Read(&list)) continue;
    finished_ = reader_->Finish();
    return finished_->ok();
  }
  // "a Healthy"; empty: the connection has ended, or nothing came.
  std::string next() {
    v1beta1::ListAndWatchResponse list;
    if (!reader_->Read(&list)) return {};
    std::string text;
    for (const auto& device : list.devices()) {
      text += (text.empty() ? "" : ", ") + device.id() + " " + device.health();
    }
    return text;
  }

 private:
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1beta1::ListAndWatchResponse>> reader_;
  std::optional<grpc::Status> finished_;
};

}  // namespace demarc::test
