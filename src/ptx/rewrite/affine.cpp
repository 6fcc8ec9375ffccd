// Turns kernels into persistent grids that keep to chosen SMs.
#include "demarc/ptx/affine.hpp"

#include <algorithm>
#include <string_view>

#include "rewrite/block_index.hpp"
#include "rewrite/early_return.hpp"
#include "rewrite/kernel_text.hpp"
#include "rewrite/marks.hpp"
#include "rewrite/splice.hpp"

namespace demarc::ptx {
namespace {

// The barrier that keeps the threads of a persistent block together. Kernels number theirs from 0.
constexpr int affine_barrier = 15;
constexpr const char* affine_wanted = "made SM-affine";

constexpr std::string_view affine_parameters = R"(
	.param .u64 demarc_queue,
	.param .u32 demarc_grid_x,
	.param .u32 demarc_grid_y,
	.param .u32 demarc_grid_z
)";

// barrier.sync came with PTX 6.0 and sm_70. Before, bar.sync is the same for every target.
std::string_view barrier_of(const Module& module) {
  return module.version.major < 6 ? "bar.sync" : "barrier.sync";
}

// Where some threads return before a barrier of the others, those that have returned keep coming to
// each barrier and say there that they have; when all say so, the block is done.
std::string waiting_for_others() {
  return fmt::format(R"($demarc_returned:
	barrier.red.and.pred 	%demarc_ended, {0}, %demarc_true;
	@!%demarc_ended bra 	$demarc_returned;
)",
                     affine_barrier);
}

// Runs before the kernel's own code. Its names carry the prefix demarc_ and are local to the body.
std::string affine_prologue(const Module& module, bool returned_threads_wait) {
  return fmt::format(R"(
{5}	.reg .pred %demarc_p<4>;
	.reg .b32 %demarc_r<16>;
{2}	.reg .b64 %demarc_q<4>;
	.shared .align 4 .b32 demarc_block;
	ld.param.u64 	%demarc_q0, [demarc_queue];
	cvta.to.global.u64 	%demarc_q0, %demarc_q0;
	ld.param.u32 	%demarc_nctaid_x, [demarc_grid_x];
	ld.param.u32 	%demarc_nctaid_y, [demarc_grid_y];
	ld.param.u32 	%demarc_nctaid_z, [demarc_grid_z];
	mov.u32 	%demarc_r0, %tid.x;
	mov.u32 	%demarc_r1, %tid.y;
	mov.u32 	%demarc_r2, %tid.z;
	or.b32 	%demarc_r0, %demarc_r0, %demarc_r1;
	or.b32 	%demarc_r0, %demarc_r0, %demarc_r2;
	setp.ne.u32 	%demarc_p0, %demarc_r0, 0;
	mul.lo.u32 	%demarc_r3, %demarc_nctaid_x, %demarc_nctaid_y;
	mul.lo.u32 	%demarc_r4, %demarc_r3, %demarc_nctaid_z;
	mov.u32 	%demarc_r5, %smid;
	shr.u32 	%demarc_r6, %demarc_r5, 5;
	mul.wide.u32 	%demarc_q1, %demarc_r6, 4;
	add.u64 	%demarc_q1, %demarc_q0, %demarc_q1;
	ld.global.u32 	%demarc_r6, [%demarc_q1+8];
	and.b32 	%demarc_r5, %demarc_r5, 31;
	shr.u32 	%demarc_r6, %demarc_r6, %demarc_r5;
	and.b32 	%demarc_r6, %demarc_r6, 1;
	setp.ne.u32 	%demarc_p1, %demarc_r6, 0;
	@%demarc_p1 bra 	$demarc_next;
$demarc_leave:
	@%demarc_p0 bra 	$demarc_gone;
	mov.u32 	%demarc_r7, %nctaid.x;
	sub.u32 	%demarc_r8, %demarc_r7, 1;
	membar.gl;
	atom.global.inc.u32 	%demarc_r9, [%demarc_q0+4], %demarc_r8;
	setp.ne.u32 	%demarc_p2, %demarc_r9, %demarc_r8;
	@%demarc_p2 bra 	$demarc_gone;
	mov.u32 	%demarc_r10, 0;
	st.global.u32 	[%demarc_q0], %demarc_r10;
$demarc_gone:
	ret;
{4}$demarc_next:
	{1} 	{0};
	@%demarc_p0 bra 	$demarc_taken;
	atom.global.add.u32 	%demarc_r11, [%demarc_q0], 1;
	st.shared.u32 	[demarc_block], %demarc_r11;
$demarc_taken:
	{1} 	{0};
	ld.shared.u32 	%demarc_r11, [demarc_block];
	setp.ge.u32 	%demarc_p3, %demarc_r11, %demarc_r4;
	@%demarc_p3 bra 	$demarc_leave;
{3})",
                     affine_barrier, barrier_of(module), block_index_registers,
                     block_index_code("%demarc_r11", "%demarc_r3", "%demarc_r12"),
                     returned_threads_wait ? waiting_for_others() : "",
                     returned_threads_wait ? "\t.reg .pred %demarc_true, %demarc_ended;\n"
                                             "\tsetp.eq.u32 \t%demarc_true, 0, 0;\n"
                                           : "");
}

