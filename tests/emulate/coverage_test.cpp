// No instruction is without an answer: every opcode of the vocabulary has a test of what it does,
// or is refused by name.
#include <map>
#include <set>

#include "harness.hpp"
#include "instructions/instruction_case.hpp"

namespace demarc::emulate {
namespace {

using ptx::Opcode;

// Opcodes whose tests are no instruction cases, and the suite that has them.
const std::map<Opcode, const char*> tested_elsewhere{
    {Opcode::bra, "Divergence"},
    {Opcode::brx_idx, "BranchTables"},
    {Opcode::call, "Calls"},
    {Opcode::ret, "Calls"},
    {Opcode::exit, "Divergence"},
    {Opcode::trap, "Traps"},
    {Opcode::st, "every instruction case stores its results"},
    {Opcode::shfl, "Shuffles"},
    {Opcode::vote, "Votes"},
    {Opcode::activemask, "Votes"},
    {Opcode::elect, "Votes"},
    {Opcode::match, "Matches"},
    {Opcode::redux, "Reductions"},
    {Opcode::barrier_cluster_arrive, "Clusters"},
    {Opcode::barrier_cluster_wait, "Clusters"},
    {Opcode::st_async, "AsyncStores"},
    {Opcode::red_async, "AsyncStores"},
    {Opcode::bar_sync, "NamedBarriers"},
    {Opcode::bar_arrive, "NamedBarriers"},
    {Opcode::bar_red, "NamedBarriers"},
    {Opcode::barrier_red, "NamedBarriers"},
    {Opcode::cp_async, "AsyncCopies"},
    {Opcode::cp_async_commit_group, "AsyncCopies"},
    {Opcode::cp_async_wait_group, "AsyncCopies"},
    {Opcode::cp_async_bulk, "BulkCopies"},
    {Opcode::cp_reduce_async_bulk, "BulkCopies"},
    {Opcode::cp_async_bulk_tensor, "TensorCopies"},
    {Opcode::cp_reduce_async_bulk_tensor, "TensorReductions"},
    {Opcode::cp_async_bulk_commit_group, "BulkCopies"},
    {Opcode::cp_async_bulk_wait_group, "BulkCopies"},
    {Opcode::tex, "Textures"},
    {Opcode::tld4, "Textures"},
    {Opcode::txq, "Textures"},
    {Opcode::suld, "Surfaces"},
    {Opcode::sust, "Surfaces"},
    {Opcode::sured, "Surfaces"},
    {Opcode::suq, "Surfaces"},
    {Opcode::mbarrier_init, "MemoryBarriers"},
    {Opcode::mbarrier_inval, "MemoryBarriers"},
    {Opcode::mbarrier_complete_tx, "MemoryBarriers"},
    {Opcode::mbarrier_arrive, "MemoryBarriers"},
    {Opcode::mbarrier_arrive_drop, "MemoryBarriers"},
    {Opcode::mbarrier_test_wait, "MemoryBarriers"},
    {Opcode::mbarrier_try_wait, "MemoryBarriers"},
    {Opcode::mbarrier_pending_count, "MemoryBarriers"},
    {Opcode::wmma_load, "WarpMatrices"},
    {Opcode::wmma_store, "WarpMatrices"},
    {Opcode::wmma_mma, "WarpMatrices"},
    {Opcode::mma, "MatrixProducts"},
    {Opcode::wgmma_mma_async, "Warpgroups"},
    {Opcode::ldmatrix, "MatrixMoves"},
    {Opcode::stmatrix, "MatrixMoves"},
    {Opcode::movmatrix, "MatrixMoves"}};

// Accepted, and without an effect that a kernel could see (hints, orderings that hold anyway).
const std::map<Opcode, const char*> without_effect{
    {Opcode::wgmma_fence, "wgmma.fence.sync.aligned;"},
    {Opcode::wgmma_commit_group, "wgmma.commit_group.sync.aligned;"},
    {Opcode::wgmma_wait_group, "wgmma.wait_group.sync.aligned 0;"},
    {Opcode::prefetch, "prefetch.global.L2 [%rd1];"},
    {Opcode::prefetchu, "prefetchu.L1 [%rd1];"},
    {Opcode::applypriority, "applypriority.global.L2::evict_normal [%rd1], 128;"},
    {Opcode::createpolicy, "createpolicy.fractional.L2::evict_last.b64 %rd5;"},
    {Opcode::cp_async_wait_all, "cp.async.wait_all;"},
    {Opcode::cp_async_bulk_prefetch, "cp.async.bulk.prefetch.L2.global [%rd1], 64;"},
    {Opcode::cp_async_bulk_prefetch_tensor,
     "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%rd1, {%r3}];"},
    {Opcode::bar_warp_sync, "bar.warp.sync -1;"},
    {Opcode::membar, "membar.gl;"},
    {Opcode::fence, "fence.acq_rel.gpu;"},
    {Opcode::griddepcontrol, "griddepcontrol.wait;"},
    {Opcode::nanosleep, "nanosleep.u32 20;"},
    {Opcode::pmevent, "pmevent 1;"},
    {Opcode::setmaxnreg, "setmaxnreg.inc.sync.aligned.u32 64;"}};

// Other spellings of instructions that are tested: the same micro-op.
const std::map<Opcode, const char*> same_as{
    {Opcode::ldu, "ldu.global.u32 %r3, [%rd1];"},
    {Opcode::bar_cta_sync, "bar.cta.sync 0;"},
    {Opcode::bar_cta_arrive, "bar.cta.arrive 1, 64;"},
    {Opcode::bar_cta_red, "bar.cta.red.popc.u32 %r3, 0, %p1;"},
    {Opcode::barrier_sync, "barrier.sync.aligned 0;"},
    {Opcode::barrier_arrive, "barrier.arrive 1, 64;"},
    {Opcode::barrier_cta_sync, "barrier.cta.sync.aligned 0;"},
    {Opcode::barrier_cta_arrive, "barrier.cta.arrive 1, 64;"},
    {Opcode::barrier_cta_red, "barrier.cta.red.and.pred %p2, 0, %p1;"},
    {Opcode::mapa, "mapa.u64 %rd5, %rd1, 0;"},
    {Opcode::getctarank, "getctarank.u64 %r3, %rd1;"},
    {Opcode::isspacep, "isspacep.global %p2, %rd1;"},
    {Opcode::cvta, "cvta.to.global.u64 %rd5, %rd1;"},
    {Opcode::mbarrier_expect_tx, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;"},
    {Opcode::cp_async_mbarrier_arrive, "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];"},
    {Opcode::brkpt, "@%p2 brkpt;"}};

// Refused by name (docs/emulate.md says so).
const std::map<Opcode, const char*> refused{
    {Opcode::st_bulk, "st.bulk.weak.shared::cta [%rd5], 64, 0;"},
    {Opcode::multimem_ld_reduce, "multimem.ld_reduce.relaxed.gpu.global.add.u32 %r3, [%rd1];"},
    {Opcode::multimem_st, "multimem.st.relaxed.gpu.global.u32 [%rd1], %r3;"},
    {Opcode::multimem_red, "multimem.red.relaxed.gpu.global.add.u32 [%rd1], %r3;"},
    {Opcode::multimem_cp_async_bulk,
     "multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r3], 64;"},
    {Opcode::multimem_cp_reduce_async_bulk,
     "multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r3], 64;"},
    {Opcode::discard, "discard.global.L2 [%rd1], 128;"},
    {Opcode::tensormap_replace,
     "tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;"},
    {Opcode::istypep, "istypep.texref %p1, %rd1;"},
    {Opcode::tensormap_cp_fenceproxy,
     "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
     "[%rd1], [%r3], 128;"},
    {Opcode::clusterlaunchcontrol_try_cancel,
     "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r3], "
     "[%r4];"},
    {Opcode::clusterlaunchcontrol_query_cancel,
     "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1;"},
    {Opcode::mma_sp,
     "mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r3, %r4}, {%r5, %r6}, {%r7, %r8}, "
     "{%r3, %r4}, %r9, 0;"},
    {Opcode::wgmma_mma_async_sp,
     "wgmma.mma_async.sp.sync.aligned.m64n8k32.f16.f16.f16 {%r3, %r4}, %rd5, %rd6, %r7, 0, 1, 1, "
     "1, 0, 0;"},
    {Opcode::tcgen05_alloc, "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r3], 32;"},
    {Opcode::tcgen05_dealloc, "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;"},
    {Opcode::tcgen05_relinquish_alloc_permit,
     "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"},
    {Opcode::tcgen05_ld, "tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r3}, [%r4];"},
    {Opcode::tcgen05_st, "tcgen05.st.sync.aligned.16x64b.x1.b32 [%r4], {%r3};"},
    {Opcode::tcgen05_wait_ld, "tcgen05.wait::ld.sync.aligned;"},
    {Opcode::tcgen05_wait_st, "tcgen05.wait::st.sync.aligned;"},
    {Opcode::tcgen05_cp, "tcgen05.cp.cta_group::1.128x256b [%r3], %rd5;"},
    {Opcode::tcgen05_shift, "tcgen05.shift.cta_group::1.down [%r3];"},
    {Opcode::tcgen05_mma, "tcgen05.mma.cta_group::1.kind::f16 [%r3], %rd5, %rd6, %r4, %p1;"},
    {Opcode::tcgen05_fence_before, "tcgen05.fence::before_thread_sync;"},
    {Opcode::tcgen05_fence_after, "tcgen05.fence::after_thread_sync;"},
    {Opcode::tcgen05_commit, "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd5];"},
    {Opcode::stacksave, "stacksave.u64 %rd5;"},
    {Opcode::stackrestore, "stackrestore.u64 %rd5;"},
    {Opcode::alloca, "alloca.u64 %rd5, 16;"}};

// "@%p1 add.s32 %r1, ..." -> "add.s32"
std::string mnemonic_in(std::string text) {
  if (text[0] == '@') text.erase(0, text.find(' ') + 1);
  return text.substr(0, text.find_first_of(" ;"));
}

std::string module_with(const char* instruction) {
  return test::kernel_of(
      ".shared .align 8 .b64 bar;\n",
      std::string(".reg .b128 %q<3>;\nsetp.eq.u32 %p1, %r1, 0;\nsetp.ne.u32 %p2, %r1, %r1;\n"
                  "mbarrier.init.shared.b64 [bar], 64;\n") +
          instruction);
}

TEST(Coverage, every_opcode_is_tested_or_without_effect_or_refused_and_only_one_of_these) {
  std::set<Opcode> in_cases;
  for (const test::InstructionCase& entry : test::all_cases()) {
    const Opcode opcode = ptx::find_opcode(test::mnemonic_of(entry)).opcode;
    EXPECT_NE(opcode, Opcode::unknown) << entry.text;
    in_cases.insert(opcode);
  }
  for (std::size_t i = 1; i < ptx::opcode_count(); ++i) {
    const auto opcode = static_cast<Opcode>(i);
    const std::size_t answers = in_cases.count(opcode) + tested_elsewhere.count(opcode) +
                                without_effect.count(opcode) + same_as.count(opcode) +
                                refused.count(opcode);
    EXPECT_EQ(answers, 1U) << ptx::info(opcode).name;
  }
}

TEST(Coverage, what_is_without_effect_or_another_spelling_runs_without_a_finding) {
  for (const auto* table : {&without_effect, &same_as}) {
    for (const auto& [opcode, instruction] : *table) {
      EXPECT_EQ(ptx::find_opcode(mnemonic_in(instruction)).opcode, opcode) << instruction;
      const auto outcome = test::run_text(module_with(instruction), test::launch_of(1, 64, 512));
      ASSERT_TRUE(outcome) << instruction << ": " << outcome.error().message;
      for (const Finding& finding : outcome->findings)
        ADD_FAILURE() << instruction << ": " << describe(finding, "t.ptx");
    }
  }
}

TEST(Coverage, what_is_refused_is_named_with_file_line_and_text) {
  for (const auto& [opcode, instruction] : refused) {
    EXPECT_EQ(ptx::find_opcode(mnemonic_in(instruction)).opcode, opcode) << instruction;
    const auto outcome = test::run_text(module_with(instruction), test::launch_of(1, 64, 512));
    ASSERT_FALSE(outcome) << instruction;
    const std::string& said = outcome.error().message;
    EXPECT_NE(said.find("the emulator does not cover: "), std::string::npos) << said;
    EXPECT_NE(said.find(instruction), std::string::npos) << said;
    EXPECT_NE(said.find("ptx:20: "), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace demarc::emulate
