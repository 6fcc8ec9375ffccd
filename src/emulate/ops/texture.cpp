// Carries out fetches from textures.
#include "ops/texture.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ops/bulk.hpp"

namespace demarc::emulate {
namespace {

// The texels that one lane's fetch reads.
struct LaneFetch {
  const PlacedImage* placed = nullptr;
  std::array<Texel, max_texels> texels;
  unsigned count = 0;
};

// One fetch of a warp.
class Fetch {
 public:
  Fetch(Warp& w, const MicroOp* op, const FetchDetails& details)
      : w_(w), op_(op), details_(details) {}

  // False: it stops the kernel.
  bool run();

 private:
  bool prepare(unsigned lane);
  [[nodiscard]] AxisTexels along(const gpu::Image& image, unsigned axis, unsigned lane) const;
  void add_texels(LaneFetch& fetch, const std::array<AxisTexels, 3>& axes, std::uint64_t layer);
  void gather_order(LaneFetch& fetch) const;
  void read_texels();
  void read_texel(unsigned number, std::uint32_t part);
  void give_results(unsigned lane);

  Warp& w_;
  const MicroOp* op_;
  const FetchDetails& details_;
  std::array<LaneFetch, warp_size> lanes_;
};

AxisTexels Fetch::along(const gpu::Image& image, unsigned axis, unsigned lane) const {
  const auto bits =
      static_cast<std::uint32_t>(slot_value(w_, details_.operands.coordinates[axis], lane));
  if (!details_.floats) return texel_at(image, axis, static_cast<std::int32_t>(bits));
  return texels_at(image, axis, std::bit_cast<float>(bits),
                   image.sampling->filters || details_.gathers);
}

void Fetch::add_texels(LaneFetch& fetch, const std::array<AxisTexels, 3>& axes,
                       std::uint64_t layer) {
  const gpu::Image& image = fetch.placed->image;
  const auto weights = weights_of(axes);
  for (unsigned z = 0; z < axes[2].count; ++z) {
    for (unsigned y = 0; y < axes[1].count; ++y) {
      for (unsigned x = 0; x < axes[0].count; ++x) {
        const AxisTexel& at_x = axes[0].texels[x];
        const AxisTexel& at_y = axes[1].texels[y];
        const AxisTexel& at_z = axes[2].texels[z];
        Texel& texel = fetch.texels[fetch.count++];
        texel.inside = at_x.inside && at_y.inside && at_z.inside;
        texel.zero = !details_.floats;
        texel.weight = weights[(z * 2 + y) * 2 + x];
        if (!texel.inside) continue;
        const std::uint64_t plane = layer * image.size[2] + static_cast<std::uint64_t>(at_z.index);
        const std::uint64_t row = plane * image.size[1] + static_cast<std::uint64_t>(at_y.index);
        texel.offset =
            row * image.pitch + static_cast<std::uint64_t>(at_x.index) * image.texel_bytes();
      }
    }
  }
}

// Around the square: below left first, above left last.
void Fetch::gather_order(LaneFetch& fetch) const {
  std::swap(fetch.texels[0], fetch.texels[2]);
  std::swap(fetch.texels[1], fetch.texels[3]);
  std::swap(fetch.texels[2], fetch.texels[3]);
}

bool Fetch::prepare(unsigned lane) {
  LaneFetch& fetch = lanes_[lane];
  fetch.placed = find_image(w_, op_, details_.operands, lane, true);
  if (fetch.placed == nullptr) return false;
  const gpu::Image& image = fetch.placed->image;
  const auto fail = [&](std::string what) {
    fail_image(w_, op_, lane, std::move(what));
    return false;
  };
  if (details_.gives_floats != gives_floats(image)) {
    return fail(fmt::format("texels of {} are read as {}: the texture gives {}",
                            name_of(image.type), details_.gives_floats ? "f32" : "integers",
                            gives_floats(image) ? "f32" : "integers"));
  }
  if (details_.floats && image.shape == gpu::ImageShape::linear)
    return fail("a texture of linear memory is read at a coordinate that is not an integer");
  if (!details_.floats && image.sampling->normalized_coordinates)
    return fail("a texture of normalized coordinates is read at integers");
  std::array<AxisTexels, 3> axes;
  for (unsigned axis = 0; axis < details_.operands.dimensions; ++axis)
    axes[axis] = along(image, axis, lane);
  std::uint64_t layer = 0;
  if (details_.operands.layered)
    layer =
        std::min<std::uint64_t>(slot_value(w_, details_.operands.layer, lane), image.layers - 1);
  add_texels(fetch, axes, layer);
  if (details_.gathers) gather_order(fetch);
  return true;
}

// `part`: which piece of the texel, where texels are larger than what is read at once.
void Fetch::read_texel(unsigned number, std::uint32_t part) {
  const std::uint32_t bytes = details_.operands.part.bytes;
  std::array<std::uint64_t, warp_size> places{};
  Mask reading = 0;
  for (Mask rest = w_.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const LaneFetch& fetch = lanes_[lane];
    const bool has_it = number < fetch.count && fetch.texels[number].inside &&
                        part * bytes < fetch.placed->image.texel_bytes();
    if (!has_it) continue;
    reading |= Mask{1} << lane;
    places[lane] = fetch.placed->address + fetch.texels[number].offset + part * bytes;
  }
  if (reading == 0) return;
  Access x;
  access_lanes(w_, details_.operands, places, reading, x, AccessMode::load);
  for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    std::memcpy(lanes_[lane].texels[number].bytes.data() + part * bytes, host_place(x, lane),
                bytes);
  }
}

void Fetch::read_texels() {
  for (unsigned number = 0; number < max_texels; ++number) {
    for (std::uint32_t part = 0; part * details_.operands.part.bytes < max_texel_bytes; ++part)
      read_texel(number, part);
  }
}

void Fetch::give_results(unsigned lane) {
  const LaneFetch& fetch = lanes_[lane];
  const gpu::Image& image = fetch.placed->image;
  const std::span<const Texel> texels{fetch.texels.data(), fetch.count};
  for (unsigned i = 0; i < gpu::max_channels; ++i) {
    if (details_.results[i] == FetchDetails::sink) continue;
    w_.at<std::uint32_t>(details_.results[i])[lane] =
        details_.gathers ? value_of_texels(image, texels.subspan(i, 1), details_.channel)
                         : value_of_texels(image, texels, i);
  }
}

bool Fetch::run() {
  for (Mask rest = w_.mask; rest != 0; rest &= rest - 1) {
    if (!prepare(static_cast<unsigned>(std::countr_zero(rest)))) return false;
  }
  read_texels();
  for (Mask rest = w_.mask; rest != 0; rest &= rest - 1)
    give_results(static_cast<unsigned>(std::countr_zero(rest)));
  return true;
}

std::optional<std::uint32_t> answer_of(const gpu::Image& image, ImageQuestion question) {
  const unsigned dimensions = dimensions_of(image.shape);
  switch (question) {
    case ImageQuestion::width:
      return image.size[0];
    case ImageQuestion::height:
      return dimensions > 1 ? std::optional(image.size[1]) : std::nullopt;
    case ImageQuestion::depth:
      return dimensions > 2 ? std::optional(image.size[2]) : std::nullopt;
    default:
      return has_layers(image.shape) ? std::optional(image.layers) : std::nullopt;
  }
}

}  // namespace

namespace texture_ops {

const MicroOp* fetch(Warp& w, const MicroOp* op) {
  return Fetch(w, op, *static_cast<const FetchDetails*>(op->aux)).run() ? op + 1 : nullptr;
}

const MicroOp* query(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const QueryDetails*>(op->aux);
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const PlacedImage* placed = find_image(w, op, details.operands, lane, details.texture);
    if (placed == nullptr) return nullptr;
    const auto answer = answer_of(placed->image, details.question);
    if (!answer) {
      fail_image(w, op, lane,
                 fmt::format("a size that a {} that is {} does not have", kind_of(placed->image),
                             name_of(placed->image.shape)));
      return nullptr;
    }
    w.at<std::uint32_t>(op->d)[lane] = *answer;
  }
  return op + 1;
}

}  // namespace texture_ops
}  // namespace demarc::emulate
