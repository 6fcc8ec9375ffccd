// Answers the functions of the driver that copy and fill memory.
#include "calls/copy_calls.hpp"

#include "calls/own_calls.hpp"

namespace demarc::cuda {
namespace {

// Of memory of a kind that a rectangle's side names; nothing for arrays.
std::optional<WindowCopies::Place::Kind> kind_of(unsigned type) {
  using Memory = WindowCopies::Place::Kind;
  if (type == cu_memory_host) return Memory::host;
  if (type == cu_memory_device) return Memory::device;
  if (type == cu_memory_unified) return Memory::unified;
  return std::nullopt;
}

DevicePointer address_of(const void* host) {
  return reinterpret_cast<DevicePointer>(host);
}

// Bytes from the first to behind the last one. Nothing: rows or planes overlap, or there are more
// bytes than addresses.
std::optional<std::uint64_t> reach(std::uint64_t pitch, std::uint64_t plane, std::uint64_t width,
                                   std::uint64_t height, std::uint64_t depth) {
  if (width == 0 || height == 0 || depth == 0) return 0;
  std::uint64_t rows = 0;
  std::uint64_t planes = 0;
  std::uint64_t bytes = width;
  if (height > 1 && pitch < width) return std::nullopt;
  if (__builtin_mul_overflow(pitch, height - 1, &rows)) return std::nullopt;
  if (__builtin_add_overflow(bytes, rows, &bytes)) return std::nullopt;
  if (depth > 1 && plane < bytes) return std::nullopt;
  if (__builtin_mul_overflow(plane, depth - 1, &planes)) return std::nullopt;
  if (__builtin_add_overflow(bytes, planes, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace

std::span<const CallRow<CopyCalls>> CopyCalls::rows() {
  static constexpr CallRow<CopyCalls> table[] = {
      {"cuMemcpy", &CopyCalls::copy},
      {"cuMemcpyAsync", &CopyCalls::copy_async},
      {"cuMemcpyPeer", &CopyCalls::copy_peer},
      {"cuMemcpyPeerAsync", &CopyCalls::copy_peer_async},
      {"cuMemcpyHtoD_v2", &CopyCalls::host_to_device},
      {"cuMemcpyHtoDAsync_v2", &CopyCalls::host_to_device_async},
      {"cuMemcpyDtoH_v2", &CopyCalls::device_to_host},
      {"cuMemcpyDtoHAsync_v2", &CopyCalls::device_to_host_async},
      {"cuMemcpyDtoD_v2", &CopyCalls::device_to_device},
      {"cuMemcpyDtoDAsync_v2", &CopyCalls::device_to_device_async},
      {"cuMemcpy2D_v2", &CopyCalls::copy_2d},
      {"cuMemcpy2DUnaligned_v2", &CopyCalls::copy_2d},
      {"cuMemcpy2DAsync_v2", &CopyCalls::copy_2d_async},
      {"cuMemcpy3D_v2", &CopyCalls::copy_3d},
      {"cuMemcpy3DAsync_v2", &CopyCalls::copy_3d_async},
      {"cuMemsetD8_v2", &CopyCalls::fill<std::uint8_t, false>},
      {"cuMemsetD16_v2", &CopyCalls::fill<std::uint16_t, false>},
      {"cuMemsetD32_v2", &CopyCalls::fill<std::uint32_t, false>},
      {"cuMemsetD8Async", &CopyCalls::fill<std::uint8_t, true>},
      {"cuMemsetD16Async", &CopyCalls::fill<std::uint16_t, true>},
      {"cuMemsetD32Async", &CopyCalls::fill<std::uint32_t, true>},
      {"cuMemsetD2D8_v2", &CopyCalls::fill_2d<std::uint8_t, false>},
      {"cuMemsetD2D16_v2", &CopyCalls::fill_2d<std::uint16_t, false>},
      {"cuMemsetD2D32_v2", &CopyCalls::fill_2d<std::uint32_t, false>},
      {"cuMemsetD2D8Async", &CopyCalls::fill_2d<std::uint8_t, true>},
      {"cuMemsetD2D16Async", &CopyCalls::fill_2d<std::uint16_t, true>},
      {"cuMemsetD2D32Async", &CopyCalls::fill_2d<std::uint32_t, true>},
  };
  return table;
}

bool CopyCalls::settle(Place& place, const Copy& copy, std::uint64_t plane) const {
  const auto bytes = reach(place.pitch, plane, copy.width, copy.height, copy.depth);
  if (!bytes) return false;
  for (const AddressSpan& span : kept_) {
    if (span.overlaps(place.address, *bytes)) return false;
  }
  if (!memory_.touches(place.address, *bytes)) return true;
  place.kind = Kind::window;
  if (*bytes == 0) return true;
  const auto found = memory_.find(place.address);
  return found && *bytes <= found->bytes - (place.address - found->address);
}

bool CopyCalls::settle_target(Copy& copy) const {
  return settle(copy.to, copy, copy.to_plane);
}

bool CopyCalls::settle(Copy& copy) const {
  return settle_target(copy) && settle(copy.from, copy, copy.from_plane);
}

bool CopyCalls::Copy::flatten() {
  if (depth > 1 && height == 1) {
    to.pitch = to_plane;
    from.pitch = from_plane;
  } else if (depth > 1 && (to_plane != to.pitch * height || from_plane != from.pitch * height)) {
    return false;
  }
  height *= depth;
  depth = 1;
  return true;
}

std::uint64_t CopyCalls::Copy::reach(const Place& side) const {
  return width == 0 || height == 0 ? 0 : side.pitch * (height - 1) + width;
}

CallAnswer CopyCalls::carry_out(Copy copy, CuStream stream, Waits waits) const {
  if (!settle(copy)) return cu_error_invalid_value;
  if (copy.to.kind != Kind::window && copy.from.kind != Kind::window) return std::nullopt;
  if (copy.width == 0 || copy.height == 0) return cu_success;
  for (std::uint64_t plane = 0; plane < copy.depth; ++plane) {
    Place to = copy.to;
    Place from = copy.from;
    to.address += plane * copy.to_plane;
    from.address += plane * copy.from_plane;
    const CuResult code = copies_.copy(to, from, {copy.width, copy.height}, stream);
    if (code != cu_success) return code;
  }
  // Between places on the card the driver does not wait either.
  const bool within = copy.to.kind == Kind::window && copy.from.kind == Kind::window;
  if (waits == Waits::never || within) return cu_success;
  const OwnCalls own;
  return api_.cuStreamSynchronize(stream);
}

// The driver finds out whether an address that it knows nothing of is the host's: ordinary memory.
CallAnswer CopyCalls::linear(Kind to_kind, DevicePointer to, Kind from_kind, DevicePointer from,
                             std::uint64_t bytes, CuStream stream, Waits waits) const {
  const auto known = [&](Kind kind, DevicePointer address) {
    if (kind != Kind::unified) return kind;
    const OwnCalls own;
    constexpr int memory_type = 2;
    unsigned type = 0;
    const CuResult code = api_.cuPointerGetAttribute(&type, memory_type, address);
    return code == cu_success ? kind : Kind::host;
  };
  Copy copy;
  copy.to = {to_kind, to, bytes};
  copy.from = {from_kind, from, bytes};
  copy.width = bytes;
  if (!memory_.touches(to, bytes)) copy.to.kind = known(to_kind, to);
  if (!memory_.touches(from, bytes)) copy.from.kind = known(from_kind, from);
  return carry_out(copy, stream, waits);
}

CallAnswer CopyCalls::copy(const DriverCall& call) {
  return linear(Kind::unified, call.argument<DevicePointer>(0), Kind::unified,
                call.argument<DevicePointer>(8), call.argument<std::size_t>(16),
                meant_stream(call, nullptr), Waits::for_the_host);
}

CallAnswer CopyCalls::copy_async(const DriverCall& call) {
  return linear(Kind::unified, call.argument<DevicePointer>(0), Kind::unified,
                call.argument<DevicePointer>(8), call.argument<std::size_t>(16),
                meant_stream(call, call.argument<CuStream>(24)), Waits::never);
}

CallAnswer CopyCalls::copy_peer(const DriverCall& call) {
  return linear(Kind::device, call.argument<DevicePointer>(0), Kind::device,
                call.argument<DevicePointer>(16), call.argument<std::size_t>(32),
                meant_stream(call, nullptr), Waits::never);
}

CallAnswer CopyCalls::copy_peer_async(const DriverCall& call) {
  return linear(Kind::device, call.argument<DevicePointer>(0), Kind::device,
                call.argument<DevicePointer>(16), call.argument<std::size_t>(32),
                meant_stream(call, call.argument<CuStream>(40)), Waits::never);
}

CallAnswer CopyCalls::host_to_device(const DriverCall& call) {
  return linear(Kind::device, call.argument<DevicePointer>(0), Kind::host,
                call.argument<DevicePointer>(8), call.argument<std::size_t>(16),
                meant_stream(call, nullptr), Waits::for_the_host);
}

CallAnswer CopyCalls::host_to_device_async(const DriverCall& call) {
  return linear(Kind::device, call.argument<DevicePointer>(0), Kind::host,
                call.argument<DevicePointer>(8), call.argument<std::size_t>(16),
                meant_stream(call, call.argument<CuStream>(24)), Waits::never);
}

CallAnswer CopyCalls::device_to_host(const DriverCall& call) {
  return linear(Kind::host, call.argument<DevicePointer>(0), Kind::device,
                call.argument<DevicePointer>(8), call.argument<std::size_t>(16),
                meant_stream(call, nullptr), Waits::for_the_host);
}

CallAnswer CopyCalls::device_to_host_async(const DriverCall& call) {
  return linear(Kind::host, call.argument<DevicePointer>(0), Kind::device,
                call.argument<DevicePointer>(8), call.argument<std::size_t>(16),
                meant_stream(call, call.argument<CuStream>(24)), Waits::never);
}

CallAnswer CopyCalls::device_to_device(const DriverCall& call) {
  return linear(Kind::device, call.argument<DevicePointer>(0), Kind::device,
                call.argument<DevicePointer>(8), call.argument<std::size_t>(16),
                meant_stream(call, nullptr), Waits::never);
}

CallAnswer CopyCalls::device_to_device_async(const DriverCall& call) {
  return linear(Kind::device, call.argument<DevicePointer>(0), Kind::device,
                call.argument<DevicePointer>(8), call.argument<std::size_t>(16),
                meant_stream(call, call.argument<CuStream>(24)), Waits::never);
}

// Arrays are not the program's to have: the driver refuses what names one.
CallAnswer CopyCalls::rectangle(const CuCopy2d* copy, CuStream stream, Waits waits) const {
  if (copy == nullptr) return std::nullopt;
  const auto to = kind_of(copy->target_type);
  const auto from = kind_of(copy->source_type);
  if (!to || !from) return cu_error_not_supported;
  Copy own;
  own.to = {*to, *to == Kind::host ? address_of(copy->target_host) : copy->target_device,
            copy->target_pitch};
  own.from = {*from, *from == Kind::host ? address_of(copy->source_host) : copy->source_device,
              copy->source_pitch};
  own.to.address += copy->target_x_bytes + copy->target_y * copy->target_pitch;
  own.from.address += copy->source_x_bytes + copy->source_y * copy->source_pitch;
  own.width = copy->width_bytes;
  own.height = copy->height;
  return carry_out(own, stream, waits);
}

CallAnswer CopyCalls::copy_2d(const DriverCall& call) {
  return rectangle(call.argument<const CuCopy2d*>(0), meant_stream(call, nullptr),
                   Waits::for_the_host);
}

CallAnswer CopyCalls::copy_2d_async(const DriverCall& call) {
  return rectangle(call.argument<const CuCopy2d*>(0),
                   meant_stream(call, call.argument<CuStream>(8)), Waits::never);
}

std::optional<CopyCalls::Copy> CopyCalls::read(const CuCopy3d& params) {
  const auto place = [](const CuCopy3d::Side& side) -> std::optional<Place> {
    const auto kind = kind_of(side.type);
    if (!kind) return std::nullopt;
    const DevicePointer base = *kind == Kind::host ? address_of(side.host) : side.device;
    return Place{*kind, base + side.x_bytes + (side.z * side.height + side.y) * side.pitch,
                 side.pitch};
  };
  const auto to = place(params.target);
  const auto from = place(params.source);
  if (!to || !from) return std::nullopt;
  return Copy{*to,
              *from,
              params.width_bytes,
              params.height,
              params.depth,
              params.target.pitch * params.target.height,
              params.source.pitch * params.source.height};
}

CallAnswer CopyCalls::box(const CuCopy3d* copy, CuStream stream, Waits waits) const {
  if (copy == nullptr) return std::nullopt;
  const auto own = read(*copy);
  return own ? carry_out(*own, stream, waits) : cu_error_not_supported;
}

CallAnswer CopyCalls::copy_3d(const DriverCall& call) {
  return box(call.argument<const CuCopy3d*>(0), meant_stream(call, nullptr), Waits::for_the_host);
}

CallAnswer CopyCalls::copy_3d_async(const DriverCall& call) {
  return box(call.argument<const CuCopy3d*>(0), meant_stream(call, call.argument<CuStream>(8)),
             Waits::never);
}

template <class Value, bool Async>
CallAnswer CopyCalls::fill(const DriverCall& call) {
  Copy copy;
  copy.to = {Kind::device, call.argument<DevicePointer>(0), 0};
  const auto count = call.argument<std::size_t>(16);
  if (__builtin_mul_overflow(count, sizeof(Value), &copy.width) ||
      copy.to.address % sizeof(Value) != 0) {
    return cu_error_invalid_value;
  }
  if (!settle(copy.to, copy, 0)) return cu_error_invalid_value;
  if (copy.to.kind != Kind::window) return std::nullopt;
  const CuStream stream = Async ? call.argument<CuStream>(24) : nullptr;
  copy.to.pitch = copy.width;
  return copies_.fill(copy.to, call.argument<Value>(8), sizeof(Value), {count, 1},
                      meant_stream(call, stream));
}

template <class Value, bool Async>
CallAnswer CopyCalls::fill_2d(const DriverCall& call) {
  Copy copy;
  copy.to = {Kind::device, call.argument<DevicePointer>(0), call.argument<std::size_t>(8)};
  const auto count = call.argument<std::size_t>(24);
  if (__builtin_mul_overflow(count, sizeof(Value), &copy.width) ||
      copy.to.address % sizeof(Value) != 0 || copy.to.pitch % sizeof(Value) != 0) {
    return cu_error_invalid_value;
  }
  copy.height = call.argument<std::size_t>(32);
  if (!settle(copy.to, copy, 0)) return cu_error_invalid_value;
  if (copy.to.kind != Kind::window) return std::nullopt;
  const CuStream stream = Async ? call.argument<CuStream>(40) : nullptr;
  return copies_.fill(copy.to, call.argument<Value>(16), sizeof(Value), {count, copy.height},
                      meant_stream(call, stream));
}

}  // namespace demarc::cuda
