// Counts a set of colours in another division of the memory, and prints it.
#include "demarc/color/color_set.hpp"

#include <algorithm>
#include <vector>

#include "demarc/base/text.hpp"

namespace demarc::color {

Result<ColorSet> ColorSet::counted_in(std::uint32_t of) const {
  if (!is_well_formed() || of == 0 || of > max_colors || (of % of_ != 0 && of_ % of != 0)) {
    return invalid_input("colours {} are no whole number of {} colours", to_string(*this), of);
  }
  ColorSet counted(0, of);
  for (std::uint32_t color = 0; color < of; ++color) {
    // The colours of this division that make up `color`, or the one of which it is a part.
    const ColorSet here =
        of >= of_ ? run(color / (of / of_), 1, of_) : run(color * (of_ / of), of_ / of, of_);
    const std::uint64_t had = here.members_ & members_;
    if (had == here.members_) {
      counted.insert(color);
    } else if (had != 0) {
      return invalid_input("colours {} are no whole number of {} colours", to_string(*this), of);
    }
  }
  return counted;
}

ColorSet ColorSet::common(const ColorSet& other) const {
  if (empty() || other.empty()) return {0, of_};
  const std::uint32_t finer = std::max(of_, other.of_);
  const auto mine = counted_in(finer);
  const auto others = other.counted_in(finer);
  if (!mine || !others) return *this;
  return {mine->members_ & others->members_, finer};
}

std::string list_of(const ColorSet& colors) {
  std::vector<std::uint32_t> list;
  for (std::uint32_t color = 0; color < ColorSet::max_colors; ++color) {
    if (colors.contains(color)) list.push_back(color);
  }
  return joined(list, ",");
}

std::string to_string(const ColorSet& colors) {
  return fmt::format("{} of {}", list_of(colors), colors.of());
}

}  // namespace demarc::color
