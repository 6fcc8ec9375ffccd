// Asks the processes of a tenant to prove their windows again, and counts their answers.
#include "demarc/serve/window_proofs.hpp"

#include "demarc/base/text.hpp"
#include "demarc/serve/server.hpp"
#include "demarc/serve/status.hpp"

namespace demarc::serve {

std::uint64_t WindowProofs::begin(const std::string& tenant) {
  proofs_[tenant] = {++last_, {}};
  return last_;
}

Result<const WindowProofs::Proof*> WindowProofs::proof(const std::string& tenant,
                                                       std::uint64_t number) const {
  const auto found = proofs_.find(tenant);
  if (found != proofs_.end() && found->second.number == number) return &found->second;
  return invalid_input("tenant '{}' has no proof of number {}: a later one has begun, or none has",
                       tenant, number);
}

Result<void> WindowProofs::note(const std::string& tenant, std::int64_t process,
                                const lease::ProvedRequest& found) {
  DEMARC_CHECK(proof(tenant, found.number));
  proofs_[tenant].found[process] = {found.bytes, found.failure};
  return {};
}

Result<lease::Proving> WindowProofs::result(const std::string& tenant, std::uint64_t number,
                                            const std::vector<std::int64_t>& processes) const {
  DEMARC_TRY(const Proof* now, proof(tenant, number));
  lease::Proving all{.number = number};
  for (const std::int64_t process : processes) {
    if (!now->found.contains(process)) all.waiting.push_back(process);
  }
  for (const auto& [process, found] : now->found) {
    if (found.bytes != 0) ++all.processes;
    all.bytes += found.bytes;
    if (all.failure.empty() && !found.failure.empty()) {
      all.failure = fmt::format("process {}: {}", process, found.failure);
    }
  }
  return all;
}

Result<void> Server::carry_out(Connection& connection, const lease::ProveRequest& request) {
  DEMARC_CHECK(check_rules(connection));
  DEMARC_CHECK(ledger_.known_tenant(request.tenant));
  const std::uint64_t number = request.number == 0 ? proofs_.begin(request.tenant) : request.number;
  std::vector<std::int64_t> processes;
  for (const Connection& other : connections_) {
    if (!other.process || ledger_.tenant_of(*other.process) != request.tenant) continue;
    if (ledger_.shows(*other.process)) processes.push_back(other.peer.process);
  }
  DEMARC_TRY(const lease::Proving proving, proofs_.result(request.tenant, number, processes));
  // Each time, because there may be new leases.
  for (const auto& [id, facts] : leases_) {
    if (facts.tenant == request.tenant && facts.block) facts.block->block().proof.store(number);
  }
  connection.answers.push_back({to_text(proving), {}});
  return {};
}

Result<void> Server::carry_out(Connection& connection, const lease::ProvedRequest& request) {
  if (!connection.process) return invalid_input("attach to a lease before windows are proved");
  DEMARC_CHECK(
      proofs_.note(ledger_.tenant_of(*connection.process), connection.peer.process, request));
  connection.answers.push_back({to_text(lease::Done{}), {}});
  return {};
}

Result<std::string> proving_to_text(const std::string& tenant, const lease::Proving& proving,
                                    double seconds) {
  if (!proving.failure.empty()) return check_failed("tenant '{}': {}", tenant, proving.failure);
  if (!proving.waiting.empty()) {
    return check_failed(
        "tenant '{}': within {:g} s no call of the driver came from process {}, so its windows "
        "were not proved",
        tenant, seconds, joined(proving.waiting, ", "));
  }
  if (proving.processes == 0) {
    return fmt::format("tenant '{}': no process has memory in windows\n", tenant);
  }
  return fmt::format(
      "tenant '{}': {} bytes in windows of {} process{}: each page leads to the tenant's memory\n",
      tenant, proving.bytes, proving.processes, proving.processes == 1 ? "" : "es");
}

}  // namespace demarc::serve
