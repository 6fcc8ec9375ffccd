// Prints the topology of a device as a tree with one entry for each GPC.
#include "demarc/device/tree.hpp"

#include <algorithm>
#include <set>

#include "demarc/base/text.hpp"

namespace demarc::gpu {
namespace {

constexpr std::size_t tree_width = 96;

std::string plural(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string sm_range(const std::vector<SmIndex>& sms) {
  if (sms.size() > 1 && sms.back() - sms.front() + 1 == sms.size()) {
    return fmt::format("{}-{}", sms.front(), sms.back());
  }
  return joined(sms, ",");
}

std::string side_of(const Topology& topology, const std::vector<TpcIndex>& tpcs) {
  std::set<std::uint32_t> sides;
  for (const TpcIndex t : tpcs) {
    if (topology.tpcs[t].side) sides.insert(*topology.tpcs[t].side);
  }
  if (sides.empty()) return "";
  return fmt::format(", L2 side {}", joined(sides, " and "));
}

std::string tpc_label(const Topology& topology, TpcIndex t) {
  const Tpc& tpc = topology.tpcs[t];
  std::string label = fmt::format("TPC {} (SM {}", t, sm_range(tpc.sms));
  if (tpc.bit) label += fmt::format(", bit {}", *tpc.bit);
  return label + ")";
}

void add_gpc(std::string& text, const Topology& topology, GpcIndex gpc, bool last) {
  const std::vector<TpcIndex> tpcs = topology.tpcs_of_gpc(gpc);
  std::size_t sms = 0;
  for (const TpcIndex t : tpcs) sms += topology.tpcs[t].sms.size();
  text += fmt::format("{} GPC {}: {}, {}{}\n", last ? "`-" : "|-", gpc, plural(tpcs.size(), "TPC"),
                      plural(sms, "SM"), side_of(topology, tpcs));
  const std::string_view margin = last ? "     " : "|    ";
  std::string line(margin);
  for (const TpcIndex t : tpcs) {
    const std::string label = tpc_label(topology, t);
    if (line.size() > margin.size() && line.size() + label.size() + 2 > tree_width) {
      text += line + "\n";
      line = margin;
    }
    if (line.size() > margin.size()) line += "  ";
    line += label;
  }
  text += line + "\n";
}

}  // namespace

std::string to_tree(const Device& device) {
  constexpr double mebi = 1 << 20;
  constexpr double gibi = 1 << 30;
  const Topology& topology = device.topology;
  std::string text = fmt::format(
      "{}: {}, {}, {}, {:.0f} MiB L2, {:.1f} GiB memory\n", device.name,
      plural(topology.sm_count(), "SM"), plural(topology.tpc_count(), "TPC"),
      plural(topology.gpc_count(), "GPC"), static_cast<double>(device.l2.size_bytes) / mebi,
      static_cast<double>(device.dram.size_bytes) / gibi);
  for (const GpcIndex gpc : topology.gpcs()) {
    add_gpc(text, topology, gpc, gpc.raw() + 1 == topology.gpc_count());
  }
  return text;
}

}  // namespace demarc::gpu
