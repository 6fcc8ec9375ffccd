// Tests by ptxas that it takes every rewritten module whose original it takes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "colored_forms.hpp"
#include "compilers.hpp"
#include "demarc/ptx/affine.hpp"
#include "demarc/ptx/fused.hpp"
#include "demarc/ptx/grid_part.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/ptx/printer.hpp"
#include "demarc/ptx/timed.hpp"
#include "paths.hpp"
#include "rewritten_by_colors.hpp"
#include "round_trip.hpp"

namespace demarc::ptx::test {
namespace {

struct Rewriter {
  const char* name;
  std::function<Result<Module>(const Module&)> rewrite;
};

Result<Module> module_of(Result<ColoredModule> made) {
  DEMARC_TRY(ColoredModule colored, std::move(made));
  return std::move(colored.module);
}

std::vector<Rewriter> all_rewriters() {
  return {
      {"affine", rewrite_affine},
      {"part", rewrite_grid_part},
      {"timed", [](const Module& module) { return rewrite_timed(module, {}); }},
      {"overlapped",
       [](const Module& module) {
         return rewrite_timed(module, {.stamps = true, .overlapped = true});
       }},
      {"fused", rewrite_fused},
      {"coloured",
       [](const Module& module) {
         return module_of(color::rewrite_parities(module, {{0x38a000, 0xc4000}, 1}, with_places));
       }},
      {"remainders",
       [](const Module& module) {
         return module_of(color::rewrite_remainders(module, remainders(), at_load));
       }},
  };
}

// What of `text` is rewritten but refused by ptxas; `made` counts what was rewritten.
std::string refused_by_ptxas(const std::string& name, const std::string& text, std::size_t& made) {
  const auto module = parse_whole(text, name);
  if (!module || verdict_of_ptxas(text) != Verdict::taken) return {};
  std::string refused;
  for (const Rewriter& rewriter : all_rewriters()) {
    const auto rewritten = rewriter.rewrite(*module);
    if (!rewritten) continue;
    ++made;
    if (verdict_of_ptxas(print(*rewritten)) == Verdict::refused) {
      refused += fmt::format("{} {}\n", name, rewriter.name);
    }
  }
  return refused;
}

TEST(Rewrites, ptxas_takes_every_rewritten_module_of_the_tree) {
  std::string refused;
  std::size_t made = 0;
  const auto root = demarc::test::source_dir();
  for (const auto& folder :
       {root / "tests" / "ptx" / "corpus", root / "tests" / "ptx" / "corpus" / "triton",
        root / "tests" / "ptx" / "corpus" / "limits", root / "kernels" / "ptx"}) {
    for (const RoundTrip& one : modules_in(folder)) {
      refused += refused_by_ptxas(one.name, one.ptx(), made);
    }
  }
  EXPECT_EQ(refused, "");
  EXPECT_GT(made, 200U);
}

}  // namespace
}  // namespace demarc::ptx::test
