// Moves a page from one GPU to another, step by step.
//
// One page at a time moves in the whole system. All GPUs end their remote accesses. The owner
// stands still, is flushed and loses its translations of the page (TLBs, and the GMMU's entry). The
// page table changes. The new owner fetches the page in pieces of 256 bytes. The former owner and
// the links go on. The request is answered.
#include <algorithm>

#include "system.hpp"

namespace demarc::sim::translation {
namespace {

constexpr std::uint32_t piece_bytes = 256;
constexpr std::uint32_t header_bytes = 12;

}  // namespace

bool System::moves(PageNumber page) const {
  return settings_.remote == Remote::migration &&
         (settings_.migration_limit == 0 || states_[page].moves < settings_.migration_limit);
}

// An answer under way that a move has overtaken.
bool System::stale(GpuIndex gpu, PageNumber page) const {
  return settings_.remote == Remote::migration && places_[page].owner != gpu && moves(page);
}

GpuIndex System::gpu_of(const Event& event) const {
  const auto of_cu = [&](CuIndex cu) { return cus_[cu].gpu; };
  const auto of_wave = [&](WaveSlot wave) { return of_cu(waves_[wave].cu); };
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
      return of_wave(accesses_[event.subject<EventKind::access_done>()].wave);
    default:
      return no_gpu;
  }
}

// What happens inside a GPU that stands still happens when it goes on.
bool System::defer(const Event& event) {
  const GpuIndex gpu = gpu_of(event);
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
  move_.from = places_[next.page].owner;
  move_.to = next.gpu;
  move_.undrained = settings_.gpus;
  move_.phase = "draining";
  tell(Moment::move_began, move_.to, move_.page);
  for (const GpuIndex gpu : gpus_.keys())
    send({.kind = MessageKind::drain,
          .from = network_.cpu(),
          .to = Network::node_of(gpu),
          .page = move_.page},
         now());
}

void System::receive_move(const Message& message) {
  const Node cpu = network_.cpu();
  const Node from = Network::node_of(move_.from);
  const Node to = Network::node_of(move_.to);
  const PageNumber page = move_.page;
  switch (message.kind) {
    case MessageKind::drain: {
      Gpu& gpu = gpus_[Network::gpu_of(message.to)];
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
      send({.kind = MessageKind::shoot_down, .from = cpu, .to = from, .page = page}, now());
      return;
    case MessageKind::shoot_down:
      shoot_down(Network::gpu_of(message.to));
      return;
    case MessageKind::shot_down:
      move_.phase = "copying";
      lay(page, move_.to);
      tell(Moment::shot_down, move_.to, page);
      send({.kind = MessageKind::fetch_page, .from = cpu, .to = to, .page = page}, now());
      return;
    case MessageKind::fetch_page:
      move_.pieces = settings_.page_bytes / piece_bytes;
      for (std::uint32_t i = 0; i < move_.pieces; ++i) {
        send({.kind = MessageKind::fetch_piece,
              .from = to,
              .to = from,
              .flits = network_.flits(header_bytes),
              .page = page},
             now());
      }
      return;
    case MessageKind::fetch_piece:
      send({.kind = MessageKind::piece,
            .from = from,
            .to = to,
            .flits = network_.flits(piece_bytes + header_bytes),
            .page = page},
           gpus_[move_.from].memory.bypass_l2(now()));
      return;
    case MessageKind::piece:
      if (--move_.pieces > 0) return;
      send({.kind = MessageKind::page_fetched, .from = to, .to = cpu, .page = page},
           gpus_[move_.to].memory.bypass_l2(now()));
      return;
    case MessageKind::page_fetched:
      move_.phase = "resuming";
      tell(Moment::page_copied, move_.to, page);
      send({.kind = MessageKind::resume, .from = cpu, .to = from, .page = page}, now());
      return;
    case MessageKind::resume:
      resume(Network::gpu_of(message.to));
      send({.kind = MessageKind::resumed, .from = message.to, .to = cpu, .page = page}, now());
      return;
    case MessageKind::resumed:
      end_move();
      return;
    case MessageKind::release_lines: {
      Gpu& gpu = gpus_[Network::gpu_of(message.to)];
      gpu.rdma_held = false;
      gpu.remote_in_flight += static_cast<std::uint32_t>(gpu.held.size());
      for (const MessageSlot slot : gpu.held) at<EventKind::hop>(now(), slot);
      gpu.held.clear();
      return;
    }
    default:
      return;
  }
}

void System::shoot_down(GpuIndex index) {
  Gpu& gpu = gpus_[index];
  gpu.paused = true;
  gpu.memory.flush();
  gpu.tlb.invalidate(move_.page);
  for (std::uint32_t number = 0; number < settings_.cus; ++number) {
    Cu& cu = cus_[cu_of(index, number)];
    cu.l1.clear();
    cu.tlb.invalidate(move_.page);
  }
  Cycles done = now() + Cycles(settings_.flush_cycles);
  if (architecture_ != Architecture::centralised) done += Cycles(settings_.gmmu_latency);
  if (knows(index, move_.page)) {
    states_.at(move_.page).known_by &= ~(std::uint64_t{1} << index.raw());
    if (gpu.bypass) gpu.bypass->on_table_remove(move_.page);
  }
  at<EventKind::flushed>(done, index);
}

void System::resume(GpuIndex index) {
  Gpu& gpu = gpus_[index];
  gpu.paused = false;
  std::vector<Event> deferred;
  deferred.swap(gpu.deferred);
  for (const Event& event : deferred) schedule(now(), event);
}

void System::end_move() {
  const PageNumber page = move_.page;
  tell(Moment::owner_resumed, move_.from, page);
  for (const GpuIndex gpu : gpus_.keys())
    send({.kind = MessageKind::release_lines,
          .from = network_.cpu(),
          .to = Network::node_of(gpu),
          .page = page},
         now());
  Message answer = translated(move_.to, page);
  answer.moved_here = true;
  send(answer, now());
  move_.active = false;
  ++migrations_;
  ++states_.at(page).moves;
  page_arrived(page);
  start_next_move();
}

}  // namespace demarc::sim::translation
