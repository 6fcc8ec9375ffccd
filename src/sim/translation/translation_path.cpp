// Finds the owner of a line's virtual page: by the L1 TLB of the CU, the L2 TLB of the GPU, the
// GMMU, the IOMMU.
#include <algorithm>

#include "system.hpp"

namespace demarc::sim::translation {

void System::run_l1_tlb(CuIndex index) {
  Cu& cu = cus_[index];
  cu.tlb_scheduled = false;
  while (!cu.queue.empty() && !cu.tlb_blocked) {
    const AccessSlot slot = cu.queue.front();
    Access& access = accesses_[slot];
    const Turns turn =
        std::max(l1_ports_.first_of(access.start + line_ports_.after(access.next)), cu.tlb_turn);
    const Cycles when = l1_ports_.cycle_of(turn);
    // Looking ahead is exact as long as nothing else happens before.
    if (when > now() && when >= events_.next_time()) {
      cu.tlb_scheduled = true;
      at<EventKind::l1_run>(when, index);
      return;
    }
    const LineWaiter wanted{
        slot, access.instruction.line[access.next],
        settings_.line_sectors == 1 ? whole_line : access.instruction.sectors(access.next)};
    const PageNumber page = pages_.page_of(wanted.line);
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
        access_line(wanted, when + 1_cycles);
        break;
    }
    cu.tlb_turn = turn + Turns(1);
    if (++accesses_[slot].next == accesses_[slot].instruction.lines) cu.queue.pop_front();
  }
}

void System::fill_l1_tlb(CuIndex index, PageNumber page) {
  Cu& cu = cus_[index];
  if (stale(cu.gpu, page)) {  // the page has moved on: ask again
    at<EventKind::l2_arrive>(then(), index, page);
    return;
  }
  tell(Moment::l1_filled, cu.gpu, page);
  std::uint64_t answered = 0;
  cu.tlb.fill(page, [&](const LineWaiter& waiter) {
    access_line(waiter, then() + l1_ports_.after(answered));
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

void System::run_l2_tlb(GpuIndex index) {
  Gpu& gpu = gpus_[index];
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

void System::fill_l2_tlb(GpuIndex index, PageNumber page) {
  Gpu& gpu = gpus_[index];
  if (stale(index, page)) {
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

void System::miss_l2_tlb(GpuIndex index, PageNumber page, Cycles when) {
  Gpu& gpu = gpus_[index];
  if (lies_from_the_start() && places_[page].owner == in_cpu_memory) lay_where_it_lies(page);
  bool walk_here = architecture_ != Architecture::centralised;
  if (architecture_ == Architecture::bypass && gpu.bypass->skip_gmmu(page, knows(index, page))) {
    walk_here = false;
    ++gmmu_bypassed_;
  }
  tell(Moment::l2_missed, index, page);
  if (walk_here) {
    at<EventKind::gmmu_arrive>(when, index, page);
  } else {
    ask_iommu(index, page, when);
  }
}

void System::ask_iommu(GpuIndex gpu, PageNumber page, Cycles when) {
  send({.kind = MessageKind::translate,
        .from = Network::node_of(gpu),
        .to = network_.cpu(),
        .page = page},
       when);
}

void System::run_gmmu(GpuIndex index) {
  WalkRequest request;
  Cycles end;
  while (gpus_[index].gmmu.start(now(), request, end)) {
    at<EventKind::gmmu_done>(end, index, request.page);
    tell(Moment::gmmu_began, index, request.page);
  }
}

void System::gmmu_done(GpuIndex index, PageNumber page) {
  Gpu& gpu = gpus_[index];
  gpu.gmmu.finish();
  tell(Moment::gmmu_ended, index, page);
  const bool hit = knows(index, page);
  if (gpu.bypass) gpu.bypass->on_walk(hit);
  if (hit) {
    ++gmmu_hits_;
    fill_l2_tlb(index, page);
  } else {
    ask_iommu(index, page, now());
  }
  run_gmmu(index);
}

void System::learn(GpuIndex index, PageNumber page) {
  if (knows(index, page)) return;
  states_.at(page).known_by |= std::uint64_t{1} << index.raw();
  if (gpus_[index].bypass) gpus_[index].bypass->on_table_insert(page);
}

void System::run_iommu() {
  WalkRequest request;
  Cycles end;
  while (iommu_.start(now(), request, end))
    at<EventKind::iommu_done>(end, request.gpu, request.page);
}

// What the IOMMU does with a request whose walk is over.
void System::iommu_done(GpuIndex gpu, PageNumber page) {
  iommu_.finish();
  tell(Moment::iommu_ended, gpu, page);
  run_iommu();
  resolve(gpu, page);
}

void System::resolve(GpuIndex gpu, PageNumber page) {
  if (states_[page].moving) {
    if (places_[page].owner != gpu) ++remote_owned_;
    waiting_for_move_[page].push_back(gpu);
    return;
  }
  if (places_[page].owner == in_cpu_memory) {
    place(homes_[page] == untouched ? gpu : homes_[page], page);
    if (states_[page].moving) {
      waiting_for_move_[page].push_back(gpu);
      return;
    }
  }
  if (places_[page].owner == gpu) {
    answer(gpu, page);
    return;
  }
  ++remote_owned_;
  if (!moves(page)) {
    answer(gpu, page);
    return;
  }
  states_.at(page).moving = true;
  move_queue_.push_back({gpu, page});
  start_next_move();
}

// First touch: the page comes from CPU memory to this GPU.
void System::place(GpuIndex gpu, PageNumber page) {
  ++first_touches_;
  lay(page, gpu);
  tell(Moment::placed, gpu, page);
  if (settings_.gmmu_fill == GmmuFill::eager) learn(gpu, page);
  switch (settings_.first_touch) {
    case FirstTouch::free:
      return;
    case FirstTouch::copy: {
      // Pieces of 256 bytes with a header of 12 each.
      states_.at(page).moving = true;
      const std::uint32_t flits = settings_.page_bytes / 256 * network_.flits(256 + 12);
      send({.kind = MessageKind::page_data,
            .from = network_.cpu(),
            .to = Network::node_of(gpu),
            .flits = flits,
            .page = page},
           now());
      return;
    }
    case FirstTouch::protocol:
      states_.at(page).moving = true;
      protocol_free_ = std::max(protocol_free_, now()) + Cycles(settings_.protocol_cycles);
      at<EventKind::page_arrived>(protocol_free_, gpu, page);
      return;
  }
}

// The page lies where it shall: whoever waited for that is looked at again, without another walk.
// `with_data`: the GPU that got the translation together with the page.
void System::page_arrived(PageNumber page, GpuIndex with_data) {
  states_.at(page).moving = false;
  const auto waiting = waiting_for_move_.find(page);
  if (waiting == waiting_for_move_.end()) return;
  const std::vector<GpuIndex> gpus = std::move(waiting->second);
  waiting_for_move_.erase(waiting);
  for (const GpuIndex gpu : gpus) {
    if (gpu == with_data) {
      receive(translated(gpu, page));
    } else {
      resolve(gpu, page);
    }
  }
}

System::Message System::translated(GpuIndex gpu, PageNumber page) const {
  return {.kind = MessageKind::translated,
          .from = network_.cpu(),
          .to = Network::node_of(gpu),
          .page = page};
}

void System::answer(GpuIndex gpu, PageNumber page) {
  send(translated(gpu, page), now());
}

}  // namespace demarc::sim::translation
