// The two compressions of fat binaries, each to a size that is known beforehand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"

namespace demarc::fatbin {

// One raw block of LZ4, without a frame around it.
[[nodiscard]] Result<std::string> decompress_lz4(std::string_view stored, std::uint64_t bytes,
                                                 std::string_view where);
// One frame of zstd.
[[nodiscard]] Result<std::string> decompress_zstd(std::string_view stored, std::uint64_t bytes,
                                                  std::string_view where);

}  // namespace demarc::fatbin
