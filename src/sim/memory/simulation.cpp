// Answers what the outside asks of a simulation: launches, times, single accesses.
#include "demarc/sim/memory/simulation.hpp"

#include <algorithm>

#include "engine.hpp"

namespace demarc::sim::memory {

// One access of a request leaves. An access counts as pending from its event until its arrival.
void Engine::inject(RequestIndex index) {
  InjectedState& injected = state.injected[index];
  const Request& request = injected.request;
  if (request.repeats == 0 && state.injected_closing) {
    --state.injected_pending;
    return;
  }
  constexpr std::uint32_t max_under_way = 2;
  if (request.interval != Cycles() && injected.under_way == max_under_way) {
    --state.injected_pending;
    injected.late = true;
    return;
  }
  ++injected.under_way;
  if (request.interval != Cycles()) schedule_inject(now() + request.interval, index);
  Packet packet;
  packet.line = line_of(request.address);
  packet.sectors = static_cast<std::uint8_t>(sector_of(request.address));
  packet.owner = index;
  packet.sm = request.sm;
  packet.kind = request.kind;
  packet.injected = true;
  packet.cached = request.cached || request.kind != StepKind::load;
  send(packet, now());
}

void Engine::injected_done(RequestIndex index) {
  InjectedState& injected = state.injected[index];
  --state.injected_pending;
  --injected.under_way;
  if (injected.completion.count++ == 0) injected.completion.first = now();
  injected.completion.last = now();
  if (injected.completion.count == injected.request.repeats) {
    --state.injected_open;
  } else if (injected.request.interval == Cycles() || injected.late) {
    injected.late = false;
    schedule_inject(now(), index);
  }
}

namespace {

Error stuck_error(const Engine& engine, std::string_view what) {
  return Error{ErrorKind::check_failed, fmt::format("the simulation is stuck at cycle {}: {}\n{}",
                                                    engine.now(), what, engine.waiting())};
}

}  // namespace

Simulation::Simulation(const Spec& spec) : engine_(std::make_unique<Engine>(spec)) {}
Simulation::~Simulation() = default;
Simulation::Simulation(Simulation&&) noexcept = default;

const Spec& Simulation::spec() const {
  return engine_->spec;
}
const AddressDecoder& Simulation::decoder() const {
  return engine_->decoder;
}
Cycles Simulation::now() const {
  return engine_->now();
}
ClientIndex Simulation::add_client(ClientSpec client) {
  return engine_->add_client(std::move(client));
}
const ClientStatistics& Simulation::statistics(ClientIndex client) const {
  return engine_->state.clients.at(client).statistics;
}
const DramStatistics& Simulation::dram() const {
  return engine_->state.dram;
}
std::string Simulation::waiting() const {
  return engine_->waiting();
}
void Simulation::touch(PhysicalAddress address, bool written) {
  engine_->touch(line_of(address), written);
}

Result<void> Simulation::run_launches(ClientIndex client, std::uint64_t launches, Cycles limit) {
  Engine& engine = *engine_;
  const Cycles end = engine.now() + limit;
  while (engine.state.clients.at(client).statistics.run_cycles.size() < launches) {
    if (engine.state.error) return tl::unexpected(*engine.state.error);
    if (engine.state.events.empty()) {
      return tl::unexpected(
          stuck_error(engine, fmt::format("nothing can happen any more and {} has not finished",
                                          engine.clients[client].name)));
    }
    if (engine.now() > end) {
      return tl::unexpected(stuck_error(engine, fmt::format("{} has not finished after {} cycles",
                                                            engine.clients[client].name, limit)));
    }
    engine.run_until(end);
  }
  if (engine.state.error) return tl::unexpected(*engine.state.error);
  return {};
}

Result<void> Simulation::run_for(Cycles cycles) {
  Engine& engine = *engine_;
  const Cycles end = engine.now() + cycles;
  engine.run_through(end);
  if (engine.state.error) return tl::unexpected(*engine.state.error);
  return {};
}

Result<std::vector<Completion>> Simulation::timed(std::span<const Request> requests) {
  Engine& engine = *engine_;
  State& state = engine.state;
  const Cycles start = engine.now();
  state.injected.clear();
  state.injected_open = 0;
  state.injected_pending = 0;
  state.injected_closing = false;
  for (const Request& request : requests) {
    if (request.sm.raw() >= engine.spec.sms()) {
      return invalid_input("an access from SM {}, but there are only {} SMs", request.sm,
                           engine.spec.sms());
    }
    if (!find_line(request.address)) {
      return invalid_input("an access to {:#x}: a simulated card has no memory beyond {:#x}",
                           request.address, max_bytes);
    }
    state.injected_open += request.repeats != 0 ? 1 : 0;
    state.injected.push_back({request, {}, 0, false});
  }
  if (state.injected_open == 0)
    return invalid_input("all accesses repeat for ever; at least one must end");
  for (const RequestIndex i : state.injected.keys())
    engine.schedule_inject(start + state.injected[i].request.at, i);
  while (state.injected_open > 0) {
    if (state.error) return tl::unexpected(*state.error);
    if (state.events.empty())
      return tl::unexpected(stuck_error(engine, "accesses wait for answers that never come"));
    engine.step();
  }
  std::vector<Completion> completions;
  for (const InjectedState& injected : state.injected) {
    Completion completion = injected.completion;
    if (completion.count > 0) {
      completion.first -= start;
      completion.last -= start;
    }
    completions.push_back(completion);
  }
  // What those without an end still have under way is waited for and not counted.
  state.injected_closing = true;
  while (state.injected_pending > 0 && !state.error) engine.step();
  return completions;
}

}  // namespace demarc::sim::memory