// A barrier other than the one that the persistent block needs for itself.
bool keeps_its_barrier(const Body& body, const Instruction& instruction) {
  const OpcodeInfo& row = info(instruction.opcode);
  if (row.group != OpcodeGroup::barrier || row.name.starts_with("bar.warp")) return true;
  const auto operands = body.operands_of(instruction);
  // The number of bar.red and barrier.red comes behind their result.
  const std::size_t at = row.name.ends_with(".red") ? 1 : 0;
  return operands.size() > at && operands[at].kind == OperandKind::immediate &&
         operands[at].value < affine_barrier;
}

Result<void> check_barriers(const Module& module, const Function& function) {
  for (const Instruction& instruction : function.body.instructions) {
    if (keeps_its_barrier(function.body, instruction)) continue;
    return invalid_input(
        "{}:{}: '{}' cannot be {}: persistent blocks use barrier {} themselves; use bar.sync with "
        "a constant below it",
        module.source_name, instruction.line, module.text_of(instruction), affine_wanted,
        affine_barrier);
  }
  return {};
}

// A grid whose blocks wait for each other needs all of them at once, but persistent blocks take one
// after the other.
Result<void> check_no_grid_barrier(const Module& module, const Function& function) {
  for (const Instruction& instruction : function.body.instructions) {
    for (const Operand& operand : function.body.operands_of(instruction)) {
      if (operand.kind != OperandKind::special) continue;
      const std::string_view name = info(static_cast<SpecialRegister>(operand.index)).name;
      if (!name.starts_with("%envreg")) continue;
      return invalid_input(
          "{}:{}: '{}' cannot be {}: {} serves barriers of the whole grid, and persistent blocks "
          "do "
          "not run side by side",
          module.source_name, instruction.line, module.text_of(instruction), affine_wanted, name);
    }
  }
  return {};
}

// Whether a function that a kernel may call has such an instruction, as far as can be told.
template <class Is>
bool functions_have(const Module& module, const Is& is) {
  return std::any_of(module.functions.begin(), module.functions.end(), [&](const Function& one) {
    return !one.is_entry && (!one.has_body || std::any_of(one.body.instructions.begin(),
                                                          one.body.instructions.end(), is));
  });
}

// Threads that have returned live on, so a collective of their warp would wait for them.
Result<void> check_no_collective_after_return(const Module& module, const Function& kernel) {
  const bool in_functions = functions_have(
      module, [&](const Instruction& one) { return is_warp_collective(module, one); });
  const auto collective = collective_after_return(module, kernel, in_functions);
  if (!collective) return {};
  const Instruction& instruction = kernel.body.instructions[*collective];
  return invalid_input(
      "{}:{}: '{}' cannot be {}: threads of the warp may have returned before, and here the others "
      "would wait for them",
      module.source_name, instruction.line, module.text_of(instruction), affine_wanted);
}

