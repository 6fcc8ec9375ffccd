// The calls of a program all of whose memory and kernels are to keep to a share of coloured memory:
// each passes, is answered in the driver's place, or is refused by its name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "calls/copy_calls.hpp"
#include "calls/graph_calls.hpp"
#include "calls/ipc_calls.hpp"
#include "calls/link_calls.hpp"
#include "calls/local_users.hpp"
#include "calls/mapping_calls.hpp"
#include "calls/memory_calls.hpp"
#include "calls/module_calls.hpp"
#include "calls/node_calls.hpp"
#include "calls/window_code.hpp"
#include "calls/window_copies.hpp"
#include "calls/window_memory.hpp"
#include "calls/window_proof.hpp"
#include "demarc/device/device.hpp"
#include "demarc/driver/launch_counters.hpp"
#include "demarc/guest/colored_code.hpp"
#include "demarc/guest/program_record.hpp"

namespace demarc::cuda {

class ColoredCalls {
 public:
  struct Means {
    const DriverApi& api;  // outlives the object
    ColoredCode code;
    std::uint64_t bytes = 0;  // bytes of the window
    WindowMemory::Owner owner;
    gpu::ComputeCapability capability;
    ColoredCounters& counters;  // outlive the object
    ProgramRecord& record;      // as does this
    // A line for the user about what was refused.
    std::function<void(const std::string& line)> tell;
    KernelChanges changes = {};
    // Bytes per thread that a kernel may keep in local memory of the driver's.
    std::uint32_t allowed_spills = 0;
    // Outlives the object; null: the program has no pinned host memory, ever.
    const std::atomic<bool>* host_memory = nullptr;
    // Where the pages of all shares lie, and the table of the colours.
    std::vector<AddressSpan> kept = {};
    WindowCode::Means windows = {};
    IpcCalls::Lender lender = {};
  };
  // A context is current.
  static Result<std::unique_ptr<ColoredCalls>> create(Means means);
  ColoredCalls(const ColoredCalls&) = delete;
  ColoredCalls& operator=(const ColoredCalls&) = delete;

  // Shows that the window's addresses lead code as it is to the tenant's bytes.
  [[nodiscard]] const WindowProof& proof() const { return proof_; }

  // At the entry of a call. Calls that Demarc makes itself pass.
  void serve(const DriverCall& call);

 private:
  ColoredCalls(Means means, WindowCopies copies);
  template <class Calls>
  [[nodiscard]] bool answered_by(Calls& calls, const DriverCall& call);
  void note_refusal(const DriverCall& call, const char* why);

  Means means_;
  WindowCopies copies_;
  WindowProof proof_;
  WindowMemory memory_;
  MemoryCalls memory_calls_;
  IpcCalls ipc_calls_;
  MappingCalls mapping_calls_;
  CopyCalls copy_calls_;
  LocalUsers locals_;
  WindowCode window_code_;
  ModuleCalls module_calls_;
  GraphCalls graph_calls_;
  NodeCalls node_calls_;
  LinkCalls link_calls_;
};

}  // namespace demarc::cuda
