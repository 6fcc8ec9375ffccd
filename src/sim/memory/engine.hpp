// The engine of a simulation: its loop over events, and what is asked of it from outside. Spec:
// settings, fixed. State: plain data in flat arrays, each part's own. Resources: what the outside
// lent (sources). Events carry an index.
#pragma once

#include <array>

#include "sms.hpp"

namespace demarc::sim::memory {

struct InjectedState {
  Request request;
  Completion completion;
  std::uint32_t under_way = 0;
  bool late = false;  // the next one waits for an arrival
};

class Engine {
 public:
  struct State {
    PerIndex<RequestIndex, InjectedState> injected;
    std::size_t injected_open = 0;     // requests with an end that have not reached it
    std::size_t injected_pending = 0;  // accesses under way or about to leave
    bool injected_closing = false;     // those without end stop
  };

  explicit Engine(const Spec& given);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Common common;
  Sms sms;
  L2& l2 = sms.l2;
  Dram& dram = l2.dram;
  State state;

  void step();
  // Events up to and including the next one that interrupts, or until `end` is passed.
  void run_until(Cycles end);
  // Events up to `end`, unless there is an error.
  void run_through(Cycles end);
  [[nodiscard]] Cycles now() const { return common.events.now(); }
  [[nodiscard]] std::string waiting() const;
  void schedule_inject(Cycles at, RequestIndex index) {
    ++state.injected_pending;
    common.events.schedule(at, Event::of<EventKind::inject>(index));
  }

 private:
  void inject(RequestIndex index);
  void injected_done(RequestIndex index);
  void packet_done(const Packet& packet);
  void handle(Event event);
  void look_ahead();

  static constexpr std::uint32_t look_at_once = 8;
  // Where the object of an event lies: start + ((index & mask) << shift).
  struct Ahead {
    const char* start;
    std::uint32_t shift;
    std::uint32_t mask;
  };
  std::array<Ahead, 16> ahead_{};  // by kind
  std::uint32_t steps_ = 0;
};

}  // namespace demarc::sim::memory
