// What a block of bytes is that a program hands to the driver, or that a file holds, and where it
// ends. The driver gets a pointer without a length, so the length is found in the image itself:
//
//   PTX text        blanks and comments, then ".version"; ends in front of a NUL
//   cubin           an ELF file of machine EM_CUDA; ends behind the last thing its headers name
//   fat binary      magic 0xBA55ED50; a header that says how many bytes follow
//   wrapper         magic 0x466243B1, in memory alone: a record that points to a fat binary
//
// Nothing is read but what the headers before it state. A header that lies about memory cannot be
// told from one that does not: whoever hands over a pointer vouches for what lies there, as in
// front of the driver.
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
  std::string_view bytes;  // all of it, and of a PTX text not the NUL; owned by whoever was asked
  // Of a program linked with nvcc -rdc=true, whose wrapper has version 2: `bytes` is the fat binary
  // that was linked, these are those that it was linked from.
  std::vector<std::string_view> prelinked;
};

// Larger images are refused. The largest fat binary of CUDA 13's libraries has 134 MB.
inline constexpr std::uint64_t most_image_bytes = std::uint64_t{2} << 30U;
inline constexpr std::size_t most_prelinked = 1U << 14U;

// The image at an address that a program hands to cuModuleLoadData, cuModuleLoadFatBinary or
// cuLibraryLoadData. `name` stands in the messages.
[[nodiscard]] Result<Image> image_at(const void* address, std::string_view name);

// The image that `bytes` begin with. Bytes may follow it, as in a section of several fat binaries,
// but for PTX, which is all of them: behind it stand NULs alone.
[[nodiscard]] Result<Image> image_in(std::string_view bytes, std::string_view name);

}  // namespace demarc::fatbin
