#include <algorithm>
#include <map>

#include "demarc/locality/predict.hpp"
#include "places.hpp"

namespace demarc::locality {

PageSplit split_pages(const AccessRuns& runs, std::uint32_t gpus, std::uint64_t page_bytes,
                      std::size_t most_pages) {
  PageSplit result;
  result.page_bytes = page_bytes;
  result.gpus = std::max(gpus, 1U);
  result.pages_by_sharers.resize(result.gpus, 0);
  result.accesses.resize(result.gpus);
  std::map<std::uint64_t, std::vector<std::uint64_t>> pages;
  const Places places{page_bytes, 0};
  for (const Run& run : runs.runs) {
    const auto gpu = static_cast<std::size_t>(std::uint64_t{run.block} * result.gpus /
                                              std::max(runs.blocks(), 1U));
    for_each_interval(run, places, [&](const Interval& interval) {
      for (std::uint64_t page = interval.lo; page < interval.lo + interval.length; ++page) {
        std::vector<std::uint64_t>& counts = pages[page];
        if (counts.empty()) counts.resize(result.gpus, 0);
        counts[gpu] += interval.width;
      }
    });
  }
  result.pages = pages.size();
  double all = 0;
  double shared = 0;
  double remote = 0;
  for (const auto& [page, counts] : pages) {
    std::uint64_t sum = 0;
    std::uint64_t most = 0;
    std::size_t sharers = 0;
    for (const std::uint64_t count : counts) {
      sum += count;
      most = std::max(most, count);
      sharers += count > 0 ? 1 : 0;
    }
    ++result.pages_by_sharers[sharers - 1];
    all += static_cast<double>(sum);
    if (sharers > 1) shared += static_cast<double>(sum);
    remote += static_cast<double>(sum - most);
    if (result.first_pages.size() >= most_pages) continue;
    result.first_pages.push_back(page * page_bytes);
    for (std::size_t g = 0; g < counts.size(); ++g) result.accesses[g].push_back(counts[g]);
  }
  if (all > 0) {
    result.shared_access_share = shared / all;
    result.remote_access_share = remote / all;
  }
  return result;
}

}  // namespace demarc::locality
