// A dispatch policy in charge of one client's blocks: it sees the client's SMs with what all
// clients have on them, and picks the SM of each block.
#pragma once

#include <memory>
#include <vector>

#include "demarc/sim/dispatch/machine.hpp"
#include "demarc/sim/memory/simulation.hpp"
#include "slots.hpp"

namespace demarc::sim::memory {

class BlockDispatch {
 public:
  // `client` names a policy.
  BlockDispatch(const Spec& spec, const ClientSpec& client);

  // A round of dispatch begins.
  void begin() { policy_->begin_tick(); }
  struct Choice {
    SmIndex sm;
    std::uint32_t block;  // of the kernel
  };
  // The SM, or none, for one more block of a kernel of which `placed` were placed, and the block;
  // the caller places it there at once.
  [[nodiscard]] Choice choose(const KernelShape& shape, std::uint32_t placed);

  // A block, of this client (`own`) or another one, started or ended on an SM of the GPU.
  void placed(SmIndex sm, const KernelShape& shape, bool own);
  void ended(SmIndex sm, const KernelShape& shape, bool own);

 private:
  // Requests: threads, blocks, shared memory, and threads of this client alone.
  void set_request(const KernelShape& shape, bool own);

  // The machine counts the client's SMs alone.
  PerIndex<SmIndex, SmIndex> sms_;       // by the machine's
  PerIndex<SmIndex, SmIndex> position_;  // by the GPU's: the machine's, or no_sm
  Machine machine_;
  std::shared_ptr<const BlockSharing> sharing_;
  std::unique_ptr<DispatchPolicy> policy_;
  bool limits_shared_;
  std::vector<std::uint32_t> request_;
};

}  // namespace demarc::sim::memory
