// One level of a planted hierarchy of TLBs.
#pragma once

#include <vector>

#include "planted_translation.hpp"

namespace demarc::probe {

class PlantedTlbState {
 public:
  // For pages below `pages`.
  PlantedTlbState(const PlantedTlb& truth, std::uint64_t pages);
  // Whether the page is held; it is afterwards.
  bool access(PageIndex page, Random& random);

 private:
  struct Held {  // neighbours in order of use, and the place in its set
    std::uint32_t older, newer, at;
    bool there;
  };
  struct Set {
    std::vector<std::uint32_t> tags;  // in no order
    std::uint32_t oldest, newest;
  };
  [[nodiscard]] std::size_t set_of(std::uint32_t tag) const;
  void unlink(Set& set, std::uint32_t tag);
  void make_newest(Set& set, std::uint32_t tag);

  PlantedTlb truth_;
  std::uint64_t ways_;
  std::vector<Set> sets_;
  std::vector<Held> held_;  // by tag
};

}  // namespace demarc::probe
