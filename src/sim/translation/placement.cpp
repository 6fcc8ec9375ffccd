// Places each page on the GPU that touches it first, by steps of the work and not by time.
//
// This is first touch without a race. In a race, a GPU that happens to be ahead by a few cycles
// would get every page that several GPUs use, run ahead on local memory, and so decide the result.
// Which GPU that is depends on the architecture, so comparisons would compare that.
#include "compute.hpp"

namespace demarc::sim::translation {
namespace {

// Which of two GPUs gets a page that both touch at the same step.
std::uint32_t draw(PageNumber page, GpuIndex gpu) {
  std::uint64_t z = ((page.raw<std::uint64_t>() << 6) | gpu.raw()) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9ULL;
  return static_cast<std::uint32_t>(z >> 32);
}

struct Home {
  GpuIndex gpu = untouched;
  std::uint32_t step = ~std::uint32_t{0};
};

}  // namespace

PageMap<GpuIndex> homes_under(const Settings& settings, Split split,
                              const Application& application) {
  const PageSize page_size(settings.page_bytes);
  const std::size_t pages = page_size.pages_of(application.bytes());
  PageMap<GpuIndex> homes(pages, untouched);
  if (!has_homes(settings)) return homes;
  const std::uint32_t behind = settings.placement == Placement::far ? 1 : 0;
  std::size_t missing = pages;
  MemoryInstruction instruction;
  const auto kernels = application.kernels();
  for (std::uint32_t k = 0; k < kernels.size() && missing > 0; ++k) {
    PageMap<Home> touched(pages);
    PerIndex<GpuIndex, std::uint32_t> steps(settings.gpus, 0);  // work-groups of each GPU so far
    for (std::uint32_t group = 0; group < kernels[k].groups(); ++group) {
      const GpuIndex gpu = gpu_of_group(settings, split, kernels[k], group);
      const std::uint32_t step = steps[gpu]++;
      for (std::uint32_t wave = 0; wave < kernels[k].waves_per_group; ++wave) {
        for (std::uint32_t i = 0; application.instruction({k, group, wave, i}, instruction); ++i) {
          for (std::uint32_t l = 0; l < instruction.lines; ++l) {
            const PageNumber page = page_size.page_of(instruction.line[l]);
            const Home home = touched[page];
            if (step > home.step || (step == home.step && gpu == home.gpu)) continue;
            if (step == home.step && draw(page, gpu) > draw(page, home.gpu)) continue;
            touched.at(page) = {gpu, step};
          }
        }
      }
    }
    touched.each([&](PageNumber page, const Home& home) {
      if (homes[page] != untouched || home.gpu == untouched) return;
      homes.at(page) = GpuIndex((home.gpu.raw() + behind) % settings.gpus);
      --missing;
    });
  }
  return homes;
}

Result<std::vector<GpuIndex>> page_homes(const Settings& settings, const Application& application) {
  if (settings.placement == Placement::first_walk) {
    return invalid_input(
        "placement=first-walk: the places of pages are known only when all accesses have run");
  }
  const std::uint64_t pages = PageSize(settings.page_bytes).pages_of(application.bytes());
  std::vector<GpuIndex> homes(pages);
  if (!has_homes(settings)) {
    for (std::uint64_t page = 0; page < pages; ++page) {
      homes[page] =
          GpuIndex(settings.placement == Placement::interleaved ? page % settings.gpus
                                                                : page * settings.gpus / pages);
    }
    return homes;
  }
  const auto found = homes_under(settings, split_under(settings, application), application);
  for (std::uint64_t page = 0; page < pages; ++page) homes[page] = found[PageNumber(page)];
  return homes;
}

}  // namespace demarc::sim::translation
