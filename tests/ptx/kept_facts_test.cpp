// All that is found out about the corpus and some bundled kernels, and what the rewriting passes
// make of them: digests, kept from when the tests of single facts held.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "demarc/base/files.hpp"
#include "demarc/base/hash.hpp"
#include "demarc/ptx/address_tree.hpp"
#include "demarc/ptx/affine.hpp"
#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/def_use.hpp"
#include "demarc/ptx/fused.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/ptx/printer.hpp"
#include "demarc/ptx/report.hpp"
#include "demarc/ptx/timed.hpp"
#include "divergence.hpp"
#include "induction.hpp"
#include "paths.hpp"

namespace demarc::ptx {
namespace {

using Digests = std::map<std::string, std::uint64_t>;

void expect_digest(const Digests& kept, const std::string& name, const std::string& facts) {
  const auto wanted = kept.find(name);
  const std::uint64_t found = hash_of(facts);
  EXPECT_TRUE(wanted != kept.end() && wanted->second == found)
      << "{\"" << name << "\", " << fmt::format("{:#x}", found) << "},\n";
}

std::string printed(const Result<Module>& module) {
  return module ? print(*module) : module.error().message;
}

std::string facts_of(const Module& module) {
  std::string facts = print(module) + statistics_report(module, false) +
                      statistics_report(module, true) + check_report(module, {}, true);
  for (const Function& function : module.functions) {
    if (function.body.instructions.empty()) continue;
    const Cfg cfg(function.body);
    facts += cfg_report(module, function, false) + cfg_report(module, function, true) +
             to_dot(module, function, cfg) + trees_to_json(module, function);
    const DefUse def_use(function.body, cfg);
    const LoopFacts loops = find_induction(module, function.body, cfg, def_use);
    for (const InductionVariable& v : loops.variables)
      facts += fmt::format("{} {} {} {} {} {} {}\n", v.loop, v.reg, v.initial, v.update, v.step,
                           v.step_register, v.step_negated);
    for (const TripTest& t : loops.tests)
      facts +=
          fmt::format("{} {} {} {} {} {} {}\n", t.loop, t.compare, t.branch, t.leaves_when_true,
                      t.variable_operand, t.variable, t.tests_updated_value);
    const Divergence divergence = find_divergence(module, function.body, cfg, def_use);
    for (const Uniformity uniformity : divergence.registers)
      facts += fmt::format("{}", static_cast<int>(uniformity));
    for (const bool divergent : divergence.divergent_branch) facts += divergent ? "d" : ".";
  }
  return facts;
}

std::string rewritten(const Module& module) {
  std::string made = printed(rewrite_affine(module)) + printed(rewrite_fused(module));
  for (const bool overlapped : {false, true})
    made += printed(rewrite_timed(module, {.stamps = !overlapped, .overlapped = overlapped}));
  for (const ColoredAccesses accesses :
       {ColoredAccesses::all, ColoredAccesses::loads, ColoredAccesses::stores}) {
    ColoredOptions options;
    options.accesses = accesses;
    options.printing = ColoredPrinting::silenced;
    options.places = {0x7000'0000'1000, 0x7000'0100'0000, 4096};
    const auto colored = rewrite_colored(module, {{0x2100, 0x14400}, 2}, options);
    made += colored ? print(colored->module) : colored.error().message;
    for (const ColoredKernel& kernel : colored ? colored->kernels : std::vector<ColoredKernel>{})
      made += fmt::format("{} {} {}\n{}", kernel.name, kernel.line, kernel.local_bytes,
                          describe_refusals(kernel, "x.ptx"));
  }
  if (const auto needs = find_colored_needs(module)) {
    made += fmt::format("{} {} {} {}\n", needs->local_bytes, needs->local_alignment,
                        needs->variables.bytes, needs->variables.alignment);
    for (const std::uint8_t byte : needs->variables.content(0x5000))
      made += fmt::format("{:02x}", byte);
  }
  return made;
}

TEST(KeptFacts, of_the_corpus_and_of_bundled_kernels) {
  const Digests facts{{"arithmetic", 0x91b561d2dafeed7},
                      {"barriers", 0x193fcfdcb103d11d},
                      {"bfs", 0xcb8793a6d7b20b74},
                      {"bulk_copies", 0xc6eaf30b2f937a3f},
                      {"cfd", 0xc97b78b019b126b9},
                      {"control_flow", 0xef6030d46341b8b4},
                      {"debug_sections", 0x824344d83e1782a6},
                      {"fft", 0x4c2b0e215ae12c69},
                      {"leukocyte", 0xa8cebcd3a11079e4},
                      {"matmul", 0x90edf511fe369123},
                      {"matrices", 0x53b62e36a7346c3c},
                      {"memory", 0xdc055f3507267a04},
                      {"multicast", 0x4dbb9271c61c4b0a},
                      {"reduction", 0x845c011b61aa733b},
                      {"scan", 0xd7041f8c24b54886},
                      {"tensor_memory", 0x200e12a8ce9ed1d6},
                      {"textures", 0x9d61ec70738f2d4f},
                      {"video", 0xcc4ad55940338899},
                      {"wgmma", 0xbc2bd72b775c1da3}};
  const Digests passes{{"arithmetic rewritten", 0xfee2067ee8b49c09},
                       {"barriers rewritten", 0xdbee635dd81f32ad},
                       {"bfs rewritten", 0x9119adbf31986be3},
                       {"bulk_copies rewritten", 0x1af096b8638ca3},
                       {"cfd rewritten", 0x27b85a2d9307e01f},
                       {"control_flow rewritten", 0x2ab3aedcffb9f08f},
                       {"debug_sections rewritten", 0x6a1d8cb00be142eb},
                       {"fft rewritten", 0x815750c915028579},
                       {"leukocyte rewritten", 0xcd5e28f6b16e686e},
                       {"matmul rewritten", 0x61907b2cf7f1fe5b},
                       {"matrices rewritten", 0xaddd287148b34c2f},
                       {"memory rewritten", 0x7941cbe01400d24a},
                       {"multicast rewritten", 0xb2114539f4c4e056},
                       {"reduction rewritten", 0xd7a223ef20732b3b},
                       {"scan rewritten", 0xd183c9f40ff95a0e},
                       {"tensor_memory rewritten", 0xecdbce71b9987e08},
                       {"textures rewritten", 0x25c49a741b5d99ac},
                       {"video rewritten", 0x8528e6d46d863eeb},
                       {"wgmma rewritten", 0xfc1e9407abb6be31}};
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(demarc::test::source_dir() / "tests" / "ptx" / "corpus"))
    if (entry.path().extension() == ".ptx") files.push_back(entry.path());
  for (const char* name : {"bfs", "cfd", "fft", "leukocyte", "matmul", "reduction", "scan"})
    files.push_back(demarc::test::source_dir() / "kernels" / "ptx" / (std::string(name) + ".ptx"));
  for (const auto& file : files) {
    const ParseResult parsed = parse(read_file(file).value(), file.filename().string());
    ASSERT_TRUE(parsed.diagnostics.ok()) << file;
    expect_digest(facts, file.stem().string(), facts_of(parsed.module));
    expect_digest(passes, file.stem().string() + " rewritten", rewritten(parsed.module));
  }
}

}  // namespace
}  // namespace demarc::ptx
