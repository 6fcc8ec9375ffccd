#include "demarc/base/files.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "paths.hpp"

namespace demarc {
namespace {

TEST(Files, what_is_written_is_read_back_and_nothing_else_is_left) {
  const auto folder = test::fresh_folder("files");
  const std::string content("a\0b\n", 4);
  ASSERT_TRUE(write_file(folder / "x", content));
  EXPECT_EQ(*read_file(folder / "x"), content);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST(Files, a_failed_write_keeps_the_old_content) {
  const auto folder = test::fresh_folder("files");
  const auto result = write_file(folder / "missing" / "x", "new");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("missing/x: cannot be written: No such file"),
            std::string::npos);
}

TEST(Files, whether_a_file_can_be_written_is_said_beforehand_and_leaves_nothing) {
  const auto folder = test::fresh_folder("files");
  ASSERT_TRUE(write_file(folder / "old", "content"));
  EXPECT_TRUE(check_writable(folder / "new"));
  EXPECT_TRUE(check_writable(folder / "old"));
  EXPECT_TRUE(check_writable("/dev/null"));
  EXPECT_EQ(*read_file(folder / "old"), "content");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST(Files, what_cannot_be_written_has_the_same_error_beforehand_as_afterwards) {
  const auto folder = test::fresh_folder("files");
  for (const std::filesystem::path& path :
       {folder / "missing" / "x", folder, std::filesystem::path("/proc/x"),
        folder / std::string(300, 'n')}) {
    const auto before = check_writable(path);
    const auto after = write_file(path, "x");
    ASSERT_FALSE(before) << path;
    ASSERT_FALSE(after) << path;
    EXPECT_EQ(before.error(), after.error());
  }
}

TEST(Files, reading_a_folder_or_nothing_names_the_path) {
  EXPECT_NE(read_file("/nowhere/x").error().message.find("/nowhere/x: cannot be read"),
            std::string::npos);
  EXPECT_NE(read_file("/").error().message.find("is a directory"), std::string::npos);
}

}  // namespace
}  // namespace demarc
