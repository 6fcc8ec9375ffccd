// Fetches a translated line: through the L1 cache of the CU, the L2 and DRAM of the GPU that owns
// it, and the links in between.
#include <algorithm>
#include <bit>
#include <functional>

#include "system.hpp"

namespace demarc::sim::translation {

// When sectors of a line are in the L1 of a CU, which has them or is waiting for them.
std::optional<Cycles> System::find_in_l1(Cu& cu, LineNumber line, Sectors sectors) const {
  const LruSlot tag = cu.l1.find(wide(line));
  if (tag == LruSets<WideLine>::absent) return std::nullopt;
  const L1Line& found = cu.l1_lines[tag];
  const Sectors wanted = under_tag(line, sectors);
  if ((wanted & ~found.valid) != 0) return std::nullopt;
  Cycles ready;
  for (Sectors left = wanted; left != 0; left &= left - 1) {
    ready = std::max(ready, found.ready[static_cast<std::size_t>(std::countr_zero(left))]);
  }
  return ready;
}

void System::put_into_l1(Cu& cu, LineNumber line, Sectors sectors, Cycles ready) const {
  LruSlot tag = cu.l1.find(wide(line));
  if (tag == LruSets<WideLine>::absent) {
    tag = cu.l1.insert(wide(line));
    cu.l1_lines[tag].valid = 0;
  }
  L1Line& found = cu.l1_lines[tag];
  const Sectors brought = under_tag(line, sectors);
  found.valid |= brought;
  for (Sectors left = brought; left != 0; left &= left - 1) {
    found.ready[static_cast<std::size_t>(std::countr_zero(left))] = ready;
  }
}

// Flits of a message of a line. One that joins the message before it has no header of its own.
std::uint32_t System::line_flits(std::uint32_t header, const Message& message,
                                 bool with_data) const {
  const auto data = static_cast<std::uint32_t>(std::popcount(message.sectors)) * sector_bytes;
  return network_.flits((message.joins ? 0 : header) + (with_data ? data : 0));
}

void System::access_line(const LineWaiter& wanted, Cycles when) {
  Access& access = accesses_[wanted.access];
  const LineNumber line = wanted.line;
  const bool store = access.instruction.store;
  Cu& cu = cus_[waves_[access.wave].cu];
  const GpuIndex owner = places_[pages_.page_of(line)].owner;
  const FrameLine physical = frame_line(line);
  const bool local = owner == cu.gpu;
  const bool cached = local || settings_.remote_in_l1 != 0;
  if (!store && cached) {
    if (const auto ready = find_in_l1(cu, line, wanted.sectors)) {
      complete_line(wanted.access, std::max(when + Cycles(settings_.l1_latency), *ready));
      return;
    }
  }
  GpuMemory& memory = gpus_[owner].memory;
  if (local && store) {
    complete_line(wanted.access, memory.write(physical, when + 1_cycles));
    return;
  }
  if (local) {
    miss_l1(cu, wanted, when + 1_cycles);
    return;
  }
  Sectors sectors = wanted.sectors;
  if (!store && cached) {
    // A sector that is on its way comes once for all who wait for it.
    RemoteLines& remote = cu.remote_waiting[line];
    remote.waiting.push_back(wanted);
    sectors &= ~remote.asked;
    if (sectors == 0) return;
    remote.asked |= sectors;
  }
  ++remote_lines_;
  Message message{.kind = store ? MessageKind::write_line : MessageKind::read_line,
                  .from = Network::node_of(cu.gpu),
                  .to = Network::node_of(owner),
                  .joins = access.sent && *access.sent != line && wide(*access.sent) == wide(line),
                  .sectors = static_cast<std::uint8_t>(sectors),
                  .line = {.access = wanted.access, .of_owner = physical, .of_space = line}};
  const std::uint32_t header =
      settings_.request_bytes + (access.instruction.partial ? settings_.partial_bytes : 0);
  message.flits = line_flits(header, message, store);
  access.sent = line;
  send_line(message, when + 1_cycles);
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
  put_into_l1(cu, miss.line, miss.sectors, ready);
  complete_line(miss.access, ready);
}

void System::run_l1_misses(CuIndex index) {
  Cu& cu = cus_[index];
  cu.l1_scheduled = false;
  while (!cu.l1_waiting.empty()) {
    const LineWaiter miss = cu.l1_waiting.front();
    const GpuIndex owner = places_[pages_.page_of(miss.line)].owner;
    if (const auto ready = find_in_l1(cu, miss.line, miss.sectors)) {  // an earlier miss brought it
      complete_line(miss.access, std::max(now() + Cycles(settings_.l1_latency), *ready));
    } else if (owner != cu.gpu) {  // the page has moved meanwhile
      access_line(miss, now());
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
      Message answer = message;
      answer.kind = MessageKind::line_data;
      answer.from = message.to;
      answer.to = message.from;
      answer.flits = line_flits(settings_.reply_bytes, message, true);
      answer.hop = 0;
      send(answer, ready);
      return;
    }
    case MessageKind::write_line: {
      const Cycles ready =
          gpus_[Network::gpu_of(message.to)].memory.write(message.line.of_owner, now());
      send({.kind = MessageKind::write_done,
            .from = message.to,
            .to = message.from,
            .flits = message.joins ? 0U : 1U,
            .line = message.line},
           ready);
      return;
    }
    case MessageKind::line_data: {
      Cu& cu = cus_[waves_[accesses_[message.line.access].wave].cu];
      if (settings_.remote_in_l1 != 0) {
        const Cycles ready = now() + Cycles(settings_.l1_fill_latency);
        put_into_l1(cu, message.line.of_space, message.sectors, ready);
        const auto remote = cu.remote_waiting.find(message.line.of_space);
        std::erase_if(remote->second.waiting, [&](LineWaiter& one) {
          one.sectors &= ~Sectors{message.sectors};
          if (one.sectors == 0) complete_line(one.access, ready);
          return one.sectors == 0;
        });
        remote->second.asked &= ~Sectors{message.sectors};
        if (remote->second.asked == 0) cu.remote_waiting.erase(remote);
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
