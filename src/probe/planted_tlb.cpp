// A level of TLBs with sets, ways and a rule of replacement.
#include "planted_tlb.hpp"

#include <algorithm>

#include "demarc/base/hash.hpp"

namespace demarc::probe {
namespace {

constexpr std::uint32_t no_tag = ~std::uint32_t{0};

}  // namespace

PlantedTlbState::PlantedTlbState(const PlantedTlb& truth, std::uint64_t pages)
    : truth_(truth),
      ways_(truth.ways == 0 ? truth.entries : truth.ways),
      sets_(std::max<std::uint64_t>(truth.entries / ways_, 1), Set{{}, no_tag, no_tag}),
      held_(pages / truth.pages_per_entry + 1, Held{no_tag, no_tag, 0, false}) {}

std::size_t PlantedTlbState::set_of(std::uint32_t tag) const {
  return (truth_.hashed ? stirred(tag) : std::uint64_t{tag}) % sets_.size();
}

void PlantedTlbState::unlink(Set& set, std::uint32_t tag) {
  const Held& gone = held_[tag];
  (gone.older == no_tag ? set.oldest : held_[gone.older].newer) = gone.newer;
  (gone.newer == no_tag ? set.newest : held_[gone.newer].older) = gone.older;
}

void PlantedTlbState::make_newest(Set& set, std::uint32_t tag) {
  held_[tag].older = set.newest;
  held_[tag].newer = no_tag;
  (set.newest == no_tag ? set.oldest : held_[set.newest].newer) = tag;
  set.newest = tag;
}

bool PlantedTlbState::access(PageIndex page, Random& random) {
  const auto tag = static_cast<std::uint32_t>(page.raw() / truth_.pages_per_entry);
  Set& set = sets_[set_of(tag)];
  if (held_[tag].there) {
    unlink(set, tag);
    make_newest(set, tag);
    return true;
  }
  held_[tag].at = static_cast<std::uint32_t>(set.tags.size());
  if (set.tags.size() == ways_) {
    const std::uint32_t gone = truth_.random ? set.tags[random.below(ways_)] : set.oldest;
    unlink(set, gone);
    held_[gone].there = false;
    held_[tag].at = held_[gone].at;
    set.tags[held_[tag].at] = tag;
  } else {
    set.tags.push_back(tag);
  }
  held_[tag].there = true;
  make_newest(set, tag);
  return false;
}

}  // namespace demarc::probe
