// Tests where arrays of megabytes lie, and that the system is told that they may lie on large
// pages.
#include "demarc/base/large_array.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "demarc/base/files.hpp"
#include "not_run.hpp"
#include "paths.hpp"

namespace demarc {
namespace {

constexpr std::size_t megabyte = std::size_t{1} << 20U;

std::uintptr_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

// Whether the process asked for large pages at `address` ("hg" of its mapping).
bool asked_at(std::uintptr_t address) {
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::uintptr_t first = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    if (words >> std::hex >> first >> dash >> end && dash == '-') {
      here = first <= address && address < end;
    } else if (here && line.starts_with("VmFlags:")) {
      return line.find(" hg") != std::string::npos;
    }
  }
  return false;
}

bool has_large_pages() {
  return std::filesystem::exists("/sys/kernel/mm/transparent_hugepage/enabled");
}

TEST(LargeArray, megabytes_begin_on_a_large_page_and_less_on_a_line_of_the_cache) {
  const LargeArray<char> large(3 * megabyte);
  EXPECT_EQ(number(large.data()) % (2 * megabyte), 0);
  const LargeArray<char> small(10);
  EXPECT_EQ(number(small.data()) % 64, 0);
}

TEST(LargeArray, the_system_is_asked_for_large_pages) {
  if (!has_large_pages()) DEMARC_NOT_RUN("no transparent huge pages");
  const LargeArray<char> large(5 * megabyte);
  EXPECT_TRUE(asked_at(number(large.data())));
}

TEST(LargeArray, less_than_a_large_page_is_not_asked_for) {
  if (!has_large_pages()) DEMARC_NOT_RUN("no transparent huge pages");
  // Memory of its own: what an allocator gives may have been asked for by one who had it before.
  void* const part =
      ::mmap(nullptr, megabyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(part, MAP_FAILED);
  ask_large_pages(part, megabyte);
  EXPECT_FALSE(asked_at(number(part) + megabyte / 2));
  ::munmap(part, megabyte);
}

TEST(LargeArray, a_long_file_is_read_into_large_pages) {
  if (!has_large_pages()) DEMARC_NOT_RUN("no transparent huge pages");
  const auto folder = test::fresh_folder("large");
  ASSERT_TRUE(write_file(folder / "x", std::string(5 * megabyte, 'x')));
  const auto content = read_file(folder / "x");
  ASSERT_TRUE(content);
  EXPECT_TRUE(asked_at(number(content->data()) + 2 * megabyte));
}

}  // namespace
}  // namespace demarc
