// Runs launches and instruction cases on a real card and gives the emulator's addresses back.
#include "card_run.hpp"

#include <cstring>
#include <functional>
#include <span>

namespace demarc::emulate::test {

namespace {

// Words that point into a buffer on the card point to the same place of the emulator's buffer.
void translate_addresses(std::vector<std::byte>& bytes, const std::vector<std::uint64_t>& from,
                         const std::vector<std::uint64_t>& to, const gpu::Launch& launch) {
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    for (std::size_t b = 0; b < from.size(); ++b) {
      if (word < from[b] || word - from[b] >= launch.buffers[b].bytes) continue;
      word = word - from[b] + to[b];
      std::memcpy(bytes.data() + at, &word, 8);
      break;
    }
  }
}

// For the buffers before the first kernel, by their addresses.
using Contents = std::function<Result<gpu::Memory>(std::span<const std::uint64_t>)>;

Result<gpu::Memory> run_with(const cuda::GpuPointer& card, const std::string& ptx,
                             const gpu::Launch& launch, const Contents& contents) {
  DEMARC_TRY(const cuda::Module module, cuda::Module::load(card, ptx, launch.name));
  DEMARC_TRY(const cuda::Stream stream, cuda::Stream::create(card));
  std::vector<cuda::DeviceBuffer> buffers;
  std::vector<std::uint64_t> addresses;
  for (const gpu::Buffer& buffer : launch.buffers) {
    DEMARC_TRY(cuda::DeviceBuffer made,
               cuda::DeviceBuffer::allocate(card, std::max<std::size_t>(buffer.bytes, 8)));
    addresses.push_back(made.address());
    buffers.push_back(std::move(made));
  }
  DEMARC_TRY(gpu::Memory memory, contents(addresses));
  for (std::size_t i = 0; i < buffers.size(); ++i)
    DEMARC_CHECK(buffers[i].upload(memory[i].data(), memory[i].size()));
  for (const gpu::KernelLaunch& kernel : launch.kernels) {
    DEMARC_TRY(const cuda::Function function, module.function(kernel.kernel));
    std::vector<std::vector<std::byte>> packed;
    for (const gpu::Argument& argument : kernel.arguments)
      packed.push_back(gpu::pack_argument(argument, addresses));
    std::vector<void*> pointers;
    for (auto& bytes : packed) pointers.push_back(bytes.data());
    cuda::LaunchShape shape;
    const gpu::Dim3 dims[2] = {kernel.grid, kernel.block};
    std::uint32_t* targets[2] = {shape.grid, shape.block};
    for (std::size_t i = 0; i < 2; ++i) {
      targets[i][0] = dims[i].x;
      targets[i][1] = dims[i].y;
      targets[i][2] = dims[i].z;
    }
    shape.shared_bytes = kernel.dynamic_shared_bytes;
    DEMARC_CHECK(cuda::launch_raw(stream, function, shape, pointers.data()));
  }
  DEMARC_CHECK(stream.wait());
  const std::vector<std::uint64_t> emulated = gpu::default_addresses(launch);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    DEMARC_CHECK(buffers[i].download(memory[i].data(), memory[i].size()));
    if (launch.buffers[i].fill.kind == gpu::FillKind::pointers)
      translate_addresses(memory[i], addresses, emulated, launch);
  }
  return memory;
}

}  // namespace

Result<gpu::Memory> run_on_card(const cuda::GpuPointer& card, const std::string& ptx,
                                const gpu::Launch& launch) {
  const Contents contents = [&](std::span<const std::uint64_t> addresses) {
    return gpu::initial_memory(launch, addresses);
  };
  return run_with(card, ptx, launch, contents);
}

Result<gpu::Memory> run_on_card(const cuda::GpuPointer& card, const std::string& ptx,
                                const gpu::Launch& launch, gpu::Memory memory) {
  return run_with(card, ptx, launch, [&](auto) { return std::move(memory); });
}

Result<std::vector<Results>> run_case_on_card(const cuda::GpuPointer& card,
                                              const cuda::Module& module, const std::string& kernel,
                                              const InstructionCase& entry,
                                              const std::vector<Inputs>& inputs) {
  const std::size_t count = inputs.size();
  const std::size_t sources = entry.sources.size();
  std::vector<std::uint64_t> words;
  for (const Inputs& row : inputs)
    words.insert(words.end(), row.in.begin(), row.in.begin() + static_cast<long>(sources));
  DEMARC_TRY(const cuda::Function function, module.function(kernel));
  DEMARC_TRY(const cuda::Stream stream, cuda::Stream::create(card));
  DEMARC_TRY(const cuda::DeviceBuffer in,
             cuda::DeviceBuffer::allocate(card, std::max<std::size_t>(words.size() * 8, 8)));
  DEMARC_TRY(const cuda::DeviceBuffer out, cuda::DeviceBuffer::allocate(card, count * 16));
  DEMARC_CHECK(in.upload(words.data(), words.size() * 8));
  DEMARC_CHECK(out.fill(0xff));
  std::vector<std::uint64_t> arguments{in.address(), out.address()};
  arguments.resize(2 + sources);
  std::vector<void*> pointers;
  for (std::uint64_t& argument : arguments) pointers.push_back(&argument);
  constexpr std::uint32_t block = 128;
  DEMARC_CHECK(cuda::launch_raw(
      stream, function, cuda::LaunchShape::line(static_cast<std::uint32_t>(count / block), block),
      pointers.data()));
  DEMARC_CHECK(stream.wait());
  DEMARC_TRY(const std::vector<std::uint64_t> got, out.read<std::uint64_t>(count * 2));
  std::vector<Results> results(count);
  for (std::size_t i = 0; i < count; ++i) results[i] = {got[2 * i], got[2 * i + 1]};
  return results;
}

}  // namespace demarc::emulate::test
