// The outside oracle: what is taken out of what nvcc writes is what nvcc kept.
#include <gtest/gtest.h>

#include "demarc/fatbin/managed.hpp"
#include "demarc/fatbin/special_registers.hpp"
#include "nvcc.hpp"

namespace demarc::fatbin::test {
namespace {

std::vector<std::string> managed_in_all(const FileImages& file) {
  std::vector<std::string> all;
  for (const FileImage& found : file.images) {
    const auto names = managed_variables(found.image, found.where);
    EXPECT_TRUE(names) << names.error().message;
    if (names) all.insert(all.end(), names->begin(), names->end());
  }
  return all;
}

TEST(NvccPrograms, ptx_of_each_compression_is_what_nvcc_kept) {
  const Nvcc nvcc("fatbin_oracle_modes");
  for (const char* mode : {"none", "size", "speed", "balance", "default"}) {
    const FileImages file = nvcc.images({"-fatbin", "--keep", "--keep-dir", nvcc.folder().string(),
                                         std::string("--compress-mode=") + mode, "-gencode",
                                         "arch=compute_80,code=[compute_80,sm_80]"},
                                        "program.fatbin");
    const auto texts = nvcc.extracted(file);
    ASSERT_EQ(texts.size(), 1U) << mode;
    EXPECT_EQ(without_comments(texts[0]),
              without_comments(read_file(nvcc.folder() / "program.ptx").value()))
        << mode;
    EXPECT_EQ(managed_in_all(file), std::vector<std::string>{"total"}) << mode;
  }
}

TEST(NvccPrograms, an_executable_has_the_ptx_that_nvcc_kept) {
  const Nvcc nvcc("fatbin_oracle_program");
  for (const char* linking : {"-rdc=false", "-rdc=true"}) {
    const FileImages file =
        nvcc.images({"--keep", "--keep-dir", nvcc.folder().string(), linking, "-Xfatbin",
                     "-compress-all", "-gencode", "arch=compute_90,code=[compute_90,sm_90]"},
                    "program");
    const auto texts = nvcc.extracted(file);
    ASSERT_EQ(texts.size(), 1U) << linking;
    EXPECT_EQ(without_comments(texts[0]),
              without_comments(read_file(nvcc.folder() / "program.ptx").value()))
        << linking;
    const auto managed = managed_in_all(file);
    EXPECT_FALSE(managed.empty()) << linking;
    for (const std::string& name : managed) EXPECT_EQ(name, "total") << linking;
  }
}

TEST(NvccPrograms, machine_code_says_what_is_managed_on_every_target) {
  const Nvcc nvcc("fatbin_oracle_cubin");
  for (const char* target : {"sm_75", "sm_80", "sm_90a", "sm_100", "sm_120"}) {
    const FileImages file =
        nvcc.images({"-cubin", std::string("-arch=") + target}, "program.cubin");
    EXPECT_EQ(managed_in_all(file), std::vector<std::string>{"total"}) << target;
  }
}

// The numbers of registers are those that ptxas gives to what PTX names.
TEST(NvccPrograms, special_registers_are_where_they_are_looked_for) {
  const Nvcc nvcc("fatbin_oracle_registers", R"(
extern "C" __global__ void numbers(unsigned* a) {
  unsigned sm, lane, warp;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
  a[0] = sm; a[1] = lane; a[2] = warp;
}
)");
  for (const char* target : {"sm_75", "sm_80", "sm_90", "sm_90a"}) {
    nvcc.images({"-cubin", std::string("-arch=") + target}, "program.cubin");
    const std::string cubin = read_file(nvcc.folder() / "program.cubin").value();
    for (const auto which :
         {SpecialRegister::launch_sm, SpecialRegister::lane_id, SpecialRegister::virtual_id}) {
      std::string changed = cubin;
      EXPECT_EQ(
          replace_special_register(changed, which, SpecialRegister::virtual_id, "cubin").value(),
          1U)
          << target << ", register " << static_cast<int>(which);
    }
  }
}

}  // namespace
}  // namespace demarc::fatbin::test