// A barrier at which those that have returned wait too.
std::string with_returned_threads(const Body& body, const Instruction& instruction) {
  std::string guard;
  if (instruction.predicate != no_index) {
    guard = fmt::format("@{}{} ", instruction.predicate_negated ? "!" : "",
                        body.register_name(instruction.predicate));
  }
  return fmt::format("{}barrier.red.and.pred \t%demarc_ended, {}, !%demarc_true;", guard,
                     affine_barrier);
}

// Whether threads that have returned must keep coming to the barriers of the others.
Result<bool> returned_threads_wait(const Module& module, const Function& kernel) {
  const auto barrier =
      barrier_after_return(module, kernel, functions_have(module, is_block_barrier));
  if (!barrier) return false;
  const auto refused = [&](const Instruction& instruction, std::string_view why) {
    return invalid_input(
        "{}:{}: '{}' cannot be {}: threads of the block may have returned before, and {}",
        module.source_name, instruction.line, module.text_of(instruction), affine_wanted, why);
  };
  const Instruction& first = kernel.body.instructions[*barrier];
  if (first.opcode == Opcode::call) {
    return refused(first, "the called function may have a barrier; inline it");
  }
  if (module.version.major < 6 || module.has_target_below(70)) {
    return refused(first, "barriers of the others alone need PTX 6.0 and sm_70");
  }
  for (const Instruction& instruction : kernel.body.instructions) {
    if (!is_block_barrier(instruction) || info(instruction.opcode).written == 0) continue;
    return refused(instruction, "their values would count; use bar.sync");
  }
  return true;
}

Result<void> splice_kernel(const Module& module, const Function& kernel,
                           std::vector<Splice>& splices) {
  DEMARC_CHECK(check_no_clusters(module, kernel, "persistent blocks cannot keep"));
  DEMARC_CHECK(check_barriers(module, kernel));
  DEMARC_CHECK(check_no_grid_barrier(module, kernel));
  DEMARC_CHECK(check_no_collective_after_return(module, kernel));
  DEMARC_TRY(const bool wait, returned_threads_wait(module, kernel));
  DEMARC_TRY(const KernelText places, find_kernel_text(module, kernel));
  splices.push_back(added_parameters(kernel, places, affine_parameters));
  splices.push_back({places.body, 0, affine_prologue(module, wait)});
  for (const Instruction& instruction : kernel.body.instructions) {
    const std::string_view written = module.text_of(instruction);
    std::string changed(written);
    if (instruction.opcode == Opcode::ret || instruction.opcode == Opcode::exit) {
      changed = leave_by_branch(written, wait ? "$demarc_returned" : "$demarc_next");
    } else if (wait && is_block_barrier(instruction)) {
      changed = with_returned_threads(kernel.body, instruction);
    } else if (reads_block_index(kernel.body, instruction)) {
      DEMARC_TRY(changed, with_other_block_index(module, instruction, affine_wanted));
    } else {
      continue;
    }
    splices.push_back({instruction.text_offset, written.size(), std::move(changed)});
  }
  return {};
}

Result<void> check_device_function(const Module& module, const Function& function) {
  DEMARC_CHECK(check_barriers(module, function));
  DEMARC_CHECK(check_no_grid_barrier(module, function));
  DEMARC_CHECK(check_no_block_index(module, function, affine_wanted));
  for (const Instruction& instruction : function.body.instructions) {
    if (instruction.opcode != Opcode::exit) continue;
    return invalid_input(
        "{}:{}: '{}' in the device function '{}' cannot be {}; inline the function",
        module.source_name, instruction.line, module.text_of(instruction), function.name,
        affine_wanted);
  }
  return {};
}

}  // namespace

Result<Module> rewrite_affine(const Module& module) {
  DEMARC_CHECK(check_not_rewritten(
      module, affine_wanted,
      {Rewriting::affine, Rewriting::fused, Rewriting::colored, Rewriting::part}));
  std::vector<Splice> splices;
  for (const Function& function : module.functions) {
    if (!function.has_body) continue;
    if (function.is_entry) {
      DEMARC_CHECK(splice_kernel(module, function, splices));
    } else {
      DEMARC_CHECK(check_device_function(module, function));
    }
  }
  return spliced(module, std::move(splices));
}

}  // namespace demarc::ptx
