// The memory through which `demarc exec` and the library in the confined programs speak.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/cuda/launch_hook.hpp"

namespace demarc::cuda {

inline constexpr const char* control_variable = "DEMARC_CONTROL";  // path of the block's file
inline constexpr const char* chained_injection_variable = "DEMARC_CHAINED_INJECTION";

struct ControlBlock {
  static constexpr std::uint64_t expected_magic = 0x31306372616d6564;  // "demarc01"
  std::uint64_t magic = expected_magic;
  std::uint32_t bytes = sizeof(ControlBlock);  // of this struct: another build's is refused
  gpu::ComputeCapability capability;
  char uuid[48] = {};
  std::atomic<std::uint32_t> largest_cluster{0};
  std::uint32_t count_paths = 0;
  SharedMask mask;
  LaunchCounters counters;
  std::atomic<std::uint32_t> hooked{0};    // processes whose launches pass the hook
  std::atomic<std::uint32_t> unhooked{0};  // processes that used the GPU without it
  std::atomic<std::uint32_t> stopped{0};   // processes ended because they could not be confined
};

// A block mapped into this process.
class Control {
 public:
  // Makes the file (readable by its owner alone) and the block; the destructor removes the file.
  static Result<Control> create(const std::string& path);
  static Result<Control> open(const std::string& path);
  ~Control();
  Control(Control&& other) noexcept;
  Control& operator=(Control&&) = delete;

  [[nodiscard]] ControlBlock& block() const { return *block_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Control(std::string path, ControlBlock* block, bool owner)
      : path_(std::move(path)), block_(block), owner_(owner) {}
  std::string path_;
  ControlBlock* block_;
  bool owner_;
};

// Where a new block of this process goes: /dev/shm, else $TMPDIR or /tmp.
[[nodiscard]] std::string new_control_path();
// The block of a process that runs under `demarc exec`, from its environment.
[[nodiscard]] Result<std::string> control_path_of(std::int64_t pid);

}  // namespace demarc::cuda
