// Writes the PTX of a neighbour: a loop over places, with the accesses of its operation in it.
#include <algorithm>

#include "attack/neighbour_shape.hpp"
#include "demarc/base/text.hpp"
#include "demarc/study/neighbour.hpp"

namespace demarc::study {
namespace {

bool draws_places(Pattern pattern) {
  return pattern == Pattern::random || pattern == Pattern::chase || pattern == Pattern::slice;
}

bool uses_stage(Operation operation) {
  return operation == Operation::async_copy || operation == Operation::bulk_copy;
}

// Writes one module. Registers: %rd0 address of byte 0 for this thread, %rd1 place or x of a
// random one, %rd2 places, %rd3 bytes of a place, %rd4 places to go on, %rd5 the lines of a slice,
// %rd6 the data; %r0 sum of what came, %r1 thread, %r2 rounds left, %r3 lane, %r4 mask of 0.
class ModuleWriter {
 public:
  explicit ModuleWriter(const Neighbour& neighbour)
      : n_(neighbour), row_(row_of(neighbour.operation)) {}

  std::string text() {
    head();
    addresses();
    first_place();
    if (uses_stage(n_.operation)) place_stage();
    if (n_.operation == Operation::local) {
      line("st.local.u32 [%rd0], %r2;");
      line("mov.u64 %rd10, %rd0;");
    }
    line("AGAIN:");
    for (std::uint64_t i = 0; i < n_.in_flight; ++i) {
      place_address();
      access(static_cast<std::uint32_t>(i));
      next_place();
    }
    wait_for_copies();
    for (std::uint64_t i = 0; i < n_.in_flight && row_.answers; ++i) {
      line("add.u32 %r0, %r0, %v{};", i);
    }
    line("sub.u32 %r2, %r2, 1;");
    line("setp.ne.u32 %p0, %r2, 0;");
    line("@%p0 bra AGAIN;");
    tail();
    return std::move(out_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    append_formatted(out_, format, fmt::make_format_args(args...));
    out_ += '\n';
  }

  void head() {
    const bool bulk = n_.operation == Operation::bulk_copy;
    line(".version {}", bulk ? "8.0" : "7.8");
    line(".target sm_{}", std::max(row_.target, 70U));
    line(".address_size 64");
    if (n_.operation == Operation::variable) {
      line(".global .align 256 .b8 space[{}];", n_.footprint);
    }
    if (n_.operation == Operation::constant) {
      line(".const .align 256 .b8 space[{}];", n_.footprint);
    }
    if (uses_stage(n_.operation)) line(".extern .shared .align 128 .b8 stage[];");
    line(".visible .entry {}(", neighbour_entry);
    line(".param .u64 data, .param .u64 lines, .param .u64 places, .param .u64 place_bytes,");
    line(".param .u64 advance, .param .u32 rounds, .param .u32 zeros)");
    line("{{");
    line(".reg .pred %p<4>;");
    line(".reg .b32 %r<16>;");
    line(".reg .b32 %v<{}>;", n_.in_flight);
    line(".reg .b64 %rd<16>;");
    if (n_.operation == Operation::local) line(".local .align 16 .b8 space[{}];", n_.footprint);
  }

  // Where byte 0 of the footprint is for this thread, and its number: %rd1.
  void addresses() {
    line("ld.param.u64 %rd6, [data];");
    line("cvta.to.global.u64 %rd6, %rd6;");
    line("ld.param.u64 %rd2, [places];");
    line("ld.param.u64 %rd3, [place_bytes];");
    line("ld.param.u64 %rd4, [advance];");
    line("ld.param.u32 %r2, [rounds];");
    line("ld.param.u32 %r4, [zeros];");
    if (n_.pattern == Pattern::slice) {
      line("ld.param.u64 %rd5, [lines];");
      line("cvta.to.global.u64 %rd5, %rd5;");
    }
    line("mov.u32 %r1, %tid.x;");
    line("mov.u32 %r5, %ctaid.x;");
    line("mov.u32 %r6, %ntid.x;");
    line("mad.lo.u32 %r5, %r5, %r6, %r1;");
    line("and.b32 %r3, %r1, 31;");
    line("mov.u32 %r0, 0;");
    line("mov.u64 %rd0, {};", works_on_buffer(n_.operation) ? "%rd6" : "space");
    if (n_.apart == 0) {
      line("shr.u32 %r5, %r5, 5;");
      if (n_.operation != Operation::bulk_copy) {
        line("mul.wide.u32 %rd7, %r3, {};", row_.bytes);
        line("add.u64 %rd0, %rd0, %rd7;");
      }
    }
    line("cvt.u64.u32 %rd1, %r5;");
  }

  void first_place() {
    if (draws_places(n_.pattern)) {
      line("add.u64 %rd1, %rd1, 1;");
      line("mul.lo.u64 %rd1, %rd1, {:#x};", walker_seed);
      draw();
    } else {
      line("rem.u64 %rd1, %rd1, %rd2;");
    }
  }

  void draw() { line("mad.lo.u64 %rd1, %rd1, {}, {};", step_factor, step_summand); }

  // %rd8: the address of this access.
  void place_address() {
    if (draws_places(n_.pattern)) {
      line("mul.hi.u64 %rd8, %rd1, %rd2;");
    } else {
      line("mov.u64 %rd8, %rd1;");
    }
    if (n_.pattern == Pattern::slice) {
      line("shl.b64 %rd8, %rd8, 2;");
      line("add.u64 %rd8, %rd5, %rd8;");
      line("ld.global.u32 %r7, [%rd8];");
      line("cvt.u64.u32 %rd8, %r7;");
    } else {
      line("mul.lo.u64 %rd8, %rd8, %rd3;");
    }
    line("add.u64 %rd8, %rd0, %rd8;");
  }

  void next_place() {
    if (n_.pattern == Pattern::chase) {
      line("and.b32 %r7, %v0, %r4;");
      line("cvt.u64.u32 %rd9, %r7;");
      line("add.u64 %rd1, %rd1, %rd9;");
    }
    if (draws_places(n_.pattern)) {
      draw();
      return;
    }
    line("add.u64 %rd1, %rd1, %rd4;");
    line("setp.ge.u64 %p1, %rd1, %rd2;");
    line("@%p1 sub.u64 %rd1, %rd1, %rd2;");
  }

  void access(std::uint32_t i) {
    switch (n_.operation) {
      case Operation::load:
        line("ld.global.cg.u32 %v{}, [%rd8];", i);
        break;
      case Operation::store:
      case Operation::variable:
        line("st.global.u32 [%rd8], %r2;");
        break;
      case Operation::atomic:
        line("atom.global.add.u32 %v{}, [%rd8], 1;", i);
        break;
      case Operation::reduction:
        line("red.global.add.u32 [%rd8], 1;");
        break;
      case Operation::byte:
        line("st.global.u8 [%rd8], %r2;");
        break;
      case Operation::fence:
        line("st.global.u32 [%rd8], %r2;");
        line("membar.sys;");
        break;
      case Operation::local:  // loads the place before: ptxas cannot know what lies there
        line("st.local.u32 [%rd8], %r2;");
        line("ld.local.u32 %v{}, [%rd10];", i);
        line("mov.u64 %rd10, %rd8;");
        line("add.u32 %r0, %r0, %v{};", i);
        break;
      case Operation::constant:
        line("ld.const.u32 %v{}, [%rd8];", i);
        break;
      case Operation::async_copy:
        line("cp.async.cg.shared.global [%r8], [%rd8], 16;");
        break;
      case Operation::bulk_copy:
        line(
            "@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
            "[%r8], [%rd8], {}, [%r9];",
            bulk_bytes);
        break;
      case Operation::host_load:
        line("ld.volatile.global.u32 %v{}, [%rd8];", i);
        break;
      case Operation::host_store:
        line("st.volatile.global.u32 [%rd8], %r2;");
        break;
      case Operation::copy_in:  // the buffer is copied; the kernel touches it once, if it is run
      case Operation::copy_out:
        line("st.global.u32 [%rd8], %r2;");
        break;
    }
  }

  // Where copies to shared memory go, and, for bulk copies, the barrier that counts their bytes:
  // one per warp, in front, in the hands of its first thread.
  void place_stage() {
    line("mov.u32 %r8, stage;");
    if (n_.operation == Operation::async_copy) {
      line("mad.lo.u32 %r8, %r1, 16, %r8;");
      return;
    }
    line("setp.eq.u32 %p2, %r3, 0;");
    line("shr.u32 %r10, %r1, 5;");
    line("mad.lo.u32 %r9, %r10, 8, %r8;");
    line("mad.lo.u32 %r8, %r10, {}, %r8;", bulk_bytes);
    line("add.u32 %r8, %r8, {};", barrier_bytes);
    line("mov.u32 %r11, 0;");
    line("@%p2 mbarrier.init.shared.b64 [%r9], 1;");
    line("@%p2 fence.mbarrier_init.release.cluster;");
    line("bar.warp.sync 0xffffffff;");
  }

  void wait_for_copies() {
    if (n_.operation == Operation::async_copy) {
      line("cp.async.commit_group;");
      line("cp.async.wait_group 0;");
    }
    if (n_.operation != Operation::bulk_copy) return;
    line("@%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%r9], {};", bulk_bytes * n_.in_flight);
    line("WAIT:");
    line("mov.pred %p3, 1;");
    line("@%p2 mbarrier.try_wait.parity.shared.b64 %p3, [%r9], %r11;");
    line("@!%p3 bra WAIT;");
    line("xor.b32 %r11, %r11, 1;");
    line("bar.warp.sync 0xffffffff;");
  }

  // The sum goes to memory in a case that practically never comes, so that every load is needed.
  void tail() {
    line("setp.ne.u32 %p0, %r0, 0x9e3779b9;");
    line("@%p0 ret;");
    line("st.global.u32 [%rd6], %r0;");
    line("ret;");
    line("}}");
  }

  const Neighbour& n_;
  const OperationRow& row_;
  std::string out_;
};

}  // namespace

std::string neighbour_ptx(const Neighbour& neighbour) {
  return ModuleWriter(neighbour).text();
}

}  // namespace demarc::study
