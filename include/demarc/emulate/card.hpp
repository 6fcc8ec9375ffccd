// The emulator in place of a card. A module stays loaded, its variables keep what kernels wrote,
// and kernels work in the caller's own memory, at the caller's addresses.
//
//   DEMARC_TRY(auto loaded, emulate::LoadedModule::load(std::move(module), "k.ptx"));
//   DEMARC_TRY(auto outcome, loaded.run(kernel_launch, {.memory = {{address, bytes}}}));
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/emulate/emulate.hpp"

namespace demarc::emulate {

struct HostRange {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

// What a launch finds on the card.
struct Card {
  // The memory that kernels may access besides the module's variables, in any order. Ranges must
  // not overlap. They must not lie between 0x1000'0000'0000 and 0x1700'0000'0000, where generic
  // addresses lead elsewhere.
  std::vector<HostRange> memory;
  std::vector<std::uint32_t> sm_of_block;  // %smid by linear block index; 0 behind its end
  std::uint32_t sms = 1;                   // %nsmid
  // What clocks and timers say before a warp's first instruction. They grow by 1 per instruction.
  std::uint64_t time_ns = 0;
  // So many blocks run at once and take turns, whether they wait for each other or not. 1: each
  // block runs to its end, on any core, unless it waits (Options::resident_blocks).
  std::uint32_t resident_blocks = 1;
};

class LoadedModule {
 public:
  // `source` names the PTX text in messages.
  [[nodiscard]] static Result<LoadedModule> load(ptx::Module module, std::string source);
  LoadedModule(LoadedModule&& other) noexcept;
  LoadedModule& operator=(LoadedModule&& other) noexcept;
  ~LoadedModule();

  [[nodiscard]] const ptx::Module& module() const;
  // Where a variable of global or constant memory lies; nothing if there is no such variable. Its
  // content may be written between launches.
  [[nodiscard]] std::optional<HostRange> variable(std::string_view name) const;

  // Arguments are scalars and bytes. A finding is not an error: the outcome carries it. The outcome
  // has no buffers. Run one launch of a module at a time. Errors are those of emulate::run(), and
  // ranges that overlap or lie where generic addresses lead elsewhere.
  [[nodiscard]] Result<Outcome> run(const gpu::KernelLaunch& kernel, const Card& card,
                                    const Options& options = {});

 private:
  struct State;
  explicit LoadedModule(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace demarc::emulate
