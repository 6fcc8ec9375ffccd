// What the parts of the simulated machine share: settings, events, and who watches.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "demarc/sim/event_queue.hpp"
#include "demarc/sim/translation/simulate.hpp"
#include "events.hpp"

namespace demarc::sim::translation {

// What a watcher of a simulation is told.
enum class Moment : std::uint8_t {
  l2_missed,      // a page is neither in the GPU's L2 TLB nor asked for
  gmmu_began,     // a walk
  gmmu_ended,     //
  iommu_asked,    // a request has arrived at the IOMMU
  iommu_ended,    // a walk
  placed,         // a page has come from CPU memory (or been assigned) to this GPU
  l2_filled,      // an answer has reached the GPU's L2 TLB
  l1_filled,      // and the TLB of one of its CUs
  access_ended,   // all lines of a wave's memory instruction are there
  move_began,     // this GPU gets the page: all GPUs are told to drain
  drained,        // all GPUs have ended their remote accesses; the owner is told to shoot it down
  shot_down,      // the owner has; the page belongs to the new GPU
  page_copied,    // the last piece is written
  owner_resumed,  // the former owner runs again, the answer leaves the IOMMU
};
struct Happening {
  Moment moment;
  Cycles cycle;
  GpuIndex gpu;
  std::optional<PageNumber> page = {};
  std::optional<WaveSlot> wave = {};  // access_ended alone has it
};
using Watch = std::function<void(const Happening&)>;

struct Common {
  const Settings& settings;
  Architecture architecture;
  Watch watch;
  EventQueue<Event> events = {};
};

// A part of the machine: its state is its own, time and events are those of all.
class Part {
 protected:
  explicit Part(Common& common) : settings_(common.settings), common_(common) {}

  // What the event is about: see About.
  template <EventKind kind>
  [[gnu::always_inline]] void at(Cycles when, SubjectOf<kind> subject) {
    common_.events.schedule(when, Event::of<kind>(subject));
  }
  template <EventKind kind>
  [[gnu::always_inline]] void at(Cycles when, SubjectOf<kind> subject, PageNumber page) {
    common_.events.schedule(when, Event::of<kind>(subject, page));
  }
  [[nodiscard]] Cycles now() const { return common_.events.now(); }
  // The cycle after this one.
  [[nodiscard]] Cycles then() const { return now() + 1_cycles; }
  void tell(Moment moment, GpuIndex gpu, PageNumber page) const {
    if (common_.watch) common_.watch({.moment = moment, .cycle = now(), .gpu = gpu, .page = page});
  }

  const Settings& settings_;
  Common& common_;
};

}  // namespace demarc::sim::translation
