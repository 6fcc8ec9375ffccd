// Copies and fills of a coloured program: those that touch the window are carried out by kernels of
// Demarc's, in the order of the stream that was meant.
#pragma once

#include <utility>
#include <vector>

#include "calls/call_answer.hpp"
#include "calls/window_copies.hpp"
#include "calls/window_memory.hpp"

namespace demarc::cuda {

struct AddressSpan {
  DevicePointer first = 0;
  std::uint64_t bytes = 0;
  [[nodiscard]] bool overlaps(DevicePointer address, std::uint64_t count) const {
    return address - first < bytes ? count != 0 : first - address < count && bytes != 0;
  }
};

class CopyCalls {
 public:
  // All outlive the object. What is `kept` no copy of the program's may touch, by the driver
  // either. `shown`: the page table leads the window's addresses to its bytes, so that the driver
  // copies and fills them.
  CopyCalls(const DriverApi& api, const WindowMemory& memory, const WindowCopies& copies,
            std::vector<AddressSpan> kept, bool shown)
      : api_(api), memory_(memory), copies_(copies), kept_(std::move(kept)), shown_(shown) {}

  static std::span<const CallRow<CopyCalls>> rows();

  using Side = WindowCopies::Side;
  struct Copy {
    Side to;
    Side from;
    std::uint64_t width = 0;
    std::uint64_t height = 1;
    std::uint64_t depth = 1;
    std::uint64_t to_plane = 0;  // bytes from plane to plane
    std::uint64_t from_plane = 0;

    // The planes become rows of one rectangle. False: they do not lie like that.
    [[nodiscard]] bool flatten();
    // Bytes of one of its sides, of a copy that was settled and is flat.
    [[nodiscard]] std::uint64_t reach(const Side& side) const;
  };
  // Nothing: one side is an array.
  static std::optional<Copy> read(const CuCopy3d& params);
  static std::optional<Copy> read(const CuCopy2d& params);
  // Settles what kind of places the sides are, or the target. False: one lies in the window, but
  // not all bytes in one allocation; or it is not a program's.
  [[nodiscard]] bool settle(Copy& copy) const;
  [[nodiscard]] bool settle_target(Copy& copy) const;

 private:
  using Kind = Side::Kind;
  enum class Waits { never, for_the_host };

  // The driver comes back from a copy that has no stream when the host's memory is done with.
  template <class Parameters>
  static constexpr Waits waits() {
    return requires(Parameters given) {
      given.stream;
    }
    ? Waits::never : Waits::for_the_host;
  }
  template <class Parameters, Kind to, Kind from>
  CallAnswer linear(const DriverCall& call);
  template <class Parameters>
  CallAnswer shaped(const DriverCall& call);
  template <class Parameters>
  CallAnswer fill(const DriverCall& call);

  CallAnswer carry_out(Copy copy, CuStream stream, Waits waits) const;
  [[nodiscard]] bool settle(Side& place, const Copy& copy, std::uint64_t plane) const;

  const DriverApi& api_;
  const WindowMemory& memory_;
  const WindowCopies& copies_;
  std::vector<AddressSpan> kept_;
  bool shown_;
};

}  // namespace demarc::cuda
