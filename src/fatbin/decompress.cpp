// Decompresses by LZ4's and zstd's own libraries; nothing is written beyond the stated size.
#include "decompress.hpp"

#include <lz4.h>
#include <zstd.h>

namespace demarc::fatbin {
namespace {

tl::unexpected<Error> broken(std::string_view where, std::string_view what, std::uint64_t bytes) {
  return invalid_input("{}: its {} data do not decompress to the {} bytes that it states", where,
                       what, bytes);
}

}  // namespace

Result<std::string> decompress_lz4(std::string_view stored, std::uint64_t bytes,
                                   std::string_view where) {
  // A byte of a block stands for 255 at most: no memory is taken for what cannot come.
  constexpr std::uint64_t max_growth = 255;
  if (bytes > stored.size() * max_growth || bytes > LZ4_MAX_INPUT_SIZE)
    return broken(where, "LZ4", bytes);
  std::string content(bytes, '\0');
  const int got = LZ4_decompress_safe(stored.data(), content.data(),
                                      static_cast<int>(stored.size()), static_cast<int>(bytes));
  if (got < 0 || static_cast<std::uint64_t>(got) != bytes) return broken(where, "LZ4", bytes);
  return content;
}

Result<std::string> decompress_zstd(std::string_view stored, std::uint64_t bytes,
                                    std::string_view where) {
  if (ZSTD_getFrameContentSize(stored.data(), stored.size()) != bytes ||
      ZSTD_findFrameCompressedSize(stored.data(), stored.size()) != stored.size())
    return broken(where, "zstd", bytes);
  std::string content(bytes, '\0');
  const std::size_t got =
      ZSTD_decompress(content.data(), content.size(), stored.data(), stored.size());
  if (ZSTD_isError(got) != 0 || got != bytes) return broken(where, "zstd", bytes);
  return content;
}

}  // namespace demarc::fatbin
