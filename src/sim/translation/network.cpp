// Times messages over the links and switches between GPUs and the IOMMU.
#include "network.hpp"
#include "demarc/base/rounding.hpp"

#include <algorithm>

namespace demarc::sim::translation {

// Two GPUs share a switch. Star: all switches hang on the root complex. Chain: switch k hangs on
// switch k - 1, the first on the root complex. The root complex is a switch too, with the CPU
// behind it. Single: the root complex is the one switch.
Network::Network(const Settings& settings)
    : gpus_(settings.gpus),
      flit_bytes_(settings.flit_bytes),
      lanes_(settings.link_lanes),
      encoding_(settings.link_encoding),
      switch_latency_(settings.switch_latency) {
  const std::uint32_t switches = (gpus_ + 1) / 2;
  const std::uint32_t root = switches;
  // Link numbers: GPU g up 2g, down 2g+1; switch s up 2(gpus+s), down +1; CPU to root, root to CPU
  // at the end.
  const auto gpu_link = [&](std::uint32_t gpu, bool down) {
    return Link(2 * gpu + (down ? 1U : 0U));
  };
  const auto switch_link = [&](std::uint32_t s, bool down) {
    return Link(2 * (gpus_ + s) + (down ? 1U : 0U));
  };
  const std::uint32_t cpu_link = 2 * (gpus_ + switches);
  free_.assign(cpu_link + 2, std::vector<Cycles>(lanes_));
  moved_.assign(cpu_link + 2, 0);

  // Switches from a GPU's up to the root.
  const auto climb = [&](std::uint32_t gpu) {
    std::vector<std::uint32_t> path;
    for (std::uint32_t s = gpu / 2; settings.topology != Topology::single; --s) {
      path.push_back(s);
      if (settings.topology == Topology::star || s == 0) break;
    }
    path.push_back(root);
    return path;
  };
  routes_.resize(std::size_t{gpus_ + 1} * (gpus_ + 1));
  for (std::uint32_t from = 0; from <= gpus_; ++from) {
    for (std::uint32_t to = 0; to <= gpus_; ++to) {
      if (from == to) continue;
      auto& route = routes_[std::size_t{from} * (gpus_ + 1) + to];
      std::vector<std::uint32_t> up =
          from == gpus_ ? std::vector<std::uint32_t>{root} : climb(from);
      std::vector<std::uint32_t> down = to == gpus_ ? std::vector<std::uint32_t>{root} : climb(to);
      // Drop what both climb beyond their first common switch.
      while (up.size() > 1 && down.size() > 1 && up[up.size() - 2] == down[down.size() - 2]) {
        up.pop_back();
        down.pop_back();
      }
      route.push_back(from == gpus_ ? Link(cpu_link) : gpu_link(from, false));
      for (std::size_t i = 0; i + 1 < up.size(); ++i) route.push_back(switch_link(up[i], false));
      for (std::size_t i = down.size() - 1; i > 0; --i)
        route.push_back(switch_link(down[i - 1], true));
      route.push_back(to == gpus_ ? Link(cpu_link + 1) : gpu_link(to, true));
    }
  }
}

Cycles Network::cross(Node from, Node to, std::uint32_t hop, std::uint32_t flits, Cycles now) {
  const auto& way = route(from, to);
  auto& lanes = free_[way[hop]];
  Cycles& free = *std::min_element(lanes.begin(), lanes.end());
  const Cycles start = std::max(now, free);
  free = start + Cycles(flits);
  moved_[way[hop]] += flits;
  flits_moved_ += flits;
  return free + (hop + 1 < way.size() ? switch_latency_ : Cycles());
}

Cycles Network::backlog(Cycles now) const {
  Cycles last = now;
  for (const auto& lanes : free_) {
    last = std::max(last, *std::max_element(lanes.begin(), lanes.end()));
  }
  return last - now;
}

double Network::busiest_share(Cycles cycles) const {
  const auto most = static_cast<double>(*std::max_element(moved_.begin(), moved_.end()));
  return cycles == Cycles() ? 0.0 : most / (static_cast<double>(cycles.raw()) * lanes_);
}

std::uint32_t Network::flits(std::uint32_t bytes) const {
  const std::uint32_t encoded = bytes + (bytes * encoding_ + 99) / 100;
  return ceil_div(encoded, flit_bytes_);
}

}  // namespace demarc::sim::translation
