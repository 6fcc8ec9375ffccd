// Reads which blocks share what, and finds an order of blocks in which sharers are close.
#include "demarc/sim/dispatch/block_sharing.hpp"

#include <algorithm>

#include "demarc/base/json.hpp"

namespace demarc::sim {
namespace {

using SetIndex = BlockSharing::SetIndex;
using GroupIndex = Index<struct GroupIndexTag>;
constexpr GroupIndex no_group{~std::uint32_t{0}};

// Groups of blocks, at first of one block each. Each round joins every group with the one that it
// shares most with, so that stretches of every length share much.
class Grouping {
 public:
  Grouping(const PerIndex<SetIndex, SharedPlaces>& sets,
           const PerIndex<BlockNumber, std::vector<SetIndex>>& of_block) {
    for (const BlockNumber block : of_block.keys()) members_.push_back({block});
    sets_of_.assign(of_block.begin(), of_block.end());
    for (const SharedPlaces& set : sets) {
      places_.push_back(set.places);
      std::vector<GroupIndex> holders;
      for (const BlockNumber block : set.blocks) holders.emplace_back(block.raw());
      holders_.push_back(std::move(holders));
    }
  }

  std::vector<BlockNumber> order() {
    while (join()) {
    }
    std::vector<BlockNumber> all;
    for (const auto& blocks : members_) all.insert(all.end(), blocks.begin(), blocks.end());
    return all;
  }

 private:
  // False: no group shares with another one.
  bool join() {
    PerIndex<GroupIndex, GroupIndex> becomes(members_.size(), no_group);
    PerIndex<GroupIndex, std::vector<BlockNumber>> members;
    PerIndex<GroupIndex, std::vector<SetIndex>> sets_of;
    shared_.assign(members_.size(), 0);
    for (const GroupIndex group : members_.keys()) {
      if (becomes[group] != no_group) continue;
      const GroupIndex partner = partner_of(group, becomes);
      becomes[group] = members.next_key();
      members.push_back(std::move(members_[group]));
      sets_of.push_back(std::move(sets_of_[group]));
      if (partner == no_group) continue;
      becomes[partner] = becomes[group];
      const auto& more = members_[partner];
      members.back().insert(members.back().end(), more.begin(), more.end());
      std::vector<SetIndex> both;
      std::set_union(sets_of.back().begin(), sets_of.back().end(), sets_of_[partner].begin(),
                     sets_of_[partner].end(), std::back_inserter(both));
      sets_of.back() = std::move(both);
    }
    const bool joined = members.size() < members_.size();
    members_ = std::move(members);
    sets_of_ = std::move(sets_of);
    for (auto& holders : holders_) {
      for (GroupIndex& holder : holders) holder = becomes[holder];
      std::sort(holders.begin(), holders.end());
      holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
    }
    return joined;
  }

  // The group behind `group`, not joined yet, that shares most with it; the lowest among equals.
  GroupIndex partner_of(GroupIndex group, const PerIndex<GroupIndex, GroupIndex>& becomes) {
    // For a set that very many hold, those far behind are not looked at.
    constexpr std::ptrdiff_t max_looked_at = 256;
    touched_.clear();
    for (const SetIndex set : sets_of_[group]) {
      const auto& holders = holders_[set];
      const auto first = std::upper_bound(holders.begin(), holders.end(), group);
      const auto last = first + std::min(max_looked_at, holders.end() - first);
      for (auto other = first; other != last; ++other) {
        if (becomes[*other] != no_group) continue;
        if (shared_[*other] == 0) touched_.push_back(*other);
        shared_[*other] += places_[set];
      }
    }
    GroupIndex best = no_group;
    for (const GroupIndex other : touched_) {
      if (best == no_group || shared_[other] > shared_[best] ||
          (shared_[other] == shared_[best] && other < best)) {
        best = other;
      }
    }
    for (const GroupIndex other : touched_) shared_[other] = 0;
    return best;
  }

  PerIndex<SetIndex, std::uint64_t> places_;
  PerIndex<SetIndex, std::vector<GroupIndex>> holders_;     // ascending
  PerIndex<GroupIndex, std::vector<BlockNumber>> members_;  // in their order
  PerIndex<GroupIndex, std::vector<SetIndex>> sets_of_;     // ascending
  PerIndex<GroupIndex, std::uint64_t> shared_;              // with the group looked at
  std::vector<GroupIndex> touched_;                         // where that is not 0
};

// [places, [block, block, ...]].
Result<SharedPlaces> parse_set(const Json& json, std::uint64_t blocks, const std::string& where) {
  const auto is_number = [](const Json& v) { return v.is_number_unsigned(); };
  if (!json.is_array() || json.size() != 2 || !is_number(json[0]) || !json[1].is_array() ||
      !std::all_of(json[1].begin(), json[1].end(), is_number)) {
    return invalid_input("{}: expected [places, [block, ...]]", where);
  }
  SharedPlaces set{json[0].get<std::uint64_t>(), {}};
  std::uint64_t least = 0;
  for (const Json& block : json[1]) {
    const auto number = block.get<std::uint64_t>();
    if (number < least || number >= blocks) {
      return invalid_input("{}: expected blocks that ascend and are below {}", where, blocks);
    }
    least = number + 1;
    set.blocks.emplace_back(number);
  }
  return set;
}

}  // namespace

BlockSharing::BlockSharing(std::uint32_t blocks, std::vector<SharedPlaces> sets)
    : of_block_(blocks) {
  for (SharedPlaces& set : sets) {
    std::erase_if(set.blocks, [&](BlockNumber block) { return block >= BlockNumber(blocks); });
    if (set.blocks.size() < 2) continue;
    for (const BlockNumber block : set.blocks) of_block_[block].push_back(sets_.next_key());
    sets_.push_back(std::move(set));
  }
  order_ = Grouping(sets_, of_block_).order();
}

Result<BlockSharing> parse_block_sharing(std::string_view text, std::string_view source) {
  constexpr std::int64_t max_blocks = 1 << 24;
  DEMARC_TRY(const Json json, parse_json(text, source));
  DEMARC_TRY(JsonObject root, JsonObject::of(json, std::string(source)));
  DEMARC_TRY(const std::string schema, root.string("schema"));
  if (schema != "demarc.locality/1") {
    return invalid_input("{}: schema '{}': expected demarc.locality/1", source, schema);
  }
  DEMARC_TRY(JsonObject inter, root.object("inter"));
  for (const char* part : {"map", "sets"}) {
    if (inter.has(part)) continue;
    return invalid_input("{}: inter.{} is missing: give the JSON of demarc locality --json --maps",
                         source, part);
  }
  DEMARC_TRY(JsonObject map, inter.object("map"));
  DEMARC_TRY(const std::int64_t size, map.integer("size", 1, max_blocks));
  DEMARC_TRY(const Json* sets, inter.array("sets"));
  std::vector<SharedPlaces> found;
  for (const Json& set : *sets) {
    const std::string where = fmt::format("{}: inter.sets[{}]", source, found.size());
    DEMARC_TRY(SharedPlaces parsed, parse_set(set, static_cast<std::uint64_t>(size), where));
    found.push_back(std::move(parsed));
  }
  return BlockSharing(static_cast<std::uint32_t>(size), std::move(found));
}

}  // namespace demarc::sim
