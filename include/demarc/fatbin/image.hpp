// Finds out what a block of bytes is that a program gives to the driver, or that a file holds, and
// where it ends. The driver gets a pointer without a length, so the length is found in the image
// itself:
//
//   PTX text        blanks and comments, then ".version"; ends in front of a NUL
//   cubin           an ELF file of machine EM_CUDA; ends behind the last thing its headers name
//   fat binary      magic 0xBA55ED50; a header that says how many bytes follow
//   wrapper         magic 0x466243B1, in memory alone: a record that points to a fat binary
//
// Only what earlier headers state is read. A header with wrong sizes cannot be told from a correct
// one. So the caller vouches for what lies at a pointer, as for the driver.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::fatbin {

enum class ImageKind : std::uint8_t { ptx, cubin, fat_binary };

[[nodiscard]] std::string_view name(ImageKind kind);

struct Image {
  ImageKind kind = ImageKind::ptx;
  std::string_view bytes;  // the whole image; for a PTX text without the NUL; they belong to the
                           // memory or file that was given
  // For a program linked with nvcc -rdc=true, whose wrapper has version 2. `bytes` is the linked
  // fat binary; these are the ones that it was linked from.
  std::vector<std::string_view> prelinked;
};

// Larger images are refused. The largest fat binary of CUDA 13's libraries has 134 MB.
inline constexpr std::uint64_t max_image_bytes = std::uint64_t{2} << 30U;
inline constexpr std::size_t max_prelinked = 1U << 14U;

// The image at an address that a program gives to cuModuleLoadData, cuModuleLoadFatBinary or
// cuLibraryLoadData. `name` stands in the messages.
[[nodiscard]] Result<Image> image_at(const void* address, std::string_view name);

// The image with which `bytes` begin. Other bytes may follow it, as in a section of several fat
// binaries. But a PTX text must be all of `bytes`: only NULs may follow it.
[[nodiscard]] Result<Image> image_in(std::string_view bytes, std::string_view name);

}  // namespace demarc::fatbin
