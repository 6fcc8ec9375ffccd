// The head of files in NumPy's format .npy: an array of numbers, little-endian, in C order. Files
// in Fortran order, and files with big-endian numbers, objects or structures, are refused; the
// error says which it is.
//
//   DEMARC_TRY(const NpyHeader header, parse_npy_header(content, "x.npy"));
//   content.substr(header.header_bytes);                     // header.data_bytes of it
//   npy_header("f4", std::vector<std::uint64_t>{3, 2}) + data  // a file
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc {

struct NpyHeader {
  // The type of an element, as NumPy names it without the byte order: a letter (b, i, u or f) and
  // the number of bytes.
  std::string type;
  std::vector<std::uint64_t> shape;  // empty: a single number
  std::uint64_t header_bytes = 0;    // the data begins behind them
  std::uint64_t data_bytes = 0;
};

// A file whose data begins later is refused.
inline constexpr std::uint64_t max_npy_header_bytes = std::uint64_t{1} << 20U;

// `begin` is the file, or at least its first max_npy_header_bytes. Errors begin with `where`.
[[nodiscard]] Result<NpyHeader> parse_npy_header(std::string_view begin, std::string_view where);

// The head in front of the data in a file of version 1.0.
[[nodiscard]] std::string npy_header(std::string_view type, std::span<const std::uint64_t> shape);

}  // namespace demarc
