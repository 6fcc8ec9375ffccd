// Turns a sequence of launches into one persistent kernel.
#include "demarc/ptx/fused.hpp"

#include <algorithm>
#include <optional>

#include "demarc/base/rounding.hpp"
#include "demarc/ptx/parser.hpp"
#include "rewrite/kernel_text.hpp"
#include "rewrite/marks.hpp"
#include "rewrite/splice.hpp"

namespace demarc::ptx {
namespace {

// Threads of the persistent block meet at this one; kernels number theirs from 0.
constexpr int fused_barrier = 15;
constexpr std::uint32_t argument_space = sizeof(FusedStep::arguments);

// Up to the kernels: the step's shape in registers, then its next block.
constexpr std::string_view fused_head = R"(
.visible .entry demarc_fused(
	.param .u64 demarc_steps,
	.param .u32 demarc_count,
	.param .u64 demarc_state
)
{
	.reg .pred %demarc_fp<5>;
	.reg .b32 %demarc_f<9>;
	.reg .b32 %demarc_kernel, %demarc_blocks, %demarc_at, %demarc_threads;
	.reg .b32 %demarc_tid_x, %demarc_tid_y, %demarc_tid_z;
	.reg .b32 %demarc_ntid_x, %demarc_ntid_y, %demarc_ntid_z;
	.reg .b32 %demarc_ctaid_x, %demarc_ctaid_y, %demarc_ctaid_z;
	.reg .b32 %demarc_nctaid_x, %demarc_nctaid_y, %demarc_nctaid_z;
	.reg .b64 %demarc_step, %demarc_end, %demarc_barrier, %demarc_arguments;
	ld.param.u64 	%demarc_step, [demarc_steps];
	cvta.to.global.u64 	%demarc_step, %demarc_step;
	ld.param.u32 	%demarc_f0, [demarc_count];
	mul.wide.u32 	%demarc_end, %demarc_f0, 256;
	add.s64 	%demarc_end, %demarc_step, %demarc_end;
	ld.param.u64 	%demarc_barrier, [demarc_state];
	cvta.to.global.u64 	%demarc_barrier, %demarc_barrier;
	mov.u32 	%demarc_f1, 0;
	mov.u32 	%demarc_f0, %tid.x;
	setp.ne.u32 	%demarc_fp0, %demarc_f0, 0;
$demarc_fused_step:
	ld.global.v4.u32 	{%demarc_kernel, %demarc_nctaid_x, %demarc_nctaid_y, %demarc_nctaid_z}, [%demarc_step];
	ld.global.v4.u32 	{%demarc_ntid_x, %demarc_ntid_y, %demarc_ntid_z, %demarc_blocks}, [%demarc_step+16];
	add.s64 	%demarc_arguments, %demarc_step, 32;
	mul.lo.u32 	%demarc_f2, %demarc_ntid_x, %demarc_ntid_y;
	mul.lo.u32 	%demarc_threads, %demarc_f2, %demarc_ntid_z;
	mov.u32 	%demarc_f0, %tid.x;
)";

// Kernels that share nothing within a block need not keep its threads together: then as many of a
// step's blocks run side by side as fit into a persistent block. f4: blocks side by side, at: the
// first one of this thread.
constexpr std::string_view fused_side_by_side = R"(
	mov.u32 	%demarc_f5, %ntid.x;
	div.u32 	%demarc_f4, %demarc_f5, %demarc_threads;
	div.u32 	%demarc_f5, %demarc_f0, %demarc_threads;
	setp.ge.u32 	%demarc_fp1, %demarc_f5, %demarc_f4;
	rem.u32 	%demarc_f0, %demarc_f0, %demarc_threads;
	mov.u32 	%demarc_at, %ctaid.x;
	mad.lo.u32 	%demarc_at, %demarc_at, %demarc_f4, %demarc_f5;
	@%demarc_fp1 bra 	$demarc_fused_wait;
)";

constexpr std::string_view fused_one_at_a_time = R"(
	mov.u32 	%demarc_f4, 1;
	mov.u32 	%demarc_at, %ctaid.x;
	setp.ge.u32 	%demarc_fp1, %demarc_f0, %demarc_threads;
)";

constexpr std::string_view fused_blocks = R"(
	div.u32 	%demarc_tid_z, %demarc_f0, %demarc_f2;
	rem.u32 	%demarc_f2, %demarc_f0, %demarc_f2;
	div.u32 	%demarc_tid_y, %demarc_f2, %demarc_ntid_x;
	rem.u32 	%demarc_tid_x, %demarc_f2, %demarc_ntid_x;
