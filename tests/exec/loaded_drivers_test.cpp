// Drivers are found in a process by the names that they were linked under.
#include "loaded_drivers.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "demarc/base/owned_file.hpp"
#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using testing::Contains;
using testing::Not;

class LoadedDrivers : public testing::Test {
 protected:
  LoadedDrivers() {
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    std::filesystem::copy_file(test::fake_libcuda(), copy);
    // The one that it is a copy of: a single one is believed by its name.
    original = ::dlopen(test::fake_libcuda().c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  ~LoadedDrivers() override {
    ::dlclose(original);
    ::unsetenv("DEMARC_LIBCUDA");
  }
  static std::vector<std::string> found() { return drivers_of(::getpid()).value(); }
  const std::filesystem::path copy = test::fresh_folder("loaded_drivers") / "innocent.so";
  void* original = nullptr;
};

TEST_F(LoadedDrivers, a_renamed_and_deleted_copy_is_one) {
  EXPECT_THAT(found(), Contains(test::fake_libcuda().string()));
  EXPECT_THAT(found(), Not(Contains(copy.string())));
  void* loaded = ::dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(loaded, nullptr) << ::dlerror();
  EXPECT_THAT(found(), Contains(copy.string()).Times(1));
  std::filesystem::remove(copy);
  EXPECT_THAT(found(), Contains(copy.string() + " (deleted)").Times(1));
  ::dlclose(loaded);
}

TEST_F(LoadedDrivers, a_file_that_is_read_is_none) {
  const OwnedFile file(::open(copy.c_str(), O_RDONLY | O_CLOEXEC));
  const std::size_t bytes = std::filesystem::file_size(copy);
  void* read = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  ASSERT_NE(read, MAP_FAILED);
  EXPECT_THAT(found(), Not(Contains(copy.string())));
  ::munmap(read, bytes);
}

TEST_F(LoadedDrivers, a_process_that_is_gone_tells_nothing) {
  EXPECT_EQ(drivers_of(0), std::nullopt);
}

}  // namespace
}  // namespace demarc::cuda
