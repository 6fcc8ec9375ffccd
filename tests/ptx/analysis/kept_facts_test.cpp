// All that is found out about the corpus and some bundled kernels, and what the rewriting passes
// make of them: digests, kept from when the tests of single facts held.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "analysis/divergence.hpp"
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
#include "paths.hpp"
#include "remainders.hpp"
#include "rewritten_by_colors.hpp"

namespace demarc::ptx {
namespace {

std::vector<std::filesystem::path> corpus_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(demarc::test::source_dir() / "tests" / "ptx" / "corpus"))
    if (entry.path().extension() == ".ptx") files.push_back(entry.path());
  return files;
}

using Digests = std::map<std::string, std::uint64_t>;

// A failure prints the row to be kept when the change is meant.
void expect_digest(const Digests& kept, const std::string& name, const std::string& facts) {
  const auto wanted = kept.find(name);
  const std::uint64_t found = hash_of(facts);
  EXPECT_TRUE(wanted != kept.end() && wanted->second == found)
      << "{\"" << name << "\", " << fmt::format("{:#x}", found) << "},\n";
}

std::string printed(const Result<Module>& module) {
  return module ? print(*module) : module.error().message;
}

void add_operand(const Body& body, const Operand& operand, std::string& out) {
  out += fmt::format(" {}:{}:{}:{}:{}:{}", static_cast<int>(operand.kind),
                     static_cast<int>(operand.base), operand.index, operand.value,
                     static_cast<int>(operand.immediate), operand.negated);
  if (!operand.has_children()) return;
  for (const Operand& child : body.children(operand)) add_operand(body, child, out);
}

std::string facts_of(const Module& module) {
  std::string facts = print(module) + statistics_report(module, false) +
                      statistics_report(module, true) + check_report(module, {}, true);
  for (const Function& function : module.functions) {
    if (function.body.instructions.empty()) continue;
    const Cfg cfg(function.body);
    facts += cfg_report(module, function, false) + cfg_report(module, function, true) +
             to_dot(module, function, cfg) + trees_to_json(module, function);
    for (const Instruction& instruction : function.body.instructions) {
      facts += fmt::format("\n{} {} {} {}:", instruction.line, static_cast<int>(instruction.opcode),
                           instruction.predicate, instruction.predicate_negated);
      for (const Operand& operand : function.body.operands_of(instruction))
        add_operand(function.body, operand, facts);
    }
    const DefUse def_use(function.body, cfg);
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
    options.places = ColoredPlaces{0x7000'0000'1000, 0x7000'0100'0000, 4096};
    const auto colored = color::rewrite_parities(module, {{0x2100, 0x14400}, 2}, options);
    made += colored ? print(colored->module) : colored.error().message;
    for (const ColoredKernel& kernel : colored ? colored->kernels : std::vector<ColoredKernel>{})
      made += fmt::format("{} {} {}\n{}", kernel.name, kernel.line, kernel.local_bytes,
                          describe_refusals(kernel, "x.ptx"));
  }
  color::RemainderAddressing half = test::remainders(0x7000'0000'0000, 0x7100'0000'0000);
  for (const std::uint32_t shift : {0U, 3U, 7U}) {
    half.constants.reciprocal_shift = shift;
    const auto spread = color::rewrite_remainders(module, half, {});
    made += spread ? print(spread->module) : spread.error().message;
  }
  if (const auto needs = find_colored_needs(module)) {
    made += fmt::format("{} {} {} {}\n", needs->local_bytes, needs->local_alignment,
                        needs->variables.bytes, needs->variables.alignment);
    for (const std::uint8_t byte : needs->variables.content(0x5000))
      made += fmt::format("{:02x}", byte);
  }
  return made;
}

// What the corpus has little of: parameters at offsets, elements, calls by address, ranges.
constexpr const char* odd_kernel = R"(.version 8.0
.target sm_90
.address_size 64
.file 1 "a.cu"
.global .align 4 .b32 table[4] = {1, 2, 3};
.global .u64 pointers[2] = {table, table+8};
.func (.param .b32 result) f(.param .b32 x)
{
	.reg .b32 %r<3>;
	ld.param.u32 	%r1, [x];
	add.s32 	%r2, %r1, 1;
	st.param.b32 	[result], %r2;
	ret;
}
.visible .entry odd(.param .align 8 .b8 all[24], .param .u64 p)
{
	.reg .pred %p<3>;
	.reg .b32 %r<9>, %s<2>;
	.reg .b64 %rd<9>;
	.reg .b64 %one;
	ld.param.u32 	%r1, [all+4];
	ld.param.u64 	%rd1, [all+16];
	ld.param.u64 	%rd2, [p];
	mov.u64 	%rd3, f;
	mov.u32 	%r2, %tid.x;
	mov.u64 	%one, table;
	{
	.param .b32 to;
	.param .b32 from;
	st.param.b32 	[to], %r2;
	prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
	call 	(from), %rd3, (to), prototype;
	ld.param.b32 	%r3, [from];
	}
	mad.wide.u32 	%rd4, %r2, 4, %rd2;
	setp.lt.and.u32 	%p1|%p2, %r2, %r1, %p2;
	@!%p1 st.global.u32 	[%rd4+-4], %r3;
	ld.global.u32 	%r4, [table+8];
	bar.sync 	0;
	st.global.v2.u32 	[%rd4], {%r3, %r4};
	ret;
}
)";