$demarc_fused_block:
	setp.ge.u32 	%demarc_fp2, %demarc_at, %demarc_blocks;
	@%demarc_fp2 bra 	$demarc_fused_wait;
	mul.lo.u32 	%demarc_f2, %demarc_nctaid_x, %demarc_nctaid_y;
	div.u32 	%demarc_ctaid_z, %demarc_at, %demarc_f2;
	rem.u32 	%demarc_f3, %demarc_at, %demarc_f2;
	div.u32 	%demarc_ctaid_y, %demarc_f3, %demarc_nctaid_x;
	rem.u32 	%demarc_ctaid_x, %demarc_f3, %demarc_nctaid_x;
	@%demarc_fp1 bra 	$demarc_fused_done;
)";

// Behind the kernels. The barrier between blocks: one thread of each counts its block in and waits
// until as many have come as there are; fences make what was written before visible after it.
std::string fused_tail(bool independent) {
  return fmt::format(R"(
$demarc_fused_done:
	{1}
	mov.u32 	%demarc_f2, %nctaid.x;
	mad.lo.u32 	%demarc_at, %demarc_f2, %demarc_f4, %demarc_at;
	bra 	$demarc_fused_block;
$demarc_fused_wait:
	add.s64 	%demarc_step, %demarc_step, 256;
	setp.ge.u64 	%demarc_fp3, %demarc_step, %demarc_end;
	mov.u32 	%demarc_f2, %nctaid.x;
	@%demarc_fp3 bra 	$demarc_fused_leave;
	barrier.sync 	{0};
	@%demarc_fp0 bra 	$demarc_fused_together;
	add.u32 	%demarc_f1, %demarc_f1, %demarc_f2;
	fence.acq_rel.gpu;
	red.global.add.u32 	[%demarc_barrier], 1;
$demarc_fused_spin:
	ld.relaxed.gpu.global.u32 	%demarc_f3, [%demarc_barrier];
	setp.lt.u32 	%demarc_fp4, %demarc_f3, %demarc_f1;
	@%demarc_fp4 bra 	$demarc_fused_spin;
	fence.acq_rel.gpu;
$demarc_fused_together:
	barrier.sync 	{0};
	bra 	$demarc_fused_step;
$demarc_fused_leave:
	@%demarc_fp0 bra 	$demarc_fused_gone;
	sub.u32 	%demarc_f2, %demarc_f2, 1;
	fence.acq_rel.gpu;
	atom.global.inc.u32 	%demarc_f3, [%demarc_barrier+128], %demarc_f2;
	setp.ne.u32 	%demarc_fp4, %demarc_f3, %demarc_f2;
	@%demarc_fp4 bra 	$demarc_fused_gone;
	mov.u32 	%demarc_f3, 0;
	st.global.u32 	[%demarc_barrier], %demarc_f3;
$demarc_fused_gone:
	ret;
}}
)",
                     fused_barrier,
                     independent ? "" : fmt::format("barrier.sync \t{};", fused_barrier));
}

// Neither barriers nor shared memory in any kernel.
bool shares_nothing(const Module& module) {
  const auto is_shared = [](const Variable& v) { return v.space == StateSpace::shared; };
  if (std::any_of(module.variables.begin(), module.variables.end(), is_shared)) return false;
  for (const Function* kernel : module.kernels()) {
    const Body& body = kernel->body;
    if (std::any_of(body.variables.begin(), body.variables.end(), is_shared)) return false;
    for (const Instruction& instruction : body.instructions) {
      if (info(instruction.opcode).group == OpcodeGroup::barrier) return false;
    }
  }
  return true;
}

Result<void> refuse(const Module& module, const Instruction& instruction, std::string_view why) {
  return invalid_input("{}:{}: '{}' cannot become part of a fused kernel: {}", module.source_name,
                       instruction.line, module.text_of(instruction), why);
}

// Instructions that know about the launch: special registers in place of the persistent block's.
bool use_step_shape(std::string& text) {
  const std::string before = text;
  for (const char axis : {'x', 'y', 'z'}) {
    for (const std::string_view name : {"nctaid", "ctaid", "ntid", "tid"}) {
      replace_in(text, fmt::format("%{}.{}", name, axis), fmt::format("%demarc_{}_{}", name, axis));
    }
  }
  return text != before;
}

