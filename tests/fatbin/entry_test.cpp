// Entries of fat binaries, and their contents.
#include "demarc/fatbin/entry.hpp"

#include <gtest/gtest.h>

#include <map>

#include "bytes.hpp"
#include "formats.hpp"
#include "support.hpp"

namespace demarc::fatbin::test {
namespace {

// Offsets in a fat binary's first entry.
constexpr std::size_t entry_at = sizeof(FatBinaryHeader);
constexpr std::size_t flags_at = entry_at + offsetof(EntryHeader, flags);
constexpr std::size_t content_bytes_at = entry_at + offsetof(EntryHeader, content_bytes);
constexpr std::size_t stored_bytes_at = entry_at + offsetof(EntryHeader, stored_bytes);
constexpr std::uint64_t gigabyte = std::uint64_t{1} << 30U;

// Its views point into a kept copy.
const std::vector<Entry>& entries_in(const std::string& file) {
  static std::map<std::string, std::pair<std::string, std::vector<Entry>>> all;
  auto& [bytes, entries] = all[file];
  if (bytes.empty()) {
    bytes = kept_file(file);
    auto read = read_entries(bytes, file);
    EXPECT_TRUE(read) << message_of(read);
    if (read) entries = *read;
  }
  return entries;
}

std::string refusal_of(const std::string& bytes) {
  return message_of(read_entries(bytes, "f"));
}

std::string content_refusal_of(const std::string& bytes) {
  const auto entries = read_entries(bytes, "f");
  EXPECT_TRUE(entries) << message_of(entries);
  return entries ? message_of(content_of(entries->at(0))) : "";
}

std::string one_entry(const MadeEntry& entry) {
  return made_fat_binary({entry});
}

TEST(Entries, kinds_targets_compression_and_sizes_are_those_that_were_asked_of_nvcc) {
  const auto& entries = entries_in("zstd.fatbin");
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(kind_name(entries[0]), "machine code");
  EXPECT_EQ(kind_name(entries[1]), "machine code");
  EXPECT_EQ(kind_name(entries[2]), "PTX");
  EXPECT_EQ(name(entries[0].target), "sm_75");
  EXPECT_EQ(name(entries[1].target), "sm_90");
  EXPECT_EQ(entries[2].code_major, 9U);
  EXPECT_EQ(entries[2].code_minor, 0U);
  EXPECT_EQ(entries[2].where, "zstd.fatbin: entry 2");
  EXPECT_EQ(entries[0].content_bytes, 3872U);
  for (const Entry& entry : entries) {
    EXPECT_EQ(name(entry.compression), "zstd");
    EXPECT_EQ(flag_names(entry.flags), (std::vector<std::string>{"64-bit", "linux", "zstd"}));
  }
  EXPECT_EQ(name(entries_in("lz4.fatbin").at(0).compression), "lz4");
  EXPECT_EQ(name(entries_in("none.fatbin").at(0).compression), "not compressed");
}

TEST(Entries, targets_for_one_architecture_or_a_family_say_so) {
  const auto& ptx = entries_in("ptx_only.fatbin");
  ASSERT_EQ(ptx.size(), 3U);
  EXPECT_EQ(name(ptx[0].target), "sm_80");
  EXPECT_EQ(name(ptx[1].target), "sm_90a");
  EXPECT_EQ(name(ptx[2].target), "sm_100f");
  EXPECT_EQ(name(entries_in("elf_only.fatbin").at(1).target), "sm_90a");
}

TEST(Entries, each_compression_gives_the_same_text) {
  const auto none = content_of(entries_in("none.fatbin").at(0));
  ASSERT_TRUE(none) << message_of(none);
  EXPECT_NE(none->find(".visible .entry _Z7countedPi("), std::string::npos);
  EXPECT_EQ(none->back(), '\n');
  const auto lz4 = content_of(entries_in("lz4.fatbin").at(0));
  const auto zstd = content_of(entries_in("ptx_only.fatbin").at(0));
  EXPECT_EQ(lz4.value(), none.value());
  EXPECT_EQ(zstd.value(), none.value());
}

TEST(Entries, machine_code_decompresses_to_the_cubin_that_ptxas_writes) {
  EXPECT_EQ(content_of(entries_in("11.8.fatbin").at(1)).value(),
            kept_file("counted_11.8_80.cubin"));
  EXPECT_EQ(content_of(entries_in("zstd.fatbin").at(1)).value(), kept_file("counted_90.cubin"));
}

TEST(Entries, options_for_ptxas_are_kept_and_tables_of_machine_code_are_not_taken_for_them) {
  EXPECT_EQ(entries_in("options.fatbin").at(0).options, " -maxrregcount=32 ");
  EXPECT_EQ(entries_in("none.fatbin").at(0).options, "");
  EXPECT_EQ(entries_in("11.8.fatbin").at(0).options, "");
  EXPECT_EQ(entries_in("elf_only.fatbin").at(2).options, "");  // sm_100 has such a table
}

TEST(Entries, the_identifier_is_what_the_header_points_to) {
  std::string bytes = one_entry({.content = std::string(small_ptx), .options = "k.cu"});
  const auto at = entry_at + offsetof(EntryHeader, identifier_offset);
  bytes = with<std::uint32_t>(bytes, at, 72);
  bytes = with<std::uint32_t>(bytes, at + 4, 4);
  const auto entries = read_entries(bytes, "f");
  ASSERT_TRUE(entries) << message_of(entries);
  EXPECT_EQ(entries->at(0).identifier, "k.cu");
  EXPECT_EQ(refusal_of(with<std::uint32_t>(bytes, at + 4, 5)),
            "f: entry 0: its identifier lies outside of its header");
}

TEST(Entries, kinds_and_flags_that_are_not_known_are_listed_and_not_read) {
  const std::string bytes = one_entry({.kind = 16, .flags = 0x51, .content = "abc"});
  const auto entries = read_entries(bytes, "f");
  ASSERT_TRUE(entries) << message_of(entries);
  EXPECT_EQ(kind_name(entries->at(0)), "unknown kind 16");
  EXPECT_EQ(entries->at(0).kind, EntryKind::unknown);
  EXPECT_EQ(flag_names(entries->at(0).flags),
            (std::vector<std::string>{"64-bit", "linux", "flag 0x40"}));
  EXPECT_EQ(content_refusal_of(bytes),
            "f: entry 0: has flag 0x40, which is not known here: it is not read");
}

TEST(Entries, code_that_is_sealed_is_refused) {
  EXPECT_EQ(kind_name(entries_in("lto.fatbin").at(0)), "LTO");
  EXPECT_EQ(message_of(content_of(entries_in("lto.fatbin").at(0))),
            "lto.fatbin: entry 0: LTO that NVIDIA's tools alone can read");
}

TEST(Entries, two_compressions_at_once_are_refused) {
  const std::string bytes = kept_file("lz4.fatbin");
  EXPECT_EQ(content_refusal_of(with<std::uint64_t>(bytes, flags_at, 0xa011)),
            "f: entry 0: is compressed by LZ4 and by zstd at once");
}

TEST(Entries, a_stated_size_that_is_not_that_of_the_content_is_refused) {
  for (const char* file : {"lz4.fatbin", "options.fatbin"}) {
    const std::string bytes = kept_file(file);
    EXPECT_EQ(content_refusal_of(bytes), "");
    for (const std::uint64_t stated : {0ULL, 1ULL, 435ULL, 437ULL, 100'000ULL}) {
      EXPECT_NE(content_refusal_of(with(bytes, content_bytes_at, stated))
                    .find(fmt::format("do not decompress to the {} bytes that it states", stated)),
                std::string::npos)
          << file;
    }
  }
}

TEST(Entries, more_content_than_any_has_is_refused_before_memory_is_taken) {
  for (const char* file : {"lz4.fatbin", "options.fatbin"}) {
    const std::string bytes = kept_file(file);
    EXPECT_EQ(content_refusal_of(with(bytes, content_bytes_at, gigabyte)),
              "f: entry 0: states 1073741824 bytes of content; at most 536870912 are read");
    EXPECT_NE(content_refusal_of(with(bytes, content_bytes_at, ~std::uint64_t{0})), "");
    EXPECT_NE(content_refusal_of(with(bytes, content_bytes_at, gigabyte / 2)), "");
  }
}

TEST(Entries, stored_bytes_that_are_cut_or_changed_are_refused) {
  for (const char* file : {"lz4.fatbin", "options.fatbin"}) {
    const std::string bytes = kept_file(file);
    EXPECT_NE(content_refusal_of(with<std::uint32_t>(bytes, stored_bytes_at, 100)), "") << file;
    EXPECT_NE(content_refusal_of(with<std::uint32_t>(bytes, stored_bytes_at, 0)), "") << file;
  }
  // A frame of zstd that others follow, or bytes that belong to none.
  const std::string bytes = kept_file("options.fatbin");
  const auto stored = *field<std::uint32_t>(bytes, stored_bytes_at);
  EXPECT_NE(content_refusal_of(with<std::uint32_t>(bytes, stored_bytes_at, stored + 1)), "");
}

TEST(Entries, sizes_that_contradict_each_other_are_refused) {
  const std::string bytes = kept_file("lz4.fatbin");
  EXPECT_EQ(refusal_of(with<std::uint32_t>(bytes, stored_bytes_at, 337)),
            "f: entry 0: states 337 compressed bytes, but has 336");
  EXPECT_EQ(refusal_of(with<std::uint64_t>(bytes, flags_at, 0x11)),
            "f: entry 0: is not compressed by its flags (0x11), but states 336 compressed bytes");
  const std::string plain = kept_file("none.fatbin");
  EXPECT_NE(refusal_of(with<std::uint64_t>(plain, content_bytes_at, 1)), "");
  EXPECT_NE(refusal_of(with<std::uint32_t>(plain, stored_bytes_at, 1)), "");
}

TEST(Entries, headers_of_another_form_are_refused) {
  const std::string bytes = kept_file("none.fatbin");
  EXPECT_EQ(refusal_of(with<std::uint16_t>(bytes, entry_at + 2, 0x102)),
            "f: entry 0: has version 0x102 and a header of 80 bytes; known is 0x101 with 64");
  EXPECT_EQ(refusal_of(with<std::uint32_t>(bytes, entry_at + 4, 63)),
            "f: entry 0: has version 0x101 and a header of 63 bytes; known is 0x101 with 64");
  EXPECT_NE(refusal_of(with<std::uint32_t>(bytes, entry_at + 4, 1000)), "");
  EXPECT_NE(refusal_of(with<std::uint64_t>(bytes, entry_at + 8, 441)), "");
  EXPECT_NE(refusal_of(with(bytes, entry_at + 8, ~std::uint64_t{0})), "");
}

TEST(Entries, an_entry_that_ends_in_its_header_is_refused) {
  const std::string bytes = kept_file("none.fatbin");
  EXPECT_EQ(refusal_of(with<std::uint64_t>(bytes, 8, 63).substr(0, entry_at + 63)),
            "f: entry 0: ends in its header");
  EXPECT_EQ(refusal_of(with<std::uint64_t>(bytes, 8, 521) + '\0'),
            "f: entry 1: ends in its header");
}

TEST(Entries, options_outside_of_the_header_are_refused) {
  const std::string bytes = kept_file("options.fatbin");
  const auto at = entry_at + offsetof(EntryHeader, options_offset);
  const std::string refusal = "f: entry 0: its options lie outside of its header";
  EXPECT_EQ(refusal_of(with<std::uint32_t>(bytes, at, 1000)), refusal);
  EXPECT_EQ(refusal_of(with<std::uint32_t>(bytes, entry_at + 64 + 4, 1000)), refusal);
  EXPECT_EQ(refusal_of(with<std::uint32_t>(bytes, entry_at + 64, ~0U)), refusal);
}

TEST(Entries, a_fat_binary_without_entries_has_none) {
  const auto entries = read_entries(made_fat_binary({}), "f");
  ASSERT_TRUE(entries) << message_of(entries);
  EXPECT_TRUE(entries->empty());
}

TEST(Entries, what_is_no_fat_binary_has_no_entries) {
  EXPECT_EQ(refusal_of(std::string(small_ptx)), "f: is PTX, and no fat binary");
  EXPECT_EQ(refusal_of(""), "f: is empty");
}

TEST(Entries, an_entry_of_ptx_that_holds_something_else_is_refused) {
  EXPECT_EQ(content_refusal_of(one_entry({.content = kept_file("counted_90.cubin")})),
            "f: entry 0: holds a cubin instead of PTX");
  EXPECT_EQ(content_refusal_of(one_entry({.content = "hello"})),
            "f: entry 0: text that is not PTX: '.version' was expected first");
  EXPECT_EQ(content_refusal_of(one_entry({.content = ""})), "f: entry 0: is empty");
}

}  // namespace
}  // namespace demarc::fatbin::test
