// Copies between coloured memory and other memory, in pieces.
#include "calls/window_copies.hpp"
#include "demarc/card/code_of_pool.hpp"

#include "program_on_share.hpp"

namespace demarc::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Side = WindowCopies::Side;

class WindowCopiesInPieces : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    half = std::make_unique<test::ForeignHalf>(test::ColorKind::parities);
  }
  static void TearDownTestSuite() { half.reset(); }
  static inline std::unique_ptr<test::ForeignHalf> half;
  GpuPointer gpu = half->pool()->arena().gpu();
  ColoredCode code = code_of_pool(*half->pool(), 1).value();
  DriverApi api = gpu->api();
};

TEST_F(WindowCopiesInPieces, lose_no_byte_and_keep_to_the_memory_between) {
  static std::vector<std::size_t> between;
  between.clear();
  static auto* const real = api.cuMemAllocAsync;
  api.cuMemAllocAsync = [](DevicePointer* address, std::size_t bytes, CuStream stream) {
    between.push_back(bytes);
    return real(address, bytes, stream);
  };
  auto copies = WindowCopies::create(api, code, gpu->compute_capability(), 4000).value();
  std::atomic<std::uint64_t> launches{0};
  copies.count_launches_in(launches);
  const struct {
    WindowCopies::Size size;
    std::uint64_t pitch;
    std::uint64_t pieces;
    std::size_t bytes;
  } cases[] = {{{1500, 11}, 1700, 6, 3000},
               {{10000, 2}, 10007, 6, 4000},
               {{4000, 1}, 4000, 1, 4000},
               {{1, 3}, 2, 1, 3}};
  for (const auto& one : cases) {
    const std::uint64_t bytes = one.pitch * one.size.height;
    std::vector<std::uint8_t> source(bytes);
    for (std::size_t i = 0; i < bytes; ++i) source[i] = static_cast<std::uint8_t>(i * 7 + i / 9);
    std::vector<std::uint8_t> target(bytes + one.size.height, 9);
    auto expected = target;
    for (std::size_t row = 0; row < one.size.height; ++row) {
      std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(row * one.pitch), one.size.width,
                  expected.begin() + static_cast<std::ptrdiff_t>(row * (one.pitch + 1)));
    }
    const Side window{Side::Kind::window, code.pointer(color::LinearByte(100)).raw(),
                      one.pitch + 3};
    const std::uint64_t before = test::fake_symbol<std::uint64_t()>("fake_copy_count")();
    between.clear();
    ASSERT_EQ(
        copies.copy(window,
                    {Side::Kind::host, reinterpret_cast<DevicePointer>(source.data()), one.pitch},
                    one.size, nullptr),
        cu_success);
    EXPECT_EQ(test::fake_symbol<std::uint64_t()>("fake_copy_count")() - before, one.pieces);
    ASSERT_EQ(copies.copy(
                  {Side::Kind::host, reinterpret_cast<DevicePointer>(target.data()), one.pitch + 1},
                  window, one.size, nullptr),
              cu_success);
    ASSERT_EQ(api.cuCtxSynchronize(), cu_success);
    EXPECT_EQ(test::fake_symbol<std::uint64_t()>("fake_copy_count")() - before, 2 * one.pieces);
    EXPECT_THAT(between, ElementsAre(one.bytes, one.bytes));
    EXPECT_EQ(target, expected) << one.size.width;
  }
  EXPECT_EQ(launches, 2U * (6 + 6 + 1 + 1)) << "one for each piece of each copy";
  EXPECT_TRUE(half->untouched());
}

TEST_F(WindowCopiesInPieces, are_refused_where_the_driver_lacks_what_they_need) {
  const auto refusal = [&](gpu::ComputeCapability capability) {
    const auto made = WindowCopies::create(api, code, capability);
    api = gpu->api();
    if (made) return std::string("none");
    EXPECT_EQ(made.error().kind, ErrorKind::missing_capability);
    return made.error().message;
  };
  const auto own = gpu->compute_capability();
  EXPECT_EQ(refusal(own), "none");
  EXPECT_EQ(refusal({7, 5}), "none");
  constexpr const char* needs = "need compute capability 7.5 and a driver of CUDA 12.0";
  EXPECT_THAT(refusal({7, 4}), HasSubstr(needs));
  api.cuLibraryLoadData = nullptr;
  EXPECT_THAT(refusal(own), HasSubstr(needs));
  api.cuLibraryGetKernel = nullptr;
  EXPECT_THAT(refusal(own), HasSubstr(needs));
  api.cuMemAllocAsync = nullptr;
  EXPECT_THAT(refusal(own), HasSubstr(needs));
  api.cuMemFreeAsync = nullptr;
  EXPECT_THAT(refusal(own), HasSubstr(needs));
  api.cuPointerGetAttribute = nullptr;
  EXPECT_THAT(refusal(own), HasSubstr(needs));
  api.cuModuleLoadDataEx = nullptr;
  EXPECT_THAT(refusal(own), HasSubstr(needs));
  api.cuLibraryLoadData = [](CuLibrary*, const void*, int*, void**, unsigned, int*, void**,
                             unsigned) { return CuResult{218}; };
  EXPECT_THAT(refusal(own), HasSubstr("refuses the copies of coloured memory (error 218)"));
  api.cuLibraryGetKernel = [](CuKernel*, CuLibrary, const char*) { return CuResult{500}; };
  EXPECT_THAT(refusal(own), HasSubstr("error 500"));
}

}  // namespace
}  // namespace demarc::cuda
