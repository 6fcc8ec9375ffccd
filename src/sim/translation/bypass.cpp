// Decides which misses of the L2 TLB skip the GMMU: by an oracle, a filter or hit rates.
#include "bypass.hpp"

#include <vector>

namespace demarc::sim::translation {
namespace {

class Oracle final : public BypassDecision {
 public:
  bool skip_gmmu(PageNumber, bool resident) override { return !resident; }
  void on_table_insert(PageNumber) override {}
  void on_table_remove(PageNumber) override {}
  void on_walk(bool) override {}
};

// A counting Bloom filter with two hashes over the pages entered into the local table: 64 Ki
// counters of four bits, 32 KiB of hardware. It never misses a page that is there (a counter that
// is full stays so); a false positive costs one useless walk.
class ResidencyFilter final : public BypassDecision {
 public:
  bool skip_gmmu(PageNumber page, bool) override {
    return counters_[first_hash(page)] == 0 || counters_[second_hash(page)] == 0;
  }
  void on_table_insert(PageNumber page) override {
    add(first_hash(page));
    add(second_hash(page));
  }
  void on_table_remove(PageNumber page) override {
    take(first_hash(page));
    take(second_hash(page));
  }
  void on_walk(bool) override {}

 private:
  static constexpr std::uint8_t full = 15;
  void add(std::size_t at) {
    if (counters_[at] < full) ++counters_[at];
  }
  void take(std::size_t at) {
    if (counters_[at] < full && counters_[at] > 0) --counters_[at];
  }
  static std::size_t first_hash(PageNumber page) { return (page.raw() * 0x9e3779b1U) >> 16; }
  static std::size_t second_hash(PageNumber page) { return (page.raw() * 0x85ebca6bU) >> 16; }
  std::vector<std::uint8_t> counters_ = std::vector<std::uint8_t>(std::size_t{1} << 16);
};

// Walks on while the share of hits of the last epoch was worth it; otherwise skips, but for one
// request in sixteen, which keeps the estimate fresh.
class EpochHitRate final : public BypassDecision {
 public:
  EpochHitRate(std::uint32_t epoch, std::uint32_t threshold)
      : epoch_(epoch), threshold_(threshold) {}
  bool skip_gmmu(PageNumber, bool) override {
    if (!skipping_) return false;
    return ++requests_ % sampling != 0;
  }
  void on_table_insert(PageNumber) override {}
  void on_table_remove(PageNumber) override {}
  void on_walk(bool hit) override {
    ++walks_;
    hits_ += hit ? 1 : 0;
    const std::uint32_t length = skipping_ ? epoch_ / sampling + 1 : epoch_;
    if (walks_ < length) return;
    skipping_ = hits_ * 100 < threshold_ * walks_;
    walks_ = hits_ = 0;
  }

 private:
  static constexpr std::uint32_t sampling = 16;
  std::uint32_t epoch_;
  std::uint32_t threshold_;
  bool skipping_ = false;
  std::uint32_t walks_ = 0;
  std::uint32_t hits_ = 0;
  std::uint32_t requests_ = 0;
};

}  // namespace

std::unique_ptr<BypassDecision> make_bypass_decision(const Settings& settings) {
  switch (settings.bypass_policy) {
    case BypassPolicy::residency:
      return std::make_unique<ResidencyFilter>();
    case BypassPolicy::epoch:
      return std::make_unique<EpochHitRate>(settings.bypass_epoch, settings.bypass_threshold);
    case BypassPolicy::oracle:
      return std::make_unique<Oracle>();
  }
  return nullptr;
}

}  // namespace demarc::sim::translation
