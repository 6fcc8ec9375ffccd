// Fragments of wmma between memory and registers, element by element of every lane.
#include <bit>
#include <cstring>

#include "ops/matrix.hpp"

namespace demarc::emulate::matrix_ops {

namespace {

// Row and column of element j of every lane: they follow each other in the matrix, row by row, and
// so do those of the lanes.
struct FragmentPlaces {
  unsigned in_lane;
  unsigned shift;  // shift of the number of an element, to its row

  explicit FragmentPlaces(const FragmentDetails& details)
      : in_lane(details.rows * details.columns / warp_size),
        shift(static_cast<unsigned>(std::countr_zero(details.columns))) {}
  [[nodiscard]] std::uint64_t row(unsigned lane, unsigned j) const {
    return (lane * in_lane + j) >> shift;
  }
  [[nodiscard]] std::uint64_t column(unsigned lane, unsigned j) const {
    return (lane * in_lane + j) & ((1U << shift) - 1);
  }
};

// Element j of every lane, through the checks of the space.
bool fragment_access(Warp& w, const FragmentDetails& details, const FragmentPlaces& places,
                     unsigned j, Access& x, AccessMode mode) {
  const MicroOp& part = details.part;
  const bool uniform = (part.uniform & uniform_a) != 0;
  const bool narrow = (part.flags & memory_narrow_address) != 0;
  auto* addresses = w.at<std::uint64_t>(details.scratch);
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    const std::uint64_t base = narrow ? w.at<std::uint32_t>(part.a)[uniform ? 0 : lane]
                                      : w.at<std::uint64_t>(part.a)[uniform ? 0 : lane];
    std::uint64_t stride = details.by_column ? details.rows : details.columns;
    if (details.has_stride)
      stride = w.at<std::uint32_t>(details.stride)[details.stride_uniform ? 0 : lane];
    const std::uint64_t row = places.row(lane, j);
    const std::uint64_t column = places.column(lane, j);
    const std::uint64_t element = details.by_column ? column * stride + row : row * stride + column;
    const std::uint64_t sum = base + part.imm + element * part.bytes;
    addresses[lane] = narrow ? static_cast<std::uint32_t>(sum) : sum;
  }
  MicroOp op = part;
  op.a = details.scratch;
  op.uniform = 0;
  op.imm = 0;
  op.flags = static_cast<std::uint8_t>(op.flags & ~memory_narrow_address);
  return w.program->tables.fronts[op.kind](w, &op, x, mode);
}

// Elements of a fragment in the registers that hold it.
template <class Element>
Element* elements_at(Warp& w, const Fragment& fragment, unsigned j, unsigned lane) {
  const auto together = static_cast<unsigned>(fragment.lane_bytes / sizeof(Element));
  return w.at<Element>(fragment.slots[j / together]) + lane * together + j % together;
}

// Registers with room for more hold the elements again.
template <class Element>
void load_elements(Warp& w, const FragmentDetails& details) {
  const FragmentPlaces places(details);
  const Fragment& fragment = details.fragment;
  const auto room =
      static_cast<unsigned>(fragment.registers * fragment.lane_bytes / sizeof(Element));
  for (unsigned j = 0; j < places.in_lane; ++j) {
    Access x;
    if (!fragment_access(w, details, places, j, x, AccessMode::load)) continue;
    for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      const auto* from =
          reinterpret_cast<const void*>(x.addresses[lane] + x.delta + lane * x.pitch);
      for (unsigned i = j; i < room; i += places.in_lane)
        std::memcpy(elements_at<Element>(w, fragment, i, lane), from, sizeof(Element));
    }
  }
}

template <class Element>
void store_elements(Warp& w, const FragmentDetails& details) {
  const FragmentPlaces places(details);
  for (unsigned j = 0; j < places.in_lane; ++j) {
    Access x;
    if (!fragment_access(w, details, places, j, x, AccessMode::store)) continue;
    for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      std::memcpy(reinterpret_cast<void*>(x.addresses[lane] + x.delta + lane * x.pitch),
                  elements_at<Element>(w, details.fragment, j, lane), sizeof(Element));
    }
  }
}

}  // namespace

const MicroOp* load_fragment(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const FragmentDetails*>(op->aux);
  switch (details.part.bytes) {
    case 1:
      load_elements<std::uint8_t>(w, details);
      break;
    case 2:
      load_elements<std::uint16_t>(w, details);
      break;
    case 4:
      load_elements<std::uint32_t>(w, details);
      break;
    default:
      load_elements<std::uint64_t>(w, details);
      break;
  }
  return op + 1;
}

const MicroOp* store_fragment(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const FragmentDetails*>(op->aux);
  switch (details.part.bytes) {
    case 2:
      store_elements<std::uint16_t>(w, details);
      break;
    case 4:
      store_elements<std::uint32_t>(w, details);
      break;
    default:
      store_elements<std::uint64_t>(w, details);
      break;
  }
  return op + 1;
}

}  // namespace demarc::emulate::matrix_ops
