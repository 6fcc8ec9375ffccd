// Reads the entries of a fat binary, and their contents.
#include "demarc/fatbin/entry.hpp"

#include <algorithm>

#include "bytes.hpp"
#include "decompress.hpp"
#include "demarc/fatbin/image.hpp"
#include "formats.hpp"
#include "ptx_text.hpp"

namespace demarc::fatbin {
namespace {

struct KindRow {
  EntryKind kind;
  std::uint16_t number;
  std::string_view name;
};
constexpr KindRow kinds[] = {
    {EntryKind::ptx, 1, "PTX"}, {EntryKind::cubin, 2, "machine code"}, {EntryKind::lto, 8, "LTO"}};

enum FlagBit : std::uint64_t {
  lz4_flag = 0x2000,
  zstd_flag = 0x8000,
  sealed_flag = 0x1'0000,
  architecture_flag = 0x10'0000,
  family_flag = 0x20'0000,
};
struct FlagRow {
  std::uint64_t bit;
  std::string_view name;
};
// Each was seen to come and go with what its name says, see docs/fatbin.md.
constexpr FlagRow flag_rows[] = {{0x1, "64-bit"},
                                 {0x2, "debug"},
                                 {0x10, "linux"},
                                 {lz4_flag, "lz4"},
                                 {zstd_flag, "zstd"},
                                 {sealed_flag, "sealed"},
                                 {architecture_flag, "architecture-specific"},
                                 {family_flag, "family-specific"},
                                 {0x100'0000, "capabilities"}};

Compression compression_of(std::uint64_t flags) {
  if ((flags & zstd_flag) != 0) return Compression::zstd;
  return (flags & lz4_flag) != 0 ? Compression::lz4 : Compression::none;
}

TargetScope scope_of(std::uint64_t flags) {
  if ((flags & architecture_flag) != 0) return TargetScope::architecture;
  return (flags & family_flag) != 0 ? TargetScope::family : TargetScope::any;
}

EntryKind kind_of(std::uint16_t number) {
  const auto* const row = std::ranges::find(kinds, number, &KindRow::number);
  return row == std::end(kinds) ? EntryKind::unknown : row->kind;
}

// The options for ptxas that stand behind the header of a PTX entry. Machine code has a table of
// another form there.
Result<std::string_view> options_of(const EntryHeader& header, std::string_view head,
                                    std::string_view where) {
  if (header.options_offset == 0 || kind_of(header.kind) != EntryKind::ptx) return "";
  const auto options = field<OptionsHeader>(head, header.options_offset);
  if (!options || !fits(options->offset, options->bytes, head.size()))
    return invalid_input("{}: its options lie outside of its header", where);
  return head.substr(options->offset, options->bytes);
}

// One entry from its header's first byte; `rest` is what is left of the fat binary.
Result<Entry> read_entry(std::string_view rest, const EntryHeader& header, std::string where) {
  const std::string_view head = rest.substr(0, header.header_bytes);
  Entry entry;
  entry.where = std::move(where);
  entry.kind = kind_of(header.kind);
  entry.kind_number = header.kind;
  entry.target = {.sm = header.sm, .scope = scope_of(header.flags)};
  entry.code_major = header.code_major;
  entry.code_minor = header.code_minor;
  entry.flags = header.flags;
  entry.compression = compression_of(header.flags);
  entry.stored = rest.substr(header.header_bytes, header.payload_bytes);
  entry.content_bytes = entry.stored.size();
  if (entry.compression != Compression::none) {
    if (header.stored_bytes > header.payload_bytes) {
      return invalid_input("{}: states {} compressed bytes, but has {}", entry.where,
                           header.stored_bytes, header.payload_bytes);
    }
    entry.stored = entry.stored.substr(0, header.stored_bytes);
    entry.content_bytes = header.content_bytes;
  } else if (header.stored_bytes != 0 || header.content_bytes != 0) {
    return invalid_input(
        "{}: is not compressed by its flags ({:#x}), but states {} compressed bytes", entry.where,
        header.flags, header.stored_bytes);
  }
  if (!fits(header.identifier_offset, header.identifier_bytes, head.size()))
    return invalid_input("{}: its identifier lies outside of its header", entry.where);
  entry.identifier = head.substr(header.identifier_offset, header.identifier_bytes);
  DEMARC_TRY(entry.options, options_of(header, head, entry.where));
  return entry;
}

}  // namespace

std::string_view name(Compression compression) {
  constexpr std::string_view names[] = {"not compressed", "lz4", "zstd"};
  return names[static_cast<std::size_t>(compression)];
}

std::string kind_name(const Entry& entry) {
  const auto* const row = std::ranges::find(kinds, entry.kind, &KindRow::kind);
  if (row != std::end(kinds)) return std::string(row->name);
  return fmt::format("unknown kind {}", entry.kind_number);
}

std::vector<std::string> flag_names(std::uint64_t flags) {
  std::vector<std::string> names;
  for (std::uint64_t left = flags; left != 0; left &= left - 1) {
    const std::uint64_t bit = left & -left;
    const auto* const row = std::ranges::find(flag_rows, bit, &FlagRow::bit);
    names.push_back(row == std::end(flag_rows) ? fmt::format("flag {:#x}", bit)
                                               : std::string(row->name));
  }
  return names;
}

Result<std::vector<Entry>> read_entries(std::string_view fat_binary, std::string_view name) {
  DEMARC_TRY(const Image image, image_in(fat_binary, name));
  if (image.kind != ImageKind::fat_binary) {
    return invalid_input("{}: is {}, and no fat binary", name, fatbin::name(image.kind));
  }
  std::vector<Entry> entries;
  std::string_view rest = image.bytes.substr(sizeof(FatBinaryHeader));
  while (!rest.empty()) {
    std::string where = fmt::format("{}: entry {}", name, entries.size());
    const auto header = field<EntryHeader>(rest, 0);
    if (!header) return invalid_input("{}: ends in its header", where);
    if (header->version != 0x101 || header->header_bytes < sizeof *header) {
      return invalid_input("{}: has version {:#x} and a header of {} bytes; known is 0x101 with {}",
                           where, header->version, header->header_bytes, sizeof *header);
    }
    if (!fits(header->header_bytes, header->payload_bytes, rest.size())) {
      return invalid_input("{}: states {} and {} bytes; {} are left", where, header->header_bytes,
                           header->payload_bytes, rest.size());
    }
    DEMARC_TRY(entries.emplace_back(), read_entry(rest, *header, std::move(where)));
    rest.remove_prefix(header->header_bytes + header->payload_bytes);
  }
  return entries;
}

Result<std::string> content_of(const Entry& entry) {
  for (const std::string& flag : flag_names(entry.flags)) {
    if (flag.starts_with("flag ")) {
      return invalid_input("{}: has {}, which is not known here: it is not read", entry.where,
                           flag);
    }
  }
  if ((entry.flags & sealed_flag) != 0) {
    return invalid_input("{}: {} that NVIDIA's tools alone can read", entry.where,
                         kind_name(entry));
  }
  if ((entry.flags & lz4_flag) != 0 && (entry.flags & zstd_flag) != 0)
    return invalid_input("{}: is compressed by LZ4 and by zstd at once", entry.where);
  if (entry.content_bytes > max_content_bytes) {
    return invalid_input("{}: states {} bytes of content; at most {} are read", entry.where,
                         entry.content_bytes, max_content_bytes);
  }
  std::string content;
  if (entry.compression == Compression::lz4) {
    DEMARC_TRY(content, decompress_lz4(entry.stored, entry.content_bytes, entry.where));
  } else if (entry.compression == Compression::zstd) {
    DEMARC_TRY(content, decompress_zstd(entry.stored, entry.content_bytes, entry.where));
  } else {
    content = entry.stored;
  }
  if (entry.kind != EntryKind::ptx) return content;
  DEMARC_TRY(const Image text, image_in(content, entry.where));
  if (text.kind != ImageKind::ptx)
    return invalid_input("{}: holds a {} instead of PTX", entry.where, name(text.kind));
  content.resize(text.bytes.size());
  return content;
}

}  // namespace demarc::fatbin
