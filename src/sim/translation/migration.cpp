// A page that moves from GPU to GPU, one at a time in the whole system: all GPUs end their remote
// accesses; the owner stands still, is flushed and loses its translations of the page (TLBs, and
// the GMMU's entry); the page table changes; the new owner fetches the page in pieces of 256 bytes;
// the former owner and the links go on; the request is answered.
#include <algorithm>

#include "system.hpp"

namespace demarc::sim::translation {
namespace {

constexpr std::uint32_t piece_bytes = 256;
constexpr std::uint32_t header_bytes = 12;

}  // namespace

bool System::moves(std::uint32_t page) const {
  return settings_.remote == Remote::migration &&
         (settings_.migration_limit == 0 || page_moves_[page] < settings_.migration_limit);
}

// An answer under way that a move has overtaken.
bool System::stale(std::uint32_t gpu, std::uint32_t page) const {
  return settings_.remote == Remote::migration && page_owner_[page] != gpu && moves(page);
}

std::uint32_t System::gpu_of(const Event& event) const {
  switch (event.kind) {
    case EventKind::wave_next:
    case EventKind::wave_issue:
      return cus_[waves_[event.a].cu].gpu;
    case EventKind::l1_run:
    case EventKind::l1_fill:
    case EventKind::l1_free:
    case EventKind::l2_arrive:
      return cus_[event.a].gpu;
    case EventKind::dispatch:
    case EventKind::l2_run:
    case EventKind::gmmu_arrive:
    case EventKind::gmmu_done:
    case EventKind::entered:
      return event.a;
    case EventKind::access_done:
      return cus_[waves_[accesses_[event.a].wave].cu].gpu;
    default:
      return no_gpu;
  }
}

// What happens inside a GPU that stands still happens when it goes on.
bool System::defer(const Event& event) {
  const std::uint32_t gpu = gpu_of(event);
  if (gpu == no_gpu || !gpus_[gpu].paused) return false;
  gpus_[gpu].deferred.push_back(event);
  return true;
}

void System::start_next_move() {
  if (move_.active || move_queue_.empty()) return;
  const WalkRequest next = move_queue_.front();
  move_queue_.pop_front();
  move_.active = true;
  move_.page = next.page;
  move_.from = page_owner_[next.page];
  move_.to = next.gpu;
  move_.undrained = settings_.gpus;
  move_.phase = "draining";
  tell(Moment::move_began, move_.to, move_.page);
  for (std::uint32_t gpu = 0; gpu < settings_.gpus; ++gpu)
    send({.kind = MessageKind::drain, .from = network_.cpu(), .to = gpu, .page = move_.page},
         now());
}

void System::receive_move(const Message& message) {
  const std::uint32_t cpu = network_.cpu();
  const std::uint32_t page = move_.page;
  switch (message.kind) {
    case MessageKind::drain: {
      Gpu& gpu = gpus_[message.to];
      gpu.rdma_held = true;
      gpu.drain_asked = gpu.remote_in_flight > 0;
      if (!gpu.drain_asked)
        send({.kind = MessageKind::drained, .from = message.to, .to = cpu, .page = page}, now());
      return;
    }
    case MessageKind::drained:
      if (--move_.undrained > 0) return;
      move_.phase = "shooting down";
      tell(Moment::drained, move_.to, page);
      send({.kind = MessageKind::shoot_down, .from = cpu, .to = move_.from, .page = page}, now());
      return;
    case MessageKind::shoot_down:
      shoot_down(message.to);
      return;
    case MessageKind::shot_down:
      move_.phase = "copying";
      page_owner_[page] = move_.to;
      page_frame_[page] = frames_used_[move_.to]++;
      tell(Moment::shot_down, move_.to, page);
      send({.kind = MessageKind::fetch_page, .from = cpu, .to = move_.to, .page = page}, now());
      return;
    case MessageKind::fetch_page:
      move_.pieces = settings_.page_bytes / piece_bytes;
      for (std::uint32_t i = 0; i < move_.pieces; ++i) {
        send({.kind = MessageKind::fetch_piece,
              .from = move_.to,
              .to = move_.from,
              .flits = network_.flits(header_bytes),
              .page = page},
             now());
      }
      return;
    case MessageKind::fetch_piece:
      send({.kind = MessageKind::piece,
            .from = move_.from,
            .to = move_.to,
            .flits = network_.flits(piece_bytes + header_bytes),
            .page = page},
           gpus_[move_.from].memory.bypass_l2(now()));
      return;
    case MessageKind::piece:
      if (--move_.pieces > 0) return;
      send({.kind = MessageKind::page_fetched, .from = move_.to, .to = cpu, .page = page},
           gpus_[move_.to].memory.bypass_l2(now()));
      return;
    case MessageKind::page_fetched:
      move_.phase = "resuming";
      tell(Moment::page_copied, move_.to, page);
      send({.kind = MessageKind::resume, .from = cpu, .to = move_.from, .page = page}, now());
      return;
    case MessageKind::resume:
      resume(message.to);
      send({.kind = MessageKind::resumed, .from = message.to, .to = cpu, .page = page}, now());
      return;
    case MessageKind::resumed:
      end_move();
      return;
    case MessageKind::release_lines: {
      Gpu& gpu = gpus_[message.to];
      gpu.rdma_held = false;
      gpu.remote_in_flight += static_cast<std::uint32_t>(gpu.held.size());
      for (const std::uint32_t slot : gpu.held) at(now(), EventKind::hop, slot);
      gpu.held.clear();
      return;
    }
    default:
      return;
  }
}

void System::shoot_down(std::uint32_t index) {
  Gpu& gpu = gpus_[index];
  gpu.paused = true;
  gpu.memory.flush();
  gpu.tlb.invalidate(move_.page);
  for (std::uint32_t cu = 0; cu < settings_.cus; ++cu) {
    cus_[std::size_t{index} * settings_.cus + cu].l1.clear();
    cus_[std::size_t{index} * settings_.cus + cu].tlb.invalidate(move_.page);
  }
  Cycles done = now() + settings_.flush_cycles;
  if (architecture_ != Architecture::centralised) done += settings_.gmmu_latency;
  if (gpu.table[move_.page] != 0) {
    gpu.table[move_.page] = 0;
    if (gpu.bypass) gpu.bypass->on_table_remove(move_.page);
  }
  at(done, EventKind::flushed, index);
}

void System::resume(std::uint32_t index) {
  Gpu& gpu = gpus_[index];
  gpu.paused = false;
  std::vector<Event> deferred;
  deferred.swap(gpu.deferred);
  for (const Event& event : deferred) at(now(), event.kind, event.a, event.b);
}

void System::end_move() {
  const std::uint32_t page = move_.page;
  const std::uint32_t cpu = network_.cpu();
  tell(Moment::owner_resumed, move_.from, page);
  for (std::uint32_t gpu = 0; gpu < settings_.gpus; ++gpu)
    send({.kind = MessageKind::release_lines, .from = cpu, .to = gpu, .page = page}, now());
  send({.kind = MessageKind::translated,
        .from = cpu,
        .to = move_.to,
        .page = page,
        .moved_here = true},
       now());
  move_.active = false;
  ++migrations_;
  ++page_moves_[page];
  page_arrived(page);
  start_next_move();
}

}  // namespace demarc::sim::translation
