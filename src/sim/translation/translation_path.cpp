// Finds the owner of a line's virtual page: by the L1 TLB of the CU, the L2 TLB of the GPU, the
// GMMU, the IOMMU.
#include "translation_path.hpp"

#include <algorithm>

#include "migration.hpp"

namespace demarc::sim::translation {

TranslationPath::Cu::Cu(const Settings& settings, GpuIndex gpu_index)
    : gpu(gpu_index), tlb(settings.l1_tlb_sets, settings.l1_tlb_ways, settings.l1_tlb_mshrs) {}

TranslationPath::Gpu::Gpu(const Settings& settings)
    : tlb(settings.l2_tlb_sets, settings.l2_tlb_ways, settings.l2_tlb_mshrs),
      gmmu(settings.gmmu_walkers, Cycles(settings.gmmu_latency)) {}

TranslationPath::TranslationPath(Common& common, Links& links, PageTable& table, DataPath& data,
                                 Migration& migration)
    : Part(common),
      state(settings_),
      links_(links),
      table_(table),
      data_(data),
      migration_(migration),
      line_ports_(settings_.cu_lines),
      l1_ports_(settings_.l1_tlb_ports),
      l2_ports_(settings_.l2_tlb_ports) {
  for (const GpuIndex gpu : indices<GpuIndex>(settings_.gpus)) {
    Gpu& made = state.gpus.emplace_back(settings_);
    if (common.architecture == Architecture::bypass) made.bypass = make_bypass_decision(settings_);
    for (std::uint32_t cu = 0; cu < settings_.cus; ++cu) state.cus.emplace_back(settings_, gpu);
  }
}

void TranslationPath::look_up(AccessSlot slot) {
  const Access& access = data_.state.accesses[slot];
  Cu& cu = state.cus[access.cu];
  cu.queue.push_back(slot);
  if (cu.tlb_blocked || cu.tlb_scheduled) return;
  cu.tlb_scheduled = true;
  at<EventKind::l1_run>(access.start, access.cu);
}

void TranslationPath::run_l1_tlb(CuIndex index) {
  Cu& cu = state.cus[index];
  cu.tlb_scheduled = false;
  while (!cu.queue.empty() && !cu.tlb_blocked) {
    const AccessSlot slot = cu.queue.front();
    Access& access = data_.state.accesses[slot];
    const Turns turn =
        std::max(l1_ports_.first_of(access.start + line_ports_.after(access.next)), cu.tlb_turn);
    const Cycles when = l1_ports_.cycle_of(turn);
    // Looking ahead is exact as long as nothing else happens before.
    if (when > now() && when >= common_.events.next_time()) {
      cu.tlb_scheduled = true;
      at<EventKind::l1_run>(when, index);
      return;
    }
    const LineWaiter wanted{
        slot, access.instruction.line[access.next],
        settings_.line_sectors == 1 ? whole_line : access.instruction.sectors(access.next)};
    const PageNumber page = table_.page_of(wanted.line);
    switch (cu.tlb.look_up(page, wanted)) {
      case Tlb<LineWaiter>::Outcome::blocked:
        cu.tlb_blocked = true;
        return;
      case Tlb<LineWaiter>::Outcome::missed:
        at<EventKind::l2_arrive>(when + 1_cycles, index, page);
        break;
      case Tlb<LineWaiter>::Outcome::joined:
        break;
      case Tlb<LineWaiter>::Outcome::hit:
        data_.access_line(wanted, when + 1_cycles);
        break;
    }
    cu.tlb_turn = turn + Turns(1);
    if (++data_.state.accesses[slot].next == data_.state.accesses[slot].instruction.lines)
      cu.queue.pop_front();
  }
}

void TranslationPath::fill_l1_tlb(CuIndex index, PageNumber page) {
  Cu& cu = state.cus[index];
  if (migration_.stale(cu.gpu, page)) {  // the page has moved on: ask again
    at<EventKind::l2_arrive>(then(), index, page);
    return;
  }
  tell(Moment::l1_filled, cu.gpu, page);
  std::uint64_t answered = 0;
  cu.tlb.fill(page, [&](const LineWaiter& waiter) {
    data_.access_line(waiter, then() + l1_ports_.after(answered));
    ++answered;
  });
  if (!cu.tlb_blocked) return;
  cu.tlb_blocked = false;
  cu.tlb_turn = std::max(cu.tlb_turn, l1_ports_.first_of(then()));
  if (!cu.tlb_scheduled) {
    cu.tlb_scheduled = true;
    at<EventKind::l1_run>(then(), index);
  }
}

void TranslationPath::arrive_at_l2(CuIndex cu, PageNumber page) {
  const GpuIndex index = state.cus[cu].gpu;
  Gpu& gpu = state.gpus[index];
  gpu.queue.push_back({cu, page});
  if (!gpu.tlb_blocked && !gpu.tlb_scheduled) run_l2_tlb(index);
}

void TranslationPath::run_l2_tlb(GpuIndex index) {
  Gpu& gpu = state.gpus[index];
  gpu.tlb_scheduled = false;
  while (!gpu.queue.empty() && !gpu.tlb_blocked) {
    const Turns turn = std::max(l2_ports_.first_of(now()), gpu.tlb_turn);
    if (const Cycles when = l2_ports_.cycle_of(turn); when > now()) {
      gpu.tlb_scheduled = true;
      at<EventKind::l2_run>(when, index);
      return;
    }
    const L2Request request = gpu.queue.front();
    const Cycles answered = then() + Cycles(settings_.l2_tlb_latency);
    switch (gpu.tlb.look_up(request.page, request.cu)) {
      case Tlb<CuIndex>::Outcome::blocked:
        gpu.tlb_blocked = true;
        return;
      case Tlb<CuIndex>::Outcome::missed:
        miss_l2_tlb(index, request.page, answered);
        break;
      case Tlb<CuIndex>::Outcome::joined:
        break;
      case Tlb<CuIndex>::Outcome::hit:
        at<EventKind::l1_fill>(answered, request.cu, request.page);
        break;
    }
    gpu.queue.pop_front();
    gpu.tlb_turn = turn + Turns(1);
  }
}

void TranslationPath::fill_l2_tlb(GpuIndex index, PageNumber page) {
  Gpu& gpu = state.gpus[index];
  if (migration_.stale(index, page)) {
    miss_l2_tlb(index, page, then());
    return;
  }
  tell(Moment::l2_filled, index, page);
  std::uint64_t answered = 0;
  gpu.tlb.fill(page, [&](CuIndex cu) {
    at<EventKind::l1_fill>(then() + l2_ports_.after(answered), cu, page);
    ++answered;
  });
  if (!gpu.tlb_blocked) return;
  gpu.tlb_blocked = false;
  gpu.tlb_turn = std::max(gpu.tlb_turn, l2_ports_.first_of(then()));
  if (!gpu.tlb_scheduled) {
    gpu.tlb_scheduled = true;
    at<EventKind::l2_run>(then(), index);
  }
}

void TranslationPath::miss_l2_tlb(GpuIndex index, PageNumber page, Cycles when) {
  Gpu& gpu = state.gpus[index];
  if (table_.lies_from_the_start() && table_.owner_of(page) == in_cpu_memory) {
    table_.lay_where_it_lies(page);
    if (settings_.gmmu_fill == GmmuFill::eager) learn(table_.owner_of(page), page);
    if (settings_.gmmu_fill == GmmuFill::all) {
      for (const GpuIndex gpu_index : state.gpus.keys()) learn(gpu_index, page);
    }
  }
  bool walk_here = common_.architecture != Architecture::centralised;
  if (common_.architecture == Architecture::bypass &&
      gpu.bypass->skip_gmmu(page, table_.knows(index, page))) {
    walk_here = false;
    ++state.gmmu_bypassed;
  }
  tell(Moment::l2_missed, index, page);
  if (walk_here) {
    at<EventKind::gmmu_arrive>(when, index, page);
  } else {
    ask_iommu(index, page, when);
  }
}

void TranslationPath::ask_iommu(GpuIndex gpu, PageNumber page, Cycles when) {
  links_.send({.kind = MessageKind::translate,
               .from = Network::node_of(gpu),
               .to = links_.network.cpu(),
               .page = page},
              when);
}

void TranslationPath::arrive_at_gmmu(GpuIndex gpu, PageNumber page) {
  state.gpus[gpu].gmmu.arrive({gpu, page}, now());
  run_gmmu(gpu);
}

void TranslationPath::run_gmmu(GpuIndex index) {
  WalkRequest request;
  Cycles end;
  while (state.gpus[index].gmmu.start(now(), request, end)) {
    at<EventKind::gmmu_done>(end, index, request.page);
    tell(Moment::gmmu_began, index, request.page);
  }
}

void TranslationPath::gmmu_done(GpuIndex index, PageNumber page) {
  Gpu& gpu = state.gpus[index];
  gpu.gmmu.finish();
  tell(Moment::gmmu_ended, index, page);
  const bool hit = table_.knows(index, page);
  if (gpu.bypass) gpu.bypass->on_walk(hit);
  if (hit) {
    ++state.gmmu_hits;
    fill_l2_tlb(index, page);
  } else {
    ask_iommu(index, page, now());
  }
  run_gmmu(index);
}

void TranslationPath::learn(GpuIndex index, PageNumber page) {
  if (table_.knows(index, page)) return;
  table_.states.at(page).known_by |= std::uint64_t{1} << index.raw();
  if (state.gpus[index].bypass) state.gpus[index].bypass->on_table_insert(page);
}

void TranslationPath::run_iommu() {
  WalkRequest request;
  Cycles end;
  while (state.iommu.start(now(), request, end))
    at<EventKind::iommu_done>(end, request.gpu, request.page);
}

// What the IOMMU does with a request whose walk is over.
void TranslationPath::iommu_done(GpuIndex gpu, PageNumber page) {
  state.iommu.finish();
  tell(Moment::iommu_ended, gpu, page);
  run_iommu();
  resolve(gpu, page);
}

void TranslationPath::resolve(GpuIndex gpu, PageNumber page) {
  if (table_.states[page].moving) {
    if (table_.owner_of(page) != gpu) ++state.remote_owned;
    state.waiting_for_move[page].push_back(gpu);
    return;
  }
  if (table_.owner_of(page) == in_cpu_memory) {
    const GpuIndex home = table_.home_of(page);
    place(home == untouched ? gpu : home, page);
    if (table_.states[page].moving) {
      state.waiting_for_move[page].push_back(gpu);
      return;
    }
  }
  if (table_.owner_of(page) == gpu) {
    links_.send(translated(gpu, page), now());
    return;
  }
  ++state.remote_owned;
  if (!migration_.moves(page)) {
    links_.send(translated(gpu, page), now());
    return;
  }
  table_.states.at(page).moving = true;
  migration_.ask(gpu, page);
}

// First touch: the page comes from CPU memory to this GPU.
void TranslationPath::place(GpuIndex gpu, PageNumber page) {
  ++state.first_touches;
  table_.lay(page, gpu);
  tell(Moment::placed, gpu, page);
  if (settings_.gmmu_fill == GmmuFill::eager) learn(gpu, page);
  switch (settings_.first_touch) {
    case FirstTouch::free:
      return;
    case FirstTouch::copy: {
      // Pieces of 256 bytes with a header of 12 each.
      table_.states.at(page).moving = true;
      const std::uint32_t flits = settings_.page_bytes / 256 * links_.network.flits(256 + 12);
      links_.send({.kind = MessageKind::page_data,
                   .from = links_.network.cpu(),
                   .to = Network::node_of(gpu),
                   .flits = flits,
                   .page = page},
                  now());
      return;
    }
    case FirstTouch::protocol:
      table_.states.at(page).moving = true;
      state.protocol_free =
          std::max(state.protocol_free, now()) + Cycles(settings_.protocol_cycles);
      at<EventKind::page_arrived>(state.protocol_free, gpu, page);
      return;
  }
}

void TranslationPath::page_arrived(PageNumber page, GpuIndex with_data) {
  table_.states.at(page).moving = false;
  const auto waiting = state.waiting_for_move.find(page);
  if (waiting == state.waiting_for_move.end()) return;
  const std::vector<GpuIndex> gpus = std::move(waiting->second);
  state.waiting_for_move.erase(waiting);
  for (const GpuIndex gpu : gpus) {
    if (gpu == with_data) {
      answered(translated(gpu, page));
    } else {
      resolve(gpu, page);
    }
  }
}

Message TranslationPath::translated(GpuIndex gpu, PageNumber page) const {
  return {.kind = MessageKind::translated,
          .from = links_.network.cpu(),
          .to = Network::node_of(gpu),
          .page = page};
}

void TranslationPath::receive(const Message& message) {
  if (message.kind == MessageKind::translate) {
    const GpuIndex gpu = Network::gpu_of(message.from);
    ++state.iommu_accesses;
    tell(Moment::iommu_asked, gpu, message.page);
    state.iommu.arrive({gpu, message.page}, now());
    run_iommu();
  } else if (message.kind == MessageKind::page_data) {
    page_arrived(message.page, Network::gpu_of(message.to));
  } else {
    answered(message);
  }
}

void TranslationPath::answered(const Message& message) {
  const GpuIndex gpu = Network::gpu_of(message.to);
  const PageNumber page = message.page;
  if (message.moved_here && common_.architecture != Architecture::centralised) {
    at<EventKind::entered>(now() + Cycles(settings_.gmmu_latency), gpu, page);
    return;
  }
  if (settings_.gmmu_fill == GmmuFill::any || table_.owner_of(page) == gpu) learn(gpu, page);
  fill_l2_tlb(gpu, page);
}

void TranslationPath::entered(GpuIndex gpu, PageNumber page) {
  learn(gpu, page);
  fill_l2_tlb(gpu, page);
}

void TranslationPath::shoot_down(GpuIndex index, PageNumber page) {
  Gpu& gpu = state.gpus[index];
  gpu.tlb.invalidate(page);
  for (Cu& cu : state.cus) {
    if (cu.gpu == index) cu.tlb.invalidate(page);
  }
  if (!table_.knows(index, page)) return;
  table_.states.at(page).known_by &= ~(std::uint64_t{1} << index.raw());
  if (gpu.bypass) gpu.bypass->on_table_remove(page);
}

}  // namespace demarc::sim::translation