TEST(KeptFacts, of_the_corpus_and_of_bundled_kernels) {
  const Digests facts{{"arithmetic", 0xabe94c6208635a90},
                      {"barriers", 0x45a931b71de612f0},
                      {"bfs", 0x91e590b9495e57ef},
                      {"bulk_copies", 0x65d5b2a159eb2a01},
                      {"cfd", 0x3d08ff1df5307264},
                      {"control_flow", 0x81096dabdf513ff1},
                      {"debug_sections", 0x393859d67495a494},
                      {"fft", 0x2a14f7b9b5110245},
                      {"leukocyte", 0xcf58b0ab7a0d819a},
                      {"matmul", 0xec4d3dcd4de13e1c},
                      {"matrices", 0x42b75af7cd2348c4},
                      {"prototypes", 0xe5b71755340ed8bf},
                      {"memory", 0x3a2ba80e63a9e53},
                      {"multicast", 0x4f67b29f7559d70e},
                      {"odd", 0x697b89529c88a2a1},
                      {"reduction", 0x79aa57b40f4d2fec},
                      {"scan", 0xe48c1e3216a21946},
                      {"tensor_memory", 0xc3f7ec502ea9c77d},
                      {"textures", 0xdb67e4ccfed2e953},
                      {"video", 0x200824b08cda4c9},
                      {"wgmma", 0x819704c5625a87bc}};
  const Digests passes{{"arithmetic rewritten", 0xd1a8ae30471cd1c7},
                       {"barriers rewritten", 0x9153c6ef74c402b4},
                       {"bfs rewritten", 0x9d8acd9cbc291dcc},
                       {"bulk_copies rewritten", 0x7bf2e90baad2ad0f},
                       {"cfd rewritten", 0x67a5af2bae82aaff},
                       {"control_flow rewritten", 0x1cffb51dd94afaf0},
                       {"debug_sections rewritten", 0xb46e7f2a8e2d11d2},
                       {"fft rewritten", 0x576b2bd7c4161e97},
                       {"leukocyte rewritten", 0xeecb976b2a6812c0},
                       {"matmul rewritten", 0xcc9c42a4350a5e14},
                       {"matrices rewritten", 0xd784e811a86d9d8},
                       {"prototypes rewritten", 0x5794db12dfc98482},
                       {"memory rewritten", 0x783ac80eb3558810},
                       {"multicast rewritten", 0xcc6adc7e87a2ffd},
                       {"odd rewritten", 0x92f63768b3f29a91},
                       {"reduction rewritten", 0x24cb71cf537297bc},
                       {"scan rewritten", 0x14c2d51882936287},
                       {"tensor_memory rewritten", 0xd4520b60de517a52},
                       {"textures rewritten", 0x6ae69e1003692f54},
                       {"video rewritten", 0x3698044cdaa565a6},
                       {"wgmma rewritten", 0xa99928a3c0764886}};
  std::vector<std::filesystem::path> files = corpus_files();
  for (const char* name : {"bfs", "cfd", "fft", "leukocyte", "matmul", "reduction", "scan"})
    files.push_back(demarc::test::source_dir() / "kernels" / "ptx" / (std::string(name) + ".ptx"));
  const ParseResult odd = parse(odd_kernel, "odd.ptx");
  ASSERT_TRUE(odd.diagnostics.ok()) << format(odd.diagnostics.list.front(), "odd.ptx");
  expect_digest(facts, "odd", facts_of(odd.module));
  expect_digest(passes, "odd rewritten", rewritten(odd.module));
  for (const auto& file : files) {
    const ParseResult parsed = parse(read_file(file).value(), file.filename().string());
    ASSERT_TRUE(parsed.diagnostics.ok()) << file;
    expect_digest(facts, file.stem().string(), facts_of(parsed.module));
    expect_digest(passes, file.stem().string() + " rewritten", rewritten(parsed.module));
  }
}

