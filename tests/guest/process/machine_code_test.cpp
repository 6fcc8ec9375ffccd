// Machine code without PTX in what a process has mapped as code.
#include "process/machine_code.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <filesystem>

#include "demarc/base/files.hpp"
#include "demarc/base/owned_file.hpp"
#include "paths.hpp"

namespace demarc::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Optional;

constexpr std::uint32_t hopper_sm = 90;

// What is found while a file is mapped so.
std::optional<std::string> machine_code_found_in(const std::string& path, int rights) {
  const OwnedFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  void* mapped = ::mmap(nullptr, 4096, rights, MAP_PRIVATE, file.get(), 0);
  EXPECT_NE(mapped, MAP_FAILED);
  auto found = machine_code_in_process(hopper_sm);
  ::munmap(mapped, 4096);
  return found;
}

TEST(MachineCode, is_found_in_files_that_are_mapped_as_code_alone) {
  const std::string library = test::build_dir() / "libdemarc_machine_code.so";
  EXPECT_EQ(machine_code_in_process(hopper_sm), std::nullopt);
  EXPECT_EQ(machine_code_found_in(library, PROT_READ), std::nullopt);
  EXPECT_THAT(machine_code_found_in(library, PROT_READ | PROT_EXEC),
              Optional(AllOf(HasSubstr(library), HasSubstr("kernels without PTX that sm_90 can "
                                                           "run"))));
  void* loaded = ::dlopen(library.c_str(), RTLD_NOW);
  ASSERT_NE(loaded, nullptr);
  EXPECT_THAT(machine_code_in_process(hopper_sm), Optional(HasSubstr(library)));
  ::dlclose(loaded);
}

TEST(MachineCode, may_be_in_what_cannot_be_read_and_is_not_looked_for_in_the_drivers_own_files) {
  const auto folder = test::fresh_folder("machine_code_of_files");
  const std::string library = test::build_dir() / "libdemarc_machine_code.so";
  for (const char* name : {"libcuda.so.1", "libnvidia-gpucomp.so.580"}) {
    std::filesystem::copy_file(library, folder / name);
    EXPECT_EQ(machine_code_found_in(folder / name, PROT_READ | PROT_EXEC), std::nullopt) << name;
  }
  std::filesystem::copy_file(library, folder / "libnvidia.so");
  EXPECT_THAT(machine_code_found_in(folder / "libnvidia.so", PROT_READ | PROT_EXEC),
              Optional(HasSubstr("libnvidia.so")));
  const std::string broken = folder / "broken.so";
  ASSERT_TRUE(write_file(broken, "no code"));
  EXPECT_THAT(machine_code_found_in(broken, PROT_READ | PROT_EXEC), Optional(HasSubstr(broken)));
}

}  // namespace
}  // namespace demarc::cuda
