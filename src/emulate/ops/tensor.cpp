// Carries out tensor copies.
//
// Seen on an H200 (driver 580.159.04, 27 November 2026) and done here: the innermost coordinate
// names a multiple of 16 bytes, and the box begins at a multiple of 128 in shared memory, or the
// copy is an error; a row of a swizzled box takes the whole width there, of which the barrier
// counts the row alone; elements outside of the tensor are loaded as zeros, or as 0x7ff7 in every
// 16 bits; a store writes all 16 bytes of which the first element lies within the tensor, and none
// of its coordinates is below 0.
#include "ops/tensor.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "demarc/launch/tensor_map.hpp"
#include "ops/swizzle.hpp"

namespace demarc::emulate {

namespace {

using gpu::TensorType;

constexpr std::uint64_t map_alignment = 64;
constexpr std::uint64_t box_alignment = 128;
constexpr unsigned map_pieces = gpu::tensor_map_bytes / bulk_granule;
constexpr std::uint8_t outside_nan[2] = {0xf7, 0x7f};

struct ReductionRow {
  AtomicKind kind;
  TensorType element;
  AtomicType type;
};

// Those that an H200 takes.
constexpr std::array<ReductionRow, 30> tensor_reductions{{
    // clang-format off
    {AtomicKind::add,     TensorType::u32,  AtomicType::u32},
    {AtomicKind::add,     TensorType::i32,  AtomicType::s32},
    {AtomicKind::add,     TensorType::u64,  AtomicType::u64},
    {AtomicKind::add,     TensorType::f16,  AtomicType::f16},
    {AtomicKind::add,     TensorType::bf16, AtomicType::bf16},
    {AtomicKind::add,     TensorType::f32,  AtomicType::f32},
    {AtomicKind::add,     TensorType::f64,  AtomicType::f64},
    {AtomicKind::min,     TensorType::u32,  AtomicType::u32},
    {AtomicKind::min,     TensorType::i32,  AtomicType::s32},
    {AtomicKind::min,     TensorType::u64,  AtomicType::u64},
    {AtomicKind::min,     TensorType::i64,  AtomicType::s64},
    {AtomicKind::min,     TensorType::f16,  AtomicType::f16},
    {AtomicKind::min,     TensorType::bf16, AtomicType::bf16},
    {AtomicKind::max,     TensorType::u32,  AtomicType::u32},
    {AtomicKind::max,     TensorType::i32,  AtomicType::s32},
    {AtomicKind::max,     TensorType::u64,  AtomicType::u64},
    {AtomicKind::max,     TensorType::i64,  AtomicType::s64},
    {AtomicKind::max,     TensorType::f16,  AtomicType::f16},
    {AtomicKind::max,     TensorType::bf16, AtomicType::bf16},
    {AtomicKind::inc,     TensorType::u32,  AtomicType::u32},
    {AtomicKind::dec,     TensorType::u32,  AtomicType::u32},
    {AtomicKind::bit_and, TensorType::u32,  AtomicType::b32},
    {AtomicKind::bit_and, TensorType::i32,  AtomicType::b32},
    {AtomicKind::bit_and, TensorType::u64,  AtomicType::b64},
    {AtomicKind::bit_or,  TensorType::u32,  AtomicType::b32},
    {AtomicKind::bit_or,  TensorType::i32,  AtomicType::b32},
    {AtomicKind::bit_or,  TensorType::u64,  AtomicType::b64},
    {AtomicKind::bit_xor, TensorType::u32,  AtomicType::b32},
    {AtomicKind::bit_xor, TensorType::i32,  AtomicType::b32},
    {AtomicKind::bit_xor, TensorType::u64,  AtomicType::b64},
    // clang-format on
}};

// 16 bytes of a box.
struct BoxPiece {
  std::uint64_t global = 0;
  std::uint64_t shared = 0;
  std::uint32_t inside = 0;  // of its bytes, from the first on, lie in the tensor
};

using BoxPieces = std::span<const BoxPiece>;

// One lane's copy.
class BoxCopy {
 public:
  BoxCopy(Warp& w, const MicroOp* op, const TensorDetails& details, unsigned lane)
      : w_(w), op_(op), details_(details), lane_(lane) {
    for (unsigned i = 0; i < details.dimensions; ++i) {
      const auto* values = w.at<std::int32_t>(details.coordinates[i]);
      corner_[i] = values[details.coordinate_uniform[i] ? 0 : lane];
    }
  }

  // False: it stops the kernel, as it does on a card.
  bool run();

