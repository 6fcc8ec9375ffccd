// Answers what the outside asks of a simulation: launches, times, single accesses.
#include "demarc/sim/memory/simulation.hpp"

#include <algorithm>

#include "engine.hpp"

namespace demarc::sim::memory {

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
  return engine_->common.spec;
}
const AddressDecoder& Simulation::decoder() const {
  return engine_->l2.decoder;
}
Cycles Simulation::now() const {
  return engine_->now();
}
ClientIndex Simulation::add_client(ClientSpec client) {
  return engine_->sms.add_client(std::move(client));
}
const ClientStatistics& Simulation::statistics(ClientIndex client) const {
  return engine_->common.statistics.at(client);
}
const DramStatistics& Simulation::dram() const {
  return engine_->dram.state.statistics;
}
Result<void> Simulation::check_counts() const {
  const auto& clients = engine_->common.statistics;
  return memory::check_counts(spec(), now(), {clients.begin(), clients.end()}, dram());
}
std::string Simulation::waiting() const {
  return engine_->waiting();
}
void Simulation::touch(PhysicalAddress address, bool written) {
  engine_->l2.touch(line_of(address), written);
}

Result<void> Simulation::run_launches(ClientIndex client, std::uint64_t launches, Cycles limit) {
  Engine& engine = *engine_;
  const Cycles end = engine.now() + limit;
  while (engine.common.statistics.at(client).run_cycles.size() < launches) {
    if (engine.common.error) return tl::unexpected(*engine.common.error);
    if (engine.common.events.empty()) {
      return tl::unexpected(
          stuck_error(engine, fmt::format("nothing can happen any more and {} has not finished",
                                          engine.sms.clients[client].name)));
    }
    if (engine.now() > end) {
      return tl::unexpected(
          stuck_error(engine, fmt::format("{} has not finished after {} cycles",
                                          engine.sms.clients[client].name, limit)));
    }
    engine.run_until(end);
  }
  if (engine.common.error) return tl::unexpected(*engine.common.error);
  return check_counts();
}

Result<void> Simulation::run_for(Cycles cycles) {
  Engine& engine = *engine_;
  const Cycles end = engine.now() + cycles;
  engine.run_through(end);
  if (engine.common.error) return tl::unexpected(*engine.common.error);
  return {};
}

Result<std::vector<Completion>> Simulation::timed(std::span<const Request> requests) {
  Engine& engine = *engine_;
  Engine::State& state = engine.state;
  const Cycles start = engine.now();
  state.injected.clear();
  state.injected_open = 0;
  state.injected_pending = 0;
  state.injected_closing = false;
  for (const Request& request : requests) {
    if (request.sm.raw() >= engine.common.spec.sms()) {
      return invalid_input("an access from SM {}, but there are only {} SMs", request.sm,
                           engine.common.spec.sms());
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
    if (engine.common.error) return tl::unexpected(*engine.common.error);
    if (engine.common.events.empty())
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
  while (state.injected_pending > 0 && !engine.common.error) engine.step();
  return completions;
}

}  // namespace demarc::sim::memory
