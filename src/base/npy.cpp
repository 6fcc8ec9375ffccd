// Reads and writes the head of .npy files, whose middle is a dictionary in Python's notation.
#include "demarc/base/npy.hpp"

#include <algorithm>
#include <charconv>

#include "demarc/base/text.hpp"

namespace demarc {
namespace {

constexpr std::string_view npy_magic("\x93NUMPY", 6);
constexpr std::size_t npy_alignment = 64;  // the data lie at a multiple of it
constexpr std::uint64_t max_npy_bytes = std::uint64_t{1} << 62U;  // the data alone

class NpyDictionary {
 public:
  NpyDictionary(std::string_view text, std::string_view where) : rest_(text), where_(where) {}

  Result<NpyHeader> read() {
    NpyHeader header;
    if (!take('{')) return malformed("'{'");
    while (!take('}')) {
      DEMARC_TRY(const std::string_view key, quoted());
      if (!take(':')) return malformed("':'");
      if (std::find(seen_.begin(), seen_.end(), key) != seen_.end())
        return invalid_input("{}: the header names '{}' twice", where_, key);
      seen_.push_back(key);
      DEMARC_CHECK(read_value(key, header));
      if (!take(',') && !next_is('}')) return malformed("',' or '}'");
    }
    skip_blanks();
    if (!rest_.empty()) return malformed("its end");
    for (const std::string_view key : {"descr", "fortran_order", "shape"}) {
      if (std::find(seen_.begin(), seen_.end(), key) == seen_.end())
        return invalid_input("{}: the header does not say '{}'", where_, key);
    }
    return header;
  }

 private:
  Result<void> read_value(std::string_view key, NpyHeader& header) {
    if (key == "descr") return read_type(header);
    if (key == "shape") return read_shape(header);
    if (key != "fortran_order") {
      return invalid_input("{}: the header names '{}'; descr, fortran_order and shape are known",
                           where_, key);
    }
    if (take_word("False")) return {};
    if (!take_word("True")) return malformed("True or False");
    return invalid_input(
        "{}: the array is in Fortran order; C order is read (numpy.ascontiguousarray)", where_);
  }

  Result<void> read_type(NpyHeader& header) {
    if (next_is('[') || next_is('{') || next_is('(')) {
      return invalid_input(
          "{}: the elements are structures; only numbers can be read: booleans, integers and "
          "floats",
          where_);
    }
    DEMARC_TRY(const std::string_view type, quoted());
    if (type.size() == 3 && (type[0] == '>' || type[0] == '=')) {
      return invalid_input("{}: the elements are '{}'; little-endian ones are read, as '<{}'",
                           where_, type, type.substr(1));
    }
    constexpr std::string_view known[] = {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4",
                                          "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"};
    if (std::find(std::begin(known), std::end(known), type) == std::end(known)) {
      return invalid_input("{}: the elements are {}; these are read: {}", where_,
                           type == "|O" ? "objects" : fmt::format("'{}'", type),
                           joined(known, ", "));
    }
    header.type = type.substr(1);
    return {};
  }

  Result<void> read_shape(NpyHeader& header) {
    if (!take('(')) return malformed("'('");
    while (!take(')')) {
      skip_blanks();
      std::uint64_t size = 0;
      const char* const end = rest_.data() + rest_.size();
      const auto [stop, error] = std::from_chars(rest_.data(), end, size);
      if (error != std::errc{}) return malformed("a whole number below 2^64");
      rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
      header.shape.push_back(size);
      if (!take(',') && !next_is(')')) return malformed("',' or ')'");
    }
    return {};
  }

  Result<std::string_view> quoted() {
    const char quote = next_is('"') ? '"' : '\'';
    if (!take(quote)) return malformed("a text in quotes");
    const auto end = rest_.find(quote);
    if (end == std::string_view::npos) return malformed("a quote at the end of the text");
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }

  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size()));
  }
  bool next_is(char c) {
    skip_blanks();
    return rest_.starts_with(c);
  }
  bool take(char c) {
    if (!next_is(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    skip_blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  [[nodiscard]] tl::unexpected<Error> malformed(std::string_view wanted) const {
    return invalid_input("{}: the header's text is not NumPy's: {} was expected before '{}'",
                         where_, wanted, rest_.substr(0, 20));
  }

  std::string_view rest_;
  std::string_view where_;
  std::vector<std::string_view> seen_;
};

Result<std::uint64_t> data_bytes_of(const NpyHeader& header, std::string_view where) {
  std::uint64_t bytes = static_cast<std::uint64_t>(header.type[1] - '0');
  for (const std::uint64_t size : header.shape) {
    if (size != 0 && bytes > max_npy_bytes / size)
      return invalid_input("{}: the shape ({}) is that of more than 2^62 bytes", where,
                           joined(header.shape, ", "));
    bytes *= size;
  }
  return bytes;
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::string_view begin, std::string_view where) {
  if (!begin.starts_with(npy_magic))
    return invalid_input("{}: no .npy file: it does not begin with \\x93NUMPY", where);
  constexpr std::size_t version_end = 8;
  const auto byte = [&](std::size_t at) {
    return at < begin.size() ? std::uint64_t{static_cast<unsigned char>(begin[at])} : 0;
  };
  const std::uint64_t major = byte(6);
  if (begin.size() < version_end || major < 1 || major > 3 || byte(7) != 0) {
    return invalid_input("{}: version {}.{} of .npy; 1.0, 2.0 and 3.0 are read", where, major,
                         byte(7));
  }
  const std::size_t text_begin = version_end + (major == 1 ? 2 : 4);
  std::uint64_t length = 0;
  for (std::size_t at = text_begin; at-- > version_end;) length = length << 8U | byte(at);
  if (length > max_npy_header_bytes - text_begin) {
    return invalid_input("{}: a header of {} bytes; {} are the most that are read", where, length,
                         max_npy_header_bytes - text_begin);
  }
  if (begin.size() < text_begin + length)
    return invalid_input("{}: it ends within its header, after {} bytes", where, begin.size());
  DEMARC_TRY(NpyHeader header, NpyDictionary(begin.substr(text_begin, length), where).read());
  header.header_bytes = text_begin + length;
  DEMARC_TRY(header.data_bytes, data_bytes_of(header, where));
  return header;
}

std::string npy_header(std::string_view type, std::span<const std::uint64_t> shape) {
  const std::string sizes = joined(shape, ", ") + (shape.size() == 1 ? "," : "");
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 type.ends_with('1') ? '|' : '<', type, sizes);
  constexpr std::size_t text_begin = npy_magic.size() + 4;
  const std::size_t end = text_begin + text.size() + 1;
  text.append((npy_alignment - end % npy_alignment) % npy_alignment, ' ');
  text += '\n';
  std::string header(npy_magic);
  header += {1, 0, static_cast<char>(text.size() & 0xffU), static_cast<char>(text.size() >> 8U)};
  return header + text;
}

}  // namespace demarc
