// Builds the machine, runs its events one by one, and counts at the end.
#include "system.hpp"

#include "timeline.hpp"

namespace demarc::sim::translation {

System::System(const Settings& settings, Architecture architecture, const Application& application,
               Watch watch)
    : application_(application),
      common_{settings, architecture, std::move(watch)},
      links_(common_),
      table_(settings, split_under(settings, application), application),
      data_(common_, links_, table_),
      translation_(common_, links_, table_, data_, migration_),
      migration_(common_, links_, table_, data_, translation_),
      compute_(common_, application, split_under(settings, application), data_, translation_) {}

GpuIndex System::gpu_of(const Event& event) const {
  const auto of_cu = [&](CuIndex cu) { return compute_.state.cus[cu].gpu; };
  const auto of_wave = [&](WaveSlot wave) { return of_cu(compute_.state.waves[wave].cu); };
  switch (event.kind()) {
    case EventKind::wave_next:
      return of_wave(event.subject<EventKind::wave_next>());
    case EventKind::wave_issue:
      return of_wave(event.subject<EventKind::wave_issue>());
    case EventKind::l1_run:
      return of_cu(event.subject<EventKind::l1_run>());
    case EventKind::l1_fill:
      return of_cu(event.subject<EventKind::l1_fill>());
    case EventKind::l1_free:
      return of_cu(event.subject<EventKind::l1_free>());
    case EventKind::l2_arrive:
      return of_cu(event.subject<EventKind::l2_arrive>());
    case EventKind::dispatch:
      return event.subject<EventKind::dispatch>();
    case EventKind::l2_run:
      return event.subject<EventKind::l2_run>();
    case EventKind::gmmu_arrive:
      return event.subject<EventKind::gmmu_arrive>();
    case EventKind::gmmu_done:
      return event.subject<EventKind::gmmu_done>();
    case EventKind::entered:
      return event.subject<EventKind::entered>();
    case EventKind::access_done:
      return of_cu(data_.state.accesses[event.subject<EventKind::access_done>()].cu);
    case EventKind::hop: {
      const Message& message = links_.messages[event.subject<EventKind::hop>()];
      const bool waits = message.kind == MessageKind::translated ||
                         message.kind == MessageKind::page_data ||
                         message.kind == MessageKind::line_data;
      return waits && links_.is_there(message) ? Network::gpu_of(message.to) : no_gpu;
    }
    default:
      return no_gpu;
  }
}

void System::handle(const Event& event) {
  if (migration_.state.move.active && migration_.defer(gpu_of(event), event)) return;
  switch (event.kind()) {
    case EventKind::kernel_start:
      compute_.start_kernel(event.subject<EventKind::kernel_start>());
      return;
    case EventKind::dispatch:
      compute_.dispatch(event.subject<EventKind::dispatch>());
      return;
    case EventKind::wave_next:
      compute_.wave_next(event.subject<EventKind::wave_next>());
      return;
    case EventKind::wave_issue:
      compute_.wave_issue(event.subject<EventKind::wave_issue>());
      return;
    case EventKind::l1_run:
      translation_.run_l1_tlb(event.subject<EventKind::l1_run>());
      return;
    case EventKind::l1_fill:
      translation_.fill_l1_tlb(event.subject<EventKind::l1_fill>(),
                               event.page<EventKind::l1_fill>());
      return;
    case EventKind::l2_arrive:
      translation_.arrive_at_l2(event.subject<EventKind::l2_arrive>(),
                                event.page<EventKind::l2_arrive>());
      return;
    case EventKind::l2_run:
      translation_.run_l2_tlb(event.subject<EventKind::l2_run>());
      return;
    case EventKind::gmmu_arrive:
      translation_.arrive_at_gmmu(event.subject<EventKind::gmmu_arrive>(),
                                  event.page<EventKind::gmmu_arrive>());
      return;
    case EventKind::gmmu_done:
      translation_.gmmu_done(event.subject<EventKind::gmmu_done>(),
                             event.page<EventKind::gmmu_done>());
      return;
    case EventKind::iommu_done:
      translation_.iommu_done(event.subject<EventKind::iommu_done>(),
                              event.page<EventKind::iommu_done>());
      return;
    case EventKind::page_arrived:
      translation_.page_arrived(event.page<EventKind::page_arrived>());
      return;
    case EventKind::flushed:
      migration_.flushed(event.subject<EventKind::flushed>());
      return;
    case EventKind::entered:
      translation_.entered(event.subject<EventKind::entered>(), event.page<EventKind::entered>());
      return;
    case EventKind::hop:
      if (const auto message = links_.hop(event.subject<EventKind::hop>())) receive(*message);
      return;
    case EventKind::l1_free:
      data_.run_l1_misses(event.subject<EventKind::l1_free>());
      return;
    case EventKind::access_done:
      compute_.access_done(event.subject<EventKind::access_done>());
      return;
  }
}

void System::receive(const Message& message) {
  switch (message.kind) {
    case MessageKind::translate:
    case MessageKind::translated:
    case MessageKind::page_data:
      translation_.receive(message);
      return;
    case MessageKind::read_line:
    case MessageKind::write_line:
    case MessageKind::line_data:
    case MessageKind::write_done:
      data_.receive(message);
      return;
    default:
      migration_.receive(message);
      return;
  }
}

Result<Summary> System::run(const Progress& progress) {
  common_.events.schedule(Cycles(), Event::of<EventKind::kernel_start>(KernelNumber()));
  const Compute::State& work = compute_.state;
  std::uint64_t handled = 0;
  const auto kernels = static_cast<double>(application_.kernels().size());
  while (!common_.events.empty() && !work.finished) {
    handle(common_.events.pop());
    if ((++handled & 0xfffff) == 0) {
      const double groups = compute_.shape().groups();
      report_progress(progress, (work.kernel.raw() + 1 - work.groups_left / groups) / kernels,
                      application_.name());
    }
  }
  if (!work.finished) {
    return check_failed("{} ({}): the simulation is stuck at cycle {} in kernel {}:\n{}",
                        application_.name(), to_string(common_.architecture), common_.events.now(),
                        work.kernel, describe_queues());
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
  const Cycles end = common_.events.now();
  const TranslationPath::State& translation = translation_.state;
  summary.cycles = end;
  summary.lines = compute_.state.lines;
  for (const TranslationPath::Cu& cu : translation.cus) add(summary.l1_tlb, cu.tlb.counts());
  for (const TranslationPath::Gpu& gpu : translation.gpus) {
    add(summary.l2_tlb, gpu.tlb.counts());
    summary.gmmu_walks += gpu.gmmu.walks();
    summary.gmmu_queue_wait += gpu.gmmu.queue_wait();
    summary.gmmu_utilisation +=
        gpu.gmmu.utilisation(end) / static_cast<double>(translation.gpus.size());
  }
  summary.gmmu_hits = translation.gmmu_hits;
  summary.gmmu_bypassed = translation.gmmu_bypassed;
  summary.iommu_accesses = translation.iommu_accesses;
  summary.first_touches = translation.first_touches;
  summary.remote_owned = translation.remote_owned;
  summary.remote_lines = data_.state.remote_lines;
  summary.migrations = migration_.state.migrations;
  for (const FrameNumber frames : table_.frames()) summary.pages_owned.push_back(frames.raw());
  summary.link_bytes = links_.network.link_bytes();
  summary.busiest_link = links_.network.busiest_share(end);
  summary.iommu_queue_wait = translation.iommu.queue_wait();
  summary.iommu_utilisation = translation.iommu.utilisation(end);
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
