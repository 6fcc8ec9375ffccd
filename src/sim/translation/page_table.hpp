// Where each page lies, and what the GPUs know of it.
#pragma once

#include <cstdint>

#include "demarc/base/rounding.hpp"
#include "demarc/sim/translation/application.hpp"
#include "gpu_memory.hpp"
#include "page_map.hpp"

namespace demarc::sim::translation {

// The first of `count` things in order that belong to share `share` of so many equal ones.
[[nodiscard]] constexpr std::uint64_t first_of_share(std::uint64_t share, std::uint64_t count,
                                                     std::uint64_t shares) {
  return ceil_div(share * count, shares);
}
// Placements that follow from who touches a page first.
[[nodiscard]] constexpr bool has_homes(const Settings& settings) {
  return settings.placement == Placement::first_touch || settings.placement == Placement::far;
}
// Per page the GPU where it will lie; `untouched` where no line lies, or under other placements.
inline constexpr GpuIndex untouched{~std::uint32_t{0}};
[[nodiscard]] PageMap<GpuIndex> homes_under(const Settings& settings, Split split,
                                            const Application& application);

inline constexpr GpuIndex in_cpu_memory{~std::uint32_t{0}};
inline constexpr GpuIndex no_gpu{~std::uint32_t{0}};

class PageTable {
 public:
  struct PageState {
    std::uint64_t known_by = 0;  // a bit for each GPU whose GMMU knows the page
    std::uint32_t moves = 0;     // under remote=migration
    bool moving = false;
  };

  PageTable(const Settings& settings, Split split, const Application& application);

  PageMap<PageState> states;

  [[nodiscard, gnu::always_inline]] PageNumber page_of(LineNumber line) const {
    return pages_.page_of(line);
  }
  [[nodiscard]] GpuIndex owner_of(PageNumber page) const { return places_[page].owner; }
  [[nodiscard, gnu::always_inline]] FrameLine frame_line(LineNumber line) const {
    return line_in(places_[page_of(line)].frame, line, pages_);
  }
  [[nodiscard]] bool knows(GpuIndex gpu, PageNumber page) const {
    return (states[page].known_by >> gpu.raw() & 1) != 0;
  }
  // Under placement=first-touch and far, where the page will lie; else `untouched`.
  [[nodiscard]] GpuIndex home_of(PageNumber page) const { return homes_[page]; }
  // Pages lie somewhere before the first kernel; none comes from CPU memory.
  [[nodiscard]] bool lies_from_the_start() const;
  // Writes down where such a page lies, when it is asked for: memory is for pages that are touched.
  void lay_where_it_lies(PageNumber page);
  // The next free frame of a GPU gets the page.
  void lay(PageNumber page, GpuIndex gpu);
  // Frames of each GPU that were given out.
  [[nodiscard]] const PerIndex<GpuIndex, FrameNumber>& frames() const { return next_frame_; }

 private:
  // Frames of a GPU are given out in order of first touch; those of pages that lie somewhere from
  // the start, in order of the pages.
  struct Place {
    GpuIndex owner = in_cpu_memory;
    FrameNumber frame;
  };

  const Settings& settings_;
  PageSize pages_;
  std::uint64_t page_count_;
  PageMap<Place> places_;
  PerIndex<GpuIndex, FrameNumber> next_frame_;
  PageMap<GpuIndex> homes_;
};

}  // namespace demarc::sim::translation
