// What the page table shows of a window, against what arithmetic finds there.
#include "calls/window_proof.hpp"

#include "demarc/card/code_of_pool.hpp"
#include "demarc/device/pages.hpp"
#include "program_on_share.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t window_pages = 16;

class ProofOfWindows : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    half = std::make_unique<test::ForeignHalf>(test::ColorKind::parities);
  }
  static void TearDownTestSuite() { half.reset(); }
  // By arithmetic all words are zero; what the driver copies from the window comes from the test.
  void SetUp() override {
    static decltype(api.cuMemcpy2DAsync_v2) real = nullptr;
    static DevicePointer start = 0;
    real = gpu->api().cuMemcpy2DAsync_v2;
    start = code.pointer({}).raw();
    calls = 0;
    api.cuMemcpy2DAsync_v2 = [](const CuCopy2d* copy, CuStream stream) {
      const bool by_table = copy->source_type == cu_memory_device &&
                            copy->source_device - start < window_pages * gpu::smallest_page_bytes;
      if (!by_table) return real(copy, stream);
      const std::uint64_t place = (copy->source_device - start) % gpu::smallest_page_bytes;
      const std::uint64_t first = (copy->source_device - start) / gpu::smallest_page_bytes;
      auto* words = static_cast<std::uint64_t*>(copy->target_host);
      for (std::uint64_t page = 0; page < copy->height; ++page)
        words[page] = shown(first + page, place);
      ++calls;
      return cu_success;
    };
    copies.emplace(WindowCopies::create(api, code, gpu->compute_capability()).value());
    const WindowCopies::Side all{WindowCopies::Side::Kind::window, start, 0};
    ASSERT_EQ(copies->fill(all, 0, 4, {window_pages * gpu::smallest_page_bytes / 4, 1}, nullptr),
              cu_success);
    ASSERT_EQ(api.cuCtxSynchronize(), cu_success);
  }
  std::string compared() {
    const auto same = WindowProof(api, *copies)
                          .compare(code.pointer({}).raw(), window_pages * gpu::smallest_page_bytes);
    return same ? "same" : same.error().message;
  }
  // The word at a place in a page, as the page table leads there.
  static inline std::function<std::uint64_t(std::uint64_t page, std::uint64_t place)> shown;
  static inline std::uint64_t calls = 0;
  static inline std::unique_ptr<test::ForeignHalf> half;
  GpuPointer gpu = half->pool()->arena().gpu();
  ColoredCode code = code_of_pool(*half->pool(), 1).value();
  DriverApi api = gpu->api();
  std::optional<WindowCopies> copies;
};

TEST_F(ProofOfWindows, compares_eight_places_of_each_page_once_where_they_are_equal) {
  std::vector<std::uint64_t> places;
  shown = [&](std::uint64_t page, std::uint64_t place) {
    if (page == window_pages - 1) places.push_back(place);
    return 0;
  };
  EXPECT_EQ(compared(), "same");
  EXPECT_THAT(places, testing::ElementsAre(0, 512, 1024, 1536, 2048, 2560, 3072, 3584));
}

TEST_F(ProofOfWindows, names_the_first_page_that_stays_different_at_any_place) {
  for (const std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{9}, window_pages - 1}) {
    shown = [&](std::uint64_t page, std::uint64_t place) {
      return std::uint64_t{page >= wrong && place == 3584};
    };
    EXPECT_THAT(compared(),
                HasSubstr(fmt::format("leads address {:#x} of the window elsewhere",
                                      code.pointer({}).raw() + wrong * gpu::smallest_page_bytes)));
  }
}

// Kernels write between the two reads of a look, so one of eight looks has to be the same both
// ways.
TEST_F(ProofOfWindows, takes_what_becomes_equal_for_the_programs_own_work) {
  shown = [](std::uint64_t page, std::uint64_t) { return page == 3 && calls % 3 != 2 ? calls : 0; };
  EXPECT_EQ(compared(), "same") << "another number at most looks";
  shown = [](std::uint64_t page, std::uint64_t) {
    return std::uint64_t{page == 3 && calls % 8 != 7};
  };
  EXPECT_EQ(compared(), "same") << "equal at the last look";
  shown = [](std::uint64_t page, std::uint64_t) {
    return std::uint64_t{page == 3 && calls % 9 != 8};
  };
  EXPECT_THAT(compared(), HasSubstr("elsewhere")) << "there is no ninth look";
}

// It may be another tenant's memory, which others write to.
TEST_F(ProofOfWindows, does_not_hold_where_the_content_changes_and_is_never_the_same) {
  shown = [](std::uint64_t page, std::uint64_t) { return page == 3 ? calls + 1 : 0; };
  const std::string changing = fmt::format(
      "the content at address {:#x} of the window changes all the time, so it cannot be "
      "compared",
      code.pointer({}).raw() + 3 * gpu::smallest_page_bytes);
  EXPECT_EQ(compared(), changing);
  shown = [](std::uint64_t page, std::uint64_t) {
    return page == 3 ? calls + 1 : std::uint64_t{page == 5};
  };
  EXPECT_THAT(compared(),
              HasSubstr(fmt::format("leads address {:#x} of the window elsewhere",
                                    code.pointer({}).raw() + 5 * gpu::smallest_page_bytes)))
      << "a later page is known to";
}

// Errors of the driver are errors of the proof.
TEST_F(ProofOfWindows, does_not_hold_where_the_window_cannot_be_read) {
  shown = [](std::uint64_t, std::uint64_t) { return 0; };
  api.cuStreamSynchronize = [](CuStream) -> CuResult { return 700; };
  EXPECT_EQ(compared(), "the window could not be read (error 700)");
  api.cuMemcpy2DAsync_v2 = [](const CuCopy2d*, CuStream) -> CuResult { return 1; };
  EXPECT_EQ(compared(), "the window could not be read (error 1)");
  const auto numbered =
      WindowProof(api, *copies)
          .number(code.pointer({}).raw(), window_pages * gpu::smallest_page_bytes);
  ASSERT_FALSE(numbered);
  EXPECT_EQ(numbered.error().message, "the window could not be numbered (error 1)");
}

}  // namespace
}  // namespace demarc::cuda
