// Lists the SMs of a device in the order in which they are given blocks.
#include "predict/sm_order.hpp"

namespace demarc::locality {
std::uint32_t l2_halves(const gpu::Device& device) {
  const gpu::ComputeCapability& capability = device.compute_capability;
  const bool halves = device.topology.sides_known() ||
                      (capability.minor == 0 && (capability.major == 8 || capability.major == 9));
  return halves ? 2 : 1;
}

std::vector<SmPlace> sm_order(const gpu::Device& device) {
  const gpu::Topology& topology = device.topology;
  std::vector<SmPlace> order;
  for (const gpu::GpcIndex g : topology.gpcs()) {
    for (const gpu::TpcIndex t : topology.tpcs_of_gpc(g)) {
      const gpu::Tpc& tpc = topology.tpcs[t];
      order.insert(order.end(), tpc.sms.size(), {tpc.side.value_or(g.raw() / 2 % 2), t});
    }
  }
  if (order.empty()) order.push_back({});
  return order;
}

}  // namespace demarc::locality