 private:
  bool read_map();
  bool prepare_reduction();
  [[nodiscard]] std::uint64_t shared_address() const {
    return lane_address(w_, details_.loads ? details_.arrival.to : details_.from, lane_);
  }
  bool fail(FindingKind kind, std::string what);
  void move(BoxPieces pieces);
  void load(BoxPieces pieces);
  void store(BoxPieces pieces);
  void read_tail(const BoxPiece& piece, std::byte* bytes);

  Warp& w_;
  const MicroOp* op_;
  const TensorDetails& details_;
  unsigned lane_;
  std::array<std::int64_t, gpu::max_tensor_dimensions> corner_{};
  gpu::PlacedTensorMap placed_;
  BulkReduction reduction_;
  std::optional<BulkTarget> target_;
};

bool BoxCopy::fail(FindingKind kind, std::string what) {
  w_.block->report(w_, op_, lane_, kind, std::move(what));
  return false;
}

bool BoxCopy::read_map() {
  const std::uint64_t address = lane_address(w_, details_.map, lane_);
  if (address % map_alignment != 0) {
    return fail(FindingKind::misaligned, fmt::format("a tensor map at 0x{:x}: it must lie at a "
                                                     "multiple of {}",
                                                     address, map_alignment));
  }
  std::array<std::uint64_t, map_pieces> places;
  for (unsigned i = 0; i < map_pieces; ++i) places[i] = address + std::uint64_t{i} * bulk_granule;
  Access x;
  if (!access_places(w_, details_.map, details_.arrival.scratch, places, x, AccessMode::load))
    return false;
  gpu::PackedTensorMap bytes;
  for (unsigned i = 0; i < map_pieces; ++i)
    std::memcpy(bytes.data() + std::size_t{i} * bulk_granule, host_place(x, i), bulk_granule);
  auto placed = gpu::unpack_tensor_map(bytes);
  if (!placed) {
    return fail(FindingKind::uninitialised_read,
                fmt::format("there is no tensor map of a launch file at 0x{:x}", address));
  }
  placed_ = std::move(*placed);
  if (placed_.map.dims.size() == details_.dimensions) return true;
  return fail(FindingKind::trap, fmt::format("a copy in {} dimensions by a tensor map of {}",
                                             details_.dimensions, placed_.map.dims.size()));
}

bool BoxCopy::prepare_reduction() {
  if (!details_.reduces) return true;
  for (const ReductionRow& row : tensor_reductions) {
    if (row.kind != details_.kind || row.element != placed_.map.type) continue;
    reduction_ = {true, row.kind, row.type, size_of(row.element)};
    return true;
  }
  return fail(FindingKind::trap, fmt::format("elements of {} do not support this reduction",
                                             gpu::name_of(placed_.map.type)));
}

bool BoxCopy::run() {
  if (!read_map() || !prepare_reduction()) return false;
  const gpu::TensorMap& map = placed_.map;
  const std::uint32_t element = size_of(map.type);
  const std::int64_t first_byte = corner_[0] * element;
  if (first_byte % bulk_granule != 0) {
    return fail(
        FindingKind::trap,
        fmt::format(
            "the box begins {} bytes into a row of the tensor, which is not a multiple of {}",
            first_byte, bulk_granule));
  }
  if (!details_.loads &&
      std::any_of(corner_.begin(), corner_.end(), [](auto at) { return at < 0; }))
    return fail(FindingKind::trap, "a box that is stored begins in front of the tensor");
  const std::uint64_t start = shared_address();
  if (start % box_alignment != 0) {
    return fail(FindingKind::misaligned,
                fmt::format("the box lies at 0x{:x} in shared memory: it must lie at a multiple of "
                            "{}",
                            start, box_alignment));
  }
  target_.emplace(w_, details_.arrival, lane_);
  const std::uint32_t row_bytes = map.box[0] * element;
  const std::uint32_t pitch = map.swizzled_bytes != 0 ? map.swizzled_bytes : row_bytes;
  const auto bytes_of_row = static_cast<std::int64_t>(map.dims[0] * element);
  std::array<BoxPiece, warp_size> pieces;
  std::size_t count = 0;
  std::array<std::uint32_t, gpu::max_tensor_dimensions> step{};  // along dimension 1 and on
  std::uint32_t rows = 0;
  for (bool more = true; more; ++rows) {
    bool inside = true;
    std::uint64_t row = placed_.address;
    for (unsigned i = 1; i < details_.dimensions; ++i) {
      const std::int64_t at = corner_[i] + std::int64_t{step[i]} * map.element_strides[i];
      inside = inside && at >= 0 && static_cast<std::uint64_t>(at) < map.dims[i];
      row += static_cast<std::uint64_t>(at) * map.strides[i - 1];
    }
    for (std::uint32_t at = 0; at < row_bytes; at += bulk_granule) {
      BoxPiece& piece = pieces[count++];
      const std::int64_t byte = first_byte + at;
      const bool some = inside && byte >= 0 && byte < bytes_of_row;
      piece.inside = some ? static_cast<std::uint32_t>(
                                std::min<std::int64_t>(bytes_of_row - byte, bulk_granule))
                          : 0;
      piece.global = row + static_cast<std::uint64_t>(byte);
      piece.shared = swizzled_address(start + std::uint64_t{rows} * pitch + at, map.swizzled_bytes);
      if (count < pieces.size()) continue;
      move({pieces.data(), count});
      count = 0;
    }
    unsigned i = 1;
    while (i < details_.dimensions && ++step[i] * map.element_strides[i] >= map.box[i])
      step[i++] = 0;
    more = i < details_.dimensions;
  }
  if (count != 0) move({pieces.data(), count});
  target_->signal(rows * row_bytes);
  return true;
}

void BoxCopy::move(BoxPieces pieces) {
  if (details_.loads) {
    load(pieces);
  } else {
    store(pieces);
  }
}

// Elements that lie in the tensor, where those behind them do not.
void BoxCopy::read_tail(const BoxPiece& piece, std::byte* bytes) {
  const std::uint32_t element = size_of(placed_.map.type);
  MicroOp part = details_.from;
  part.bytes = static_cast<std::uint8_t>(element);
  std::array<std::uint64_t, bulk_granule> places;
  const std::uint32_t elements = piece.inside / element;
  for (std::uint32_t i = 0; i < elements; ++i) places[i] = piece.global + i * element;
  Access x;
  access_places(w_, part, details_.arrival.scratch, {places.data(), elements}, x, AccessMode::load);
  for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(rest));
    std::memcpy(bytes + std::size_t{i} * element, host_place(x, i), element);
  }
}

