// The records of the formats, as they lie in memory and in files. NVIDIA documents the wrapper
// (fatbinary_section.h of CUDA); the others are publicly described by several open projects and
// were seen so in what nvcc 13.0 and 11.8 write, see docs/fatbin.md.
#pragma once

#include <cstdint>
#include <string_view>

namespace demarc::fatbin {

inline constexpr std::string_view elf_magic =
    "\x7f"
    "ELF";
inline constexpr std::string_view fat_binary_magic = "\x50\xed\x55\xba";
// Sections, as CUDA's fatbinary_section.h names them. The second one has what nvcc -rdc=true links.
inline constexpr std::string_view fat_section = ".nv_fatbin";
inline constexpr std::string_view linked_section = "__nv_relfatbin";
inline constexpr std::string_view wrapper_magic = "\xb1\x43\x62\x46";

struct FatBinaryHeader {
  std::uint32_t magic;
  std::uint16_t version;       // 1
  std::uint16_t header_bytes;  // 16
  std::uint64_t entry_bytes;   // all entries behind the header
};
static_assert(sizeof(FatBinaryHeader) == 16);

struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t version;         // 0x101
  std::uint32_t header_bytes;    // with what lies behind this record: identifier, options
  std::uint64_t payload_bytes;   // padded to 8
  std::uint32_t stored_bytes;    // bytes of the compressed content; 0: not compressed
  std::uint32_t options_offset;  // from this record: OptionsHeader; 0: there is none
  std::uint16_t code_minor;      // version of the PTX language, or of the ELF
  std::uint16_t code_major;
  std::uint32_t sm;                 // 90
  std::uint32_t identifier_offset;  // from this record: name of the source, with -g and -lineinfo
  std::uint32_t identifier_bytes;
  std::uint64_t flags;
  std::uint64_t reserved;
  std::uint64_t content_bytes;  // when it is decompressed; 0: not compressed
};
static_assert(sizeof(EntryHeader) == 64);

struct OptionsHeader {
  std::uint32_t offset;  // from the EntryHeader
  std::uint32_t bytes;
};

// __fatBinC_Wrapper_t
struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;  // 1, or 2 when linked by nvlink
  const char* data;       // a fat binary
  const void* other;      // of version 2: const char*[], ends with a null pointer
};

}  // namespace demarc::fatbin
