// Makes kernels note their times, or wait for the kernel in front of them.
#include "demarc/ptx/timed.hpp"

#include <algorithm>

#include "demarc/base/numbers.hpp"
#include "rewrite/kernel_text.hpp"
#include "rewrite/marks.hpp"
#include "rewrite/splice.hpp"

namespace demarc::ptx {
namespace {

// Comes first in a body: declarations, the beginning, and the end, which every way out of the
// kernel's own code leads to. Nothing stays in registers in between.
std::string timed_prologue(const TimedOptions& options) {
  std::string out;
  if (options.overlapped) {
    out += " griddepcontrol.launch_dependents; griddepcontrol.wait;";  // lines keep their numbers
  }
  if (!options.stamps) return out;
  constexpr std::string_view block_number = R"(
	mov.u32 	%demarc_t0, %tid.x;
	mov.u32 	%demarc_t1, %tid.y;
	mov.u32 	%demarc_t2, %tid.z;
	or.b32 	%demarc_t0, %demarc_t0, %demarc_t1;
	or.b32 	%demarc_t0, %demarc_t0, %demarc_t2;
	setp.ne.u32 	%demarc_tp0, %demarc_t0, 0;
	@%demarc_tp0 bra 	{0};
	mov.u32 	%demarc_t0, %ctaid.z;
	mov.u32 	%demarc_t1, %nctaid.y;
	mov.u32 	%demarc_t2, %ctaid.y;
	mad.lo.u32 	%demarc_t0, %demarc_t0, %demarc_t1, %demarc_t2;
	mov.u32 	%demarc_t3, %nctaid.x;
	mov.u32 	%demarc_t2, %ctaid.x;
	mad.lo.u32 	%demarc_t0, %demarc_t0, %demarc_t3, %demarc_t2;
	ld.param.u64 	%demarc_tq0, [demarc_stamps];
	cvta.to.global.u64 	%demarc_tq0, %demarc_tq0;)";
  out += "\n\t.reg .pred %demarc_tp<2>;\n\t.reg .b32 %demarc_t<4>;\n\t.reg .b64 %demarc_tq<3>;";
  out += fmt::format(fmt::runtime(block_number), "$demarc_timed_begin");
  out += R"(
	setp.ne.u32 	%demarc_tp1, %demarc_t0, 0;
	@%demarc_tp1 bra 	$demarc_timed_begin;
	mov.u64 	%demarc_tq1, %globaltimer;
	st.global.u64 	[%demarc_tq0], %demarc_tq1;
	bra 	$demarc_timed_begin;
$demarc_timed_end:)";
  out += fmt::format(fmt::runtime(block_number), "$demarc_timed_gone");
  // t3 blocks in all; those fewer than `timed_blocks` before the end note when they leave.
  out += fmt::format(R"(
	mul.lo.u32 	%demarc_t3, %demarc_t3, %demarc_t1;
	mov.u32 	%demarc_t1, %nctaid.z;
	mul.lo.u32 	%demarc_t3, %demarc_t3, %demarc_t1;
	sub.u32 	%demarc_t3, %demarc_t3, %demarc_t0;
	setp.gt.u32 	%demarc_tp1, %demarc_t3, {};
	@%demarc_tp1 bra 	$demarc_timed_gone;
	mov.u32 	%demarc_t0, %smid;
	and.b32 	%demarc_t0, %demarc_t0, 31;
	mul.wide.u32 	%demarc_tq1, %demarc_t0, 8;
	add.s64 	%demarc_tq0, %demarc_tq0, %demarc_tq1;
	mov.u64 	%demarc_tq2, %globaltimer;
	red.global.max.u64 	[%demarc_tq0+64], %demarc_tq2;
$demarc_timed_gone:
	ret;
$demarc_timed_begin:
)",
                     timed_blocks);
  return out;
}

Result<void> splice_timed(const Module& module, const Function& kernel, const TimedOptions& options,
                          std::vector<Splice>& splices) {
  DEMARC_TRY(const KernelText places, find_kernel_text(module, kernel));
  splices.push_back({places.body, 0, timed_prologue(options)});
  if (!options.stamps) return {};
  splices.push_back(added_parameters(kernel, places, "\n\t.param .u64 demarc_stamps\n"));
  for (const Instruction& instruction : kernel.body.instructions) {
    if (instruction.opcode != Opcode::ret && instruction.opcode != Opcode::exit) continue;
    const std::string_view written = module.text_of(instruction);
    splices.push_back(
        {instruction.text_offset, written.size(), leave_by_branch(written, "$demarc_timed_end")});
  }
  return {};
}

// Dependent launches are instructions of sm_90 and of PTX 7.8.
void raise_target(const Module& module, std::vector<Splice>& splices) {
  if (module.version.major * 10 + module.version.minor < 78) {
    const std::string_view text = *module.text;
    const std::size_t number =
        text.find_first_not_of(" \t", text.find(".version") + std::string_view(".version").size());
    splices.push_back({number, text.find_first_not_of("0123456789.", number) - number, "7.8"});
  }
  for (const std::string_view target : module.targets) {
    if (!target.starts_with("sm_")) continue;
    const auto number = parse_u64(target.substr(3), "target");
    if (!number || *number >= 90) continue;
    splices.push_back(
        {static_cast<std::size_t>(target.data() - module.text->data()), target.size(), "sm_90"});
  }
}

}  // namespace

StampedTime stamped_time(std::span<const std::uint64_t> words) {
  return {words[0], *std::max_element(words.begin() + 8, words.begin() + 40)};
}

Result<Module> rewrite_timed(const Module& module, const TimedOptions& options) {
  DEMARC_CHECK(check_not_rewritten(module, "timed", {Rewriting::timed, Rewriting::colored}));
  std::vector<Splice> splices;
  if (options.overlapped) raise_target(module, splices);
  for (const Function& function : module.functions) {
    if (!function.has_body) continue;
    if (function.is_entry) {
      DEMARC_CHECK(splice_timed(module, function, options, splices));
      continue;
    }
    for (const Instruction& instruction : function.body.instructions) {
      if (instruction.opcode != Opcode::exit || !options.stamps) continue;
      return invalid_input(
          "{}:{}: 'exit' in the device function '{}' would end the block without a time; inline "
          "the function",
          module.source_name, instruction.line, function.name);
    }
  }
  return spliced(module, std::move(splices));
}

}  // namespace demarc::ptx
