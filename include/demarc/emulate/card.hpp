// The emulator instead of a card: a module stays loaded, its variables keep what kernels wrote, and
// kernels work in the caller's own memory, at the addresses that it has there.
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
  // What kernels may access beside the module's variables, without overlaps, in any order. Nothing
  // below 0x4100'0000'0000 but above 0x1000'0000'0000: generic addresses lead elsewhere there.
  std::vector<HostRange> memory;
  std::vector<std::uint32_t> sm_of_block;  // %smid by linear block index; 0 behind its end
  std::uint32_t sms = 1;                   // %nsmid
  // What clocks and timers say before a warp's first instruction; they grow by 1 an instruction.
  std::uint64_t time_ns = 0;
  // So many blocks run at once and take turns, as blocks that wait for each other need it. 1: each
  // block runs to its end, on any core.
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
  // Where a variable of global or constant memory lies, whose content may be written between
  // launches; nothing: there is no such variable.
  [[nodiscard]] std::optional<HostRange> variable(std::string_view name) const;

  // Arguments are scalars and bytes. A finding is no error: the outcome, which has no buffers,
  // carries it. One launch of a module at a time. Errors: those of emulate::run(), and ranges that
  // overlap or lie where generic addresses lead elsewhere.
  [[nodiscard]] Result<Outcome> run(const gpu::KernelLaunch& kernel, const Card& card,
                                    const Options& options = {});

 private:
  struct State;
  explicit LoadedModule(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace demarc::emulate
