// Copies and fills coloured memory by one kernel, rewritten for either side of it and for both.
#include "calls/window_copies.hpp"

#include <algorithm>

#include "calls/own_calls.hpp"
#include "demarc/device/embedded_ptx.hpp"
#include "demarc/ptx/parser.hpp"
#include "window_kernels_ptx.hpp"

namespace demarc::cuda {
namespace {

using Side = WindowCopies::Side;
using Size = WindowCopies::Size;

constexpr std::uint64_t unit_bytes = 16;
constexpr unsigned copying_threads = 256;
constexpr std::uint64_t max_copying_blocks = 1024;

WindowCopies::Grid grid_for(std::uint64_t row_bytes, std::uint64_t height) {
  const std::uint64_t wanted = row_bytes / unit_bytes / copying_threads + 1;
  const std::uint64_t along = std::min(wanted, max_copying_blocks);
  const std::uint64_t rows =
      std::clamp(height, std::uint64_t{1}, std::max(max_copying_blocks / along, std::uint64_t{1}));
  return {static_cast<unsigned>(along), static_cast<unsigned>(rows)};
}

CuKernelNode kernel_of(CuFunction kernel, WindowCopies::Grid grid, void** arguments) {
  CuKernelNode made{};
  made.grid[0] = grid.along_rows;
  made.grid[1] = grid.rows;
  made.grid[2] = 1;
  made.block[0] = copying_threads;
  made.block[1] = 1;
  made.block[2] = 1;
  made.arguments = arguments;
  made.kernel = reinterpret_cast<CuKernel>(kernel);
  return made;
}

Side moved(Side place, std::uint64_t column, std::uint64_t row) {
  place.address += column + row * place.pitch;
  return place;
}

unsigned memory_type(Side::Kind kind) {
  if (kind == Side::Kind::host) return cu_memory_host;
  return kind == Side::Kind::device ? cu_memory_device : cu_memory_unified;
}

CuCopy2d plain_copy(const Side& to, const Side& from, Size size) {
  CuCopy2d copy{};
  copy.source_type = memory_type(from.kind);
  copy.source_host = reinterpret_cast<const void*>(from.address);  // NOLINT: told by the type
  copy.source_device = from.address;
  copy.source_pitch = from.pitch;
  copy.target_type = memory_type(to.kind);
  copy.target_host = reinterpret_cast<void*>(to.address);  // NOLINT: told by the type
  copy.target_device = to.address;
  copy.target_pitch = to.pitch;
  copy.width_bytes = size.width;
  copy.height = size.height;
  return copy;
}

// A kernel of Demarc's own in some form. Libraries belong to no context.
Result<CuFunction> load_kernel(const DriverApi& api, const ptx::ColoredModule& made,
                               const char* name) {
  DEMARC_CHECK(ptx::check_accepted(made.kernels, "window_copy.ptx"));
  CuLibrary library = nullptr;
  CuKernel kernel = nullptr;
  CuResult code = api.cuLibraryLoadData(&library, made.module.text->c_str(), nullptr, nullptr, 0,
                                        nullptr, nullptr, 0);
  if (code == cu_success) code = api.cuLibraryGetKernel(&kernel, library, name);
  if (code != cu_success) {
    return missing_capability("the driver refuses the copies of coloured memory (error {})", code);
  }
  // The driver takes both kinds of handles where kernels are launched.
  return reinterpret_cast<CuFunction>(kernel);
}

}  // namespace

Result<WindowCopies> WindowCopies::create(const DriverApi& api, const ColoredCode& code,
                                          gpu::ComputeCapability capability,
                                          std::uint64_t staged_bytes) {
  const gpu::EmbeddedPtx* image =
      gpu::find_ptx(embedded::window_kernels(), "window_copy", capability.number());
  if (image == nullptr || api.cuLibraryLoadData == nullptr || api.cuLibraryGetKernel == nullptr ||
      api.cuMemAllocAsync == nullptr || api.cuMemFreeAsync == nullptr ||
      api.cuPointerGetAttribute == nullptr || api.cuModuleLoadDataEx == nullptr) {
    return missing_capability(
        "copies of coloured memory need compute capability 7.5 and a driver of CUDA 12.0 or newer");
  }
  const OwnCalls own;
  DEMARC_TRY(const auto plain, ptx::parse_whole(std::string(image->text), "window_copy.ptx"));
  struct Form {
    CuFunction WindowCopies::*kernel;
    const char* name;
    ptx::ColoredAccesses accesses;
  };
  WindowCopies copies(api, staged_bytes);
  for (const Form& form :
       {Form{&WindowCopies::within_, "demarc_copy2d", ptx::ColoredAccesses::all},
        Form{&WindowCopies::into_, "demarc_copy2d", ptx::ColoredAccesses::stores},
        Form{&WindowCopies::out_of_, "demarc_copy2d", ptx::ColoredAccesses::loads},
        Form{&WindowCopies::fill_, "demarc_fill2d", ptx::ColoredAccesses::stores}}) {
    ptx::ColoredOptions options;
    options.accesses = form.accesses;
    options.kernels = {form.name};
    DEMARC_TRY(const auto made, code.rewrite(plain, options));
    DEMARC_TRY(copies.*form.kernel, load_kernel(api, made, form.name));
  }
  return copies;
}

WindowCopies::Use WindowCopies::launch_in(CuStream stream) const {
  return [this, stream](const CuKernelNode& kernel) {
    if (launches_ != nullptr) ++*launches_;
    return api_->cuLaunchKernel(reinterpret_cast<CuFunction>(kernel.kernel), kernel.grid[0],
                                kernel.grid[1], kernel.grid[2], kernel.block[0], kernel.block[1],
                                kernel.block[2], kernel.shared_bytes, stream, kernel.arguments,
                                kernel.extra);
  };
}

CuResult WindowCopies::copy_by(const Use& use, Side to, Side from, Size size) const {
  const OwnCalls own;
  const bool to_window = to.kind == Side::Kind::window;
  const bool both = to_window && from.kind == Side::Kind::window;
  void* arguments[] = {&to.address, &to.pitch,   &from.address,
                       &from.pitch, &size.width, &size.height};
  return use(kernel_of(both        ? within_
                       : to_window ? into_
                                   : out_of_,
                       grid_for(size.width, size.height), arguments));
}

CuResult WindowCopies::fill_by(const Use& use, Side to, std::uint32_t value,
                               std::uint32_t element_bytes, Size size) const {
  const OwnCalls own;
  void* arguments[] = {&to.address, &to.pitch, &value, &element_bytes, &size.width, &size.height};
  return use(kernel_of(fill_, grid_for(size.width * element_bytes, size.height), arguments));
}

CuResult WindowCopies::copy_by_driver(const Side& to, const Side& from, Size size,
                                      CuStream stream) const {
  const CuCopy2d copy = plain_copy(to, from, size);
  return api_->cuMemcpy2DAsync_v2(&copy, stream);
}

CuResult WindowCopies::copy_piece(DevicePointer staging, const Side& to, const Side& from,
                                  Size size, CuStream stream) const {
  const Side between{Side::Kind::device, staging, size.width};
  if (to.kind == Side::Kind::window) {
    const CuResult code = copy_by_driver(between, from, size, stream);
    return code == cu_success ? copy_by(launch_in(stream), to, between, size) : code;
  }
  const CuResult code = copy_by(launch_in(stream), between, from, size);
  return code == cu_success ? copy_by_driver(to, between, size, stream) : code;
}

// In pieces that the staging memory holds: of many rows, or of a part of one.
CuResult WindowCopies::copy_staged(const Side& to, const Side& from, Size size,
                                   CuStream stream) const {
  const std::uint64_t piece_width = std::min(size.width, staged_bytes_);
  const std::uint64_t piece_height = std::min(size.height, staged_bytes_ / piece_width);
  DevicePointer staging = 0;
  CuResult code = api_->cuMemAllocAsync(&staging, piece_width * piece_height, stream);
  if (code != cu_success) return code;
  if (record_ != nullptr) record_->note_staging_bytes(size.width * size.height);
  for (std::uint64_t row = 0; code == cu_success && row < size.height; row += piece_height) {
    for (std::uint64_t at = 0; code == cu_success && at < size.width; at += piece_width) {
      const Size piece{std::min(piece_width, size.width - at),
                       std::min(piece_height, size.height - row)};
      code = copy_piece(staging, moved(to, at, row), moved(from, at, row), piece, stream);
    }
  }
  const CuResult freed = api_->cuMemFreeAsync(staging, stream);
  return code == cu_success ? freed : code;
}

CuResult WindowCopies::copy(const Side& to, const Side& from, Size size, CuStream stream) const {
  const OwnCalls own;
  if (to.kind == Side::Kind::window && from.kind == Side::Kind::window) {
    return copy_by(launch_in(stream), to, from, size);
  }
  return copy_staged(to, from, size, stream);
}

CuResult WindowCopies::fill(Side to, std::uint32_t value, std::uint32_t element_bytes, Size size,
                            CuStream stream) const {
  if (size.width == 0 || size.height == 0) return cu_success;
  return fill_by(launch_in(stream), to, value, element_bytes, size);
}

}  // namespace demarc::cuda
