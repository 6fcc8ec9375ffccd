// Lays pages into the frames of GPUs.
#include "page_table.hpp"

namespace demarc::sim::translation {

PageTable::PageTable(const Settings& settings, Split split, const Application& application)
    : states(PageSize(settings.page_bytes).pages_of(application.bytes())),
      settings_(settings),
      pages_(settings.page_bytes),
      page_count_(pages_.pages_of(application.bytes())),
      places_(page_count_),
      next_frame_(settings.gpus),
      homes_(homes_under(settings, split, application)) {
  if (settings.placement != Placement::interleaved && settings.placement != Placement::contiguous)
    return;
  // The frames of pages that lie somewhere from the start are taken.
  for (const GpuIndex gpu : next_frame_.keys()) {
    const std::uint64_t frames = settings.placement == Placement::interleaved
                                     ? (page_count_ + settings.gpus - 1 - gpu.raw()) / settings.gpus
                                     : first_of_share(gpu.raw() + 1, page_count_, settings.gpus) -
                                           first_of_share(gpu.raw(), page_count_, settings.gpus);
    next_frame_[gpu] = FrameNumber(frames);
  }
}

bool PageTable::lies_from_the_start() const {
  return settings_.placement == Placement::interleaved ||
         settings_.placement == Placement::contiguous || settings_.gmmu_fill == GmmuFill::all;
}

void PageTable::lay_where_it_lies(PageNumber page) {
  const std::uint64_t number = page.raw();
  if (has_homes(settings_)) {
    lay(page, homes_[page]);
  } else if (settings_.placement == Placement::interleaved) {
    places_.at(page) = {GpuIndex(number % settings_.gpus), FrameNumber(number / settings_.gpus)};
  } else {
    const std::uint64_t gpu = number * settings_.gpus / page_count_;
    places_.at(page) = {GpuIndex(gpu),
                        FrameNumber(number - first_of_share(gpu, page_count_, settings_.gpus))};
  }
}

void PageTable::lay(PageNumber page, GpuIndex gpu) {
  places_.at(page) = {gpu, next_frame_[gpu]};
  ++next_frame_[gpu];
}

}  // namespace demarc::sim::translation
