// Deals the TPCs and colours of a GPU out to parts, and takes a share of them.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "demarc/partition/partition.hpp"

namespace demarc::partition {
namespace {

using gpu::TpcIndex;
using Order = std::vector<TpcIndex>;

Order packed_order(const gpu::Topology& topology) {
  const auto all = topology.tpcs.keys();
  Order order(all.begin(), all.end());
  std::stable_sort(order.begin(), order.end(), [&](TpcIndex a, TpcIndex b) {
    return topology.tpcs[a].gpc < topology.tpcs[b].gpc;
  });
  return order;
}

Order side_order(const gpu::Topology& topology) {
  Order order = packed_order(topology);
  std::stable_sort(order.begin(), order.end(), [&](TpcIndex a, TpcIndex b) {
    return topology.tpcs[a].side < topology.tpcs[b].side;
  });
  return order;
}

// Equal consecutive pieces; the first ones are one longer when the division leaves a rest.
std::vector<gpu::TpcSet> cut(const Order& order, std::uint32_t parts) {
  std::vector<gpu::TpcSet> sets(parts);
  std::size_t at = 0;
  for (std::uint32_t p = 0; p < parts; ++p) {
    const std::size_t take = order.size() / parts + (p < order.size() % parts ? 1 : 0);
    for (std::size_t i = 0; i < take; ++i) sets[p].insert(order[at++]);
  }
  return sets;
}

std::vector<gpu::TpcSet> deal(const Order& order, std::uint32_t parts) {
  std::vector<gpu::TpcSet> sets(parts);
  for (std::size_t i = 0; i < order.size(); ++i) {
    sets[i % parts].insert(order[i]);
  }
  return sets;
}

std::vector<Order> gpcs_of(const gpu::Topology& topology) {
  std::vector<Order> gpcs;
  for (const gpu::GpcIndex gpc : topology.gpcs()) gpcs.push_back(topology.tpcs_of_gpc(gpc));
  return gpcs;
}

// Largest GPC first, always to the part that has the fewest TPCs.
std::vector<gpu::TpcSet> whole_gpcs(std::vector<Order> gpcs, std::uint32_t parts) {
  std::stable_sort(gpcs.begin(), gpcs.end(),
                   [](const Order& a, const Order& b) { return a.size() > b.size(); });
  std::vector<gpu::TpcSet> sets(parts);
  for (const Order& gpc : gpcs) {
    const auto smallest = std::min_element(
        sets.begin(), sets.end(),
        [](const gpu::TpcSet& a, const gpu::TpcSet& b) { return a.size() < b.size(); });
    for (const TpcIndex tpc : gpc) smallest->insert(tpc);
  }
  return sets;
}

// Half of the parts on either L2 side, whole GPCs within it.
Result<std::vector<gpu::TpcSet>> one_side_each(const gpu::Topology& topology, std::uint32_t parts) {
  if (parts % 2 != 0) {
    return invalid_input("{} parts cannot be side-aligned: their number must be even", parts);
  }
  std::vector<gpu::TpcSet> sets;
  for (std::uint32_t side = 0; side < 2; ++side) {
    std::vector<Order> gpcs = gpcs_of(topology);
    for (Order& gpc : gpcs) {
      std::erase_if(gpc, [&](TpcIndex tpc) { return topology.tpcs[tpc].side != side; });
    }
    std::erase_if(gpcs, [](const Order& gpc) { return gpc.empty(); });
    if (gpcs.size() < parts / 2) {
      return invalid_input("{} parts cannot be side-aligned: L2 side {} has {} GPCs", parts, side,
                           gpcs.size());
    }
    const auto of_side = whole_gpcs(std::move(gpcs), parts / 2);
    sets.insert(sets.end(), of_side.begin(), of_side.end());
  }
  return sets;
}

}  // namespace

std::string_view to_string(SplitStrategy strategy) {
  switch (strategy) {
    case SplitStrategy::packed:
      return "packed";
    case SplitStrategy::distributed:
      return "distributed";
    case SplitStrategy::gpc_aligned:
      return "gpc-aligned";
    case SplitStrategy::side_aware:
      return "side-aware";
    case SplitStrategy::side_aligned:
      return "side-aligned";
  }
  return "unknown";
}

Result<SplitStrategy> parse_split_strategy(std::string_view text) {
  for (const SplitStrategy strategy :
       {SplitStrategy::packed, SplitStrategy::distributed, SplitStrategy::gpc_aligned,
        SplitStrategy::side_aware, SplitStrategy::side_aligned}) {
    if (text == to_string(strategy)) return strategy;
  }
  return invalid_input(
      "'{}': packed, distributed, gpc-aligned, side-aware or side-aligned was expected", text);
}

Result<std::vector<Partition>> split(const gpu::Topology& topology, std::uint32_t parts,
                                     SplitStrategy strategy, std::uint32_t colors) {
  const std::uint32_t tpcs = topology.tpc_count();
  if (tpcs > gpu::TpcSet::capacity) {
    return invalid_input("the GPU has {} TPCs, but masks have room for {}", tpcs,
                         gpu::TpcSet::capacity);
  }
  if (parts == 0 || parts > tpcs) {
    return invalid_input("a GPU of {} TPCs cannot be split into {} parts; give 1 to {}", tpcs,
                         parts, tpcs);
  }
  if (colors % parts != 0 || colors > color::ColorSet::max_colors) {
    return invalid_input("{} colours cannot be divided equally among {} parts", colors, parts);
  }
  std::vector<gpu::TpcSet> sets;
  switch (strategy) {
    case SplitStrategy::packed:
      sets = cut(packed_order(topology), parts);
      break;
    case SplitStrategy::distributed:
      sets = deal(packed_order(topology), parts);
      break;
    case SplitStrategy::gpc_aligned:
      if (parts > topology.gpc_count()) {
        return invalid_input("{} parts cannot be gpc-aligned on a GPU of {} GPCs", parts,
                             topology.gpc_count());
      }
      sets = whole_gpcs(gpcs_of(topology), parts);
      break;
    case SplitStrategy::side_aware:
    case SplitStrategy::side_aligned:
      if (!topology.sides_known()) {
        return missing_capability(
            "{} split: the L2 side of each TPC is not known on this device; run demarc "
            "topo, or split packed",
            to_string(strategy));
      }
      if (strategy == SplitStrategy::side_aligned) {
        DEMARC_TRY(sets, one_side_each(topology, parts));
        break;
      }
      sets = cut(side_order(topology), parts);
      break;
  }
  std::vector<Partition> partitions;
  const std::uint32_t run = colors / parts;
  for (std::uint32_t p = 0; p < parts; ++p) {
    Partition part;
    part.name = fmt::format("{}/{}", p + 1, parts);
    part.tpcs = sets[p];
    part.colors = color::ColorSet::run(p * run, run, colors);
    part.sync_domain = p;
    partitions.push_back(std::move(part));
  }
  return partitions;
}

Result<std::vector<Partition>> throttled_split(const gpu::Topology& topology, std::uint32_t parts) {
  constexpr std::uint32_t shares = 8;
  const auto tpcs = static_cast<std::uint32_t>(topology.tpcs.size());
  const std::uint32_t pieces = std::min(shares * (parts - 1), tpcs);
  if (parts < 2 || pieces < parts) {
    return invalid_input("{} throttled parts of {} TPCs: give 2 parts to one per TPC", parts, tpcs);
  }
  DEMARC_TRY(auto partitions, split(topology, pieces, SplitStrategy::packed));
  for (std::uint32_t piece = 1; piece <= pieces - parts; ++piece) {
    partitions.front().tpcs = partitions.front().tpcs | partitions[piece].tpcs;
  }
  partitions.erase(partitions.begin() + 1, partitions.begin() + 1 + (pieces - parts));
  for (std::uint32_t part = 0; part < parts; ++part) {
    partitions[part].name = fmt::format("{}/{}", part + 1, parts);
    partitions[part].sync_domain = part;
  }
  return partitions;
}

Result<gpu::TpcSet> take_sms(const gpu::Topology& topology, std::uint32_t sms,
                             const gpu::TpcSet& taken) {
  if (sms == 0 || sms > topology.sm_count()) {
    return invalid_input("{} SMs were asked for; this GPU has {}", sms, topology.sm_count());
  }
  gpu::TpcSet set;
  std::uint32_t have = 0;
  for (const TpcIndex tpc : packed_order(topology)) {
    if (have >= sms) return set;
    if (taken.contains(tpc)) continue;
    set.insert(tpc);
    have += static_cast<std::uint32_t>(topology.tpcs[tpc].sms.size());
  }
  if (have >= sms) return set;
  return missing_capability("{} SMs were asked for, but {} of {} are free", sms, have,
                            topology.sm_count());
}

Result<gpu::TpcSet> take_share(const gpu::Topology& topology, double percent,
                               const gpu::TpcSet& taken) {
  if (!(percent > 0 && percent <= 100)) {
    return invalid_input("a share of {} % was asked for; give more than 0 and at most 100",
                         percent);
  }
  const double sms = std::ceil(percent * topology.sm_count() / 100.0 - 1e-9);
  return take_sms(topology, static_cast<std::uint32_t>(sms), taken);
}

}  // namespace demarc::partition
