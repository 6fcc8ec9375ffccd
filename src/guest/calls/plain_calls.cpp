// Counts launches by kernel, and bytes that are asked for.
#include "calls/plain_calls.hpp"

namespace demarc::cuda {
void PlainCalls::watch(const DriverCall& call) {
  if (call.rule() == Rule::unknown) return;  // its parameters may lie otherwise
  switch (call.function()) {
    case DriverFunction::cuLaunchKernel:
    case DriverFunction::cuLaunchCooperativeKernel:
      return launches_.note(call.parameters<LaunchCooperative>().function);
    case DriverFunction::cuLaunchKernelEx:
      return launches_.note(call.parameters<LaunchKernelEx>().function);
    case DriverFunction::cuMemAlloc_v2:
    case DriverFunction::cuMemAllocAsync:
    case DriverFunction::cuMemAllocFromPoolAsync:
    case DriverFunction::cuMemAllocManaged:
      return record_.note_plain_bytes(call.parameters<Allocate>().bytes);
    case DriverFunction::cuMemAllocPitch_v2: {
      const auto given = call.parameters<AllocatePitch>();
      return record_.note_plain_bytes(given.width * given.height);
    }
    case DriverFunction::cuMemCreate:
      return record_.note_plain_bytes(call.parameters<CreateMemory>().bytes);
    default:
      return;
  }
}

}  // namespace demarc::cuda
