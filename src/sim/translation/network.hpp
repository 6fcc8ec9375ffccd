// Links and switches between the GPUs and the root complex with the IOMMU. A lane of a link
// moves one flit per cycle; messages take the lane that is free first, in the order they reach it;
// a switch adds a fixed delay.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/sim/translation/places.hpp"
#include "demarc/sim/translation/settings.hpp"

namespace demarc::sim::translation {

// Who sends and receives: the GPUs, in order, then the CPU with the IOMMU.
using Node = Index<struct NodeTag, std::uint8_t>;

class Network {
 public:
  explicit Network(const Settings& settings);

  [[nodiscard, gnu::always_inline]] Node cpu() const { return Node(gpus_); }
  [[nodiscard, gnu::always_inline]] static Node node_of(GpuIndex gpu) { return Node(gpu.raw()); }
  // For a node that is not the CPU.
  [[nodiscard, gnu::always_inline]] static GpuIndex gpu_of(Node node) {
    return GpuIndex(node.raw());
  }

  // Number of links on the way.
  [[nodiscard]] std::uint32_t hops(Node from, Node to) const {
    return static_cast<std::uint32_t>(route(from, to).size());
  }
  // Puts `flits` on the `hop`-th link of the way, not before `now`; returns when they have left the
  // switch (or reached the node) behind it.
  Cycles cross(Node from, Node to, std::uint32_t hop, std::uint32_t flits, Cycles now);

  // Payload of `bytes` in flits, with the link's encoding on top.
  [[nodiscard]] std::uint32_t flits(std::uint32_t bytes) const;
  // Cycles until every link has moved what it was given.
  [[nodiscard]] Cycles backlog(Cycles now) const;
  // For the link that moved most, the share of `cycles` in which it did.
  [[nodiscard]] double busiest_share(Cycles cycles) const;
  [[nodiscard]] std::uint64_t link_bytes() const { return flits_moved_ * flit_bytes_; }

 private:
  using Link = Index<struct LinkTag>;
  [[nodiscard]] const std::vector<Link>& route(Node from, Node to) const {
    return routes_[std::size_t{from.raw()} * (gpus_ + 1) + to.raw()];
  }

  std::uint32_t gpus_;
  std::uint32_t flit_bytes_;
  std::uint32_t lanes_;
  std::uint32_t encoding_;
  Cycles switch_latency_;
  std::vector<std::vector<Link>> routes_;     // [from * nodes + to]: links in order
  PerIndex<Link, std::vector<Cycles>> free_;  // per lane, when it can take the next flit
  PerIndex<Link, std::uint64_t> moved_;       // flits
  std::uint64_t flits_moved_ = 0;
};

}  // namespace demarc::sim::translation
