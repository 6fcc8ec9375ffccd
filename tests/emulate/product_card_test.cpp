// Matrix products as an H200 rounds them: what the card gave lies in tests/emulate/products
// (demarc_emulate_gpu FOLDER writes it), and the emulator gives the same bits in every instruction
// set of this processor.
#include <filesystem>

#include "demarc/base/files.hpp"
#include "harness.hpp"
#include "instructions/product_cases.hpp"
#include "paths.hpp"

namespace demarc::emulate {
namespace {

class ProductsOfACard : public testing::TestWithParam<test::ProductCase> {};

std::string emulated(const test::ProductCase& one, InstructionSet set) {
  const ptx::ParseResult parsed = ptx::parse(one.text, one.name);
  EXPECT_TRUE(parsed.diagnostics.ok()) << one.text;
  Options options;
  options.instruction_set = set;
  const auto outcome =
      run_on(parsed.module, one.launch(), {one.in, std::vector<std::byte>(one.out_bytes)}, options);
  EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message);
  if (!outcome) return {};
  EXPECT_TRUE(outcome->findings.empty());
  return {reinterpret_cast<const char*>(outcome->buffers[1].data()), one.out_bytes};
}

TEST_P(ProductsOfACard, have_the_same_bits) {
  const test::ProductCase& one = GetParam();
  const auto path =
      demarc::test::source_dir() / "tests" / "emulate" / "products" / (one.name + ".card");
  const std::string card = read_file(path).value();
  ASSERT_EQ(card.size(), one.out_bytes);
  for (const auto set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
    if (set > widest_instruction_set()) continue;
    const std::string here = emulated(one, set);
    ASSERT_EQ(here.size(), card.size());
    const auto [a, b] = std::mismatch(here.begin(), here.end(), card.begin());
    EXPECT_EQ(a, here.end()) << to_string(set) << ": the first byte that differs is "
                             << a - here.begin() << " of " << here.size();
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ProductsOfACard, testing::ValuesIn(test::product_cases()),
                         [](const auto& one) {
                           std::string name = one.param.name;
                           for (char& c : name) c = std::isalnum(c) != 0 ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace demarc::emulate
