// Cooperative launches of a program that has a part of the card's SMs: all of their blocks must run
// at once, and the driver counts with the whole card.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "demarc/cuda/driver_api.hpp"
#include "demarc/cuda/shared_mask.hpp"
#include "driver/driver_call.hpp"

namespace demarc::cuda {

// What the driver returns where a launch has more blocks than fit.
inline constexpr CuResult cu_error_cooperative_too_large = 720;

class CooperativeLaunches {
 public:
  // `mask` outlives the object.
  CooperativeLaunches(const SharedMask& mask, std::uint32_t sms_per_tpc)
      : mask_(mask), sms_per_tpc_(sms_per_tpc) {}

  // By DriverCall::base_name(): the functions that launch so, and those that make nodes of graphs.
  [[nodiscard]] static std::span<const std::string_view> functions();

  // In words, of a call at its entry that launches more blocks at once than the mask has room for,
  // or of which that cannot be told; nothing: it may pass.
  [[nodiscard]] std::optional<std::string> refusal(const DriverCall& call);

 private:
  struct Grid {
    CuFunction function = nullptr;
    std::uint64_t blocks = 0;
    int threads = 0;  // of a block
    std::size_t shared_bytes = 0;
  };
  [[nodiscard]] std::optional<std::string> too_large(const Grid& grid) const;
  [[nodiscard]] std::optional<std::string> of_node(const char* params) const;

  const SharedMask& mask_;
  std::uint32_t sms_per_tpc_;
  std::atomic<bool> any_{false};  // the program launches so: its nodes of graphs may be such
};

}  // namespace demarc::cuda
