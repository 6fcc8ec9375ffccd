// What a process on plain memory launches and asks for is counted, and passes.
#include "calls/plain_calls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calls/own_calls.hpp"
#include "fake_card.hpp"
#include "paths.hpp"
#include "planted_call.hpp"

namespace demarc::cuda {
namespace {

using testing::ElementsAre;

class PlainPrograms : public testing::Test {
 protected:
  void SetUp() override { ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1); }
  void TearDown() override { ::unsetenv("DEMARC_LIBCUDA"); }
  // Whether the call passes.
  template <class... Arguments>
  bool passes(const char* name, Arguments... arguments) {
    const test::PlantedCall call(name, arguments...);
    calls.watch(call.read());
    return !call.answer();
  }
  [[nodiscard]] std::vector<std::string> launched() const {
    std::vector<std::string> lines;
    for (const RecordedName& one : record->names()) {
      EXPECT_EQ(one.what, Recorded::plain_kernel);
      lines.push_back(fmt::format("{} {}", one.name, one.count));
    }
    return lines;
  }

  std::unique_ptr<ProgramRecord> record = std::make_unique<ProgramRecord>();
  PlainCalls calls{*record};
};

TEST_F(PlainPrograms, have_every_byte_counted_that_they_ask_for) {
  DevicePointer address = 0;
  std::size_t pitch = 0;
  std::uint64_t bytes = 0;
  const auto grew_by = [&](std::uint64_t grown) {
    bytes += grown;
    return record->plain_bytes() == bytes;
  };
  EXPECT_TRUE(passes("cuMemAlloc_v2", &address, std::size_t{100}) && grew_by(100));
  EXPECT_TRUE(passes("cuMemAllocAsync", &address, std::size_t{7}, nullptr) && grew_by(7));
  EXPECT_TRUE(passes("cuMemAllocAsync_ptsz", &address, std::size_t{8}, nullptr) && grew_by(8));
  EXPECT_TRUE(passes("cuMemAllocFromPoolAsync", &address, std::size_t{9}, nullptr, nullptr) &&
              grew_by(9));
  EXPECT_TRUE(passes("cuMemAllocManaged", &address, std::size_t{10}, 1U) && grew_by(10));
  EXPECT_TRUE(passes("cuMemCreate", &address, std::size_t{11}, nullptr, 0ULL) && grew_by(11));
  EXPECT_TRUE(passes("cuMemAllocPitch_v2", &address, &pitch, std::size_t{50}, std::size_t{3}, 4U) &&
              grew_by(150));
  EXPECT_TRUE(passes("cuMemFree_v2", address) && grew_by(0));
  EXPECT_TRUE(passes("cuMemCreate_v2", &address, std::size_t{12}, nullptr, 0ULL) && grew_by(0))
      << "a version that may have other parameters";
  EXPECT_TRUE(launched().empty());
}

TEST_F(PlainPrograms, have_their_launches_counted_by_kernel) {
  const auto gpu = test::fake_gpu();
  const DriverApi& api = gpu->api();
  const std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry one()\n{\nret;\n}\n"
      ".visible .entry two()\n{\nret;\n}\n";
  CuModule module = nullptr;
  CuFunction one = nullptr;
  ASSERT_EQ(api.cuModuleLoadData(&module, text.c_str()), cu_success);
  ASSERT_EQ(api.cuModuleGetFunction(&one, module, "one"), cu_success);
  CuLibrary library = nullptr;
  CuKernel two = nullptr;
  ASSERT_EQ(api.cuLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            cu_success);
  ASSERT_EQ(api.cuLibraryGetKernel(&two, library, "two"), cu_success);
  const auto launch = [&](const char* name, const void* kernel) {
    return passes(name, kernel, 1U, 1U, 1U, 1U, 1U, 1U, 0U, nullptr, nullptr, nullptr);
  };
  EXPECT_TRUE(launch("cuLaunchKernel", one));
  EXPECT_TRUE(launch("cuLaunchKernel_ptsz", one));
  EXPECT_TRUE(launch("cuLaunchCooperativeKernel", one));
  EXPECT_TRUE(launch("cuLaunchKernel", two));
  EXPECT_TRUE(passes("cuLaunchKernelEx", nullptr, one, nullptr, nullptr));
  EXPECT_THAT(launched(), ElementsAre("one 4", "two 1"));
  EXPECT_EQ(record->plain_bytes(), 0U);
  api.cuLibraryUnload(library);
  api.cuModuleUnload(module);
}

}  // namespace
}  // namespace demarc::cuda
