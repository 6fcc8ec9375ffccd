// Finds who answers a call.
#include "calls/colored_calls.hpp"

#include "calls/own_calls.hpp"

namespace demarc::cuda {

Result<std::unique_ptr<ColoredCalls>> ColoredCalls::create(Means means) {
  DEMARC_TRY(WindowCopies copies, WindowCopies::create(means.api, means.code, means.capability));
  copies.note_staging_in(means.record);
  copies.count_launches_in(means.counters.copies);
  return std::unique_ptr<ColoredCalls>(new ColoredCalls(std::move(means), copies));
}

ColoredCalls::ColoredCalls(Means means, WindowCopies copies)
    : means_(std::move(means)),
      copies_(copies),
      proof_(means_.api, copies_),
      memory_(means_.code.pointer({}).raw(), means_.bytes, means_.owner),
      memory_calls_(means_.api, memory_, means_.record),
      ipc_calls_(means_.api, memory_, memory_calls_, means_.lender, means_.tell),
      mapping_calls_(means_.api, memory_calls_, means_.tell),
      copy_calls_(means_.api, memory_, copies_, means_.kept,
                  means_.windows.use == WindowUse::always),
      locals_(means_.api, means_.tell),
      window_code_(means_.windows, means_.record, means_.tell),
      module_calls_({means_.api, means_.code, memory_calls_, copies_, locals_, window_code_,
                     means_.capability.number(), means_.counters, means_.record, means_.tell,
                     means_.changes, means_.allowed_spills, means_.host_memory}),
      graph_calls_(means_.api, locals_, means_.tell),
      node_calls_({means_.api, copy_calls_, copies_, module_calls_, locals_, means_.tell}),
      link_calls_(means_.tell) {}

// True where the function is one of these.
template <class Calls>
bool ColoredCalls::answered_by(Calls& calls, const DriverCall& call) {
  const auto* row = find_row(Calls::rows(), call);
  if (row == nullptr) return false;
  if (const CallAnswer answer = (calls.*row->answer)(call)) {
    call.answer(*answer);
    if (*answer == cu_error_not_supported) {
      note_refusal(call, "this form of the call would leave the colours");
    } else {
      means_.counters.answered.fetch_add(1, std::memory_order_relaxed);
    }
  }
  return true;
}

void ColoredCalls::note_refusal(const DriverCall& call, const char* why) {
  means_.counters.refused.fetch_add(1, std::memory_order_relaxed);
  means_.record.counter(Recorded::refused_call, call.name(), why).fetch_add(1);
}

void ColoredCalls::serve(const DriverCall& call) {
  if (OwnCalls::active() || needs_no_share(call.rule())) return;
  if (call.rule() == Rule::answered &&
      (answered_by(module_calls_, call) || answered_by(memory_calls_, call) ||
       answered_by(ipc_calls_, call) || answered_by(mapping_calls_, call) ||
       answered_by(copy_calls_, call) || answered_by(graph_calls_, call) ||
       answered_by(node_calls_, call) || answered_by(link_calls_, call))) {
    return;
  }
  const char* why = why_refused(call.rule());
  const WindowRule windows = window_rule(call.rule());
  if ((windows != WindowRule::never && window_code_.admitted()) ||
      (windows == WindowRule::fills && window_code_.admit(why))) {
    return;
  }
  call.answer(cu_error_not_supported);
  note_refusal(call, why);
  means_.tell(fmt::format("{} was refused: {}", call.name(), why));
}

}  // namespace demarc::cuda
