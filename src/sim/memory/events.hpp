// What happens in a simulation: events, each about one object.
#pragma once

#include <optional>

#include "demarc/sim/event_queue.hpp"
#include "demarc/sim/memory/simulation.hpp"
#include "slots.hpp"

namespace demarc::sim::memory {

enum class EventKind : std::uint32_t {
  kernel_start,  // per client
  warp,          // has issued its instructions, or is free again
  lsu,           // of an SM takes its next instruction
  l1_hit,        // per warp
  inject,        // a request of timed()
  gpc_request,   // a packet reaches the request link of its GPC
  arrive,        // a packet reaches the port of its slice
  lookup,        // and the tags
  bank,          // of DRAM can do something again
  from_dram,     // data reaches the port of its slice
  fill,          // and lies in the L2
  retry,         // of what waits in a slice
  gpc_reply,     // a packet reaches the reply link of its GPC
  done,          // and its SM
  walk,          // a page walk reaches the walkers
  walked,        // what a walk has read is there
};

// What each of them is about.
// clang-format off
template <EventKind> struct About;
template <> struct About<EventKind::kernel_start> { using Subject = ClientIndex; };
template <> struct About<EventKind::warp>         { using Subject = WarpIndex; };
template <> struct About<EventKind::lsu>          { using Subject = SmIndex; };
template <> struct About<EventKind::l1_hit>       { using Subject = WarpIndex; };
template <> struct About<EventKind::inject>       { using Subject = RequestIndex; };
template <> struct About<EventKind::gpc_request>  { using Subject = PacketIndex; };
template <> struct About<EventKind::arrive>       { using Subject = PacketIndex; };
template <> struct About<EventKind::lookup>       { using Subject = PacketIndex; };
template <> struct About<EventKind::bank>         { using Subject = BankIndex; };
template <> struct About<EventKind::from_dram>    { using Subject = FetchIndex; };
template <> struct About<EventKind::fill>         { using Subject = FetchIndex; };
template <> struct About<EventKind::retry>        { using Subject = SliceIndex; };
template <> struct About<EventKind::gpc_reply>    { using Subject = PacketIndex; };
template <> struct About<EventKind::done>         { using Subject = PacketIndex; };
template <> struct About<EventKind::walk>         { using Subject = WalkIndex; };
template <> struct About<EventKind::walked>       { using Subject = PacketIndex; };
// clang-format on
template <EventKind kind>
using SubjectOf = typename About<kind>::Subject;

// What a link needs to know of a packet travels in the event, so that packets, of which many are
// under way, are looked at only where they end; and so does what lets the host ask early for what
// the end will touch.
struct Event {
  static constexpr std::uint32_t indices = 1U << 25U;
  std::uint32_t head = 0;  // kind in bits 0-3, sectors on the link in bits 4-6, then the index
  Packed<SmIndex, std::uint16_t> sm;  // per packet
  std::uint16_t port = 0;             // and port of its slice; on the way back, its L1 set

  template <EventKind kind>
  [[gnu::always_inline]] static Event of(SubjectOf<kind> subject) {
    return {static_cast<std::uint32_t>(kind) | (subject.raw() << 7U), {}, 0};
  }
  [[nodiscard]] EventKind kind() const { return static_cast<EventKind>(head & 15U); }
  [[nodiscard]] std::uint32_t sectors() const { return (head >> 4U) & 7U; }
  // The caller has looked at the kind.
  template <EventKind kind>
  [[nodiscard, gnu::always_inline]] SubjectOf<kind> subject() const {
    return SubjectOf<kind>(head >> 7U);
  }
  [[nodiscard]] PacketIndex packet() const { return PacketIndex(head >> 7U); }
  [[nodiscard]] Event as(EventKind kind) const {
    return {(head & ~15U) | static_cast<std::uint32_t>(kind), sm, port};
  }
};
static_assert(sizeof(Event) == 8);

// What the parts of an engine have in common.
struct Common {
  explicit Common(const Spec& given) : spec(given) {}

  const Spec spec;
  EventQueue<Event> events;
  PerIndex<ClientIndex, ClientStatistics> statistics;
  std::optional<Error> error;
  bool interrupted = false;  // a launch has ended, or there is an error
};

class Part {
 public:
  [[nodiscard]] Cycles now() const { return common_.events.now(); }

 protected:
  explicit Part(Common& common) : spec(common.spec), common_(common) {}

  template <EventKind kind>
  void schedule(Cycles at, SubjectOf<kind> subject) {
    common_.events.schedule(at, Event::of<kind>(subject));
  }
  void fail(ErrorKind kind, std::string message) {
    if (!common_.error) common_.error = Error{kind, std::move(message)};
    common_.interrupted = true;
  }

  const Spec& spec;
  Common& common_;
};

}  // namespace demarc::sim::memory
