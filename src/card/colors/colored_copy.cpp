// Copies between the host and coloured memory through plain memory and a kernel.
#include "demarc/card/colored_copy.hpp"

#include <algorithm>

#include "copy_kernels_ptx.hpp"
#include "demarc/device/embedded_ptx.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t staged_bytes = std::uint64_t{32} << 20U;
constexpr std::uint64_t vector_bytes = 16;
constexpr std::uint32_t copy_threads = 256;
constexpr std::uint64_t max_copy_blocks = 1024;

}  // namespace

Result<ColoredCopier> ColoredCopier::create(GpuPointer gpu) {
  const auto capability = gpu->compute_capability();
  const gpu::EmbeddedPtx* image =
      gpu::find_ptx(embedded::copy_kernels(), "colored_copy", capability.number());
  if (image == nullptr) {
    return missing_capability("{}: no copy kernel for compute capability {}.{}", gpu->name(),
                              capability.major, capability.minor);
  }
  DEMARC_TRY(Module module, Module::load(gpu, std::string(image->text), "colored_copy.ptx"));
  DEMARC_TRY(Function copy, module.function("demarc_copy_colored"));
  DEMARC_TRY(Stream stream, Stream::create(gpu));
  return ColoredCopier(std::move(module), std::move(copy), std::move(stream));
}

Result<void> ColoredCopier::run(const colored_layout<remainders>& place, DevicePointer plain,
                                std::uint64_t bytes, bool to_colored) const {
  const std::uint64_t threads = bytes / vector_bytes + 2;
  const auto blocks =
      static_cast<std::uint32_t>(std::min(threads / copy_threads + 1, max_copy_blocks));
  DEMARC_CHECK(launch(stream_, copy_, LaunchShape::line(blocks, copy_threads), place, plain, bytes,
                      std::uint32_t{to_colored}));
  return stream_.wait();
}

Result<void> ColoredCopier::upload(const colored_layout<remainders>& place, const void* source,
                                   std::uint64_t bytes) const {
  const std::uint64_t ahead = place.first % vector_bytes;
  DEMARC_TRY(const DeviceBuffer staging,
             DeviceBuffer::allocate(stream_.gpu(), ahead + std::min(bytes, staged_bytes)));
  for (std::uint64_t done = 0; done < bytes; done += staged_bytes) {
    const std::uint64_t now = std::min(bytes - done, staged_bytes);
    colored_layout<remainders> rest = place;
    rest.first += done;
    DEMARC_CHECK(staging.upload(static_cast<const char*>(source) + done, now, ahead));
    DEMARC_CHECK(run(rest, staging.address() + ahead, now, true));
  }
  return {};
}

Result<void> ColoredCopier::download(const colored_layout<remainders>& place, void* target,
                                     std::uint64_t bytes) const {
  const std::uint64_t ahead = place.first % vector_bytes;
  DEMARC_TRY(const DeviceBuffer staging,
             DeviceBuffer::allocate(stream_.gpu(), ahead + std::min(bytes, staged_bytes)));
  for (std::uint64_t done = 0; done < bytes; done += staged_bytes) {
    const std::uint64_t now = std::min(bytes - done, staged_bytes);
    colored_layout<remainders> rest = place;
    rest.first += done;
    DEMARC_CHECK(run(rest, staging.address() + ahead, now, false));
    DEMARC_CHECK(staging.download(static_cast<char*>(target) + done, now, ahead));
  }
  return {};
}

}  // namespace demarc::cuda
