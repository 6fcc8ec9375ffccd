// What the tests of room fatbin share: kept files, changed bytes, memory that ends where an image
// does, and ELF files of our own making.
#pragma once

#include <elf.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/fatbin/image.hpp"

namespace demarc::fatbin::test {

// A file of tests/fatbin/files.
[[nodiscard]] std::string kept_file(std::string_view name);

// A copy with `value` at `offset`.
template <class T>
[[nodiscard]] std::string with(std::string bytes, std::size_t offset, T value) {
  EXPECT_LE(offset + sizeof value, bytes.size());
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes;
}

// Empty where there is no error.
template <class T>
[[nodiscard]] std::string message_of(const Result<T>& result) {
  return result ? std::string() : result.error().message;
}

// The fat binary with one entry that has this content, not compressed. `kind` and `flags` as in
// its header.
struct MadeEntry {
  std::uint16_t kind = 1;
  std::uint32_t sm = 80;
  std::uint64_t flags = 0x11;
  std::string content = {};
  std::string options = {};
};
[[nodiscard]] std::string made_fat_binary(const std::vector<MadeEntry>& entries);

// An ELF file with these sections behind its null section, and their names in the last one.
struct MadeSection {
  std::string name;
  std::string content = {};
  std::uint32_t type = SHT_PROGBITS;
  std::uint64_t flags = 0;
};
[[nodiscard]] std::string made_elf(std::uint16_t machine, const std::vector<MadeSection>& sections);

// Bytes that end where the next page is not to be read.
class Guarded {
 public:
  explicit Guarded(std::string_view bytes);
  ~Guarded();
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  [[nodiscard]] const void* at() const { return at_; }

 private:
  void* pages_ = nullptr;
  std::size_t mapped_ = 0;
  const char* at_ = nullptr;
};

inline constexpr std::string_view small_ptx =
    "// a head\n.version 8.0\n.target sm_80\n.address_size 64\n";

}  // namespace demarc::fatbin::test
