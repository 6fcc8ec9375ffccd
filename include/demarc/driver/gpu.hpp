// One card with its primary context. Every other object of this room keeps its Gpu alive.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "demarc/device/device.hpp"
#include "demarc/driver/driver.hpp"

namespace demarc::cuda {

// How long a wait for a GPU takes at most, by default. A mask can stop a launch from ever starting,
// so every wait has a limit.
inline constexpr std::chrono::milliseconds default_timeout{30000};

class Gpu {
 public:
  // Retains the primary context of card `index` and makes it current in the calling thread.
  static Result<std::shared_ptr<Gpu>> open(std::shared_ptr<const Driver> driver,
                                           std::uint32_t index);
  // Without a context: for what the driver tells of the card alone.
  static Result<std::shared_ptr<Gpu>> find(std::shared_ptr<const Driver> driver,
                                           std::uint32_t index);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  [[nodiscard]] const Driver& driver() const { return *driver_; }
  [[nodiscard]] const DriverApi& api() const { return driver_->api(); }
  [[nodiscard]] std::uint32_t index() const { return index_; }
  [[nodiscard]] CuDevice handle() const { return device_; }
  [[nodiscard]] CuContext context() const { return context_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  // "GPU-xxxxxxxx-...", "MIG-xxxxxxxx-..." of a MIG instance.
  [[nodiscard]] const std::string& uuid() const { return uuid_; }
  // Masks, colours and topologies are those of whole cards. missing_capability on a MIG instance,
  // which has some of a card's TPCs and memory under other numbers.
  [[nodiscard]] Result<void> check_whole() const;
  // Whether this process is a client of MPS, whose SM numbers are those of a launch. Drivers before
  // CUDA 12.1 do not say: then every process beside a running MPS daemon counts as one.
  [[nodiscard]] bool under_mps() const;
  [[nodiscard]] gpu::ComputeCapability compute_capability() const { return capability_; }
  [[nodiscard]] std::uint32_t sm_count() const { return sm_count_; }
  [[nodiscard]] std::uint64_t total_bytes() const { return total_bytes_; }
  [[nodiscard]] Result<int> attribute(CuDeviceAttribute attribute) const;
  [[nodiscard]] Result<std::uint64_t> free_bytes() const;

  // Each thread that calls the driver needs the context current.
  [[nodiscard]] Result<void> make_current() const;
  [[nodiscard]] Result<void> check(CuResult code, std::string_view what) const {
    return driver_->check(code, what);
  }
  // Driver::ask().
  template <class T, class... Rest>
  [[nodiscard]] Result<T> ask(std::string_view what, CuResult (*function)(T*, Rest...),
                              std::type_identity_t<Rest>... rest) const {
    return driver_->ask(what, function, rest...);
  }

  // Set when work did not finish within its time: destructors then leave the driver alone, because
  // its calls would wait for ever. The process should end.
  [[nodiscard]] bool stuck() const { return stuck_; }
  void set_stuck() const { stuck_ = true; }

 private:
  Gpu() = default;
  std::shared_ptr<const Driver> driver_;
  std::uint32_t index_ = 0;
  CuDevice device_ = 0;
  CuContext context_ = nullptr;
  std::string name_;
  std::string uuid_;
  bool mig_ = false;
  gpu::ComputeCapability capability_;
  std::uint32_t sm_count_ = 0;
  std::uint64_t total_bytes_ = 0;
  mutable std::atomic<bool> stuck_{false};
};

using GpuPointer = std::shared_ptr<const Gpu>;

// The folder in which the daemon of MPS has its pipes for this process: CUDA_MPS_PIPE_DIRECTORY or
// its usual place.
[[nodiscard]] std::string mps_pipe_folder();
// Whether there is a pipe through which clients of MPS talk to it.
[[nodiscard]] bool mps_daemon_runs();

// The description of a card as far as the driver tells it: no topology beyond SMs and TPCs in one
// GPC; find_topology() fills that in.
[[nodiscard]] Result<gpu::Device> describe(const Gpu& gpu);
// Where such a description comes from: the driver's version and the card's UUID.
[[nodiscard]] std::string source_of(const Gpu& gpu);

}  // namespace demarc::cuda
