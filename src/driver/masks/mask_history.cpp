// Keeps the names of TPCs and the launches of the last masks of a program.
#include "demarc/driver/mask_history.hpp"

#include <algorithm>

namespace demarc::cuda {

void MaskHistory::begin(std::uint32_t number, std::string_view tpcs) {
  Row& row = rows_[number % rows_.size()];
  earlier_.fetch_add(row.launches.exchange(0));
  row.tpcs.fill('\0');
  std::copy_n(tpcs.begin(), std::min(tpcs.size(), row.tpcs.size() - 1), row.tpcs.begin());
}

std::vector<MaskPeriod> MaskHistory::periods(std::uint32_t last) const {
  std::vector<MaskPeriod> found;
  const auto kept = static_cast<std::uint32_t>(rows_.size());
  if (last > kept) found.push_back({"earlier ones", earlier_.load()});
  for (std::uint32_t number = last > kept ? last - kept + 1 : 1; number <= last; ++number) {
    const Row& row = rows_[number % kept];
    found.push_back({row.tpcs.data(), row.launches.load()});
  }
  return found;
}

}  // namespace demarc::cuda
