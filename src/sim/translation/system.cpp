// Builds the machine, runs its events one by one, and counts at the end.
#include "system.hpp"

#include "timeline.hpp"

namespace demarc::sim::translation {

System::Cu::Cu(const Settings& settings, GpuIndex gpu_index)
    : gpu(gpu_index),
      tlb(settings.l1_tlb_sets, settings.l1_tlb_ways, settings.l1_tlb_mshrs),
      l1(settings.l1_bytes / line_bytes / settings.wide_lines / settings.l1_ways, settings.l1_ways),
      l1_lines(l1.size()),
      l1_misses(settings.l1_mshrs) {}

System::Gpu::Gpu(const Settings& settings)
    : tlb(settings.l2_tlb_sets, settings.l2_tlb_ways, settings.l2_tlb_mshrs),
      gmmu(settings.gmmu_walkers, Cycles(settings.gmmu_latency)),
      memory(settings) {}

System::System(const Settings& settings, Architecture architecture, const Application& application,
               Watch watch)
    : settings_(settings),
      architecture_(architecture),
      application_(application),
      split_(split_under(settings, application)),
      network_(settings),
      iommu_(settings.iommu_walkers, Cycles(settings.iommu_latency)),
      pages_(settings.page_bytes),
      line_ports_(settings.cu_lines),
      shared_ports_(settings.shared_rows),
      l1_ports_(settings.l1_tlb_ports),
      l2_ports_(settings.l2_tlb_ports),
      page_count_(pages_.pages_of(application.bytes())),
      places_(page_count_),
      states_(page_count_),
      next_frame_(settings.gpus),
      homes_(homes_under(settings, split_, application)),
      watch_(std::move(watch)) {
  for (const GpuIndex gpu : indices<GpuIndex>(settings.gpus)) {
    gpus_.emplace_back(settings);
    if (architecture == Architecture::bypass) gpus_.back().bypass = make_bypass_decision(settings);
    for (std::uint32_t cu = 0; cu < settings.cus; ++cu) cus_.emplace_back(settings, gpu);
  }
  place_pages();
}

// Pages lie somewhere before the first kernel; none comes from CPU memory.
bool System::lies_from_the_start() const {
  return settings_.placement == Placement::interleaved ||
         settings_.placement == Placement::contiguous || settings_.gmmu_fill == GmmuFill::all;
}

// The frames of pages that lie somewhere from the start are taken.
void System::place_pages() {
  if (settings_.placement != Placement::interleaved &&
      settings_.placement != Placement::contiguous) {
    return;
  }
  for (const GpuIndex gpu : gpus_.keys()) {
    const std::uint64_t frames =
        settings_.placement == Placement::interleaved
            ? (page_count_ + settings_.gpus - 1 - gpu.raw()) / settings_.gpus
            : first_of_share(gpu.raw() + 1, page_count_, settings_.gpus) -
                  first_of_share(gpu.raw(), page_count_, settings_.gpus);
    next_frame_[gpu] = FrameNumber(frames);
  }
}

// Writes down where such a page lies, when it is asked for: memory is for pages that are touched.
void System::lay_where_it_lies(PageNumber page) {
  const std::uint64_t number = page.raw();
  Place& place = places_.at(page);
  if (has_homes(settings_)) {
    lay(page, homes_[page]);
  } else if (settings_.placement == Placement::interleaved) {
    place = {GpuIndex(number % settings_.gpus), FrameNumber(number / settings_.gpus)};
  } else {
    const std::uint64_t gpu = number * settings_.gpus / page_count_;
    place = {GpuIndex(gpu), FrameNumber(number - first_of_share(gpu, page_count_, settings_.gpus))};
  }
  if (settings_.gmmu_fill == GmmuFill::eager) learn(place.owner, page);
  if (settings_.gmmu_fill == GmmuFill::all) {
    for (const GpuIndex gpu : gpus_.keys()) learn(gpu, page);
  }
}

void System::lay(PageNumber page, GpuIndex gpu) {
  places_.at(page) = {gpu, next_frame_[gpu]};
  ++next_frame_[gpu];
}

void System::handle(const Event& event) {
  if (move_.active && defer(event)) return;
  switch (event.kind()) {
    case EventKind::kernel_start:
      start_kernel(event.subject<EventKind::kernel_start>());
      return;
    case EventKind::dispatch:
      dispatch(event.subject<EventKind::dispatch>());
      return;
    case EventKind::wave_next:
      wave_next(event.subject<EventKind::wave_next>());
      return;
    case EventKind::wave_issue:
      wave_issue(event.subject<EventKind::wave_issue>());
      return;
    case EventKind::l1_run:
      run_l1_tlb(event.subject<EventKind::l1_run>());
      return;
    case EventKind::l1_fill:
      fill_l1_tlb(event.subject<EventKind::l1_fill>(), event.page<EventKind::l1_fill>());
      return;
    case EventKind::l2_arrive: {
      const CuIndex cu = event.subject<EventKind::l2_arrive>();
      Gpu& gpu = gpus_[cus_[cu].gpu];
      gpu.queue.push_back({cu, event.page<EventKind::l2_arrive>()});
      if (!gpu.tlb_blocked && !gpu.tlb_scheduled) run_l2_tlb(cus_[cu].gpu);
      return;
    }
    case EventKind::l2_run:
      run_l2_tlb(event.subject<EventKind::l2_run>());
      return;
    case EventKind::gmmu_arrive: {
      const GpuIndex gpu = event.subject<EventKind::gmmu_arrive>();
      gpus_[gpu].gmmu.arrive({gpu, event.page<EventKind::gmmu_arrive>()}, now());
      run_gmmu(gpu);
      return;
    }
    case EventKind::gmmu_done:
      gmmu_done(event.subject<EventKind::gmmu_done>(), event.page<EventKind::gmmu_done>());
      return;
    case EventKind::iommu_done:
      iommu_done(event.subject<EventKind::iommu_done>(), event.page<EventKind::iommu_done>());
      return;
    case EventKind::page_arrived:
      page_arrived(event.page<EventKind::page_arrived>());
      return;
    case EventKind::flushed:
      send({.kind = MessageKind::shot_down,
            .from = Network::node_of(event.subject<EventKind::flushed>()),
            .to = network_.cpu(),
            .page = move_.page},
           now());
      return;
    case EventKind::entered:
      learn(event.subject<EventKind::entered>(), event.page<EventKind::entered>());
      fill_l2_tlb(event.subject<EventKind::entered>(), event.page<EventKind::entered>());
      return;
    case EventKind::hop:
      hop(event.subject<EventKind::hop>());
      return;
    case EventKind::l1_free:
      run_l1_misses(event.subject<EventKind::l1_free>());
      return;
    case EventKind::access_done:
      access_done(event.subject<EventKind::access_done>());
      return;
  }
}

Result<Summary> System::run(const Progress& progress) {
  at<EventKind::kernel_start>(Cycles(), KernelNumber());
  std::uint64_t handled = 0;
  const auto kernels = static_cast<double>(application_.kernels().size());
  while (!events_.empty() && !finished_) {
    handle(events_.pop());
    if ((++handled & 0xfffff) == 0) {
      const double groups = application_.kernels()[kernel_.raw()].groups();
      report_progress(progress, (kernel_.raw() + 1 - groups_left_ / groups) / kernels,
                      application_.name());
    }
  }
  if (!finished_) {
    return check_failed("{} ({}): the simulation is stuck at cycle {} in kernel {}:\n{}",
                        application_.name(), to_string(architecture_), now(), kernel_,
                        describe_queues());
  }
  return summarise();
}

Summary System::summarise() const {
  Summary summary;
  const auto add = [](TlbCounts& sum, const TlbCounts& counts) {
    sum.hits += counts.hits;
    sum.joined += counts.joined;
    sum.misses += counts.misses;
  };
  summary.cycles = now();
  summary.lines = lines_;
  for (const Cu& cu : cus_) add(summary.l1_tlb, cu.tlb.counts());
  for (const Gpu& gpu : gpus_) {
    add(summary.l2_tlb, gpu.tlb.counts());
    summary.gmmu_walks += gpu.gmmu.walks();
    summary.gmmu_queue_wait += gpu.gmmu.queue_wait();
    summary.gmmu_utilisation += gpu.gmmu.utilisation(now()) / static_cast<double>(gpus_.size());
  }
  summary.gmmu_hits = gmmu_hits_;
  summary.gmmu_bypassed = gmmu_bypassed_;
  summary.iommu_accesses = iommu_accesses_;
  summary.first_touches = first_touches_;
  summary.remote_owned = remote_owned_;
  summary.remote_lines = remote_lines_;
  summary.migrations = migrations_;
  for (const FrameNumber frames : next_frame_) summary.pages_owned.push_back(frames.raw());
  summary.link_bytes = network_.link_bytes();
  summary.busiest_link = network_.busiest_share(now());
  summary.iommu_queue_wait = iommu_.queue_wait();
  summary.iommu_utilisation = iommu_.utilisation(now());
  return summary;
}

Split split_under(const Settings& settings, const Application& application) {
  return settings.split == Split::native ? application.native_split() : settings.split;
}

double Summary::tlb_hit_share() const {
  if (l1_tlb.lookups() == 0) return 0;
  return 1.0 - static_cast<double>(l2_tlb.misses) / static_cast<double>(l1_tlb.lookups());
}

double Summary::gmmu_hit_share() const {
  return gmmu_walks == 0 ? 0.0 : static_cast<double>(gmmu_hits) / static_cast<double>(gmmu_walks);
}

Result<Summary> simulate(const Settings& settings, Architecture architecture,
                         const Application& application, const Progress& progress,
                         Timeline* timeline) {
  DEMARC_CHECK(validate(settings));
  for (std::size_t k = 0; k < application.kernels().size(); ++k) {
    const KernelShape& kernel = application.kernels()[k];
    if (kernel.groups() == 0)
      return invalid_input("{}: kernel {} has no work-groups", application.name(), k);
    const Occupancy most = occupancy_of(settings, kernel);
    if (kernel.waves_per_group > most.waves || most.groups == 0) {
      return invalid_input(
          "{}: a work-group of kernel {} ({} waves of {} vector registers per lane, {} bytes of "
          "LDS) "
          "does not fit a CU (waves_per_cu={}, vgprs={}, sgprs={}, lds_bytes={})",
          application.name(), k, kernel.waves_per_group, kernel.vgprs, kernel.lds_bytes,
          settings.waves_per_cu, settings.vgprs, settings.sgprs, settings.lds_bytes);
    }
  }
  Watch watch;
  if (timeline != nullptr) watch = timeline_watch(*timeline);
  System system(settings, architecture, application, std::move(watch));
  return system.run(progress);
}

}  // namespace demarc::sim::translation
