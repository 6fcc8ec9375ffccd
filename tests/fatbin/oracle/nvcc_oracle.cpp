// The outside oracle: what is taken out of what nvcc writes is what nvcc, ptxas and cuobjdump say.
#include <gtest/gtest.h>

#include <filesystem>

#include "demarc/base/files.hpp"
#include "demarc/fatbin/files.hpp"
#include "demarc/fatbin/managed.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/ptx/printer.hpp"
#include "not_run.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::fatbin::test {
namespace {

using demarc::test::run_program;

constexpr const char* program_source = R"(
__managed__ int total;
__device__ int plain;
__global__ void counted(int* a) { atomicAdd(&total, a[threadIdx.x] + plain); }
__global__ void doubled(float* a) { a[threadIdx.x] *= 2; }
int main() { return 0; }
)";

// nvcc in a folder of its own, with the intermediate files kept there.
class Nvcc {
 public:
  explicit Nvcc(const std::string& name) : folder_(demarc::test::fresh_folder(name)) {
    EXPECT_TRUE(write_file(folder_ / "program.cu", program_source));
  }

  // Runs nvcc and reads what it wrote.
  FileImages images(std::vector<std::string> arguments, const std::string& file) const {
    arguments.insert(arguments.begin(), DEMARC_NVCC);
    for (const std::string& more :
         {std::string("-o"), (folder_ / file).string(), (folder_ / "program.cu").string()}) {
      arguments.push_back(more);
    }
    const auto outcome = run_program(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    auto read = read_images(folder_ / file);
    EXPECT_TRUE(read) << read.error().message;
    return read ? *read : FileImages{};
  }

  // All PTX in it, as it was written to files.
  std::vector<std::string> extracted(const FileImages& file) const {
    std::vector<std::string> texts;
    const auto paths = extract_ptx(file, folder_ / "extracted");
    EXPECT_TRUE(paths) << paths.error().message;
    if (paths) {
      for (const auto& path : *paths) texts.push_back(read_file(path).value());
    }
    return texts;
  }

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

// fatbinary takes comments out; what is printed has none.
std::string without_comments(const std::string& text) {
  return print(ptx::parse_whole(text, "ptx").value());
}

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

TEST(NvccPrograms, cuobjdump_takes_out_the_same_ptx) {
  if (!demarc::test::program_exists("cuobjdump")) DEMARC_NOT_RUN("no cuobjdump");
  const Nvcc nvcc("fatbin_oracle_cuobjdump");
  const FileImages file = nvcc.images(
      {"--compress-mode=speed", "-gencode", "arch=compute_80,code=compute_80"}, "program");
  const auto texts = nvcc.extracted(file);
  ASSERT_EQ(texts.size(), 1U);
  const auto dumped = run_program({"cuobjdump", "-ptx", (nvcc.folder() / "program").string()});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const auto start = dumped.out.find(".version");
  ASSERT_NE(start, std::string::npos) << dumped.out;
  EXPECT_EQ(without_comments(dumped.out.substr(start)), without_comments(texts[0]));
}

}  // namespace
}  // namespace demarc::fatbin::test
