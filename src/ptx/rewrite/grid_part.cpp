// Makes kernels take their block index from the number of a block in the whole grid.
#include "demarc/ptx/grid_part.hpp"

#include "rewrite/block_index.hpp"
#include "rewrite/kernel_text.hpp"
#include "rewrite/marks.hpp"
#include "rewrite/splice.hpp"

namespace demarc::ptx {
namespace {

constexpr const char* split_wanted = "split by blocks";

constexpr std::string_view part_parameters = R"(
	.param .u32 demarc_first_block,
	.param .u32 demarc_grid_x,
	.param .u32 demarc_grid_y,
	.param .u32 demarc_grid_z
)";

std::string part_prologue() {
  return fmt::format(R"(
	.reg .b32 %demarc_r<4>;
{}	ld.param.u32 	%demarc_r0, [demarc_first_block];
	ld.param.u32 	%demarc_nctaid_x, [demarc_grid_x];
	ld.param.u32 	%demarc_nctaid_y, [demarc_grid_y];
	ld.param.u32 	%demarc_nctaid_z, [demarc_grid_z];
	mov.u32 	%demarc_r1, %ctaid.x;
	add.u32 	%demarc_r0, %demarc_r0, %demarc_r1;
	mul.lo.u32 	%demarc_r2, %demarc_nctaid_x, %demarc_nctaid_y;
{})",
                     block_index_registers,
                     block_index_code("%demarc_r0", "%demarc_r2", "%demarc_r3"));
}

Result<void> splice_part(const Module& module, const Function& kernel,
                         std::vector<Splice>& splices) {
  DEMARC_CHECK(check_no_clusters(module, kernel, "a part of a grid cannot keep"));
  DEMARC_TRY(const KernelText places, find_kernel_text(module, kernel));
  splices.push_back(added_parameters(kernel, places, part_parameters));
  splices.push_back({places.body, 0, part_prologue()});
  for (const Instruction& instruction : kernel.body.instructions) {
    if (!reads_block_index(kernel.body, instruction)) continue;
    DEMARC_TRY(std::string changed, with_other_block_index(module, instruction, split_wanted));
    splices.push_back(
        {instruction.text_offset, module.text_of(instruction).size(), std::move(changed)});
  }
  return {};
}

}  // namespace

Result<Module> rewrite_grid_part(const Module& module) {
  DEMARC_CHECK(check_not_rewritten(module, split_wanted,
                                   {Rewriting::part, Rewriting::affine, Rewriting::fused}));
  std::vector<Splice> splices;
  for (const Function& function : module.functions) {
    if (!function.has_body) continue;
    if (function.is_entry) {
      DEMARC_CHECK(splice_part(module, function, splices));
    } else {
      DEMARC_CHECK(check_no_block_index(module, function, split_wanted));
    }
  }
  return spliced(module, std::move(splices));
}

}  // namespace demarc::ptx
