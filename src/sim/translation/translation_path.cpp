// From a line's virtual page to its owner: L1 TLB of the CU, L2 TLB of the GPU, GMMU, IOMMU.
#include <algorithm>

#include "system.hpp"

namespace demarc::sim::translation {

void System::run_l1_tlb(std::uint32_t index) {
  Cu& cu = cus_[index];
  const std::uint64_t ports = settings_.l1_tlb_ports;
  cu.tlb_scheduled = false;
  while (!cu.queue.empty() && !cu.tlb_blocked) {
    const std::uint32_t slot = cu.queue.front();
    Access& access = accesses_[slot];
    const std::uint64_t turn =
        std::max<std::uint64_t>((access.start + access.next) * ports, cu.tlb_slot);
    const Cycles when = turn / ports;
    // Looking ahead is exact as long as nothing else happens before.
    if (when > now() && when >= events_.next_time()) {
      cu.tlb_scheduled = true;
      at(when, EventKind::l1_run, index);
      return;
    }
    const std::uint32_t line = access.instruction.line[access.next];
    switch (cu.tlb.look_up(line >> page_shift_, {slot, line})) {
      case Tlb<LineWaiter>::Outcome::blocked:
        cu.tlb_blocked = true;
        return;
      case Tlb<LineWaiter>::Outcome::missed:
        at(when + 1, EventKind::l2_arrive, index, line >> page_shift_);
        break;
      case Tlb<LineWaiter>::Outcome::joined:
        break;
      case Tlb<LineWaiter>::Outcome::hit:
        access_line(slot, line, when + 1);
        break;
    }
    cu.tlb_slot = turn + 1;
    if (++accesses_[slot].next == accesses_[slot].instruction.lines) cu.queue.pop_front();
  }
}

void System::fill_l1_tlb(std::uint32_t index, std::uint32_t page) {
  Cu& cu = cus_[index];
  if (stale(cu.gpu, page)) {  // the page has moved on: ask again
    at(now() + 1, EventKind::l2_arrive, index, page);
    return;
  }
  tell(Moment::l1_filled, cu.gpu, page);
  std::uint64_t answered = 0;
  cu.tlb.fill(page, [&](const LineWaiter& waiter) {
    access_line(waiter.access, waiter.line, now() + 1 + answered / settings_.l1_tlb_ports);
    ++answered;
  });
  if (!cu.tlb_blocked) return;
  cu.tlb_blocked = false;
  cu.tlb_slot = std::max(cu.tlb_slot, (now() + 1) * settings_.l1_tlb_ports);
  if (!cu.tlb_scheduled) {
    cu.tlb_scheduled = true;
    at(now() + 1, EventKind::l1_run, index);
  }
}

void System::run_l2_tlb(std::uint32_t index) {
  Gpu& gpu = gpus_[index];
  const std::uint64_t ports = settings_.l2_tlb_ports;
  gpu.tlb_scheduled = false;
  while (!gpu.queue.empty() && !gpu.tlb_blocked) {
    const std::uint64_t turn = std::max<std::uint64_t>(now() * ports, gpu.tlb_slot);
    if (turn / ports > now()) {
      gpu.tlb_scheduled = true;
      at(turn / ports, EventKind::l2_run, index);
      return;
    }
    const L2Request request = gpu.queue.front();
    const Cycles answered = now() + settings_.l2_tlb_latency + 1;
    switch (gpu.tlb.look_up(request.page, {request.cu})) {
      case Tlb<PageWaiter>::Outcome::blocked:
        gpu.tlb_blocked = true;
        return;
      case Tlb<PageWaiter>::Outcome::missed:
        miss_l2_tlb(index, request.page, answered);
        break;
      case Tlb<PageWaiter>::Outcome::joined:
        break;
      case Tlb<PageWaiter>::Outcome::hit:
        at(answered, EventKind::l1_fill, request.cu, request.page);
        break;
    }
    gpu.queue.pop_front();
    gpu.tlb_slot = turn + 1;
  }
}

void System::fill_l2_tlb(std::uint32_t index, std::uint32_t page) {
  Gpu& gpu = gpus_[index];
  if (stale(index, page)) {
    miss_l2_tlb(index, page, now() + 1);
    return;
  }
  tell(Moment::l2_filled, index, page);
  std::uint64_t answered = 0;
  gpu.tlb.fill(page, [&](const PageWaiter& waiter) {
    at(now() + 1 + answered / settings_.l2_tlb_ports, EventKind::l1_fill, waiter.cu, page);
    ++answered;
  });
  if (!gpu.tlb_blocked) return;
  gpu.tlb_blocked = false;
  gpu.tlb_slot = std::max(gpu.tlb_slot, (now() + 1) * settings_.l2_tlb_ports);
  if (!gpu.tlb_scheduled) {
    gpu.tlb_scheduled = true;
    at(now() + 1, EventKind::l2_run, index);
  }
}

void System::miss_l2_tlb(std::uint32_t index, std::uint32_t page, Cycles when) {
  Gpu& gpu = gpus_[index];
  bool walk_here = architecture_ != Architecture::centralised;
  if (architecture_ == Architecture::bypass && gpu.bypass->skip_gmmu(page, gpu.table[page] != 0)) {
    walk_here = false;
    ++gmmu_bypassed_;
  }
  tell(Moment::l2_missed, index, page);
  if (walk_here) {
    at(when, EventKind::gmmu_arrive, index, page);
  } else {
    send({.kind = MessageKind::translate, .from = index, .to = network_.cpu(), .page = page}, when);
  }
}

void System::run_gmmu(std::uint32_t index) {
  WalkRequest request;
  Cycles end = 0;
  while (gpus_[index].gmmu.start(now(), request, end)) {
    at(end, EventKind::gmmu_done, index, request.page);
    tell(Moment::gmmu_began, index, request.page);
  }
}

void System::gmmu_done(std::uint32_t index, std::uint32_t page) {
  Gpu& gpu = gpus_[index];
  gpu.gmmu.finish();
  tell(Moment::gmmu_ended, index, page);
  const bool hit = gpu.table[page] != 0;
  if (gpu.bypass) gpu.bypass->on_walk(hit);
  if (hit) {
    ++gmmu_hits_;
    fill_l2_tlb(index, page);
  } else {
    send({.kind = MessageKind::translate, .from = index, .to = network_.cpu(), .page = page},
         now());
  }
  run_gmmu(index);
}

void System::learn(std::uint32_t index, std::uint32_t page) {
  Gpu& gpu = gpus_[index];
  if (gpu.table[page] != 0) return;
  gpu.table[page] = 1;
  if (gpu.bypass) gpu.bypass->on_table_insert(page);
}

void System::run_iommu() {
  WalkRequest request;
  Cycles end = 0;
  while (iommu_.start(now(), request, end))
    at(end, EventKind::iommu_done, request.gpu, request.page);
}

// What the IOMMU does with a request whose walk is over.
void System::iommu_done(std::uint32_t gpu, std::uint32_t page) {
  iommu_.finish();
  tell(Moment::iommu_ended, gpu, page);
  run_iommu();
  resolve(gpu, page);
}

void System::resolve(std::uint32_t gpu, std::uint32_t page) {
  if (page_moving_[page] != 0) {
    if (page_owner_[page] != gpu) ++remote_owned_;
    waiting_for_move_[page].push_back(gpu);
    return;
  }
  if (page_owner_[page] == in_cpu_memory) {
    place(page_home_.empty() ? gpu : page_home_[page], page);
    if (page_moving_[page] != 0) {
      waiting_for_move_[page].push_back(gpu);
      return;
    }
  }
  if (page_owner_[page] == gpu) {
    answer(gpu, page);
    return;
  }
  ++remote_owned_;
  if (!moves(page)) {
    answer(gpu, page);
    return;
  }
  page_moving_[page] = 1;
  move_queue_.push_back({gpu, page});
  start_next_move();
}

// First touch: the page comes from CPU memory to this GPU.
void System::place(std::uint32_t gpu, std::uint32_t page) {
  ++first_touches_;
  page_owner_[page] = gpu;
  page_frame_[page] = frames_used_[gpu]++;
  tell(Moment::placed, gpu, page);
  if (settings_.gmmu_fill == GmmuFill::eager) learn(gpu, page);
  switch (settings_.first_touch) {
    case FirstTouch::free:
      return;
    case FirstTouch::copy: {
      // Pieces of 256 bytes with a header of 12 each.
      page_moving_[page] = 1;
      const std::uint32_t flits = settings_.page_bytes / 256 * network_.flits(256 + 12);
      send({.kind = MessageKind::page_data,
            .from = network_.cpu(),
            .to = gpu,
            .flits = flits,
            .page = page},
           now());
      return;
    }
    case FirstTouch::protocol:
      page_moving_[page] = 1;
      protocol_free_ = std::max(protocol_free_, now()) + settings_.protocol_cycles;
      at(protocol_free_, EventKind::page_moved, gpu, page);
      return;
  }
}

// The page lies where it shall: whoever waited for that is looked at again, without another walk.
// `with_data`: the GPU that got the translation together with the page.
void System::page_arrived(std::uint32_t page, std::uint32_t with_data) {
  page_moving_[page] = 0;
  const auto waiting = waiting_for_move_.find(page);
  if (waiting == waiting_for_move_.end()) return;
  const std::vector<std::uint32_t> gpus = std::move(waiting->second);
  waiting_for_move_.erase(waiting);
  for (const std::uint32_t gpu : gpus) {
    if (gpu == with_data) {
      receive({.kind = MessageKind::translated, .from = network_.cpu(), .to = gpu, .page = page});
    } else {
      resolve(gpu, page);
    }
  }
}

void System::answer(std::uint32_t gpu, std::uint32_t page) {
  send({.kind = MessageKind::translated, .from = network_.cpu(), .to = gpu, .page = page}, now());
}

}  // namespace demarc::sim::translation
