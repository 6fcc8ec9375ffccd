// Asks the processes of a tenant to prove their windows again, and counts their answers.
#include "demarc/serve/window_proofs.hpp"

#include <algorithm>

#include "demarc/base/text.hpp"
#include "demarc/serve/server.hpp"
#include "demarc/serve/status.hpp"

namespace demarc::serve {

std::uint64_t WindowProofs::begin(const std::string& tenant,
                                  const std::vector<Process>& processes) {
  Proof& proof = proofs_[tenant];
  proof = {.number = ++last_, .failure = proof.told ? std::string() : proof.failure};
  for (const Process& process : processes) {
    if (process.shown != 0) proof.found[process.id] = {.number = process.number};
  }
  return last_;
}

void WindowProofs::note(const std::string& tenant, const Process& process,
                        const lease::ProvedRequest& found) {
  const auto entry = proofs_.find(tenant);
  if (entry == proofs_.end()) return;
  Proof& proof = entry->second;
  std::string failure = found.failure;
  if (failure.empty() && found.bytes != process.shown) {
    failure = fmt::format("of {} bytes of its windows {} were proved", process.shown, found.bytes);
  }
  if (!failure.empty() && proof.failure.empty()) {
    proof.failure = fmt::format("process {}: {}", process.number, failure);
  }
  if (found.number == proof.number && (found.bytes != 0 || proof.found.contains(process.id))) {
    proof.found[process.id] = {process.number, true, found.bytes};
  }
}

Result<lease::Proving> WindowProofs::result(const std::string& tenant, std::uint64_t number,
                                            const std::vector<Process>& processes) {
  const auto entry = proofs_.find(tenant);
  if (entry == proofs_.end()) {
    return invalid_input("no proof of the windows of tenant '{}' has begun", tenant);
  }
  Proof& proof = entry->second;
  if (proof.number != number) {
    return check_failed(
        "another proof of the windows of tenant '{}' has begun, so this one has no result", tenant);
  }
  lease::Proving all{.number = proof.number, .failure = proof.failure};
  const auto has_answered = [&](ProcessId id) {
    const auto found = proof.found.find(id);
    return found != proof.found.end() && found->second.answered;
  };
  for (const Process& process : processes) {
    if (process.shown == 0 || has_answered(process.id)) continue;
    all.waiting.push_back(process.number);
    proof.found.try_emplace(process.id, Found{.number = process.number});
  }
  for (const auto& [id, found] : proof.found) {
    if (found.bytes != 0) ++all.processes;
    all.bytes += found.bytes;
    const bool lives = std::any_of(processes.begin(), processes.end(),
                                   [&, of = id](const Process& one) { return one.id == of; });
    if (!found.answered && !lives && all.failure.empty()) {
      all.failure = fmt::format("process {} ended before it had proved its windows", found.number);
    }
  }
  proof.told = !all.failure.empty();
  return all;
}

std::vector<WindowProofs::Process> Server::processes_with_windows(const std::string& tenant) const {
  std::vector<WindowProofs::Process> processes;
  for (const Connection& connection : connections_) {
    if (!connection.process || ledger_.tenant_of(*connection.process) != tenant) continue;
    processes.push_back({*connection.process, connection.peer.process,
                         ledger_.shown_bytes_of(*connection.process)});
  }
  return processes;
}

// The blocks of the programs hold the number until all have answered, so that programs that come
// later are asked, too.
Result<void> Server::carry_out(Connection& connection, const lease::ProveRequest& request) {
  DEMARC_CHECK(check_rules(connection));
  DEMARC_CHECK(ledger_.known_tenant(request.tenant));
  const auto processes = processes_with_windows(request.tenant);
  const std::uint64_t number =
      request.number == 0 ? proofs_.begin(request.tenant, processes) : request.number;
  DEMARC_TRY(const lease::Proving proving, proofs_.result(request.tenant, number, processes));
  const std::uint64_t asked = proving.waiting.empty() ? 0 : proving.number;
  for (const auto& [id, facts] : leases_) {
    if (facts.tenant == request.tenant && facts.block) facts.block->block().proof.store(asked);
  }
  connection.answers.push_back({to_text(proving), {}});
  return {};
}

Result<void> Server::carry_out(Connection& connection, const lease::ProvedRequest& request) {
  if (!connection.process) return invalid_input("attach to a lease before windows are proved");
  const ProcessId process = *connection.process;
  proofs_.note(ledger_.tenant_of(process),
               {process, connection.peer.process, ledger_.shown_bytes_of(process)}, request);
  connection.answers.push_back({to_text(lease::Done{}), {}});
  return {};
}

Result<std::string> proving_to_text(const std::string& tenant, const lease::Proving& proving,
                                    double seconds) {
  if (!proving.failure.empty()) return check_failed("tenant '{}': {}", tenant, proving.failure);
  if (!proving.waiting.empty()) {
    return check_failed(
        "tenant '{}': process {} has not answered within {:g} s, so its windows were not proved",
        tenant, joined(proving.waiting, ", "), seconds);
  }
  if (proving.processes == 0) {
    return fmt::format("tenant '{}': no process has memory in windows\n", tenant);
  }
  return fmt::format(
      "tenant '{}': {} bytes in windows of {} process{}: each page has the same content both "
      "ways\n",
      tenant, proving.bytes, proving.processes, proving.processes == 1 ? "" : "es");
}

}  // namespace demarc::serve
