// What happens in the simulated machine, and what each event is about: the table says it, and
// naming anything else does not compile.
#pragma once

#include <cstdint>

#include "demarc/sim/translation/places.hpp"

namespace demarc::sim::translation {

using CuIndex = Index<struct CuIndexTag>;  // of all GPUs, in order
// Places in the pools of what is under way.
using WaveSlot = Index<struct WaveSlotTag>;
using GroupSlot = Index<struct GroupSlotTag>;
using AccessSlot = Index<struct AccessSlotTag>;
using MessageSlot = Index<struct MessageSlotTag>;
using KernelNumber = Index<struct KernelNumberTag>;

enum class EventKind : std::uint32_t {
  kernel_start,
  dispatch,
  wave_next,     // it looks at its next instruction
  wave_issue,    // its vector instructions are done, the memory instruction leaves
  l1_run,        //
  l1_fill,       // with a page
  l2_arrive,     // with a page
  l2_run,        //
  gmmu_arrive,   // with a page
  gmmu_done,     // with a page
  iommu_done,    // with a page
  page_arrived,  // with a page; of this GPU (first_touch=protocol)
  flushed,       // by the GPU that gives a page away
  entered,       // with a page that moved here, by the GMMU
  hop,           // the message stands before its next link
  l1_free,       // a miss register has become free for who waits
  access_done,   //
};

template <class T>
struct AboutAny {
  using Subject = T;
  static constexpr bool has_page = false;
};
template <class T>
struct AboutPage {
  using Subject = T;
  static constexpr bool has_page = true;
};
// clang-format off
template <EventKind> struct About;
template <> struct About<EventKind::kernel_start> : AboutAny<KernelNumber> {};
template <> struct About<EventKind::dispatch>     : AboutAny<GpuIndex> {};
template <> struct About<EventKind::wave_next>    : AboutAny<WaveSlot> {};
template <> struct About<EventKind::wave_issue>   : AboutAny<WaveSlot> {};
template <> struct About<EventKind::l1_run>       : AboutAny<CuIndex> {};
template <> struct About<EventKind::l1_fill>      : AboutPage<CuIndex> {};
template <> struct About<EventKind::l2_arrive>    : AboutPage<CuIndex> {};
template <> struct About<EventKind::l2_run>       : AboutAny<GpuIndex> {};
template <> struct About<EventKind::gmmu_arrive>  : AboutPage<GpuIndex> {};
template <> struct About<EventKind::gmmu_done>    : AboutPage<GpuIndex> {};
template <> struct About<EventKind::iommu_done>   : AboutPage<GpuIndex> {};
template <> struct About<EventKind::page_arrived> : AboutPage<GpuIndex> {};
template <> struct About<EventKind::flushed>      : AboutAny<GpuIndex> {};
template <> struct About<EventKind::entered>      : AboutPage<GpuIndex> {};
template <> struct About<EventKind::hop>          : AboutAny<MessageSlot> {};
template <> struct About<EventKind::l1_free>      : AboutAny<CuIndex> {};
template <> struct About<EventKind::access_done>  : AboutAny<AccessSlot> {};
// clang-format on
template <EventKind kind>
using SubjectOf = typename About<kind>::Subject;

class Event {
 public:
  Event() = default;
  template <EventKind kind>
  [[gnu::always_inline]] static Event of(SubjectOf<kind> subject) requires(!About<kind>::has_page) {
    return {kind, subject.raw(), PageNumber()};
  }
  template <EventKind kind>
  [[gnu::always_inline]] static Event of(SubjectOf<kind> subject,
                                         PageNumber page) requires(About<kind>::has_page) {
    return {kind, subject.raw(), page};
  }

  [[nodiscard, gnu::always_inline]] EventKind kind() const { return kind_; }
  // For code that has looked at the kind.
  template <EventKind kind>
  [[nodiscard, gnu::always_inline]] SubjectOf<kind> subject() const {
    return SubjectOf<kind>(subject_);
  }
  template <EventKind kind>
  [[nodiscard, gnu::always_inline]] PageNumber page() const requires(About<kind>::has_page) {
    return page_;
  }

 private:
  [[gnu::always_inline]] Event(EventKind kind, std::uint32_t subject, PageNumber page)
      : kind_(kind), subject_(subject), page_(page) {}

  EventKind kind_ = EventKind::kernel_start;
  std::uint32_t subject_ = 0;
  PageNumber page_;
};
static_assert(sizeof(Event) == 12);

}  // namespace demarc::sim::translation
