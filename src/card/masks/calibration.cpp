// Looks for the stream mask of an unknown driver, in processes that may die from it.
#include <sys/mman.h>

#include <algorithm>
#include <memory>

#include "demarc/card/probe_kernels.hpp"
#include "demarc/card/stream_mask.hpp"
#include "demarc/driver/in_child.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint32_t calibration_limit = 0x800;  // bytes; the farthest field known is at 0x5fc
constexpr std::size_t max_crashes = 16;

struct Found {
  std::uint32_t offset;
};

struct Unmap {
  void operator()(std::uint32_t* word) const { ::munmap(word, sizeof *word); }
};

// What a child leaves behind when it dies: the last place it wrote to; 0: none yet.
using Trace = std::unique_ptr<std::uint32_t, Unmap>;

Result<Trace> make_trace() {
  void* memory = ::mmap(nullptr, sizeof(std::uint32_t), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return missing_capability("no memory to share with a child process");
  return Trace(static_cast<std::uint32_t*>(memory));
}

Result<Found> calibrate_here(std::uint32_t index, std::span<const std::uint32_t> skip,
                             volatile std::uint32_t& trying) {
  DEMARC_TRY(const auto driver, Driver::load());
  DEMARC_TRY(const GpuPointer gpu, Gpu::open(driver, index));
  DEMARC_TRY(const ProbeKernels kernels, ProbeKernels::load(gpu));
  DEMARC_TRY(LaunchHook * hook, LaunchHook::install(*driver));
  DEMARC_TRY(const Stream stream, Stream::create(gpu));
  hook->begin_probe(gpu->compute_capability());
  DEMARC_CHECK(launch(stream, kernels.idle(), LaunchShape::line(1, 1)));
  DEMARC_CHECK(stream.wait());
  DEMARC_CHECK(hook->end_probe());
  DEMARC_TRY(const StreamField field,
             calibrate(gpu, *hook, kernels.idle(), calibration_limit, skip,
                       [&trying](std::uint32_t offset) { trying = offset; }));
  return Found{field.offset};
}

}  // namespace

Result<StreamField> calibrate_isolated(std::uint32_t index) {
  DEMARC_TRY(const Trace trace, make_trace());
  volatile std::uint32_t& trying = *trace;
  std::vector<std::uint32_t> skip;
  while (true) {
    const auto found = in_child<Found>([&] { return calibrate_here(index, skip, trying); });
    if (found) return StreamField{found->offset, true};
    const std::uint32_t last = trying;
    // An answer in words is final; a death, or silence, at a new place costs that place.
    const bool died = found.error().kind == ErrorKind::check_failed && last != 0 &&
                      std::find(skip.begin(), skip.end(), last) == skip.end();
    if (!died || skip.size() == max_crashes) return tl::unexpected(found.error());
    skip.push_back(last);
  }
}

}  // namespace demarc::cuda
