// What a program of `demarc exec` has of a card, kept from others while it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "demarc/device/tpc_set.hpp"
#include "demarc/guest/control.hpp"
#include "demarc/lease/card_claim.hpp"

namespace demarc::cuda {

// A child process that is forked has the same claim: it may take TPCs, and its parent keeps them.
class ProgramClaim {
 public:
  using Tell = std::function<void(const std::string& line)>;

  // On the cards of this machine's driver. With `shares_tpcs` the program lets others that say the
  // same have its TPCs too.
  [[nodiscard]] static Result<ProgramClaim> open(bool shares_tpcs);

  // For a process that gives a running program other TPCs, beside those that it has.
  [[nodiscard]] static Result<ProgramClaim> like(const ControlBlock& block);

  // Chooses TPCs where others have those that it is given.
  using Choose = std::function<Result<gpu::TpcSet>(const gpu::TpcSet& taken)>;
  // What was chosen. missing_capability names who has some of them, or those of which too few are
  // left: a tenant of `demarc serve`, or another program.
  [[nodiscard]] Result<gpu::TpcSet> take_tpcs(const std::string& card, const Choose& choose);
  [[nodiscard]] Result<gpu::TpcSet> take_tpcs(const std::string& card, const gpu::TpcSet& tpcs) {
    return take_tpcs(card, [&](const gpu::TpcSet&) { return tpcs; });
  }
  // A child process has taken them.
  void took_tpcs(const gpu::TpcSet& tpcs) { part_.tpcs = tpcs.words(); }
  // A memory synchronisation domain from 1 to `count` - 1. missing_capability if others have them
  // all.
  [[nodiscard]] Result<std::uint32_t> take_free_domain(const std::string& card,
                                                       std::uint32_t count);
  // That one. If another program has it too, `tell` says so; missing_capability if a tenant has it.
  // Domain 0 is shared by all programs and is not claimed.
  [[nodiscard]] Result<void> take_domain(const std::string& card, std::uint32_t domain,
                                         const Tell& tell);
  // For a program that has no TPCs of its own, where a server divides the card.
  void tell_of_server(const std::string& card, const Tell& tell) const;

  // For keep_claim() in the program's processes, whose number of this process is `process`.
  [[nodiscard]] Result<void> pass_on(const std::string& card, ControlBlock& block);
  // Claims what hand_over() wants too. The program keeps the TPCs that it had: graphs stay there.
  // Claims the same on files of the driver that were installed anew, where others look from now on.
  void follow(ControlBlock& block);

 private:
  ProgramClaim(lease::CardClaim claim, lease::PartOwner owner)
      : claim_(std::move(claim)), owner_(owner) {}
  [[nodiscard]] std::string server_of(const std::string& card) const;
  lease::CardClaim claim_;
  lease::PartOwner owner_;
  gpu::TpcSet already_;  // the program's own, claimed by its demarc exec
  lease::ClaimedPart part_;
};

// Has the demarc exec of a running program claim these TPCs, which this process has claimed.
// missing_capability if it has not done so after so many looks, 10 ms apart: then nothing would
// keep others off them. Processes take turns, as Control::turn_to_move() gives them.
[[nodiscard]] Result<void> hand_over(ControlBlock& block, const gpu::TpcSet& tpcs, int looks = 100);

// In a process of the program: the claim of its `demarc exec` is this process's too, for as long as
// it lives, if that one is killed. Where the kernel lets it, the process has the very locks of its
// demarc exec, so it also has what that one claims later. The value is what Control::open() takes.
// missing_capability if the descriptors of the block are other files by now.
[[nodiscard]] Result<void> keep_claim(const std::string& control, const ControlBlock& block);
// In such a process, once its program was moved: the claim has the new TPCs, too.
// missing_capability if the demarc exec was killed meanwhile and others have some of them, but for
// processes of the same program, which note in the block what they take.
[[nodiscard]] Result<void> follow_claim(ControlBlock& block);

}  // namespace demarc::cuda
