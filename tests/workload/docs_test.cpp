// Tests that the pages of rooms workload and gpu name everything that is bundled.
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/workload/workload.hpp"
#include "paths.hpp"

namespace demarc::workload {
namespace {

TEST(WorkloadPage, names_every_workload_in_the_row_of_each_of_its_groups) {
  const auto page = read_file(test::source_dir() / "docs/workload.md");
  ASSERT_TRUE(page) << page.error().message;
  for (const Workload& workload : all()) {
    for (const std::string& group : workload.groups) {
      const auto begin = page->find(fmt::format("\n| `{}` | ", group));
      ASSERT_NE(begin, std::string::npos) << group;
      const std::string row = page->substr(begin, page->find(" |\n", begin) - begin) + ",";
      EXPECT_NE(row.find(fmt::format(" `{}`,", workload.name)), std::string::npos)
          << workload.name << " in " << group;
    }
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