// What an instruction becomes; nothing when it stays.
Result<std::optional<std::string>> fused_instruction(const Module& module, const Function& kernel,
                                                     const std::vector<std::uint32_t>& offsets,
                                                     const Instruction& instruction) {
  const OpcodeInfo& row = info(instruction.opcode);
  std::string text(module.text_of(instruction));
  if (instruction.opcode == Opcode::ret || instruction.opcode == Opcode::exit) {
    return leave_by_branch(text, "$demarc_fused_done");
  }
  if (row.group == OpcodeGroup::barrier && row.name.starts_with("bar") &&
      !row.name.starts_with("bar.warp")) {
    const auto operands = kernel.body.operands_of(instruction);
    const bool plain =
        (instruction.opcode == Opcode::bar_sync || instruction.opcode == Opcode::barrier_sync ||
         instruction.opcode == Opcode::bar_cta_sync) &&
        operands.size() == 1 && operands[0].kind == OperandKind::immediate &&
        operands[0].value < fused_barrier;
    if (!plain) {
      DEMARC_CHECK(
          refuse(module, instruction,
                 "only a barrier of the whole block, with a constant number, can be fused"));
    }
    text.insert(text.rfind(';'), ", %demarc_threads");
    return text;
  }
  for (const Operand& operand : kernel.body.operands_of(instruction)) {
    if (operand.base != Base::parameter ||
        (operand.kind != OperandKind::address && operand.kind != OperandKind::symbol)) {
      continue;
    }
    if (instruction.opcode != Opcode::ld || operand.kind != OperandKind::address) {
      DEMARC_CHECK(refuse(module, instruction, "parameters can only be loaded"));
    }
    const std::size_t open = text.find('[');
    text.replace(open, text.find(']') - open + 1,
                 fmt::format("[%demarc_arguments+{}]",
                             offsets[operand.index] + static_cast<std::uint32_t>(operand.value)));
    replace_in(text, ".param", ".global");
    return text;
  }
  if (use_step_shape(text)) return text;
  return std::optional<std::string>();
}

Result<std::string> fused_body(const Module& module, const Function& kernel,
                               const KernelText& places) {
  for (const PerformanceDirective& directive : kernel.directives) {
    if (directive.name.find("cluster") != std::string_view::npos) {
      return invalid_input(
          "{}:{}: kernel '{}' uses clusters (.{}), which a fused kernel does not support",
          module.source_name, kernel.line, kernel.name, directive.name);
    }
  }
  DEMARC_TRY(const auto offsets, fused_offsets(kernel));
  std::vector<Splice> splices;
  for (const Instruction& instruction : kernel.body.instructions) {
    DEMARC_TRY(auto changed, fused_instruction(module, kernel, offsets, instruction));
    if (!changed) continue;
    splices.push_back({instruction.text_offset - places.body, module.text_of(instruction).size(),
                       std::move(*changed)});
  }
  return apply_splices(module.text->substr(places.body, places.body_end - places.body),
                       std::move(splices));
}

}  // namespace

Result<std::vector<std::uint32_t>> fused_offsets(const Function& kernel) {
  std::vector<std::uint32_t> offsets;
  std::uint64_t at = 0;
  for (const Variable& parameter : kernel.parameters) {
    const std::uint64_t alignment = parameter.alignment();
    at = round_up(at, alignment);
    offsets.push_back(static_cast<std::uint32_t>(at));
    at += parameter.byte_size();
  }
  if (at > argument_space) {
    return invalid_input("kernel '{}' has {} bytes of parameters; a fused step holds {}",
                         kernel.name, at, argument_space);
  }
  return offsets;
}

Result<Module> rewrite_fused(const Module& module) {
  DEMARC_CHECK(check_not_rewritten(module, "fused",
                                   {Rewriting::fused, Rewriting::affine, Rewriting::colored}));
  if (module.version.major < 6) {
    return invalid_input("{}: fused kernels need .version 6.0 or later, but the module has {}.{}",
                         module.source_name, module.version.major, module.version.minor);
  }
  std::string choice;
  std::string bodies;
  std::vector<Splice> removed;
  std::uint32_t index = 0;
  for (const Function& function : module.functions) {
    if (!function.is_entry || !function.has_body) continue;
    DEMARC_TRY(const KernelText places, find_kernel_text(module, function));
    DEMARC_TRY(const std::string body, fused_body(module, function, places));
    choice += fmt::format(
        "\tsetp.eq.u32 \t%demarc_fp2, %demarc_kernel, {0};\n\t@%demarc_fp2 bra "
        "\t$demarc_fused_{0};\n",
        index);
    bodies +=
        fmt::format("$demarc_fused_{}:\n\t{{{}\n\tbra \t$demarc_fused_done;\n\t}}\n", index, body);
    // The whole entry goes, from the start of its line.
    const auto name = static_cast<std::size_t>(function.name.data() - module.text->data());
    const std::size_t start = module.text->rfind(".entry", name);
    const std::size_t line = module.text->rfind('\n', start);
    const std::size_t from = line == std::string::npos ? 0 : line + 1;
    removed.push_back({from, places.body_end + 1 - from, ""});
    ++index;
  }
  if (index == 0) return invalid_input("{}: there is no kernel to fuse", module.source_name);
  choice += "\tbra \t$demarc_fused_done;\n";
  const bool independent = shares_nothing(module);
  return parse_whole(apply_splices(*module.text, std::move(removed)) + std::string(fused_head) +
                         std::string(independent ? fused_side_by_side : fused_one_at_a_time) +
                         std::string(fused_blocks) + choice + bodies + fused_tail(independent),
                     module.source_name);
}

}  // namespace demarc::ptx
