// Counts the pages that several GPUs touch, and judges which translation suits them.
#include "demarc/locality/pages.hpp"

#include <algorithm>
#include <map>

#include "maps/places.hpp"

namespace demarc::locality {
namespace {

constexpr std::uint32_t no_block = 0xffffffffU;
constexpr double gmmu_walk_cycles = 100;
constexpr double iommu_way_cycles = 680;

struct OnePage {
  std::vector<std::uint64_t> accesses;  // by GPU
  std::vector<std::uint64_t> returns;
  std::vector<std::uint32_t> last_block;
};

class PageMap {
 public:
  PageMap(const AccessRuns& runs, std::uint32_t gpus, std::uint64_t page_bytes)
      : runs_(runs), gpus_(gpus), places_{page_bytes, 0} {}

  std::map<std::uint64_t, OnePage> make() {
    visit_all(false);
    // Pages that come between two blocks are taken as the mean over all blocks.
    const double pages_a_block =
        static_cast<double>(visits_) / static_cast<double>(std::max(runs_.blocks(), 1U));
    reach_ = static_cast<double>(tlb_entries) / std::max(pages_a_block, 1e-9);
    for (auto& [page, one] : pages_)
      std::fill(one.last_block.begin(), one.last_block.end(), no_block);
    visit_all(true);
    return std::move(pages_);
  }

 private:
  void visit_all(bool second_pass) {
    for (Run run : runs_.runs) {
      const Loop& loop = runs_.loop_of(run);
      for (std::uint32_t trip = 0; trip < loop.trips; ++trip) {
        visit(run, second_pass);
        run.address += static_cast<std::uint64_t>(loop.stride);
      }
    }
  }
  void visit(const Run& run, bool second_pass) {
    const auto gpu =
        static_cast<std::size_t>(std::uint64_t{run.block} * gpus_ / std::max(runs_.blocks(), 1U));
    for_each_interval(run, places_, [&](const Interval& interval) {
      for (std::uint64_t page = interval.lo; page < interval.lo + interval.length; ++page) {
        OnePage& one = pages_[page];
        if (one.accesses.empty()) {
          one.accesses.resize(gpus_, 0);
          one.returns.resize(gpus_, 0);
          one.last_block.resize(gpus_, no_block);
        }
        std::uint32_t& last = one.last_block[gpu];
        if (second_pass) {
          one.accesses[gpu] += interval.width;
          if (last != no_block && static_cast<double>(run.block - last) > reach_)
            ++one.returns[gpu];
        } else if (last == no_block || run.block > last + 1) {
          ++visits_;
        }
        last = run.block;
      }
    });
  }

  const AccessRuns& runs_;
  std::size_t gpus_;
  Places places_;
  std::map<std::uint64_t, OnePage> pages_;
  std::uint64_t visits_ = 0;  // of blocks to pages that the block before did not touch
  double reach_ = 0;          // blocks between two visits that the TLB bridges
};

}  // namespace

PageSplit split_pages(const AccessRuns& runs, std::uint32_t gpus, std::uint64_t page_bytes,
                      std::size_t max_pages) {
  PageSplit result;
  result.page_bytes = page_bytes;
  result.gpus = std::max(gpus, 1U);
  result.pages_by_sharers.resize(result.gpus, 0);
  result.accesses.resize(result.gpus);
  const std::map<std::uint64_t, OnePage> pages = PageMap(runs, result.gpus, page_bytes).make();
  result.pages = pages.size();
  double all = 0;
  double shared = 0;
  double remote = 0;
  for (const auto& [page, one] : pages) {
    std::uint64_t sum = 0;
    std::size_t sharers = 0;
    std::size_t owner = 0;
    for (std::size_t g = 0; g < one.accesses.size(); ++g) {
      sum += one.accesses[g];
      sharers += one.accesses[g] > 0 ? 1U : 0U;
      if (one.accesses[g] > one.accesses[owner]) owner = g;
      result.returns += one.returns[g];
    }
    result.first_touches += sharers;
    result.local_returns += one.returns[owner];
    ++result.pages_by_sharers[sharers - 1];
    all += static_cast<double>(sum);
    if (sharers > 1) shared += static_cast<double>(sum);
    remote += static_cast<double>(sum - one.accesses[owner]);
    if (result.first_pages.size() >= max_pages) continue;
    result.first_pages.push_back(page * page_bytes);
    for (std::size_t g = 0; g < one.accesses.size(); ++g)
      result.accesses[g].push_back(one.accesses[g]);
  }
  if (all > 0) {
    result.shared_access_share = shared / all;
    result.remote_access_share = remote / all;
  }
  return result;
}

const char* to_string(Translation architecture) {
  return architecture == Translation::centralised ? "centralised" : "distributed";
}

TranslationVerdict judge_translation(const PageSplit& split) {
  TranslationVerdict verdict;
  const std::uint64_t misses = split.first_touches + split.returns;
  if (misses > 0)
    verdict.local_return_share =
        static_cast<double>(split.local_returns) / static_cast<double>(misses);
  // With h the share: gain h * (way - walk) against the walk lost on the rest.
  const double gained = verdict.local_return_share * (iommu_way_cycles - gmmu_walk_cycles);
  const double lost = (1 - verdict.local_return_share) * gmmu_walk_cycles;
  if (gained > lost) verdict.architecture = Translation::distributed;
  return verdict;
}

}  // namespace demarc::locality
