// Answers the functions of the driver that copy and fill memory.
#include "calls/copy_calls.hpp"

#include "calls/own_calls.hpp"

namespace demarc::cuda {
namespace {

// For memory of a kind that a rectangle's side names; nothing for arrays.
std::optional<WindowCopies::Side::Kind> kind_of(unsigned type) {
  using Memory = WindowCopies::Side::Kind;
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
      {DriverFunction::cuMemcpy, &CopyCalls::linear<LinearCopy, Kind::unified, Kind::unified>},
      {DriverFunction::cuMemcpyAsync,
       &CopyCalls::linear<LinearCopyAsync, Kind::unified, Kind::unified>},
      {DriverFunction::cuMemcpyPeer, &CopyCalls::linear<PeerCopy, Kind::device, Kind::device>},
      {DriverFunction::cuMemcpyPeerAsync,
       &CopyCalls::linear<PeerCopyAsync, Kind::device, Kind::device>},
      {DriverFunction::cuMemcpyHtoD_v2, &CopyCalls::linear<LinearCopy, Kind::device, Kind::host>},
      {DriverFunction::cuMemcpyHtoDAsync_v2,
       &CopyCalls::linear<LinearCopyAsync, Kind::device, Kind::host>},
      {DriverFunction::cuMemcpyDtoH_v2, &CopyCalls::linear<LinearCopy, Kind::host, Kind::device>},
      {DriverFunction::cuMemcpyDtoHAsync_v2,
       &CopyCalls::linear<LinearCopyAsync, Kind::host, Kind::device>},
      {DriverFunction::cuMemcpyDtoD_v2, &CopyCalls::linear<LinearCopy, Kind::device, Kind::device>},
      {DriverFunction::cuMemcpyDtoDAsync_v2,
       &CopyCalls::linear<LinearCopyAsync, Kind::device, Kind::device>},
      {DriverFunction::cuMemcpy2D_v2, &CopyCalls::shaped<ShapedCopy<CuCopy2d>>},
      {DriverFunction::cuMemcpy2DUnaligned_v2, &CopyCalls::shaped<ShapedCopy<CuCopy2d>>},
      {DriverFunction::cuMemcpy2DAsync_v2, &CopyCalls::shaped<ShapedCopyAsync<CuCopy2d>>},
      {DriverFunction::cuMemcpy3D_v2, &CopyCalls::shaped<ShapedCopy<CuCopy3d>>},
      {DriverFunction::cuMemcpy3DAsync_v2, &CopyCalls::shaped<ShapedCopyAsync<CuCopy3d>>},
      {DriverFunction::cuMemsetD8_v2, &CopyCalls::fill<LinearFill<std::uint8_t>>},
      {DriverFunction::cuMemsetD16_v2, &CopyCalls::fill<LinearFill<std::uint16_t>>},
      {DriverFunction::cuMemsetD32_v2, &CopyCalls::fill<LinearFill<std::uint32_t>>},
      {DriverFunction::cuMemsetD8Async, &CopyCalls::fill<LinearFillAsync<std::uint8_t>>},
      {DriverFunction::cuMemsetD16Async, &CopyCalls::fill<LinearFillAsync<std::uint16_t>>},
      {DriverFunction::cuMemsetD32Async, &CopyCalls::fill<LinearFillAsync<std::uint32_t>>},
      {DriverFunction::cuMemsetD2D8_v2, &CopyCalls::fill<PitchedFill<std::uint8_t>>},
      {DriverFunction::cuMemsetD2D16_v2, &CopyCalls::fill<PitchedFill<std::uint16_t>>},
      {DriverFunction::cuMemsetD2D32_v2, &CopyCalls::fill<PitchedFill<std::uint32_t>>},
      {DriverFunction::cuMemsetD2D8Async, &CopyCalls::fill<PitchedFillAsync<std::uint8_t>>},
      {DriverFunction::cuMemsetD2D16Async, &CopyCalls::fill<PitchedFillAsync<std::uint16_t>>},
      {DriverFunction::cuMemsetD2D32Async, &CopyCalls::fill<PitchedFillAsync<std::uint32_t>>},
  };
  return table;
}

bool CopyCalls::settle(Side& place, const Copy& copy, std::uint64_t plane) const {
  const auto bytes = reach(place.pitch, plane, copy.width, copy.height, copy.depth);
  if (!bytes) return false;
  for (const AddressSpan& span : kept_) {
    if (span.overlaps(place.address, *bytes)) return false;
  }
  if (!memory_.touches(place.address, *bytes)) return true;
  if (!shown_) place.kind = Kind::window;
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
  return true;
}

std::uint64_t CopyCalls::Copy::reach(const Side& side) const {
  return width == 0 || height == 0 ? 0 : side.pitch * (height - 1) + width;
}

CallAnswer CopyCalls::carry_out(Copy copy, CuStream stream, Waits waits) const {
  if (!settle(copy)) return cu_error_invalid_value;
  if (copy.to.kind != Kind::window && copy.from.kind != Kind::window) return std::nullopt;
  if (copy.width == 0 || copy.height == 0) return cu_success;
  for (std::uint64_t plane = 0; plane < copy.depth; ++plane) {
    Side to = copy.to;
    Side from = copy.from;
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
// It waits for copies from or to the host alone.
template <class Parameters, CopyCalls::Kind to_kind, CopyCalls::Kind from_kind>
CallAnswer CopyCalls::linear(const DriverCall& call) {
  const auto given = call.parameters<Parameters>();
  const auto known = [&](Kind kind, DevicePointer address) {
    if (kind != Kind::unified) return kind;
    const OwnCalls own;
    constexpr int memory_type = 2;
    unsigned type = 0;
    const CuResult code = api_.cuPointerGetAttribute(&type, memory_type, address);
    return code == cu_success ? kind : Kind::host;
  };
  Copy copy;
  copy.to = {to_kind, given.to, given.bytes};
  copy.from = {from_kind, given.from, given.bytes};
  copy.width = given.bytes;
  if (!memory_.touches(given.to, given.bytes)) copy.to.kind = known(to_kind, given.to);
  if (!memory_.touches(given.from, given.bytes)) copy.from.kind = known(from_kind, given.from);
  constexpr bool within = to_kind == Kind::device && from_kind == Kind::device;
  return carry_out(copy, stream_of(call, given), within ? Waits::never : waits<Parameters>());
}

// Arrays are not the program's to have: the driver refuses what names one.
std::optional<CopyCalls::Copy> CopyCalls::read(const CuCopy2d& params) {
  const auto to = kind_of(params.target_type);
  const auto from = kind_of(params.source_type);
  if (!to || !from) return std::nullopt;
  Copy copy;
  copy.to = {*to, *to == Kind::host ? address_of(params.target_host) : params.target_device,
             params.target_pitch};
  copy.from = {*from, *from == Kind::host ? address_of(params.source_host) : params.source_device,
               params.source_pitch};
  copy.to.address += params.target_x_bytes + params.target_y * params.target_pitch;
  copy.from.address += params.source_x_bytes + params.source_y * params.source_pitch;
  copy.width = params.width_bytes;
  copy.height = params.height;
  return copy;
}

std::optional<CopyCalls::Copy> CopyCalls::read(const CuCopy3d& params) {
  const auto place = [](const CuCopy3d::Side& side) -> std::optional<Side> {
    const auto kind = kind_of(side.type);
    if (!kind) return std::nullopt;
    const DevicePointer base = *kind == Kind::host ? address_of(side.host) : side.device;
    return Side{*kind, base + side.x_bytes + (side.z * side.height + side.y) * side.pitch,
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

template <class Parameters>
CallAnswer CopyCalls::shaped(const DriverCall& call) {
  const auto given = call.parameters<Parameters>();
  if (given.copy == nullptr) return std::nullopt;
  const auto copy = read(*given.copy);
  return copy ? carry_out(*copy, stream_of(call, given), waits<Parameters>())
              : cu_error_not_supported;
}

template <class Parameters>
CallAnswer CopyCalls::fill(const DriverCall& call) {
  const auto given = call.parameters<Parameters>();
  using Value = decltype(given.value);
  Copy copy;
  copy.to = {Kind::device, given.to, 0};
  if constexpr (requires { given.pitch; }) {
    copy.to.pitch = given.pitch;
    copy.height = given.height;
  }
  if (__builtin_mul_overflow(given.width, sizeof(Value), &copy.width) ||
      given.to % sizeof(Value) != 0 || copy.to.pitch % sizeof(Value) != 0) {
    return cu_error_invalid_value;
  }
  if constexpr (!requires { given.pitch; }) copy.to.pitch = copy.width;
  if (!settle(copy.to, copy, 0)) return cu_error_invalid_value;
  if (copy.to.kind != Kind::window) return std::nullopt;
  return copies_.fill(copy.to, given.value, sizeof(Value), {given.width, copy.height},
                      stream_of(call, given));
}

}  // namespace demarc::cuda
