// Fetches a translated line: through the L1 cache of the CU, the L2 and DRAM of the GPU that owns
// it, and the links in between.
#include <algorithm>
#include <functional>

#include "system.hpp"

namespace demarc::sim::translation {
namespace {

constexpr std::uint32_t request_bytes = 12;
constexpr std::uint32_t reply_header_bytes = 4;

}  // namespace

void System::access_line(AccessSlot slot, LineNumber line, Cycles when) {
  const bool store = accesses_[slot].instruction.store;
  Cu& cu = cus_[waves_[accesses_[slot].wave].cu];
  const GpuIndex owner = places_[pages_.page_of(line)].owner;
  const FrameLine physical = frame_line(line);
  const bool local = owner == cu.gpu;
  const bool cached = local || settings_.remote_in_l1 != 0;
  if (!store && cached) {
    const LruSlot tag = cu.l1.find(line);
    if (tag != LruSets<LineNumber>::absent) {
      complete_line(slot, std::max(when + Cycles(settings_.l1_latency), cu.l1_ready[tag]));
      return;
    }
  }
  GpuMemory& memory = gpus_[owner].memory;
  if (local && store) {
    complete_line(slot, memory.write(physical, when + 1_cycles));
    return;
  }
  if (local) {
    miss_l1(cu, {slot, line}, when + 1_cycles);
    return;
  }
  if (!store && cached) {
    // A line that is on its way comes once for all who wait for it.
    auto [waiting, first] = cu.remote_waiting.try_emplace(line);
    waiting->second.push_back(slot);
    if (!first) return;
  }
  ++remote_lines_;
  const std::uint32_t bytes = store ? request_bytes + line_bytes : request_bytes;
  send_line({.kind = store ? MessageKind::write_line : MessageKind::read_line,
             .from = Network::node_of(cu.gpu),
             .to = Network::node_of(owner),
             .flits = network_.flits(bytes),
             .line = {.access = slot, .of_owner = physical, .of_space = line}},
            when + 1_cycles);
}

// A remote access leaves its GPU, unless a migration wants the links quiet.
void System::send_line(const Message& message, Cycles when) {
  Gpu& gpu = gpus_[Network::gpu_of(message.from)];
  if (gpu.rdma_held) {
    const MessageSlot slot = messages_.take();
    messages_[slot] = message;
    gpu.held.push_back(slot);
    return;
  }
  ++gpu.remote_in_flight;
  send(message, when);
}

void System::line_returned(GpuIndex index) {
  Gpu& gpu = gpus_[index];
  if (--gpu.remote_in_flight > 0 || !gpu.drain_asked) return;
  gpu.drain_asked = false;
  send({.kind = MessageKind::drained, .from = Network::node_of(index), .to = network_.cpu()},
       now());
}

// A read of this GPU's memory takes a miss register; without a free one it waits in order, while
// hits pass.
void System::miss_l1(Cu& cu, const LineWaiter& miss, Cycles when) {
  if (cu.l1_waiting.empty() && cu.l1_misses.front() <= when) {
    start_l1_miss(cu, miss, when);
    return;
  }
  cu.l1_waiting.push_back(miss);
  if (!cu.l1_scheduled) wait_for_l1_register(cu);
}

void System::wait_for_l1_register(Cu& cu) {
  cu.l1_scheduled = true;
  at<EventKind::l1_free>(std::max(cu.l1_misses.front(), now()), CuIndex(&cu - cus_.data()));
}

void System::start_l1_miss(Cu& cu, const LineWaiter& miss, Cycles when) {
  const Cycles arrived = gpus_[cu.gpu].memory.read(frame_line(miss.line), when);
  std::pop_heap(cu.l1_misses.begin(), cu.l1_misses.end(), std::greater<>());
  cu.l1_misses.back() = arrived;
  std::push_heap(cu.l1_misses.begin(), cu.l1_misses.end(), std::greater<>());
  const Cycles ready = arrived + Cycles(settings_.l1_fill_latency);
  cu.l1_ready[cu.l1.insert(miss.line)] = ready;
  complete_line(miss.access, ready);
}

void System::run_l1_misses(CuIndex index) {
  Cu& cu = cus_[index];
  cu.l1_scheduled = false;
  while (!cu.l1_waiting.empty()) {
    const LineWaiter miss = cu.l1_waiting.front();
    const GpuIndex owner = places_[pages_.page_of(miss.line)].owner;
    const LruSlot tag = cu.l1.find(miss.line);
    if (tag != LruSets<LineNumber>::absent) {  // an earlier miss has brought the line
      complete_line(miss.access, std::max(now() + Cycles(settings_.l1_latency), cu.l1_ready[tag]));
    } else if (owner != cu.gpu) {  // the page has moved meanwhile
      access_line(miss.access, miss.line, now());
    } else if (cu.l1_misses.front() > now()) {
      wait_for_l1_register(cu);
      return;
    } else {
      start_l1_miss(cu, miss, now());
    }
    cu.l1_waiting.pop_front();
  }
}

void System::complete_line(AccessSlot slot, Cycles when) {
  Access& access = accesses_[slot];
  access.done = std::max(access.done, when);
  if (--access.pending == 0) at<EventKind::access_done>(std::max(access.done, now()), slot);
}

void System::send(const Message& message, Cycles when) {
  const MessageSlot slot = messages_.take();
  messages_[slot] = message;
  at<EventKind::hop>(when, slot);
}

void System::hop(MessageSlot slot) {
  Message& message = messages_[slot];
  if (message.hop == network_.hops(message.from, message.to)) {
    const bool for_gpu = message.to != network_.cpu() && gpus_[Network::gpu_of(message.to)].paused;
    const bool waits = message.kind == MessageKind::translated ||
                       message.kind == MessageKind::page_data ||
                       message.kind == MessageKind::line_data;
    if (for_gpu && waits) {
      gpus_[Network::gpu_of(message.to)].deferred.push_back(Event::of<EventKind::hop>(slot));
      return;
    }
    const Message arrived = message;
    messages_.give_back(slot);
    receive(arrived);
    return;
  }
  const Cycles there = network_.cross(message.from, message.to, message.hop, message.flits, now());
  ++message.hop;
  at<EventKind::hop>(there, slot);
}

void System::receive(const Message& message) {
  const PageNumber page = message.page;
  switch (message.kind) {
    case MessageKind::translate:
      ++iommu_accesses_;
      tell(Moment::iommu_asked, Network::gpu_of(message.from), page);
      iommu_.arrive({Network::gpu_of(message.from), page}, now());
      run_iommu();
      return;
    case MessageKind::page_data:
      page_arrived(page, Network::gpu_of(message.to));
      return;
    case MessageKind::translated: {
      const GpuIndex gpu = Network::gpu_of(message.to);
      if (message.moved_here && architecture_ != Architecture::centralised) {
        at<EventKind::entered>(now() + Cycles(settings_.gmmu_latency), gpu, page);
        return;
      }
      if (settings_.gmmu_fill == GmmuFill::any || places_[page].owner == gpu) learn(gpu, page);
      fill_l2_tlb(gpu, page);
      return;
    }
    case MessageKind::read_line: {
      const Cycles ready =
          gpus_[Network::gpu_of(message.to)].memory.read(message.line.of_owner, now());
      send({.kind = MessageKind::line_data,
            .from = message.to,
            .to = message.from,
            .flits = network_.flits(line_bytes + reply_header_bytes),
            .line = message.line},
           ready);
      return;
    }
    case MessageKind::write_line: {
      const Cycles ready =
          gpus_[Network::gpu_of(message.to)].memory.write(message.line.of_owner, now());
      send({.kind = MessageKind::write_done,
            .from = message.to,
            .to = message.from,
            .line = message.line},
           ready);
      return;
    }
    case MessageKind::line_data: {
      Cu& cu = cus_[waves_[accesses_[message.line.access].wave].cu];
      if (settings_.remote_in_l1 != 0) {
        const Cycles ready = now() + Cycles(settings_.l1_fill_latency);
        cu.l1_ready[cu.l1.insert(message.line.of_space)] = ready;
        const auto waiting = cu.remote_waiting.extract(message.line.of_space);
        for (const AccessSlot one : waiting.mapped()) complete_line(one, ready);
      } else {
        complete_line(message.line.access, now());
      }
      line_returned(Network::gpu_of(message.to));
      return;
    }
    case MessageKind::write_done:
      complete_line(message.line.access, now());
      line_returned(Network::gpu_of(message.to));
      return;
    default:
      receive_move(message);
      return;
  }
}

}  // namespace demarc::sim::translation
