// Steps of real kernels. The emulator runs the PTX and says what each warp did. Instructions are
// counted and lanes coalesced. A warp waits for a load where the PTX first uses its register.
#pragma once

#include "demarc/emulate/emulate.hpp"
#include "demarc/sim/memory/work.hpp"

namespace demarc::ptx {
struct Module;
}

namespace demarc::sim::memory {

// Turns a trace into blocks, in order. The callbacks get each kernel before its blocks. An error of
// theirs ends the trace. A trace that lacks some of a kernel's blocks is an error.
class StepSink final : public emulate::TraceSink {
 public:
  using OnKernel = std::function<Result<void>(const KernelShape&)>;
  using OnBlock = std::function<Result<void>(std::shared_ptr<const PackedBlock>)>;
  StepSink(OnKernel on_kernel, OnBlock on_block);
  ~StepSink() override;

  [[nodiscard]] Result<void> begin_kernel(const emulate::TraceHeader& header) override;
  [[nodiscard]] Result<void> consume(const emulate::TraceChunk& chunk) override;
  [[nodiscard]] Result<void> end_kernel() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct RecordedLaunch {
  std::shared_ptr<const PackedLaunch> launch;
  emulate::Outcome outcome;  // what the kernels computed
};
// Kernels of a launch, by their place in it.
struct KernelWindow {
  std::size_t first = 0;
  std::size_t count = ~std::size_t{0};
};
// Emulates once and keeps all steps of the kernels in the window. This is for small launches that
// run many times. What comes behind the window is not emulated.
[[nodiscard]] Result<RecordedLaunch> record_launch(const ptx::Module& module,
                                                   const gpu::Launch& launch, unsigned threads = 0,
                                                   KernelWindow window = {});

// Emulates again on every run, in a thread of its own that is at most `blocks_ahead` blocks ahead.
// So no more of the trace is in memory than the blocks that run and those ahead.
[[nodiscard]] std::unique_ptr<Source> emulate_on_the_fly(std::shared_ptr<const ptx::Module> module,
                                                         gpu::Launch launch,
                                                         std::uint32_t blocks_ahead = 64);

// Reads a trace file, this program's or Accel-Sim's (docs/trace-format.md), kept in memory.
[[nodiscard]] Result<std::shared_ptr<const PackedLaunch>> read_traced_launch(
    const std::filesystem::path& path);

}  // namespace demarc::sim::memory
