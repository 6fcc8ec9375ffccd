// Numbers of bytes and pages of coloured memory. Each counts from elsewhere, so they do not mix.
#pragma once

#include <cstdint>

#include "demarc/base/strong.hpp"

namespace demarc::color {

// A byte of a share as its program counts it: the bytes of other colours have no number.
using LinearByte = Location<struct LinearByteTag>;
// A byte of an arena, from the start of its first page: where the share's law places a linear byte.
using ArenaByte = Location<struct ArenaByteTag>;
// A virtual address of the GPU (CUdeviceptr).
using DeviceAddress = Location<struct DeviceAddressTag>;

// A page of an arena, in its order.
using ArenaPage = Location<struct ArenaPageTag>;

// Linear bytes of one share that follow each other.
struct Extent {
  LinearByte first = {};
  std::uint64_t bytes = 0;
  [[nodiscard]] constexpr LinearByte end() const { return first + bytes; }
  friend constexpr bool operator==(const Extent&, const Extent&) = default;
};

// Pages of one arena that follow each other.
struct PageRun {
  ArenaPage first = {};
  std::uint64_t count = 0;
  friend constexpr bool operator==(const PageRun&, const PageRun&) = default;
};

// Where a share is used.
struct SharePlace {
  DeviceAddress arena = {};     // its first page
  DeviceAddress window = {};    // linear byte 0, as a kernel gets it
  DeviceAddress patterns = {};  // the table's first part, if the law has a table
  DeviceAddress places = {};    // in its second part the place of the arena's first page

  [[nodiscard]] constexpr DeviceAddress address(ArenaByte at) const { return arena + at.raw(); }
  // What a kernel gets for a linear byte.
  [[nodiscard]] constexpr DeviceAddress pointer(LinearByte at) const { return window + at.raw(); }
};

}  // namespace demarc::color
