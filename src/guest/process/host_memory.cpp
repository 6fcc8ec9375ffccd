// Tells calls that give host memory: what the table of functions leaves open, their parameters
// say.
#include "demarc/guest/host_memory.hpp"

namespace demarc::cuda {
namespace {

// Without properties the driver refuses the call itself.
bool off_the_card(const CuAllocationProperties* wanted) {
  return wanted != nullptr && (wanted->type != CuAllocationProperties::pinned ||
                               wanted->location.type != CuMemoryLocation::device);
}

bool node_off_the_card(const CuAnyNode* node) {
  constexpr int allocation_node = 10;  // CU_GRAPH_NODE_TYPE_MEM_ALLOC
  return node != nullptr && node->type == allocation_node && off_the_card(&node->allocation);
}

}  // namespace

bool gives_host_memory(const DriverCall& call) {
  if (!call.does(does::may_give_host_memory)) {
    return call.does(does::gives_host_memory | does::pins_host_memory);
  }
  switch (call.function()) {
    case DriverFunction::cuMemCreate:
      return off_the_card(call.parameters<CreateMemory>().properties);
    case DriverFunction::cuMemPoolCreate:
      return off_the_card(call.parameters<CreatePool>().properties);
    case DriverFunction::cuMemGetDefaultMemPool:
    case DriverFunction::cuMemGetMemPool: {
      const auto [pool, location, type] = call.parameters<GetPoolOf>();
      return location != nullptr &&
             (location->type != CuMemoryLocation::device || type != CuAllocationProperties::pinned);
    }
    case DriverFunction::cuGraphAddMemAllocNode:
      return off_the_card(call.parameters<AddNode<CuAllocationProperties>>().params);
    case DriverFunction::cuGraphAddNode:
      return node_off_the_card(call.parameters<AddNode<CuAnyNode>>().params);
    case DriverFunction::cuGraphAddNode_v2:
      return node_off_the_card(call.parameters<AddAnyNode>().params);
    default:
      return true;  // what is not looked into may be the host's
  }
}

}  // namespace demarc::cuda
