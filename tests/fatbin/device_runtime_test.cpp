// Code that launches kernels: found where it is, "none" only where there is none.
#include "demarc/fatbin/device_runtime.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.hpp"

namespace demarc::fatbin::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<std::vector<std::string>> runtime_in(const std::string& bytes) {
  DEMARC_TRY(const Image image, image_in(bytes, "f"));
  return device_runtime_functions(image, "f");
}

TEST(DeviceRuntimes, are_found_in_machine_code_in_ptx_and_in_fat_binaries) {
  for (const char* file : {"launching_rdc_80.cubin", "launching.fatbin"}) {
    const auto found = runtime_in(kept_file(file));
    ASSERT_TRUE(found) << message_of(found);
    EXPECT_THAT(*found, ElementsAre("__cudaCDP2GetParameterBufferV2", "__cudaCDP2LaunchDeviceV2"));
  }
  const std::string ptx =
      ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func (.param .b32 "
      "r) cudaLaunchDevice(.param .b64 a);\n";
  EXPECT_THAT(runtime_in(ptx).value(), ElementsAre("cudaLaunchDevice"));
}

TEST(DeviceRuntimes, are_not_found_where_no_kernel_launches) {
  for (const char* file : {"counted_90.cubin", "managed_rdc_90.cubin", "zstd.fatbin"}) {
    const auto found = runtime_in(kept_file(file));
    ASSERT_TRUE(found) << file << ": " << message_of(found);
    EXPECT_THAT(*found, IsEmpty()) << file;
  }
}

TEST(DeviceRuntimes, of_code_that_cannot_be_read_are_an_error) {
  EXPECT_THAT(message_of(runtime_in(kept_file("lto.fatbin"))),
              HasSubstr("it is unknown whether it has kernels that launch kernels"));
}

}  // namespace
}  // namespace demarc::fatbin::test
