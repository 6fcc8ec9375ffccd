// Makes the matrix of operands: statements of all opcodes whose operands are checked, with each
// operand replaced by operands of every kind.
#include <algorithm>
#include <span>
#include <string_view>

#include "forms_matrix.hpp"

namespace demarc::ptx::test {
namespace {

constexpr std::string_view kinds[] = {"%p1",
                                      "%h1",
                                      "%uh1",
                                      "%fh1",
                                      "%r1",
                                      "%ur1",
                                      "%sr1",
                                      "%f1",
                                      "%rd1",
                                      "%ud1",
                                      "%fd1",
                                      "%q1",
                                      "%b1",
                                      "_",
                                      "1",
                                      "-1",
                                      "1.5",
                                      "0f3F800000",
                                      "%tid.x",
                                      "%tid",
                                      "%clock64",
                                      "gv",
                                      "sv",
                                      "LL",
                                      "p",
                                      "[%rd1]",
                                      "[%f1]",
                                      "[gv]",
                                      "[sv]",
                                      "[64]",
                                      "gv+4",
                                      "{%r1, %r2}",
                                      "{%r1}",
                                      "%v",
                                      "%v.x",
                                      "!%p1",
                                      "-%r1",
                                      "%r1.b0",
                                      "%r1|%p1",
                                      "%p1|%p2",
                                      "%is_explicit_cluster"};

// Only what ptxas takes; a name is any of the declared.
constexpr std::string_view statements[] = {"add.s32 %r1, %r2, %r3",
                                           "add.u16 %h1, %h2, %h3",
                                           "sub.u64 %rd1, %rd2, %rd3",
                                           "add.f32 %r1, %r2, %r3",
                                           "add.f64 %rd1, %rd2, %rd3",
                                           "add.f16 %h1, %h2, %h3",
                                           "add.f16x2 %r1, %r2, %r3",
                                           "add.u16x2 %r1, %r2, %r3",
                                           "mul.wide.s16 %r1, %h2, %h3",
                                           "mul.wide.u32 %rd1, %r2, %r3",
                                           "mad.wide.s32 %rd1, %r2, %r3, %rd4",
                                           "mul24.lo.u32 %r1, %r2, %r3",
                                           "mad.lo.s64 %rd1, %rd2, %rd3, %rd4",
                                           "fma.rn.f32 %r1, %r2, %r3, %r4",
                                           "fma.rn.bf16 %h1, %h2, %h3, %h4",
                                           "abs.s32 %r1, %r2",
                                           "min.f64 %rd1, %rd2, %rd3",
                                           "popc.b64 %r1, %rd2",
                                           "clz.b32 %r1, %r2",
                                           "bfind.s64 %r1, %rd2",
                                           "brev.b32 %r1, %r2",
                                           "fns.b32 %r1, %r2, %r3, %r4",
                                           "bfe.u32 %r1, %r2, %r3, %r4",
                                           "bfe.s64 %rd1, %rd2, 3, %r4",
                                           "bfi.b64 %rd1, %rd2, %rd3, %r4, %r5",
                                           "szext.wrap.s32 %r1, %r2, %r3",
                                           "bmsk.clamp.b32 %r1, %r2, %r3",
                                           "dp4a.u32.s32 %r1, %r2, %r3, %r4",
                                           "addc.u64 %rd1, %rd2, %rd3",
                                           "testp.finite.f32 %p1, %r2",
                                           "copysign.f32 %r1, %r2, %r3",
                                           "rcp.rn.f64 %rd1, %rd2",
                                           "ex2.approx.f16 %h1, %h2",
                                           "tanh.approx.bf16 %h1, %h2",
                                           "set.lt.s32.u64 %r1, %rd2, %rd3",
                                           "set.eq.and.f32.f32 %r1, %r2, %r3, %p4",
                                           "setp.lt.s32 %p1, %r2, %r3",
                                           "setp.eq.or.f64 %p1, %rd2, %rd3, %p4",
                                           "selp.b16 %h1, %h2, %h3, %p4",
                                           "selp.f32 %r1, %r2, %r3, %p4",
                                           "slct.u64.f32 %rd1, %rd2, %rd3, %r4",
                                           "and.pred %p1, %p2, %p3",
                                           "xor.b32 %r1, %r2, %r3",
                                           "not.b64 %rd1, %rd2",
                                           "cnot.b16 %h1, %h2",
                                           "lop3.b32 %r1, %r2, %r3, %r4, 5",
                                           "lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 5, %p2",
                                           "shf.l.wrap.b32 %r1, %r2, %r3, %r4",
                                           "shl.b64 %rd1, %rd2, %r3",
                                           "shr.s16 %h1, %h2, %r3",
                                           "prmt.b32 %r1, %r2, %r3, %r4",
                                           "mov.pred %p1, %p2",
                                           "mov.u16 %h1, %h2",
                                           "mov.b32 %r1, %r2",
                                           "mov.u64 %rd1, %rd2",
                                           "mov.f32 %r1, %r2",
                                           "mov.b64 %rd1, {%r2, %r3}",
                                           "mov.b64 {%r1, %r2}, %rd3",
                                           "mov.v4.u32 {%r1, %r2, %r3, %r4}, %tid",
                                           "cvt.u8.s32 %r1, %r2",
                                           "cvt.s64.u16 %rd1, %h2",
                                           "cvt.u32.u64 %r1, %rd2",
                                           "cvt.rn.f32.s64 %r1, %rd2",
                                           "cvt.rzi.s16.f32 %h1, %r2",
                                           "cvt.f64.f32 %rd1, %r2",
                                           "cvt.rn.f16.f64 %h1, %rd2",
                                           "cvt.rn.bf16.f32 %h1, %r2",
                                           "cvt.rn.f16x2.e4m3x2 %r1, %h2",
                                           "cvt.pack.sat.u16.s32 %r1, %r2, %r3",
                                           "cvta.global.u64 %rd1, %rd2",
                                           "cvta.to.shared.u64 %rd1, %rd2",
                                           "isspacep.global %p1, %rd2",
                                           "mapa.u64 %rd1, %rd2, %r3",
                                           "getctarank.u64 %r1, %rd2",
                                           "shfl.sync.idx.b32 %r1, %r2, %r3, %r4, %r5",
                                           "shfl.sync.up.b32 %r1|%p1, %r2, 1, 0, -1",
                                           "ld.global.s8 %h1, [%rd2]",
                                           "ld.shared.u32 %r1, [%rd2]",
                                           "ld.b64 %rd1, [%rd2]",
                                           "ld.f32 %r1, [%rd2]",
                                           "ld.global.v2.u32 {%r1, %r2}, [%rd3]",
                                           "ldu.global.f64 %rd1, [%rd2]",
                                           "ld.const.b32 %r1, [%rd2]",
                                           "ld.local.b32 %r1, [%rd2]",
                                           "ld.global.L2::cache_hint.u32 %r1, [%rd2], %rd3",
                                           "st.global.u8 [%rd1], %h2",
                                           "st.shared.b32 [%rd1], %r2",
                                           "st.f64 [%rd1], %rd2",
                                           "st.global.v2.f32 [%rd1], {%r2, %r3}",
                                           "atom.global.add.u32 %r1, [%rd2], %r3",
                                           "atom.global.cas.b64 %rd1, [%rd2], %rd3, %rd4",
                                           "atom.shared.exch.b32 %r1, [%rd2], %r3",
                                           "red.global.add.f32 [%rd1], %r2",
                                           "prefetch.global.L1 [%rd1]",
                                           "prefetchu.L1 [%rd1]",
                                           "discard.global.L2 [%rd1], 128",
                                           "cp.async.ca.shared.global [%rd1], [%rd2], 8",
                                           "cp.async.cg.shared.global [%rd1], [%rd2], 16, %r3",
                                           "cp.async.wait_group 1",
                                           "vote.sync.all.pred %p1, %p2, %r3",
                                           "vote.sync.ballot.b32 %r1, %p2, %r3",
                                           "match.any.sync.b64 %r1, %rd2, %r3",
                                           "match.all.sync.b32 %r1|%p1, %r2, %r3",
                                           "redux.sync.add.u32 %r1, %r2, %r3",
                                           "activemask.b32 %r1",
                                           "elect.sync %r1|%p1, %r2",
                                           "bar.sync %r1, %r2",
                                           "bar.arrive %r1, %r2",
                                           "bar.red.popc.u32 %r1, %r2, %r3, %p1",
                                           "barrier.sync %r1",
                                           "barrier.red.or.pred %p1, %r2, %p2",
                                           "bar.warp.sync %r1",
                                           "mbarrier.init.shared.b64 [%rd1], %r2",
                                           "mbarrier.arrive.shared.b64 %rd1, [%rd2]",
                                           "mbarrier.test_wait.shared.b64 %p1, [%rd2], %rd3",
                                           "mbarrier.try_wait.parity.shared.b64 %p1, [%rd2], %r3",
                                           "mbarrier.pending_count.b64 %r1, %rd2",
                                           "stackrestore.u64 %rd1",
                                           "alloca.u64 %rd1, %rd2, 16",
                                           "nanosleep.u32 %r1",
                                           "pmevent 1"};

// Those of mixed precision, where the types of the operands differ.
constexpr std::string_view statements_of_sm_100a[] = {"add.f32.f16 %r1, %h2, %r3",
                                                      "sub.rn.f32.bf16 %r1, %h2, %r3",
                                                      "fma.rn.f32.bf16 %r1, %h2, %h3, %r4"};
constexpr std::string_view bounds_of_sm_100a[] = {
    "setmaxnreg.inc.sync.aligned.u32 16", "setmaxnreg.inc.sync.aligned.u32 24",
    "setmaxnreg.inc.sync.aligned.u32 28", "setmaxnreg.inc.sync.aligned.u32 256",
    "setmaxnreg.inc.sync.aligned.u32 264"};

// Bounds of constants, elements of vectors and orders of modifiers, one statement each.
constexpr std::string_view bounds[] = {
    "bfe.u32 %r1, %r2, 255, 255",
    "bfe.u32 %r1, %r2, 256, 1",
    "bfe.u64 %rd1, %rd2, 1, 256",
    "bfi.b32 %r1, %r2, %r3, 255, 255",
    "bfi.b32 %r1, %r2, %r3, 256, 1",
    "bfi.b64 %rd1, %rd2, %rd3, 1, -1",
    "bar.sync 15",
    "bar.sync 16",
    "bar.sync 0, 64",
    "bar.sync 0, 33",
    "bar.arrive 16, 32",
    "bar.arrive 0, 48",
    "bar.red.popc.u32 %r1, 16, %p1",
    "bar.red.popc.u32 %r1, 0, 40, %p1",
    "barrier.sync 16",
    "barrier.sync 1, 31",
    "barrier.cta.sync 16",
    "barrier.cta.arrive 1, 31",
    "pmevent 15",
    "pmevent 16",
    "pmevent.mask 65535",
    "pmevent.mask 65536",
    "pmevent %r1",
    "cp.async.ca.shared.global [%rd1], [%rd2], 4",
    "cp.async.ca.shared.global [%rd1], [%rd2], 5",
    "cp.async.ca.shared.global [%rd1], [%rd2], 16",
    "cp.async.ca.shared.global [%rd1], [%rd2], 0",
    "cp.async.cg.shared.global [%rd1], [%rd2], 8",
    "cp.async.ca.shared.global [%rd1], [%rd2], %r3",
    "cp.async.ca.shared.global [%rd1], [%rd2], 4, %p1",
    "cp.async.ca.shared.global [%rd1], [%rd2], 4, !%p1",
    "cp.async.ca.shared.global [%rd1], [%rd2], 4, 4",
    "cp.async.ca.shared.global [%rd1], [%rd2], 4, 5",
    "discard.global.L2 [%rd1], 64",
    "applypriority.global.L2::evict_normal [%rd1], 256",
    "mbarrier.try_wait.parity.shared.b64 %p1, [%rd1], 2",
    "mbarrier.test_wait.parity.shared.b64 %p1, [%rd1], 1",
    "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%rd2], 24",
    "mov.b64 %rd1, {%h1, %h2}",
    "mov.b64 %rd1, {%h1, %h2, %h3, %h4}",
    "mov.b64 {%r1, _}, %rd1",
    "mov.u64 %rd1, {%r1, %r2}",
    "mov.b64 %rd1, {%r1, _}",
    "mov.b32 %r1, {%fh1, %h2}",
    "ld.global.v2.u32 {%r1, _}, [%rd1]",
    "ld.global.v2.u32 {%r1, %rd2}, [%rd1]",
    "ld.global.v2.u32 {%r1, %f1}, [%rd1]",
    "st.global.v2.u32 [%rd1], {%r1, _}",
    "st.global.v2.u32 [%rd1], {%r1, 5}",
    "mov.b64 %rd1, {%tid.x, %tid.y}",
    "mov.b64 %rd1, {%tid.x, %r1}",
    "mov.b64 %rd1, {%f1, %smid}",
    "mov.b64 %rd1, {%laneid, 1}",
    "mov.b64 %rd1, {%tid.x, 0}",
    "mov.b64 %rd1, {%tid.x, %clock64}",
    "mov.b64 %rd1, {%tid, %tid}",
    "mov.b32 %r1, {%ctaid.x, %h1}",
    "mov.b128 %q1, {%clock64, %rd1}",
    "mov.v2.u32 {%r1, %r2}, {%tid.x, %tid.y}",
    "mov.v2.u32 {%r1, %r2}, {%tid.x, 5}",
    "mov.v2.u16 {%h1, %h2}, {%tid.x, %tid.y}",
    "mov.v2.f32 {%f1, %f2}, {%tid.x, %tid.y}",
    "st.global.v4.u32 [%rd1], {%tid.x, %tid.y, %tid.z, %laneid}",
    "st.global.v4.u32 [%rd1], {%laneid, %r1, %tid.x, 1}",
    "st.global.v2.f32 [%rd1], {%tid.x, %f1}",
    "st.global.v2.u16 [%rd1], {%laneid, %tid.x}",
    "st.global.v2.u16 [%rd1], {%h1, %tid.x}",
    "st.global.v2.u32 [%rd1], {%laneid, %clock64}",
    "st.global.v2.u64 [%rd1], {%tid.x, %tid.x}",
    "st.global.v2.u32 [%rd1], {%tid, %tid}",
    "st.global.u32 [%rd1], {%tid.x}",
    "st.global.u32 [%rd1], %tid.x",
    "atom.global.v2.f32.add {%f1, %f2}, [%rd1], {%tid.x, %f1}",
    "atom.global.v2.f16.add.noftz {%h1, %h2}, [%rd1], {%h3, %laneid}",
    "red.global.v2.f32.add [%rd1], {%tid.x, %tid.y}",
    "red.global.v2.f32.add [%rd1], {%clock64, %laneid}",
    "st.global.v4.b32 [%rd1], {%r1, %f2, 0, %r4}",
    "st.global.v4.b32 [%rd1], {%r1, %f2, %r3, 0}",
    "st.global.v2.b32 [%rd1], {%ur1, %f1}",
    "st.global.v2.b32 [%rd1], {%ur1, %sr1}",
    "st.global.v2.u32 [%rd1], {%f1, %r1}",
    "st.global.v2.u32 [%rd1], {%f1, %f1}",
    "st.global.v2.f32 [%rd1], {%r1, 1.5}",
    "st.global.v2.f32 [%rd1], {1, 1}",
    "ld.global.v2.b32 {%ur1, %f1}, [%rd1]",
    "ld.global.v2.b32 {%ur1, %r1}, [%rd1]",
    "mov.b64 {%ur1, %f1}, %rd1",
    "lop3.b32.or %r1|%p1, %r2, %r3, %r4, 5, %p2",
    "lop3.b32.and _|%p1, %r2, %r3, %r4, 5, %p2",
    "lop3.b32.or %r1, %r2, %r3, %r4, 5, %p2",
    "cp.async.shared.global.cg [%rd1], [%rd2], 16",
    "cp.async.shared.global.cg [%rd1], [%rd2], 8",
    "cp.async.shared.ca.global [%rd1], [%rd2], 8",
    "cp.async.shared.ca.global [%rd1], [%rd2], 5",
    "mov.u32 %r1, %ctaid .y",
    "mov.b32 %r1, %v .x",
    "mov.b64 %rd1, {%v .x, %v/**/.y}",
    "mov.u32 %r1, %gridid",
    "mov.u64 %rd1, %gridid",
    "mov.u16 %h1, %ntid.y",
    "mov.u16 %h1, %laneid",
    "cvt.u16.u32 %h1, %laneid",
    "mov.u32 %r1, %laneid.x",
    "mov.pred %p1, %is_explicit_cluster",
    "mov.u32 %r1, %is_explicit_cluster",
    "cvta.shared.u64 %rd1, sv",
    "cvta.shared.u64 %rd1, gv",
    "cvta.global.u64 %rd1, gv",
    "cvta.local.u64 %rd1, sv",
    "ld.global.u32 %r1, [sv]",
    "ld.shared.u32 %r1, [gv]",
    "ld.shared.u32 %r1, [sv+4]",
    "ld.param.u64 %rd1, [p]",
    "ld.global.u32 %r1, [p]",
    "ld.u32 %r1, [gv]",
    "vadd.s32.u32.s32.add %r1, %r2.b0, %r3.h1, %r4",
    "vadd.s32.u32.s32.add %r1, %r2.b0, -%r3.h1, %r4",
    "vmad.s32.s32.s32 %r1, %r2.b0, -%r3, %r4",
    "vadd4.s32.s32.s32 %r1, %r2, 1, %r3",
    "vset.s32.u32.lt %r1, %r2, %f3"};

// The operands of a statement, as pieces of it: begin and end.
std::vector<std::pair<std::size_t, std::size_t>> operand_pieces(std::string_view statement) {
  std::vector<std::pair<std::size_t, std::size_t>> pieces;
  std::size_t begin = std::min(statement.find(' '), statement.size()) + 1;
  int depth = 0;
  for (std::size_t i = begin; i <= statement.size() && begin <= statement.size(); ++i) {
    const char c = i < statement.size() ? statement[i] : ',';
    depth += c == '[' || c == '{' ? 1 : (c == ']' || c == '}' ? -1 : 0);
    if (c != ',' || depth > 0) continue;
    pieces.emplace_back(begin, i);
    begin = i + 2;
  }
  return pieces;
}

// Each statement with each of its operands replaced by operands of every kind.
std::vector<MatrixForm> replaced(std::span<const std::string_view> all) {
  std::vector<MatrixForm> forms;
  for (const std::string_view statement : all) {
    std::size_t number = 0;
    for (const auto& [begin, end] : operand_pieces(statement)) {
      ++number;
      for (const std::string_view kind : kinds) {
        std::string changed(statement);
        changed.replace(begin, end - begin, kind);
        forms.push_back({std::string(statement), std::to_string(number), " " + std::string(kind),
                         changed + ";"});
      }
    }
  }
  return forms;
}

std::vector<MatrixForm> with_bounds(std::vector<MatrixForm> forms,
                                    std::span<const std::string_view> all) {
  for (const std::string_view statement : all) {
    forms.push_back({std::string(statement), "", "", std::string(statement) + ";"});
  }
  return forms;
}

}  // namespace

std::vector<MatrixForm> operand_matrix_of_sm_100a() {
  return with_bounds(replaced(statements_of_sm_100a), bounds_of_sm_100a);
}

std::vector<MatrixForm> operand_matrix() {
  return with_bounds(replaced(statements), bounds);
}

}  // namespace demarc::ptx::test
