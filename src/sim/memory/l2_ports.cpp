// Ports of the L2: data from the SMs and from DRAM come in here. GPCs take turns, and while both
// kinds of data wait, each passes for the same time. With one queue for all, a client that floods a
// port would slow a client that asks for little (docs/measurements/fidelity.md).
#include <algorithm>

#include "l2.hpp"

namespace demarc::sim::memory {
namespace {

FetchIndex take_fill(WritePort& port, Dram::State& state) {
  const FetchIndex index = port.fills.head;
  remove_after(port.fills, state.fetches, none);
  return index;
}

PacketIndex take_packet_in_turn(WritePort& port, L2::State& state) {
  do {
    port.last = port.last + 1 == port.of_gpc.size() ? 0 : port.last + 1;
  } while (port.of_gpc[port.last].size == 0);
  const PacketIndex index = port.of_gpc[port.last].head;
  remove_after(port.of_gpc[port.last], state.packets, none);
  --port.packets;
  return index;
}

}  // namespace

WritePort& L2::port_of(SliceIndex slice) {
  return state.write_ports[spec.port_of_slice[slice]];
}

// A store or an atomic has reached the port of its slice.
void L2::wait_at_port(PacketIndex index) {
  const Packet& packet = state.packets[index];
  WritePort& port = port_of(packet.slice);
  push_back(port.of_gpc[spec.gpc_of_sm[packet.sm]], state.packets, index);
  ++port.packets;
  start(port);
}

void L2::from_dram(FetchIndex index) {
  WritePort& port = port_of(dram.state.fetches[index].slice);
  push_back(port.fills, dram.state.fetches, index);
  start(port);
}

void L2::start(WritePort& port) {
  if (port.busy) return;
  port.free_at = std::max(port.free_at, ticks_of(now()));
  serve(port);
}

// What has passed until `free_at` is through; the next of those that wait follows it.
void L2::serve(WritePort& port) {
  const bool both = port.packets > 0 && port.fills.size > 0;
  port.busy = port.packets > 0 || port.fills.size > 0;
  if (!both) port.lead = 0;
  if (!port.busy) return;
  if (port.packets == 0 || (both && port.lead <= 0)) {
    const FetchIndex index = take_fill(port, dram.state);
    const Ticks ticks = sector_count(dram.state.fetches[index].sectors) * spec.port_write_ticks;
    port.free_at += ticks;
    if (both) port.lead += static_cast<std::int64_t>(ticks.raw());
    schedule<EventKind::fill>(cycles_of(port.free_at), index);
  } else {
    const PacketIndex index = take_packet_in_turn(port, state);
    const Packet& packet = state.packets[index];
    const Ticks ticks =
        sector_count(packet.sectors) *
        (packet.kind == StepKind::store ? spec.port_write_ticks : spec.port_atomic_ticks);
    port.free_at += ticks;
    if (both) port.lead -= static_cast<std::int64_t>(ticks.raw());
    schedule<EventKind::lookup>(cycles_of(port.free_at), index);
  }
}

}  // namespace demarc::sim::memory
