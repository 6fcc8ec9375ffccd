// Launches the canary's kernel of page_walk.cu and reads what it measured.
#include "demarc/card/canary_walk.hpp"

#include "demarc/device/embedded_ptx.hpp"
#include "page_kernels_ptx.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t ring_line_bytes = 128;
constexpr auto ring_lines = static_cast<std::uint32_t>(CanaryWalk::bytes / ring_line_bytes);
// An odd number, so that its multiples reach each line once; hardly two in a row are near.
constexpr std::uint32_t ring_step = 811;
static_assert(ring_step % 2 == 1 && (ring_lines & (ring_lines - 1)) == 0 && ring_lines % 256 == 0);
constexpr std::uint32_t result_words = 3;

std::vector<std::uint32_t> scattered_lines() {
  std::vector<std::uint32_t> lines(ring_lines);
  for (std::uint32_t i = 0; i < ring_lines; ++i) lines[i] = i * ring_step % ring_lines;
  return lines;
}

}  // namespace

Result<CanaryWalk> CanaryWalk::create(const GpuPointer& gpu) {
  const auto capability = gpu->compute_capability();
  const gpu::EmbeddedPtx* image =
      gpu::find_ptx(embedded::page_kernels(), "page_walk", capability.number());
  if (image == nullptr) {
    return missing_capability("{}: no kernel of a canary for compute capability {}.{}", gpu->name(),
                              capability.major, capability.minor);
  }
  DEMARC_TRY(Module module, Module::load(gpu, std::string(image->text), "page_walk.ptx"));
  DEMARC_TRY(const Function make_ring, module.function("demarc_page_ring"));
  DEMARC_TRY(Function walk, module.function("demarc_page_canary"));
  DEMARC_TRY(Stream stream, Stream::create(gpu));
  DEMARC_TRY(DeviceBuffer ring, DeviceBuffer::allocate(gpu, bytes));
  DEMARC_TRY(DeviceBuffer result, DeviceBuffer::allocate<std::uint64_t>(gpu, result_words));
  const auto lines = scattered_lines();
  DEMARC_TRY(const DeviceBuffer list, DeviceBuffer::allocate<std::uint32_t>(gpu, lines.size()));
  DEMARC_CHECK(list.upload(lines.data(), lines.size() * sizeof lines[0]));
  DEMARC_CHECK(launch(stream, make_ring, LaunchShape::line(ring_lines / 256, 256), ring.address(),
                      list.address(), ring_lines));
  DEMARC_CHECK(stream.wait());
  return CanaryWalk(std::move(module), std::move(walk), std::move(stream), std::move(ring),
                    std::move(result));
}

Result<WalkTimes> CanaryWalk::walk() const {
  DEMARC_CHECK(launch(stream_, walk_, LaunchShape::line(1, 1), ring_.address(), ring_lines,
                      result_.address(), std::uint64_t{0}));
  DEMARC_CHECK(stream_.wait());
  DEMARC_TRY(const auto measured, result_.read<std::uint64_t>(result_words));
  if (measured[2] != ring_.address() || measured[0] == 0 || measured[1] == 0) {
    return check_failed(
        "the walk of a canary ended at {:#x} after {} and {} cycles, but {:#x} was "
        "expected, where it began",
        measured[2], measured[0], measured[1], ring_.address());
  }
  return WalkTimes{static_cast<double>(measured[0]) / ring_lines,
                   static_cast<double>(measured[1]) / ring_lines};
}

}  // namespace demarc::cuda
