// A lock counts only while its file is where the path leads.
#include "demarc/base/lock_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "paths.hpp"

namespace demarc {
namespace {

class LockFile : public testing::Test {
 protected:
  std::string path = test::fresh_folder("lock_file") / "lock";
};

TEST_F(LockFile, is_created_for_its_user_alone_and_locked_once) {
  auto first = try_lock_file(path).value();
  EXPECT_GE(first.get(), 0);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(try_lock_file(path).value().get(), -1);
  first = OwnedFile();
  EXPECT_GE(try_lock_file(path).value().get(), 0);
}

TEST_F(LockFile, that_its_owner_has_removed_is_another_one) {
  const auto first = try_lock_file(path).value();
  ::unlink(path.c_str());
  EXPECT_GE(try_lock_file(path).value().get(), 0);
}

TEST_F(LockFile, has_one_owner_at_a_time_though_owners_remove_it) {
  std::atomic<int> owners = 0;
  std::atomic<int> owned = 0;
  std::atomic<bool> shared = false;
  const auto own_and_remove = [&] {
    for (int i = 0; i < 3000; ++i) {
      const auto lock = try_lock_file(path).value();
      if (lock.get() < 0) continue;
      if (owners.fetch_add(1) != 0) shared = true;
      ++owned;
      std::this_thread::yield();
      owners.fetch_sub(1);
      ::unlink(path.c_str());
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(own_and_remove);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(shared);
  EXPECT_GT(owned, 0);
}

TEST_F(LockFile, that_cannot_be_opened_is_named) {
  const auto folder = try_lock_file(path + "/none");
  EXPECT_EQ(folder.error().kind, ErrorKind::invalid_input);
  EXPECT_EQ(folder.error().message, "'" + path + "/none': No such file or directory");
  std::filesystem::create_symlink("elsewhere", path);
  EXPECT_THAT(try_lock_file(path).error().message, testing::StartsWith("'" + path + "': "));
}

}  // namespace
}  // namespace demarc
