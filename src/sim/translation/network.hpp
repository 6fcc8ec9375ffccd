// Links and switches between the GPUs and the root complex with the IOMMU. A link moves one flit a
// cycle and serves messages in the order they reach it; a switch adds a fixed delay.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/sim/event_queue.hpp"
#include "demarc/sim/translation/settings.hpp"

namespace demarc::sim::translation {

class Network {
 public:
  explicit Network(const Settings& settings);

  // Nodes: the GPUs are 0 .. gpus-1, the CPU with the IOMMU is node `gpus`.
  [[nodiscard]] std::uint32_t cpu() const { return gpus_; }

  // Number of links on the way.
  [[nodiscard]] std::uint32_t hops(std::uint32_t from, std::uint32_t to) const {
    return static_cast<std::uint32_t>(route(from, to).size());
  }
  // Puts `flits` on the `hop`-th link of the way, not before `now`; returns when they have left the
  // switch (or reached the node) behind it.
  Cycles cross(std::uint32_t from, std::uint32_t to, std::uint32_t hop, std::uint32_t flits,
               Cycles now);

  // Payload of `bytes` in flits: 25 % encoding on top, at least one.
  [[nodiscard]] std::uint32_t flits(std::uint32_t bytes) const;
  // Cycles until every link has moved what it was given.
  [[nodiscard]] Cycles backlog(Cycles now) const;
  // Of the link that moved most, the share of `cycles` in which it did.
  [[nodiscard]] double busiest_share(Cycles cycles) const;
  [[nodiscard]] std::uint64_t link_bytes() const { return flits_moved_ * flit_bytes_; }

 private:
  [[nodiscard]] const std::vector<std::uint32_t>& route(std::uint32_t from,
                                                        std::uint32_t to) const {
    return routes_[std::size_t{from} * (gpus_ + 1) + to];
  }

  std::uint32_t gpus_;
  std::uint32_t flit_bytes_;
  std::uint32_t switch_latency_;
  std::vector<std::vector<std::uint32_t>> routes_;  // [from * nodes + to]: links in order
  std::vector<Cycles> free_;                        // per link: when it can take the next flit
  std::vector<std::uint64_t> moved_;                // per link, flits
  std::uint64_t flits_moved_ = 0;
};

}  // namespace demarc::sim::translation
