// Which files a process has mapped as code.
#include "demarc/guest/code_files.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "demarc/base/files.hpp"
#include "demarc/base/owned_file.hpp"
#include "paths.hpp"

namespace demarc::cuda {
namespace {

using testing::Contains;
using testing::Not;

TEST(CodeFiles, are_those_with_executable_pages_under_the_name_that_the_kernel_shows) {
  const std::string path = test::fresh_folder("code files") / "a file";
  ASSERT_TRUE(write_file(path, "code"));
  const OwnedFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  void* mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, file.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_THAT(code_files_of("thread-self").value(), Not(Contains(path)));
  ASSERT_EQ(::mprotect(mapped, 4096, PROT_READ | PROT_EXEC), 0);
  EXPECT_THAT(code_files_of("thread-self").value(), Contains(path));
  EXPECT_THAT(code_files_of(std::to_string(::getpid())).value(), Contains(path));
  std::filesystem::remove(path);
  EXPECT_THAT(code_files_of("self").value(), Contains(path + " (deleted)"));
  ::munmap(mapped, 4096);
}

TEST(CodeFiles, of_a_process_that_is_not_there_are_not_known) {
  EXPECT_EQ(code_files_of("0"), std::nullopt);
}

}  // namespace
}  // namespace demarc::cuda
