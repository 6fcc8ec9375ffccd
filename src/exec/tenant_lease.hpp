// The lease of a tenant's program, which its demarc exec opens and holds.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "demarc/exec/confine.hpp"
#include "demarc/guest/control.hpp"
#include "demarc/lease/client.hpp"

namespace demarc::cuda {

class TenantLease {
 public:
  // By the plan's socket. Where the program's processes attach goes into the block.
  [[nodiscard]] static Result<TenantLease> open(const ConfinePlan& plan, const Control& control);

  [[nodiscard]] const lease::Lease& lease() const { return opened_.lease; }
  // Whether code without PTX is refused in the tenant's memory: no page table shows it its bytes.
  [[nodiscard]] bool refuses_machine_code(WindowUse windows) const;
  // Readable once the server has ended the lease, or has ended itself; -1 from then on.
  [[nodiscard]] int file() const { return client_ ? client_->file() : -1; }
  // Then: says why, and lets go of the server's claim, so that a server can start again although
  // the program still runs. Processes that attached have the claim themselves; no other one can
  // attach any more.
  void let_go(const std::function<void(const std::string& line)>& tell);

 private:
  TenantLease(lease::LeaseClient client, lease::Opened opened)
      : client_(std::move(client)), opened_(std::move(opened)) {}
  std::optional<lease::LeaseClient> client_;  // the lease lives as long as its connection
  lease::Opened opened_;
};

}  // namespace demarc::cuda
