// Two kernels a lane needs beside its workload: they restore buffers and take digests on the GPU,
// in the lane's own part and with its own addressing, so that checking an output costs no copies.
#pragma once

#include <cstdint>
#include <span>

namespace demarc::study {

// demarc_copy(u64 target, u64 source, u64 words):      target[i] = source[i], 4-byte words
// demarc_digest(u64 data, u64 words, u64 result, u32 salt):  *result += sum of digest_word(i, ...)
// Grids of any size; both step by the whole grid.
[[nodiscard]] const char* support_kernels_ptx();

// The digest's term for word i: what demarc_digest adds up, modulo 2^64.
[[nodiscard]] std::uint64_t digest_word(std::uint64_t index, std::uint32_t word,
                                        std::uint32_t salt);

// The digest of a whole buffer computed here.
[[nodiscard]] std::uint64_t digest_of(std::span<const std::uint32_t> words, std::uint32_t salt);

}  // namespace demarc::study
