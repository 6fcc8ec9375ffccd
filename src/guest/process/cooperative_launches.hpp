// Cooperative launches of a program that has a part of the card's SMs: all of their blocks must run
// at once, and the driver counts with the whole card.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "demarc/driver/driver_api.hpp"
#include "demarc/driver/driver_call.hpp"
#include "demarc/driver/shared_mask.hpp"

namespace demarc::cuda {

// What the driver returns where a launch has more blocks than fit.
inline constexpr CuResult cu_error_cooperative_too_large = 720;

class CooperativeLaunches {
 public:
  // `mask` outlives the object.
  CooperativeLaunches(const SharedMask& mask, std::uint32_t sms_per_tpc)
      : mask_(mask), sms_per_tpc_(sms_per_tpc) {}

  // In words, of a call at its entry that launches more blocks at once than the mask has room for,
  // or of which that cannot be told; nothing: it may pass.
  [[nodiscard]] std::optional<std::string> refusal(const DriverCall& call);

 private:
  using Size = unsigned[3];
  [[nodiscard]] std::optional<std::string> too_large(CuFunction function, const Size& grid,
                                                     const Size& block,
                                                     std::size_t shared_bytes) const;
  template <class Node>
  [[nodiscard]] std::optional<std::string> of_node(const Node* node) const;
  [[nodiscard]] std::optional<std::string> of_any_node(const CuAnyNode* node) const;
  [[nodiscard]] std::optional<std::string> of_launch(const DriverCall& call);

  const SharedMask& mask_;
  std::uint32_t sms_per_tpc_;
  std::atomic<bool> any_{false};  // the program launches so: its nodes of graphs may be such
};

}  // namespace demarc::cuda
