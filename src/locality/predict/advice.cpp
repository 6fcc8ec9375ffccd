// Writes advice on the access that coalesces worst and on the one that blocks share most.
#include "predict/advice.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace demarc::locality {
namespace {

constexpr double bytes_of_sector = 32;
// Fewer sectors than this many times the least are not worth a word.
constexpr double notable_excess = 1.5;

// "k.cu:12 (ld.global.f32 %f1, [%rd4];)", with the line of the PTX where there is no other.
std::string place_of(const Access& access) {
  const std::string line =
      access.source_line.empty() ? fmt::format("line {}", access.line) : access.source_line;
  return fmt::format("{} ({})", line, access.instruction);
}

// The fewest sectors that hold what the lanes of a request touch, if no two touch the same.
double least_sectors(const Access& access) {
  const double lanes = static_cast<double>(access.executed) / static_cast<double>(access.requests);
  return std::max(1.0, lanes * access.bytes / bytes_of_sector);
}

// For the first run that has two lanes; 0 where there is none.
std::int64_t lane_stride(const AccessRuns& runs, std::size_t access) {
  const auto it = std::find_if(runs.runs.begin(), runs.runs.end(), [access](const Run& run) {
    return run.access == access && run.count > 1;
  });
  return it == runs.runs.end() ? 0 : it->stride;
}

std::string worst_coalescing(const AccessRuns& runs) {
  double most = 0;
  std::size_t worst = runs.accesses.size();
  for (std::size_t a = 0; a < runs.accesses.size(); ++a) {
    const Access& access = runs.accesses[a];
    if (access.requests == 0 || access.texels) continue;
    const double least = least_sectors(access);
    const double excess =
        (access.sectors_per_request - least) * static_cast<double>(access.requests);
    if (access.sectors_per_request < notable_excess * least || excess <= most) continue;
    most = excess;
    worst = a;
  }
  if (worst == runs.accesses.size()) return {};
  const Access& access = runs.accesses[worst];
  std::string text =
      fmt::format("{} coalesces worst: {:.1f} sectors per request where {:.1f} would do. ",
                  place_of(access), access.sectors_per_request, least_sectors(access));
  if (access.access_class == AccessClass::data_dependent)
    return text +
           "Its addresses depend on data: sort or group the indices, or gather through shared "
           "memory.";
  const std::int64_t stride = lane_stride(runs, worst);
  if (stride != 0 && std::abs(stride) <= access.bytes)
    return text +
           "Neighbouring lanes touch neighbouring elements; rows that begin within a sector touch "
           "one more: align or pad them to 32 bytes.";
  if (stride != 0) text += fmt::format("Neighbouring lanes are {} bytes apart. ", stride);
  return text +
         "Let neighbouring lanes touch neighbouring elements (another index on tid.x, the array "
         "transposed, one array for each member), or use a tile in shared memory.";
}

std::string max_shared(const Analysis& analysis) {
  const std::vector<double>& blocks = analysis.inter.blocks_per_place;
  const auto most = std::max_element(blocks.begin(), blocks.end());
  if (most == blocks.end() || *most <= 1) return {};
  auto before = most - blocks.begin();
  const auto access =
      std::find_if(analysis.all.accesses.begin(), analysis.all.accesses.end(),
                   [&](const Access& one) { return one.kind == analysis.kind && before-- == 0; });
  std::string text =
      fmt::format("{} is shared most: on average {:.2f} blocks touch each of its places. ",
                  place_of(*access), *most);
  switch (analysis.kind) {
    case AccessKind::none:
    case AccessKind::load:
      return text +
             "Larger tiles, or more work for each block, fetch them less often; blocks that share "
             "should run side by side.";
    case AccessKind::store:
      return text + "Only the last write stays: each place should have one writer.";
    case AccessKind::atomic:
      return text + "Combine within the block first, and send one atomic for each block.";
  }
  return text;
}

}  // namespace

std::vector<std::string> advice_for(const Analysis& analysis) {
  std::vector<std::string> advice;
  for (const std::string& one : {worst_coalescing(analysis.all), max_shared(analysis)})
    if (!one.empty()) advice.push_back(one);
  return advice;
}

}  // namespace demarc::locality
