// Chooses the connection that gives way: an idle one of the party that has the most.
#include "demarc/serve/admission.hpp"

#include <algorithm>
#include <map>

namespace demarc::serve {
namespace {

constexpr std::size_t files_of_others = 256;  // of the driver, and of answers on their way
constexpr std::size_t files_of_a_seat = 3;
constexpr std::size_t least_seats = 64;

// The one that asked nothing for the longest time.
std::optional<std::size_t> idlest(const std::vector<Seat>& seats, const std::string& party) {
  const Seat* found = nullptr;
  for (const Seat& seat : seats) {
    if (seat.needed || seat.party != party) continue;
    if (found == nullptr || seat.used < found->used) found = &seat;
  }
  if (found == nullptr) return std::nullopt;
  return static_cast<std::size_t>(found - seats.data());
}

}  // namespace

Result<SeatLimits> SeatLimits::for_files(std::size_t files) {
  SeatLimits limits;
  constexpr std::size_t least = files_of_others + files_of_a_seat * least_seats;
  if (files < least) {
    return missing_capability(
        "this process may have {} files open, and a server needs {} at least: raise the limit "
        "(ulimit -n; LimitNOFILE of systemd)",
        files, least);
  }
  limits.all = std::min((files - files_of_others) / files_of_a_seat, limits.all);
  limits.of_a_party = std::min(limits.of_a_party, limits.all / 2);
  limits.reserve = std::min(limits.reserve, limits.all / 4);
  return limits;
}

Result<std::optional<std::size_t>> make_room(const std::vector<Seat>& seats,
                                             const std::string& party, bool own,
                                             const SeatLimits& limits) {
  std::map<std::string, std::size_t> counts;
  for (const Seat& seat : seats) ++counts[seat.party];
  if (!own && counts[party] >= limits.of_a_party) {
    if (const auto idle = idlest(seats, party)) return idle;
    return missing_capability(
        "{} already has {} connections with leases, the largest possible number of one", party,
        counts[party]);
  }
  if (seats.size() < limits.all - (own ? 0 : limits.reserve)) return std::optional<std::size_t>{};
  std::vector<std::pair<std::size_t, std::string>> parties;
  parties.reserve(counts.size());
  for (const auto& [name, count] : counts) parties.emplace_back(count, name);
  std::sort(parties.rbegin(), parties.rend());
  for (const auto& [count, name] : parties) {
    if (const auto idle = idlest(seats, name)) return idle;
  }
  return missing_capability(
      "this server already has {} connections with leases, the largest possible number",
      seats.size());
}

}  // namespace demarc::serve
