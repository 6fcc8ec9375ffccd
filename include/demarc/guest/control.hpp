// The memory through which `demarc exec`, the library in the confined programs and their watchers
// exchange data.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "demarc/base/owned_file.hpp"
#include "demarc/base/result.hpp"
#include "demarc/driver/launch_hook.hpp"
#include "demarc/driver/mask_history.hpp"
#include "demarc/guest/program_record.hpp"
#include "demarc/lease/card_claim.hpp"

namespace demarc::cuda {

// Environment of the confined programs: what Control::open() takes.
inline constexpr const char* control_variable = "DEMARC_CONTROL";
// The tenant's name; empty if the program has no lease, whatever the variable was before.
inline constexpr const char* tenant_variable = "DEMARC_TENANT";
// "1" where machine code runs in windows of the tenant's memory, else empty (python/demarc/torch).
inline constexpr const char* windows_variable = "DEMARC_WINDOWS";
inline constexpr const char* chained_injection_variable = "DEMARC_CHAINED_INJECTION";

// Whether code runs at addresses that the page table leads to the tenant's bytes
// (calls/window_code.hpp).
enum class WindowUse : std::uint32_t {
  never,
  automatic,  // where arithmetic does not serve: machine code, kernels that are not rewritten
  always,     // all of it
};

struct ControlBlock {
  static constexpr std::uint64_t expected_magic = 0x34316372616d6564;  // "demarc14"
  std::uint64_t magic = expected_magic;
  std::uint32_t bytes = sizeof(ControlBlock);  // bytes of this struct: another build's is refused
  std::uint64_t token[2] = {};  // random; a process that opens the block must know it
  // Random, and in no environment: the library that reports its hook knows it from here.
  std::uint64_t report_token = 0;
  gpu::ComputeCapability capability;
  char uuid[48] = {};
  std::atomic<std::uint32_t> largest_cluster{0};
  std::uint32_t count_paths = 0;     // tell streams and graphs apart
  std::int32_t sync_domain = -1;     // of memory synchronisation, of every launch; -1: its own
  std::uint32_t no_host_memory = 0;  // kernels get no host memory
  std::uint32_t allow_plain = 0;     // memory for processes that hold machine code alone
  std::uint32_t allow_spills = 0;    // bytes per thread in local memory
  std::uint32_t silence_printf = 0;  // kernels that call it run
  std::uint32_t overlap = 0;         // launches of kernels that are coloured
  WindowUse windows = WindowUse::never;
  std::uint32_t sms_per_tpc = 0;  // the least; 0: not known
  std::uint32_t needs_mps = 0;    // the proof ran in a client of MPS, so the program must be one
  // What the program has claimed of the card (exec/program_claim.hpp), and descriptors of
  // `demarc exec` on which; -1: none. A file is known by its device and its number there.
  std::int32_t claim_files[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
  std::uint64_t claim_file_ids[8][2] = {};
  lease::PartOwner claim_owner = lease::PartOwner::program;
  lease::ClaimedPart claim;
  // TPCs that the program is to get beside these, and how often that was asked for and done.
  lease::ClaimedPart claim_wanted;
  std::atomic<std::uint32_t> claims_wanted{0};
  std::atomic<std::uint32_t> claims_held{0};
  // What processes of the program have claimed for themselves, by open files of their own, and
  // which processes these are; 0: none. They write this in their turn (lease::CardClaim).
  lease::ClaimedPart claim_taken;
  std::int32_t claim_takers[16] = {};
  // The socket by which processes attach to their tenant's lease; empty: they have none.
  char lease_socket[108] = {};
  char lease_token[40] = {};
  SharedMask mask;
  MaskHistory masks;  // by the numbers of `mask`
  LaunchCounters counters;
  ProgramRecord record;                      // record of a program that has a lease
  std::atomic<std::uint64_t> slo_misses{0};  // that the program reported
  std::atomic<std::uint64_t> proof{0};       // number of the last one that windows need; 0: none
  // Of processes, from their exec to the next one; live, written by `demarc exec` alone.
  std::atomic<std::uint32_t> confined{0};  // with a context on the card, their launches hooked
  std::atomic<std::uint32_t> contexts{0};  // that these made
  std::atomic<std::uint32_t> kept_off{0};  // refused a context
  std::atomic<std::uint32_t> stopped{0};   // ended because they could not be confined
};

// A block mapped into this process. It lies in memory without a name, so no other process can plant
// it. The memory is gone when the owner has ended, however it ended, and no process maps it.
class Control {
 public:
  static Result<Control> create();
  // "/proc/PID/fd/N#TOKEN", as value() gives it: the owner's file and the block's token, so that a
  // process or file whose number was used again is refused.
  static Result<Control> open(const std::string& value);
  ~Control();
  Control(Control&& other) noexcept;
  Control& operator=(Control&&) = delete;

  [[nodiscard]] ControlBlock& block() const { return *block_; }
  [[nodiscard]] const std::string& value() const { return value_; }
  // Processes that store at the same time take turns; one that dies loses its turn. It tries so
  // many times, a millisecond apart. An error when the owner is gone, or when another process never
  // gives its turn back. `tpcs` are those of the mask, for reports.
  [[nodiscard]] Result<void> store_mask(const HardwareMask& mask, bool active,
                                        std::string_view tpcs = {}, int turns = 1000) const;
  // Processes that give the program other TPCs take turns: this one has its turn until the value
  // goes. invalid_input if the program is only observed; missing_capability if another process has
  // not ended its turn within so many looks, which are 10 ms apart.
  [[nodiscard]] Result<OwnedFile> turn_to_move(int looks = 1000) const;

 private:
  Control(std::string value, OwnedFile file, ControlBlock* block)
      : value_(std::move(value)), file_(std::move(file)), block_(block) {}
  std::string value_;
  OwnedFile file_;  // none if the block belongs to another process
  ControlBlock* block_;
};

// What Control::open() takes, of a process that runs under `demarc exec`, from its environment.
[[nodiscard]] Result<std::string> control_value_of(std::int64_t pid);

}  // namespace demarc::cuda
