// A dispatch policy in charge of one client's blocks: it sees the client's SMs with what all
// clients have on them, and picks the SM of each block.
#pragma once

#include <memory>
#include <vector>

#include "demarc/sim/dispatch/policy.hpp"
#include "demarc/sim/memory/simulation.hpp"

namespace demarc::sim::memory {

class BlockDispatch {
 public:
  // `client` names a policy.
  BlockDispatch(const Spec& spec, const ClientSpec& client);

  // A round of dispatch begins.
  void begin() { policy_->begin_tick(); }
  // The SM for block `index` of a kernel, or no_sm; the caller places it there at once.
  [[nodiscard]] std::uint32_t choose(const KernelShape& shape, std::uint32_t index);

  // A block, of this client (`own`) or another one, started or ended on an SM of the GPU.
  void placed(std::uint32_t sm, const KernelShape& shape, bool own);
  void ended(std::uint32_t sm, const KernelShape& shape, bool own);

 private:
  // Requests: threads, blocks, shared memory, and threads of this client alone.
  void set_request(const KernelShape& shape, bool own);

  std::vector<std::uint32_t> sms_;
  std::vector<std::uint32_t> position_;  // of each SM in sms_, or no_sm
  Machine machine_;
  std::shared_ptr<const BlockSharing> sharing_;
  std::unique_ptr<DispatchPolicy> policy_;
  bool limits_shared_;
  std::vector<std::uint32_t> request_;
};

}  // namespace demarc::sim::memory
