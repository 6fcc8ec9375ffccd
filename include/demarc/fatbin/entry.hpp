// The content of a fat binary: one entry for each target and form, mostly compressed.
//
//   DEMARC_TRY(const Image image, image_at(pointer, "module"));
//   DEMARC_TRY(const std::vector<Entry> entries, read_entries(image.bytes, "module"));
//   for (const Entry& entry : entries) DEMARC_TRY(std::string content, content_of(entry));
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/fatbin/target.hpp"

namespace demarc::fatbin {

enum class EntryKind : std::uint8_t { ptx, cubin, lto, unknown };

enum class Compression : std::uint8_t { none, lz4, zstd };

[[nodiscard]] std::string_view name(Compression compression);

// Views of the fat binary: valid as long as it is.
struct Entry {
  std::string where;  // "a.out: entry 2", for messages
  EntryKind kind = EntryKind::unknown;
  std::uint16_t kind_number = 0;  // as it stands in the fat binary
  Target target;
  std::uint16_t code_major = 0;  // for PTX the version of the language, for a cubin that of its ELF
  std::uint16_t code_minor = 0;
  std::uint64_t flags = 0;
  Compression compression = Compression::none;
  std::string_view stored;          // the bytes as they lie there; padded if they are not
                                    // compressed
  std::uint64_t content_bytes = 0;  // size as stated; without compression the same as that of
                                    // `stored`
  std::string_view identifier;      // the source's name, if the code has line numbers; else empty
  std::string_view options;         // for PTX the options for ptxas, " -maxrregcount=32 "; else
                                    // empty
};

// Contents above this are refused, before anything is decompressed.
inline constexpr std::uint64_t max_content_bytes = std::uint64_t{512} << 20U;

// `fat_binary` begins with its header. `name` stands in the messages. Unknown kinds and flags are
// listed. Sizes that contradict each other are errors.
[[nodiscard]] Result<std::vector<Entry>> read_entries(std::string_view fat_binary,
                                                      std::string_view name);

// "PTX", "machine code", "unknown kind 16"; "64-bit", "flag 0x40".
[[nodiscard]] std::string kind_name(const Entry& entry);
[[nodiscard]] std::vector<std::string> flag_names(std::uint64_t flags);

// The code itself, decompressed; a PTX text without its NUL. An entry is refused if it has an
// unknown flag, or does not decompress to exactly the stated size.
[[nodiscard]] Result<std::string> content_of(const Entry& entry);

}  // namespace demarc::fatbin
