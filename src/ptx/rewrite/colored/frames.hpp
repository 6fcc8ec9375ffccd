// Local variables of functions, as bytes of a thread's share of coloured memory. A function that is
// called lies behind all that may be running then, so that a place is never in use twice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/ptx/constant_operands.hpp"
#include "rewrite/colored/reach.hpp"

namespace demarc::ptx {

struct Frame {
  std::uint64_t before = 0;              // bytes of a thread that lie in front of it
  std::uint64_t bytes = 0;               // 0: the function has no local variables
  std::vector<std::uint64_t> variables;  // offset in it, by index of Body::variables
  bool recursive = false;                // it may be running twice: no stack is large enough
};

// For a recursive function: {} is its name.
inline constexpr std::string_view recursive_refusal =
    "'{}' may call itself, and each such call takes a frame on the driver's stack, which has no "
    "colour and no size that the compiler tells";

class Frames {
 public:
  Frames(const Module& module, const Reach& reach);

  [[nodiscard]] const Frame& of(std::uint32_t function) const { return frames_[function]; }
  // Bytes that a thread needs when it runs these functions.
  [[nodiscard]] std::uint64_t bytes_of(const std::vector<std::uint32_t>& functions) const;
  // For every frame, and of the memory they lie in.
  [[nodiscard]] std::uint64_t alignment() const { return alignment_; }

 private:
  std::vector<Frame> frames_;  // by index in Module::functions
  std::uint64_t alignment_ = 16;
};

// At the beginning of a body, behind the loads of `places`: %demarc_frame becomes the address of
// the thread's frame, and a thread beyond ColoredPlaces::local_threads stops the kernel.
[[nodiscard]] std::string frame_prologue(const Frame& frame, const PlaceOperands& places);

}  // namespace demarc::ptx
