// A program of CUDA C++ that nvcc compiles, and what is read out of the files that it writes.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "demarc/base/files.hpp"
#include "demarc/fatbin/files.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/ptx/printer.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::fatbin::test {

inline constexpr const char* program_source = R"(
__managed__ int total;
__device__ int plain;
__global__ void counted(int* a) { atomicAdd(&total, a[threadIdx.x] + plain); }
__global__ void doubled(float* a) { a[threadIdx.x] *= 2; }
int main() { return 0; }
)";

// nvcc in a folder of its own, with the intermediate files kept there.
class Nvcc {
 public:
  explicit Nvcc(const std::string& name, const std::string& source = program_source)
      : folder_(demarc::test::fresh_folder(name)) {
    EXPECT_TRUE(write_file(folder_ / "program.cu", source));
  }

  // Runs nvcc and reads what it wrote.
  FileImages images(std::vector<std::string> arguments, const std::string& file) const {
    arguments.insert(arguments.begin(), DEMARC_NVCC);
    for (const std::string& more :
         {std::string("-o"), (folder_ / file).string(), (folder_ / "program.cu").string()}) {
      arguments.push_back(more);
    }
    const auto outcome = demarc::test::run_program(arguments);
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
inline std::string without_comments(const std::string& text) {
  return print(ptx::parse_whole(text, "ptx").value());
}

}  // namespace demarc::fatbin::test