// The module without the instructions of `function` but one: labels and declarations stay.
std::string alone(const Module& module, const Function& function, const Instruction& kept) {
  std::string text(*module.text);
  for (const Instruction& instruction : function.body.instructions) {
    if (&instruction == &kept) continue;
    const std::size_t length = module.text_of(instruction).size();
    for (std::size_t i = 0; i < length; ++i) {
      char& c = text[instruction.text_offset + i];
      if (c != '\n') c = ' ';
    }
  }
  return text;
}

// What becomes of every instruction that addresses memory, whatever else the kernel holds.
TEST(KeptFacts, of_each_access_by_itself) {
  const Digests passes{
      {"arithmetic alone", 0x53afff7ff8e236a1},     {"barriers alone", 0x1bfe84f169868338},
      {"bulk_copies alone", 0xc4936a91a7060704},    {"control_flow alone", 0x5a8a8befbc11a2ba},
      {"debug_sections alone", 0x82f54ac5aa76075f}, {"matrices alone", 0x6f36f16b50b34a9},
      {"prototypes alone", 0x7cd06ddd635d07fa},     {"memory alone", 0xe5776163918e1d34},
      {"multicast alone", 0x63180adb8fa0bbd7},      {"tensor_memory alone", 0xc2ca320a786632e6},
      {"textures alone", 0xe4dc5fa92c9e408a},       {"video alone", 0xdfaf9457b4a9d4bb},
      {"wgmma alone", 0xf2e27bcbda83dfeb}};
  ColoredOptions options;
  options.places = ColoredPlaces{0x7000'0000'1000, 0x7000'0100'0000, 4096};
  for (const auto& file : corpus_files()) {
    const ParseResult parsed = parse(read_file(file).value(), "x.ptx");
    std::string made;
    for (const Function& function : parsed.module.functions) {
      for (const Instruction& instruction : function.body.instructions) {
        const auto operands = function.body.operands_of(instruction);
        const bool addresses = std::any_of(operands.begin(), operands.end(), [](const Operand& o) {
          return o.kind == OperandKind::address;
        });
        if (!addresses) continue;
        options.kernels = {std::string(function.name)};
        const ParseResult one = parse(alone(parsed.module, function, instruction), "x.ptx");
        if (!one.diagnostics.ok()) continue;
        const auto colored = color::rewrite_parities(one.module, {{0x2100, 0x14400}, 2}, options);
        if (!colored) {
          made += colored.error().message + "\n";
          continue;
        }
        for (const ColoredKernel& kernel : colored->kernels)
          made += describe_refusals(kernel, "x.ptx");
        for (const Function& changed : colored->module.functions)
          for (const Instruction& i : changed.body.instructions)
            made += std::string(colored->module.text_of(i)) + "\n";
      }
    }
    expect_digest(passes, file.stem().string() + " alone", made);
  }
}

// Everything that is said of the corpus with one word taken out, at many places.
TEST(KeptFacts, of_what_is_said_of_broken_text) {
  const Digests said{
      {"arithmetic broken", 0x2b824415ee2a7fd7},     {"barriers broken", 0x60c97e31e9ca04aa},
      {"bulk_copies broken", 0x2054b05839ce33da},    {"control_flow broken", 0x1462ce4b90cd8db5},
      {"debug_sections broken", 0xa2e2bac93d8a3342}, {"matrices broken", 0xd4459861dde2c86},
      {"prototypes broken", 0xf670d26e4aac1ab1},     {"memory broken", 0xbd2e1d80a24ffb},
      {"multicast broken", 0xf9ed55d86fdf6d9d},      {"tensor_memory broken", 0x79a7076c988e8a16},
      {"textures broken", 0x87a1684ade41c90a},       {"video broken", 0x1d223ce7748f3e4d},
      {"wgmma broken", 0x399d5ce7c79a1821}};
  for (const auto& file : corpus_files()) {
    const std::string text = read_file(file).value();
    std::string all;
    for (std::size_t k = 0; k < 60; ++k) {
      const std::size_t from = text.find_first_of(" ,;{}()[]<>\n", text.size() * k / 60);
      const std::size_t to = text.find_first_of(" ,;{}()[]<>\n", from + 1);
      if (to == std::string::npos) continue;
      std::string broken = text;
      broken.erase(from, k % 2 == 0 ? 1 : to - from);
      const ParseResult result = parse(broken, "x.ptx");
      for (const Diagnostic& diagnostic : result.diagnostics.list)
        all += format(diagnostic, "x.ptx") + "\n";
      all += print(result.module);
    }
    expect_digest(said, file.stem().string() + " broken", all);
  }
}

}  // namespace
}  // namespace demarc::ptx
