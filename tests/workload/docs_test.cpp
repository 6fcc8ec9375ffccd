// Tests that the pages of rooms workload and gpu have a row for everything that is bundled.
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/workload/workload.hpp"
#include "paths.hpp"

namespace demarc::workload {
namespace {

TEST(WorkloadPage, has_a_row_for_every_workload_as_its_launch_file_describes_it) {
  const auto page = read_file(test::source_dir() / "docs/workload.md");
  ASSERT_TRUE(page) << page.error().message;
  for (const Workload& workload : all()) {
    EXPECT_NE(page->find(fmt::format("\n| `{}` | {} |", workload.name, workload.summary)),
              std::string::npos)
        << workload.name;
  }
}

TEST(GpuPage, has_a_row_for_every_generator) {
  const auto page = read_file(test::source_dir() / "docs/gpu.md");
  ASSERT_TRUE(page) << page.error().message;
  for (const gpu::GeneratorInfo& generator : gpu::generator_names()) {
    EXPECT_NE(page->find(fmt::format("\n| `{}` | {} |", generator.name, generator.meaning)),
              std::string::npos)
        << generator.name;
  }
}

}  // namespace
}  // namespace demarc::workload
