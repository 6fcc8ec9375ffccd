// Moves a page from one GPU to another, step by step.
//
// One page at a time moves in the whole system. All GPUs end their remote accesses. The owner
// stands still, is flushed and loses its translations of the page (TLBs, and the GMMU's entry). The
// page table changes. The new owner fetches the page in pieces of 256 bytes. The former owner and
// the links go on. The request is answered.
#include "migration.hpp"

#include <utility>

namespace demarc::sim::translation {
namespace {

constexpr std::uint32_t piece_bytes = 256;
constexpr std::uint32_t header_bytes = 12;

}  // namespace

Migration::Migration(Common& common, Links& links, PageTable& table, DataPath& data,
                     TranslationPath& translation)
    : Part(common), links_(links), table_(table), data_(data), translation_(translation) {
  state.gpus.resize(settings_.gpus);
}

bool Migration::moves(PageNumber page) const {
  return settings_.remote == Remote::migration &&
         (settings_.migration_limit == 0 || table_.states[page].moves < settings_.migration_limit);
}

bool Migration::stale(GpuIndex gpu, PageNumber page) const {
  return settings_.remote == Remote::migration && table_.owner_of(page) != gpu && moves(page);
}

void Migration::ask(GpuIndex gpu, PageNumber page) {
  state.queue.push_back({gpu, page});
  start_next();
}

bool Migration::defer(GpuIndex gpu, const Event& event) {
  if (gpu == no_gpu || !state.gpus[gpu].paused) return false;
  state.gpus[gpu].deferred.push_back(event);
  return true;
}

// `bytes`: of the page. A message without is one flit.
void Migration::send(MessageKind kind, Node from, Node to, Cycles when, std::uint32_t bytes) {
  links_.send({.kind = kind,
               .from = from,
               .to = to,
               .flits = bytes == 0 ? 1U : links_.network.flits(bytes),
               .page = state.move.page},
              when);
}

void Migration::send_to_all(MessageKind kind) {
  for (const GpuIndex gpu : state.gpus.keys())
    send(kind, links_.network.cpu(), Network::node_of(gpu), now());
}

void Migration::start_next() {
  Move& move = state.move;
  if (move.active || state.queue.empty()) return;
  const WalkRequest next = state.queue.front();
  state.queue.pop_front();
  move = {.active = true,
          .page = next.page,
          .from = table_.owner_of(next.page),
          .to = next.gpu,
          .undrained = settings_.gpus,
          .phase = "draining"};
  tell(Moment::move_began, move.to, move.page);
  send_to_all(MessageKind::drain);
}

void Migration::receive(const Message& message) {
  Move& move = state.move;
  const Node cpu = links_.network.cpu();
  const Node from = Network::node_of(move.from);
  const Node to = Network::node_of(move.to);
  switch (message.kind) {
    case MessageKind::drain:
      if (data_.hold_lines(Network::gpu_of(message.to)))
        send(MessageKind::drained, message.to, cpu, now());
      return;
    case MessageKind::drained:
      if (--move.undrained > 0) return;
      move.phase = "shooting down";
      tell(Moment::drained, move.to, move.page);
      send(MessageKind::shoot_down, cpu, from, now());
      return;
    case MessageKind::shoot_down:
      shoot_down(Network::gpu_of(message.to));
      return;
    case MessageKind::shot_down:
      move.phase = "copying";
      table_.lay(move.page, move.to);
      tell(Moment::shot_down, move.to, move.page);
      send(MessageKind::fetch_page, cpu, to, now());
      return;
    case MessageKind::fetch_page:
      move.pieces = settings_.page_bytes / piece_bytes;
      for (std::uint32_t i = 0; i < move.pieces; ++i)
        send(MessageKind::fetch_piece, to, from, now(), header_bytes);
      return;
    case MessageKind::fetch_piece:
      send(MessageKind::piece, from, to, data_.state.gpus[move.from].memory.bypass_l2(now()),
           piece_bytes + header_bytes);
      return;
    case MessageKind::piece:
      if (--move.pieces > 0) return;
      send(MessageKind::page_fetched, to, cpu, data_.state.gpus[move.to].memory.bypass_l2(now()));
      return;
    case MessageKind::page_fetched:
      move.phase = "resuming";
      tell(Moment::page_copied, move.to, move.page);
      send(MessageKind::resume, cpu, from, now());
      return;
    case MessageKind::resume:
      resume(Network::gpu_of(message.to));
      send(MessageKind::resumed, message.to, cpu, now());
      return;
    case MessageKind::resumed:
      end_move();
      return;
    case MessageKind::release_lines:
      data_.release_lines(Network::gpu_of(message.to));
      return;
    default:
      return;
  }
}

void Migration::shoot_down(GpuIndex gpu) {
  state.gpus[gpu].paused = true;
  data_.flush(gpu);
  translation_.shoot_down(gpu, state.move.page);
  Cycles done = now() + Cycles(settings_.flush_cycles);
  if (common_.architecture != Architecture::centralised) done += Cycles(settings_.gmmu_latency);
  at<EventKind::flushed>(done, gpu);
}

void Migration::flushed(GpuIndex gpu) {
  send(MessageKind::shot_down, Network::node_of(gpu), links_.network.cpu(), now());
}

void Migration::resume(GpuIndex index) {
  Gpu& gpu = state.gpus[index];
  gpu.paused = false;
  for (const Event& event : std::exchange(gpu.deferred, {})) common_.events.schedule(now(), event);
}

void Migration::end_move() {
  const PageNumber page = state.move.page;
  tell(Moment::owner_resumed, state.move.from, page);
  send_to_all(MessageKind::release_lines);
  Message answer = translation_.translated(state.move.to, page);
  answer.moved_here = true;
  links_.send(answer, now());
  state.move.active = false;
  ++state.migrations;
  ++table_.states.at(page).moves;
  translation_.page_arrived(page);
  start_next();
}

}  // namespace demarc::sim::translation
