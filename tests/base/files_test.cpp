// Tests that a write is whole or leaves the old file, through links, pipes and long names.
#include "demarc/base/files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

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

// A FIFO stands for every device: one that were replaced by a file would be gone for good.
TEST(Files, a_pipe_is_written_into_and_stays_a_pipe) {
  const auto path = test::fresh_folder("files") / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = read_file(path).value_or("nothing"); });
  const auto written = write_file(path, "content");
  reader.join();
  EXPECT_TRUE(written);
  EXPECT_EQ(read, "content");
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST(Files, the_file_that_a_link_names_is_written_and_the_link_stays) {
  const auto folder = test::fresh_folder("files");
  std::filesystem::create_directory(folder / "far");
  ASSERT_TRUE(write_file(folder / "far" / "old", "old"));
  std::filesystem::create_symlink("far/old", folder / "to_old");
  std::filesystem::create_symlink("to_old", folder / "twice");
  std::filesystem::create_symlink(folder / "far" / "new", folder / "to_new");
  EXPECT_TRUE(write_file(folder / "twice", "fresh"));
  EXPECT_TRUE(write_file(folder / "to_new", "first"));
  EXPECT_EQ(*read_file(folder / "far" / "old"), "fresh");
  EXPECT_EQ(*read_file(folder / "far" / "new"), "first");
  for (const char* link : {"to_old", "twice", "to_new"})
    EXPECT_TRUE(std::filesystem::is_symlink(folder / link)) << link;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "far"), {}), 2);
}

TEST(Files, as_many_links_are_followed_as_the_kernel_follows) {
  const auto folder = test::fresh_folder("files");
  for (int i = 0; i < 40; ++i) {
    std::filesystem::create_symlink(fmt::format("{}", i + 1), folder / fmt::format("{}", i));
  }
  EXPECT_TRUE(write_file(folder / "0", "x"));
  EXPECT_TRUE(std::filesystem::is_regular_file(folder / "40"));
  {
    auto given_up = OutputFile::open(folder / "0");
    ASSERT_TRUE(given_up);
    EXPECT_TRUE(given_up->write("half"));
  }
  EXPECT_EQ(*read_file(folder / "0"), "x") << "not written into directly";
  std::filesystem::remove(folder / "40");
  std::filesystem::create_symlink("41", folder / "40");
  EXPECT_FALSE(write_file(folder / "0", "x"));
  EXPECT_FALSE(std::filesystem::exists(folder / "41"));
}

TEST(Files, everybody_may_read_and_write_what_is_written_as_far_as_the_mask_lets_them) {
  const auto folder = test::fresh_folder("files");
  for (const mode_t mask : {mode_t{0}, mode_t{026}}) {
    const mode_t before = ::umask(mask);
    EXPECT_TRUE(write_file(folder / "x", "content"));
    ::umask(before);
    struct stat file {};
    ASSERT_EQ(::stat((folder / "x").c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777U, 0666U & ~mask);
  }
}

TEST(Files, no_name_is_left_while_nothing_is_finished) {
  const auto folder = test::fresh_folder("files");
  auto file = OutputFile::open(folder / "x");
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->write("half"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_TRUE(file->finish());
  EXPECT_EQ(*read_file(folder / "x"), "half");
}

// There is no room for the longer name that a file without one gets before it is put in its place.
TEST(Files, a_name_nearly_as_long_as_possible_is_written_as_any_other) {
  const auto folder = test::fresh_folder("files");
  const auto path = folder / std::string(240, 'n');
  for (const bool finished : {false, true}) {
    auto file = OutputFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_TRUE(file->write("content"));
    EXPECT_FALSE(std::filesystem::exists(path));
    if (finished) {
      EXPECT_TRUE(file->finish());
    }
    file = OutputFile::open(folder / "x");
    EXPECT_EQ(std::filesystem::exists(path), finished);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), finished ? 1 : 0);
  }
  EXPECT_EQ(*read_file(path), "content");
}

TEST(Files, what_cannot_be_read_to_its_end_is_an_error) {
  const auto result = read_file("/proc/self/mem", 10);  // nothing is mapped at its beginning
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("/proc/self/mem: cannot be read: "), std::string::npos);
}

TEST(Files, links_in_a_circle_are_refused) {
  const auto folder = test::fresh_folder("files");
  std::filesystem::create_symlink("b", folder / "a");
  std::filesystem::create_symlink("a", folder / "b");
  EXPECT_FALSE(write_file(folder / "a", "x"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "a"));
}

TEST(Files, what_is_given_up_half_way_leaves_the_old_content_and_nothing_beside_it) {
  const auto folder = test::fresh_folder("files");
  ASSERT_TRUE(write_file(folder / "x", "old"));
  {
    auto file = OutputFile::open(folder / "x");
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->write("half"));
    EXPECT_EQ(*read_file(folder / "x"), "old");
  }
  EXPECT_EQ(*read_file(folder / "x"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

// Another process makes a folder of the name while the content is written.
TEST(Files, what_cannot_be_put_in_its_place_at_last_leaves_nothing_either) {
  const auto folder = test::fresh_folder("files");
  auto file = OutputFile::open(folder / "x");
  ASSERT_TRUE(file);
  std::filesystem::create_directory(folder / "x");
  EXPECT_TRUE(file->write("content"));
  const auto finished = file->finish();
  ASSERT_FALSE(finished);
  EXPECT_NE(finished.error().message.find("x: cannot be written: Is a directory"),
            std::string::npos);
  file = OutputFile::open(folder / "y");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST(Files, reading_ends_at_the_most_that_is_wanted) {
  EXPECT_EQ(*read_file("/dev/zero", 70'000), std::string(70'000, '\0'));
  const auto path = test::fresh_folder("files") / "x";
  ASSERT_TRUE(write_file(path, "content"));
  EXPECT_EQ(*read_file(path, 3), "con");
  EXPECT_EQ(*read_file(path, 100), "content");
}

TEST(Files, what_has_no_end_or_is_larger_than_any_input_is_refused) {
  EXPECT_EQ(read_file("/dev/zero").error().message,
            "/dev/zero: it holds more than 268435456 bytes, the largest size that is read");
  const auto path = test::fresh_folder("files") / "sparse";
  ASSERT_TRUE(write_file(path, ""));
  std::filesystem::resize_file(path, (std::uint64_t{4} << 30U) + 1);
  EXPECT_EQ(read_file(path).error().message,
            path.string() + ": it holds more than 4294967296 bytes, the largest size that is read");
  EXPECT_EQ(read_file(path, 5).value().size(), 5U);
  EXPECT_EQ(read_file("/dev/null").value(), "");
}

TEST(Files, reading_a_folder_or_nothing_names_the_path) {
  EXPECT_NE(read_file("/nowhere/x").error().message.find("/nowhere/x: cannot be read"),
            std::string::npos);
  EXPECT_NE(read_file("/").error().message.find("is a directory"), std::string::npos);
}

}  // namespace
}  // namespace demarc
