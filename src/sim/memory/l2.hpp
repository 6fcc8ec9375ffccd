// Crossbar and L2: links, ports, tags, miss registers, and the accesses that wait for them.
#pragma once

#include "dram.hpp"

namespace demarc::sim::memory {

// Of a port of slices, the way of data into the L2: of stores and atomics, which wait in a queue of
// their GPC, and of what comes from DRAM. GPCs take turns. While data of SMs and of DRAM wait, both
// pass for the same time.
struct WritePort {
  Ticks free_at;
  std::vector<Fifo<PacketIndex>> of_gpc;
  std::uint32_t packets = 0;  // that wait in all of them
  std::uint32_t last = 0;     // the GPC that had its turn last
  Fifo<FetchIndex> fills;
  std::int64_t lead = 0;  // ticks that DRAM has had more than SMs since both wait
  bool busy = false;      // something passes; its end serves the next
};

// For a slice: a line with sectors under way, and who waits for them.
struct MissRegister {
  L2Tags::Way l2_line = none;
  OneOf<PacketIndex, RegisterIndex> chain;  // who waits; of a free register, the next one
};

// For an SM, into the crossbar and out of it.
struct SmLinks {
  Server request, reply;
};

class L2 : public Part {
 public:
  struct State {
    PerIndex<SmIndex, SmLinks> sms;
    std::vector<Server> gpc_request, gpc_reply, port_request, port_reply;
    std::vector<WritePort> write_ports;
    L2Tags tags;
    PerIndex<SliceIndex, SliceState> slices;
    PerIndex<RegisterIndex, MissRegister> registers;
    LargePerIndex<PacketIndex, Packet> packets;
    PacketIndex free_packet = none;
  };

  // `l1`: of which answers say what they will touch.
  L2(Common& common, const L1Tags& l1);

  State state;
  const AddressDecoder decoder;
  Dram dram;

  // What comes next for a packet that has left its SM.
  struct Leaving {
    Cycles at;
    Event event;
  };
  // Gives the packet its place and takes the link of its SM.
  [[nodiscard]] Leaving prepare(Packet& packet, Cycles at);
  // Sends it off; its end is the event done.
  void leave(const Leaving& leaving) { common_.events.schedule(leaving.at, leaving.event); }
  void send(Packet& packet, Cycles at) { leave(prepare(packet, at)); }
  // The read of a page walk, which does not pass the crossbar; its end is the event walked.
  void send_from_walker(Packet& packet, Cycles at);
  // What has arrived, whose place is free again.
  [[nodiscard]] Packet take_out(PacketIndex index) {
    const Packet packet = state.packets[index];
    state.packets[index].next = state.free_packet;
    state.free_packet = index;
    return packet;
  }
  // See Simulation::touch().
  void touch(LineNumber line, bool written);

  // Events.
  void gpc_request(Event event);
  void arrive(Event event);
  void lookup(PacketIndex packet);
  void from_dram(FetchIndex fetch);
  void fill(FetchIndex fetch);
  void retry(SliceIndex slice);
  void gpc_reply(Event event);

 private:
  [[nodiscard]] PacketIndex put_in(const Packet& packet) {
    const PacketIndex index = state.free_packet;
    if (index == none) return add_packet(packet);
    state.free_packet = state.packets[index].next;
    state.packets[index] = packet;
    return index;
  }
  [[nodiscard]] PacketIndex add_packet(const Packet& packet);
  void give_place(Packet& packet) const;
  [[nodiscard]] Ticks gpc_ticks(StepKind kind) const;
  void reply(PacketIndex packet);

  // Ports (l2_ports.cpp)
  WritePort& port_of(SliceIndex slice);
  void wait_at_port(PacketIndex packet);
  void start(WritePort& port);
  void serve(WritePort& port);

  bool attempt(PacketIndex packet, bool may_allocate);
  bool start_miss(PacketIndex packet, L2Tags::Way way);
  [[nodiscard]] std::uint32_t whole_bursts(std::uint32_t missing) const;
  void wait_for(PacketIndex packet, L2Tags::Way way, RegisterIndex number);
  bool attempt_past_tags(PacketIndex packet, bool may_allocate);
  [[nodiscard]] bool takes_no_more_past_tags(const SliceState& slice) const {
    return spec.uncached_registers != 0 && slice.uncached >= spec.uncached_registers;
  }
  [[nodiscard]] L2Tags::Set l2_set(SliceIndex slice, SetInSlice set) const {
    return L2Tags::Set(slice.raw() * spec.l2.sets + set.raw());
  }
  void use_line(const Packet& packet, L2Tags::Way way) {
    if (!packet.streams) state.tags.use(packet.slice, way);
  }
  void install_line(const Packet& packet, L2Tags::Way way) {
    state.tags.install(packet.slice, way, packet.line);
    if (packet.streams) state.tags.let_go(way);
  }
  [[nodiscard]] L2Tags::Way make_room(L2Tags::Set set, SliceIndex slice);
  [[nodiscard]] RegisterIndex open_register(SliceIndex slice, L2Tags::Way l2_line);
  [[nodiscard]] RegisterIndex find_register(SliceIndex slice, L2Tags::Way l2_line) const;
  void close_register(SliceIndex slice, RegisterIndex number);
  void retry_past_tags(SliceIndex slice);
  void retry_loads(SliceIndex slice);
  void retry_stores(SliceIndex slice);
  void look_behind(PacketIndex first) const;

  const L1Tags& l1_;
};

}  // namespace demarc::sim::memory
