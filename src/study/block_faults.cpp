// Finds blocks that ran outside their SMs, and kernels that began too early.
#include <algorithm>
#include <limits>

#include "demarc/study/block_runs.hpp"

namespace demarc::study {

std::vector<std::string> faults_of(const BlockRun& run) {
  struct Extent {
    double begin = std::numeric_limits<double>::max();
    double end = 0;
    std::uint32_t outside = 0;
  };
  std::vector<Extent> extents(run.kernels.size());
  for (const BlockTime& block : run.blocks) {
    Extent& extent = extents.at(block.kernel);
    extent.begin = std::min(extent.begin, block.begin_us);
    extent.end = std::max(extent.end, block.end_us);
    const auto& sms = run.kernels[block.kernel].sms;
    if (!sms.empty() && !std::binary_search(sms.begin(), sms.end(), block.sm)) ++extent.outside;
  }
  std::vector<std::string> faults;
  for (std::size_t k = 0; k < run.kernels.size(); ++k) {
    if (extents[k].outside != 0) {
      faults.push_back(fmt::format("{} of {} blocks of {} ran outside its SMs", extents[k].outside,
                                   run.kernels[k].blocks, run.kernels[k].name));
    }
    for (std::size_t before = 0; before < k; ++before) {
      if (run.kernels[before].stream != run.kernels[k].stream) continue;
      if (extents[k].begin >= extents[before].end) continue;
      faults.push_back(fmt::format("{} began {:.1f} us before {} of the same stream had ended",
                                   run.kernels[k].name, extents[before].end - extents[k].begin,
                                   run.kernels[before].name));
    }
  }
  return faults;
}

}  // namespace demarc::study
