// Lays out the local variables of a module's functions.
#include "rewrite/colored/frames.hpp"
#include "demarc/base/rounding.hpp"

#include <algorithm>

namespace demarc::ptx {
namespace {

// The number of the thread in its grid.
constexpr std::string_view thread_number = R"(
	.reg .pred %demarc_lp;
	.reg .b32 %demarc_lr<3>;
	.reg .b64 %demarc_lq<2>, %demarc_frame;
	mov.u32 	%demarc_lr0, %ctaid.z;
	mov.u32 	%demarc_lr1, %nctaid.y;
	mov.u32 	%demarc_lr2, %ctaid.y;
	cvt.u64.u32 	%demarc_lq0, %demarc_lr2;
	mad.wide.u32 	%demarc_lq0, %demarc_lr0, %demarc_lr1, %demarc_lq0;
	mov.u32 	%demarc_lr0, %nctaid.x;
	cvt.u64.u32 	%demarc_lq1, %demarc_lr0;
	mul.lo.s64 	%demarc_lq0, %demarc_lq0, %demarc_lq1;
	mov.u32 	%demarc_lr0, %ctaid.x;
	cvt.u64.u32 	%demarc_lq1, %demarc_lr0;
	add.s64 	%demarc_lq0, %demarc_lq0, %demarc_lq1;
	mov.u32 	%demarc_lr0, %ntid.x;
	mov.u32 	%demarc_lr1, %ntid.y;
	mov.u32 	%demarc_lr2, %ntid.z;
	mul.lo.u32 	%demarc_lr2, %demarc_lr2, %demarc_lr1;
	mul.lo.u32 	%demarc_lr2, %demarc_lr2, %demarc_lr0;
	cvt.u64.u32 	%demarc_lq1, %demarc_lr2;
	mul.lo.s64 	%demarc_lq0, %demarc_lq0, %demarc_lq1;
	mov.u32 	%demarc_lr2, %tid.z;
	mul.lo.u32 	%demarc_lr2, %demarc_lr2, %demarc_lr1;
	mov.u32 	%demarc_lr1, %tid.y;
	add.u32 	%demarc_lr2, %demarc_lr2, %demarc_lr1;
	mov.u32 	%demarc_lr1, %tid.x;
	mad.lo.u32 	%demarc_lr2, %demarc_lr2, %demarc_lr0, %demarc_lr1;
	cvt.u64.u32 	%demarc_lq1, %demarc_lr2;
	add.s64 	%demarc_lq0, %demarc_lq0, %demarc_lq1;
)";

}  // namespace

Frames::Frames(const Module& module, const Reach& reach) : frames_(module.functions.size()) {
  for (std::uint32_t i = 0; i < frames_.size(); ++i) {
    Frame& frame = frames_[i];
    for (const Variable& variable : module.functions[i].body.variables) {
      const bool local = variable.space == StateSpace::local;
      if (local) frame.bytes = round_up(frame.bytes, variable.alignment());
      frame.variables.push_back(frame.bytes);
      if (!local) continue;
      frame.bytes += variable.byte_size();
      alignment_ = std::max<std::uint64_t>(alignment_, variable.alignment());
    }
    for (const std::uint32_t callee : reach.callees(i)) {
      const auto reached = reach.from(callee);
      if (std::binary_search(reached.begin(), reached.end(), i)) frame.recursive = true;
    }
  }
  for (Frame& frame : frames_)
    frame.bytes = frame.recursive ? 0 : round_up(frame.bytes, alignment_);
  // Ends: a function that may be running twice adds nothing.
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t i = 0; i < frames_.size(); ++i) {
      const std::uint64_t end = frames_[i].before + frames_[i].bytes;
      for (const std::uint32_t callee : reach.callees(i)) {
        if (frames_[callee].before >= end) continue;
        frames_[callee].before = end;
        changed = true;
      }
    }
  }
}

std::uint64_t Frames::bytes_of(const std::vector<std::uint32_t>& functions) const {
  std::uint64_t bytes = 0;
  for (const std::uint32_t function : functions) {
    const Frame& frame = frames_[function];
    if (frame.bytes != 0) bytes = std::max(bytes, frame.before + frame.bytes);
  }
  return bytes;
}

std::string frame_prologue(const Frame& frame, const PlaceOperands& places) {
  const auto with = [&](std::string_view op, std::uint64_t ColoredPlaces::*member) {
    return fmt::format("\t{}, {};\n", op, places.operand(member));
  };
  std::string out(thread_number);
  out += with("setp.ge.u64 \t%demarc_lp, %demarc_lq0", &ColoredPlaces::local_threads);
  out += fmt::format("\t@%demarc_lp trap;\n\tmul.lo.s64 \t%demarc_frame, %demarc_lq0, {};\n",
                     frame.bytes);
  out += with("add.s64 \t%demarc_frame, %demarc_frame", &ColoredPlaces::local);
  if (frame.before == 0) return out;
  out += fmt::format("\tmov.u64 \t%demarc_lq0, {};\n", frame.before);
  out += with("mul.lo.s64 \t%demarc_lq0, %demarc_lq0", &ColoredPlaces::local_threads);
  return out + "\tadd.s64 \t%demarc_frame, %demarc_frame, %demarc_lq0;\n";
}

}  // namespace demarc::ptx
