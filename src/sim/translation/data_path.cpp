// Fetches a translated line: through the L1 cache of the CU, the L2 and DRAM of the GPU that owns
// it, and the links in between.
#include "data_path.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace demarc::sim::translation {

DataPath::Cu::Cu(const Settings& settings, GpuIndex gpu_index)
    : gpu(gpu_index),
      l1(settings.l1_bytes / line_bytes / settings.wide_lines / settings.l1_ways, settings.l1_ways),
      l1_lines(l1.size()),
      l1_misses(settings.l1_mshrs) {}

DataPath::DataPath(Common& common, Links& links, const PageTable& table)
    : Part(common), links_(links), table_(table) {
  for (const GpuIndex gpu : indices<GpuIndex>(settings_.gpus)) {
    state.gpus.emplace_back(settings_);
    for (std::uint32_t cu = 0; cu < settings_.cus; ++cu) state.cus.emplace_back(settings_, gpu);
  }
}

// When sectors of a line are in the L1 of a CU, which has them or is waiting for them.
std::optional<Cycles> DataPath::find_in_l1(Cu& cu, LineNumber line, Sectors sectors) const {
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

void DataPath::put_into_l1(Cu& cu, LineNumber line, Sectors sectors, Cycles ready) const {
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
std::uint32_t DataPath::line_flits(std::uint32_t header, const Message& message,
                                   bool with_data) const {
  const auto data = static_cast<std::uint32_t>(std::popcount(message.sectors)) * sector_bytes;
  return links_.network.flits((message.joins ? 0 : header) + (with_data ? data : 0));
}

void DataPath::access_line(const LineWaiter& wanted, Cycles when) {
  Access& access = state.accesses[wanted.access];
  const LineNumber line = wanted.line;
  const bool store = access.instruction.store;
  Cu& cu = state.cus[access.cu];
  const GpuIndex owner = table_.owner_of(table_.page_of(line));
  const FrameLine physical = table_.frame_line(line);
  const bool local = owner == cu.gpu;
  const bool cached = local || settings_.remote_in_l1 != 0;
  if (!store && cached) {
    if (const auto ready = find_in_l1(cu, line, wanted.sectors)) {
      complete_line(wanted.access, std::max(when + Cycles(settings_.l1_latency), *ready));
      return;
    }
  }
  GpuMemory& memory = state.gpus[owner].memory;
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
  ++state.remote_lines;
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
void DataPath::send_line(const Message& message, Cycles when) {
  Gpu& gpu = state.gpus[Network::gpu_of(message.from)];
  if (gpu.rdma_held) {
    gpu.held.push_back(links_.keep(message));
    return;
  }
  ++gpu.remote_in_flight;
  links_.send(message, when);
}

void DataPath::line_returned(GpuIndex index) {
  Gpu& gpu = state.gpus[index];
  if (--gpu.remote_in_flight > 0 || !gpu.drain_asked) return;
  gpu.drain_asked = false;
  links_.send(
      {.kind = MessageKind::drained, .from = Network::node_of(index), .to = links_.network.cpu()},
      now());
}

// A read of this GPU's memory takes a miss register; without a free one it waits in order, while
// hits pass.
void DataPath::miss_l1(Cu& cu, const LineWaiter& miss, Cycles when) {
  if (cu.l1_waiting.empty() && cu.l1_misses.front() <= when) {
    start_l1_miss(cu, miss, when);
    return;
  }
  cu.l1_waiting.push_back(miss);
  if (!cu.l1_scheduled) wait_for_l1_register(cu);
}

void DataPath::wait_for_l1_register(Cu& cu) {
  cu.l1_scheduled = true;
  at<EventKind::l1_free>(std::max(cu.l1_misses.front(), now()), CuIndex(&cu - state.cus.data()));
}

void DataPath::start_l1_miss(Cu& cu, const LineWaiter& miss, Cycles when) {
  const Cycles arrived = state.gpus[cu.gpu].memory.read(table_.frame_line(miss.line), when);
  std::pop_heap(cu.l1_misses.begin(), cu.l1_misses.end(), std::greater<>());
  cu.l1_misses.back() = arrived;
  std::push_heap(cu.l1_misses.begin(), cu.l1_misses.end(), std::greater<>());
  const Cycles ready = arrived + Cycles(settings_.l1_fill_latency);
  put_into_l1(cu, miss.line, miss.sectors, ready);
  complete_line(miss.access, ready);
}

void DataPath::run_l1_misses(CuIndex index) {
  Cu& cu = state.cus[index];
  cu.l1_scheduled = false;
  while (!cu.l1_waiting.empty()) {
    const LineWaiter miss = cu.l1_waiting.front();
    const GpuIndex owner = table_.owner_of(table_.page_of(miss.line));
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

void DataPath::complete_line(AccessSlot slot, Cycles when) {
  Access& access = state.accesses[slot];
  access.done = std::max(access.done, when);
  if (--access.pending == 0) at<EventKind::access_done>(std::max(access.done, now()), slot);
}

void DataPath::receive(const Message& message) {
  const GpuIndex there = Network::gpu_of(message.to);
  if (message.kind == MessageKind::read_line) {
    Message answer = message;
    answer.kind = MessageKind::line_data;
    answer.from = message.to;
    answer.to = message.from;
    answer.flits = line_flits(settings_.reply_bytes, message, true);
    answer.hop = 0;
    links_.send(answer, state.gpus[there].memory.read(message.line.of_owner, now()));
  } else if (message.kind == MessageKind::write_line) {
    links_.send({.kind = MessageKind::write_done,
                 .from = message.to,
                 .to = message.from,
                 .flits = message.joins ? 0U : 1U,
                 .line = message.line},
                state.gpus[there].memory.write(message.line.of_owner, now()));
  } else {
    if (message.kind == MessageKind::line_data && settings_.remote_in_l1 != 0) {
      bring_into_l1(message);
    } else {
      complete_line(message.line.access, now());
    }
    line_returned(there);
  }
}

void DataPath::bring_into_l1(const Message& message) {
  Cu& cu = state.cus[state.accesses[message.line.access].cu];
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
}

void DataPath::forget_l1s() {
  for (Cu& cu : state.cus) cu.l1.clear();
}

void DataPath::flush(GpuIndex gpu) {
  state.gpus[gpu].memory.flush();
  for (Cu& cu : state.cus) {
    if (cu.gpu == gpu) cu.l1.clear();
  }
}

bool DataPath::hold_lines(GpuIndex index) {
  Gpu& gpu = state.gpus[index];
  gpu.rdma_held = true;
  gpu.drain_asked = gpu.remote_in_flight > 0;
  return !gpu.drain_asked;
}

void DataPath::release_lines(GpuIndex index) {
  Gpu& gpu = state.gpus[index];
  gpu.rdma_held = false;
  gpu.remote_in_flight += static_cast<std::uint32_t>(gpu.held.size());
  for (const MessageSlot slot : gpu.held) links_.go_on(slot);
  gpu.held.clear();
}

}  // namespace demarc::sim::translation