void BoxCopy::load(BoxPieces pieces) {
  std::array<std::byte, std::size_t{bulk_granule} * warp_size> bytes;
  std::array<std::uint64_t, warp_size> from;
  std::array<std::uint64_t, warp_size> to;
  std::array<std::byte*, warp_size> place;
  std::size_t whole = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::byte* const here = bytes.data() + i * bulk_granule;
    for (std::uint32_t at = 0; at < bulk_granule; ++at)
      here[at] = std::byte{placed_.map.fill_nan ? outside_nan[at % 2] : std::uint8_t{0}};
    to[i] = pieces[i].shared;
    if (pieces[i].inside == bulk_granule) {
      place[whole] = here;
      from[whole++] = pieces[i].global;
    } else if (pieces[i].inside != 0) {
      read_tail(pieces[i], here);
    }
  }
  if (whole != 0) {
    Access x;
    access_places(w_, details_.from, details_.arrival.scratch, {from.data(), whole}, x,
                  AccessMode::load);
    for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<unsigned>(std::countr_zero(rest));
      std::memcpy(place[i], host_place(x, i), bulk_granule);
    }
  }
  target_->put({to.data(), pieces.size()}, bytes.data(), reduction_);
}

void BoxCopy::store(BoxPieces pieces) {
  std::array<std::uint64_t, warp_size> from;
  std::array<std::uint64_t, warp_size> to;
  std::size_t inside = 0;
  for (const BoxPiece& piece : pieces) {
    if (piece.inside == 0) continue;
    from[inside] = piece.shared;
    to[inside++] = piece.global;
  }
  if (inside == 0) return;
  Access x;
  if (!access_places(w_, details_.from, details_.arrival.scratch, {from.data(), inside}, x,
                     AccessMode::load))
    return;
  std::array<std::byte, std::size_t{bulk_granule} * warp_size> bytes;
  for (unsigned i = 0; i < inside; ++i)
    std::memcpy(bytes.data() + std::size_t{i} * bulk_granule, host_place(x, i), bulk_granule);
  target_->put({to.data(), inside}, bytes.data(), reduction_);
}

}  // namespace

namespace tensor_ops {

const MicroOp* copy(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const TensorDetails*>(op->aux);
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    if (BoxCopy(w, op, details, lane).run()) continue;
    w.block->stopped = true;
    return nullptr;
  }
  return op + 1;
}

}  // namespace tensor_ops
}  // namespace demarc::emulate
