// Three kernels a lane needs beside its workload: they fill and restore buffers and take digests on
// the GPU, in the lane's own part and with its own addressing, so that checking an output costs no
// copies.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "demarc/driver/launch.hpp"
#include "gpu/memory_source.hpp"

namespace demarc::study {

// demarc_zero(u64 data, u64 words):                    data[i] = 0, 4-byte words
// demarc_copy(u64 target, u64 source, u64 words):      target[i] = source[i]
// demarc_digest(u64 data, u64 words, u64 result, u32 salt):  *result += sum of digest_word(i, ...)
// Grids of any size; all step by the whole grid.
[[nodiscard]] const char* support_kernels_ptx();

// The digest's term for word i: what demarc_digest adds up, modulo 2^64.
[[nodiscard]] std::uint64_t digest_word(std::uint64_t index, std::uint32_t word,
                                        std::uint32_t salt);

// The digest of a whole buffer computed here.
[[nodiscard]] std::uint64_t digest_of(std::span<const std::uint32_t> words, std::uint32_t salt);

// The kernels made ready for one memory. Addresses are those that its kernels get; nothing waits.
class SupportKernels {
 public:
  static Result<SupportKernels> load(const MemorySource& memory);

  [[nodiscard]] Result<void> zero(const cuda::Stream& stream, const PlacedBuffer& data,
                                  std::uint64_t words) const;
  [[nodiscard]] Result<void> copy(const cuda::Stream& stream, const PlacedBuffer& target,
                                  const PlacedBuffer& source, std::uint64_t words) const;
  // Adds to the number at `result`.
  [[nodiscard]] Result<void> digest(const cuda::Stream& stream, const PlacedBuffer& data,
                                    std::uint64_t words, const PlacedBuffer& result,
                                    std::uint32_t salt) const;

 private:
  SupportKernels(std::unique_ptr<LoadedProgram> program, cuda::Function zero, cuda::Function copy,
                 cuda::Function digest)
      : program_(std::move(program)),
        zero_(std::move(zero)),
        copy_(std::move(copy)),
        digest_(std::move(digest)) {}
  std::unique_ptr<LoadedProgram> program_;
  cuda::Function zero_;
  cuda::Function copy_;
  cuda::Function digest_;
};

}  // namespace demarc::study
