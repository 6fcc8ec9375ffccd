// Runs instruction cases in the emulator and says which result is wrong.
#include "instructions/instruction_runs.hpp"

#include <cstring>

namespace demarc::emulate::test {

namespace {
constexpr std::uint32_t block_threads = 128;
}

gpu::Launch launch_of_case(const InstructionCase& entry, const std::vector<Inputs>& inputs,
                           unsigned uniform) {
  gpu::Launch launch;
  const std::size_t count = inputs.size();
  gpu::Buffer in;
  in.bytes = std::max<std::size_t>(count * 8 * entry.sources.size(), 8);
  gpu::Buffer out;
  out.bytes = count * 16;
  out.output = true;
  launch.buffers = {in, out};
  gpu::KernelLaunch kernel;
  kernel.kernel = "k";
  const bool whole = count % block_threads == 0;
  kernel.grid.x = whole ? static_cast<std::uint32_t>(count / block_threads) : 1;
  kernel.block.x = whole ? block_threads : static_cast<std::uint32_t>(count);
  kernel.arguments.emplace_back(gpu::BufferUse{0, 0});
  kernel.arguments.emplace_back(gpu::BufferUse{1, 0});
  for (std::size_t i = 0; i < entry.sources.size(); ++i) {
    const std::uint64_t value = ((uniform >> i) & 1U) != 0 ? inputs[0][i] : 0;
    kernel.arguments.emplace_back(gpu::Scalar{gpu::ScalarType::u64, value});
  }
  launch.kernels.push_back(kernel);
  return launch;
}

gpu::Memory memory_of_case(const InstructionCase& entry, const std::vector<Inputs>& inputs) {
  gpu::Memory memory(2);
  const std::size_t stride = entry.sources.size();
  memory[0].resize(std::max<std::size_t>(inputs.size() * 8 * stride, 8));
  memory[1].assign(inputs.size() * 16, std::byte{0xff});
  for (std::size_t i = 0; i < inputs.size(); ++i)
    std::memcpy(memory[0].data() + i * 8 * stride, inputs[i].in.data(), 8 * stride);
  return memory;
}

Result<std::vector<Results>> emulate_case(const InstructionCase& entry,
                                          const std::vector<Inputs>& inputs, unsigned uniform,
                                          bool masked, const Options& options) {
  const std::string text = kernel_text(entry, uniform, masked);
  const ptx::ParseResult parsed = ptx::parse(text, "case.ptx");
  if (!parsed.diagnostics.ok())
    return invalid_input("{}", ptx::format(parsed.diagnostics.list.front(), "case.ptx"));
  Options given = options;
  given.threads = 1;
  DEMARC_TRY(const Outcome outcome, run_on(parsed.module, launch_of_case(entry, inputs, uniform),
                                           memory_of_case(entry, inputs), given));
  if (!outcome.findings.empty())
    return check_failed("{}", describe(outcome.findings[0], "case.ptx"));
  std::vector<Results> results(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::memcpy(&results[i].d, outcome.buffers[1].data() + 16 * i, 8);
    std::memcpy(&results[i].e, outcome.buffers[1].data() + 16 * i + 8, 8);
  }
  return results;
}

std::string run_case(const InstructionCase& entry, std::vector<Inputs> inputs, unsigned uniform,
                     bool masked, const Options& options) {
  for (Inputs& row : inputs) {
    for (std::size_t i = 0; i < entry.sources.size(); ++i) {
      if (((uniform >> i) & 1U) != 0) row.in[i] = inputs[0].in[i];
    }
  }
  const auto got = emulate_case(entry, inputs, uniform, masked, options);
  if (!got) return fmt::format("{}: {}", entry.text, got.error().message);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (entry.defined && !entry.defined(inputs[i])) continue;
    Results expected = entry.reference(inputs[i]);
    const bool skipped = masked && i % 2 == 1;
    for (std::size_t r = 0; r < entry.results.size(); ++r) {
      const Value kind = entry.results[r];
      const unsigned width = bits_of(kind);
      const std::uint64_t ones = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
      const std::uint64_t wanted = skipped ? ones : (r == 0 ? expected.d : expected.e);
      const std::uint64_t value = r == 0 ? (*got)[i].d : (*got)[i].e;
      const std::string said = difference(kind, value, wanted, skipped ? Bound{} : entry.emulator);
      if (said.empty()) continue;
      std::string operands;
      for (std::size_t s = 0; s < entry.sources.size(); ++s)
        operands += fmt::format(" 0x{:x}", inputs[i][s]);
      return fmt::format("{} of{}: result {}: {}", entry.text, operands, r + 1, said);
    }
  }
  return {};
}

}  // namespace demarc::emulate::test
