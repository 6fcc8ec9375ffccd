// Watches the driver's calls of a program and writes down the launches that `demarc capture` asks
// for: kernels by name, with their memory before and after. Nothing is answered in the driver's
// place; a launch that is taken is waited for.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "calls/kernel_arguments.hpp"
#include "capture/captured_launch.hpp"
#include "demarc/driver/driver.hpp"
#include "demarc/driver/driver_call.hpp"
#include "demarc/fatbin/image.hpp"
#include "demarc/guest/capture_order.hpp"

namespace demarc::cuda {

class LaunchCapture {
 public:
  explicit LaunchCapture(LaunchCapturePlan plan) : plan_(std::move(plan)), log_(plan_.folder) {}

  // At the entry of a call, and as it leaves. Calls that Demarc makes itself pass.
  void watch(const DriverCall& call);
  // Launches may have been missed: then the whole capture counts for nothing.
  void fail(const std::string& why) const { log_.add(LaunchCaptureLog::Kind::failed, why); }

 private:
  using Handle = const void*;
  // Code that the program loaded: its PTX, or why there is none.
  struct Code {
    std::shared_ptr<const ptx::Module> module;
    std::string without;
    bool library = false;
  };
  struct Kernel {
    std::shared_ptr<const Code> code;
    Handle handle = nullptr;  // of the code
    std::string name;
  };
  struct Shape {
    gpu::Dim3 grid;
    gpu::Dim3 block;
    std::uint32_t shared_bytes = 0;
    CuStream stream = nullptr;
    KernelArguments arguments;
    std::optional<gpu::Dim3> cluster;  // where the launch says it
  };
  using Look = void (LaunchCapture::*)(const DriverCall& call);
  struct Row {
    DriverFunction function;
    Look look;
  };
  static Look look_of(const DriverCall& call);  // null: nothing

  void load(const DriverCall& call);
  void load_file(const DriverCall& call);
  void unload(const DriverCall& call);
  void module_of_library(const DriverCall& call);
  void find_kernel(const DriverCall& call);
  void function_of_kernel(const DriverCall& call);
  template <class Parameters>
  void launch(const DriverCall& call);
  void launch_ex(const DriverCall& call);

  // The PTX that the current card would compile. `name` stands in the messages.
  [[nodiscard]] Result<ptx::Module> read_code(const fatbin::Image& image,
                                              const std::string& name) const;
  void keep_code(Handle handle, bool library, Result<ptx::Module> read);
  Result<void> open();
  void around(const DriverCall& call, CuFunction function, const Shape& shape);
  [[nodiscard]] bool wanted(const Kernel& kernel);
  void note_unknown(CuFunction function);
  [[nodiscard]] bool is_named(const std::string& kernel) const;
  Result<CapturedLaunch> before(const Kernel& kernel, const Shape& shape);
  Result<void> after(CapturedLaunch& captured);
  Result<void> write(const CapturedLaunch& captured);
  Result<void> take_arguments(const ptx::Function& function, const Shape& shape,
                              CapturedLaunch& captured) const;
  Result<void> take_memory(CapturedLaunch& captured) const;
  Result<void> take_variables(const Kernel& kernel, CapturedLaunch& captured) const;
  struct Allocation {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    bool host = false;
  };
  // What `address` lies in, of what the card can reach.
  [[nodiscard]] std::optional<Allocation> allocation_at(std::uint64_t address) const;
  [[nodiscard]] Result<std::vector<std::byte>> content_of(const Allocation& allocation) const;
  void left(const std::string& kernel, const std::string& why);
  // The next launch of the kernel is taken in its place.
  void passed_over(const std::string& kernel, const std::string& why);

  LaunchCapturePlan plan_;
  LaunchCaptureLog log_;
  std::shared_ptr<const Driver> driver_;
  std::mutex mutex_;  // of what follows
  std::unordered_map<Handle, std::shared_ptr<const Code>> codes_;
  std::unordered_map<Handle, Kernel> kernels_;  // by function, and by kernel of a library
  struct Count {
    std::uint64_t seen = 0;
    std::uint64_t chosen = 0;
  };
  std::map<std::string, Count> counts_;  // launches of each kernel that is asked for
  std::set<std::string> launched_;       // names
  std::set<std::string> told_;           // lines about what was left
};

}  // namespace demarc::cuda
