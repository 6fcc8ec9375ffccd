// Every bundled kernel in the colours of the two kinds of cards: its buffers hold what they hold in
// plain memory, to the byte.
#include "colored_launch.hpp"
#include "demarc/base/random.hpp"
#include "demarc/color/color_scheme.hpp"
#include "demarc/workload/workload.hpp"

namespace demarc::emulate::colored {
namespace {

std::vector<std::uint32_t> random_constants(std::uint64_t pages) {
  Random random(pages);
  std::vector<std::uint32_t> constants(pages);
  for (std::uint32_t& constant : constants) constant = static_cast<std::uint32_t>(random.below(64));
  return constants;
}

// Pages that hold `bytes` of a colour that has at least this part of them.
std::uint64_t pages_for(std::uint64_t bytes, double part) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) / part / page) + 2;
}

color::ColorScheme scheme_of(const char* card, std::uint32_t colors) {
  return color::color_scheme(gpu::find_device(card).value(), colors).value();
}

// A quarter of the H200's remainders.
color::RemainderColoring quarter(std::uint64_t pages) {
  return color::RemainderColoring::make(*scheme_of("h200", 4).remainders, {{33, 7}},
                                        random_constants(pages))
      .value();
}

struct Way {
  const char* name;
  std::unique_ptr<Colors> colors;
};

// Colours with room for `bytes`.
std::vector<Way> ways_for(std::uint64_t bytes) {
  const auto halves = scheme_of("h100-sxm", 2).masks;
  const auto quarters = scheme_of("h100-sxm", 4).masks;
  const auto half_remainders = halves_of(random_constants(pages_for(bytes, 23. / 47)));
  const auto quarter_remainders = quarter(pages_for(bytes, 7. / 47));
  std::vector<Way> ways;
  ways.push_back(
      {"half of parities, known", std::make_unique<MaskColors>(halves, 1, pages_for(bytes, 0.5))});
  ways.push_back({"quarter of parities, places set at load",
                  std::make_unique<MaskColorsAtLoad>(quarters, 2, pages_for(bytes, 0.25))});
  ways.push_back(
      {"half of remainders, known", std::make_unique<RemainderColors>(1, half_remainders)});
  ways.push_back({"half of remainders, places set at load",
                  std::make_unique<RemainderPlacesAtLoad>(0, half_remainders)});
  ways.push_back({"quarter of remainders, set at load",
                  std::make_unique<RemainderColorsAtLoad>(0, quarter_remainders)});
  return ways;
}

class ColoredBundledKernels : public testing::TestWithParam<std::string> {};

TEST_P(ColoredBundledKernels, leave_the_bytes_that_the_plain_ones_leave) {
  const auto launch = workload::instance(GetParam());
  ASSERT_TRUE(launch) << launch.error().message;
  const std::string text = workload::ptx_text(*launch, 90).value();
  const auto module = ptx::parse_whole(text, GetParam() + ".ptx");
  ASSERT_TRUE(module) << module.error().message;
  const auto contents = [&](std::span<const std::uint64_t> addresses) {
    return gpu::initial_memory(*launch, addresses).value();
  };
  const gpu::Memory expected = plain_results(*module, *launch, contents);
  EXPECT_NE(expected, contents(gpu::default_addresses(*launch))) << "nothing was written";
  const LaunchPlaces places(*launch, ptx::find_colored_needs(*module).value());
  for (const Way& way : ways_for(places.bytes())) {
    SCOPED_TRACE(way.name);
    expect_same_in(*way.colors, *module, *launch, contents, expected);
  }
}

std::vector<std::string> bundled_names() {
  std::vector<std::string> names;
  for (const workload::Workload& workload : workload::all()) names.push_back(workload.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, ColoredBundledKernels, testing::ValuesIn(bundled_names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace demarc::emulate::colored
