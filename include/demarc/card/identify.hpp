// Finds out on which physical SMs this process runs, whoever chose them. Launches are measured and
// compared with what `demarc topo` has kept about the whole card.
#pragma once

#include <string>
#include <vector>

#include "demarc/card/card.hpp"
#include "demarc/device/tpc_set.hpp"

namespace demarc::cuda {

struct Identification {
  // One list per launch: in an MPS client the next launch may get other SMs under the same numbers.
  std::vector<std::vector<SmIdentity>> launches;
  gpu::TpcSet tpcs;               // the certain ones among all launches
  std::uint32_t sms = 0;          // of all launches
  std::uint32_t in_doubt = 0;     // of those
  std::uint32_t misnumbered = 0;  // certain ones whose number names an SM of another TPC

  // %smid names the SM. False as well when no SM is certain.
  [[nodiscard]] bool as_numbered() const { return misnumbered == 0 && in_doubt < sms; }
};

// missing_capability if no fingerprints are kept (the message says how to take them). check_failed
// if others keep the L2 too busy to measure.
[[nodiscard]] Result<Identification> identify_sms(const GpuPointer& gpu, const CardFacts& known,
                                                  std::uint32_t launches);

// What the launches together say. A pure function.
[[nodiscard]] Identification identification_of(const gpu::Topology& topology,
                                               std::vector<std::vector<SmIdentity>> launches);

// Whether the SMs of all launches lie in a partition. An SM is inside if all of its candidates lie
// in the partition.
struct Confinement {
  gpu::TpcSet outside;         // candidates of SMs that have none inside
  std::uint32_t in_doubt = 0;  // SMs that may be inside or outside
};
[[nodiscard]] Confinement confinement_of(const Identification& found, const gpu::TpcSet& tpcs);

// The card's remembered facts; nothing when there is no file. An error when they are not this
// card's, see check_facts().
[[nodiscard]] Result<std::optional<CardFacts>> remembered_facts(const Gpu& gpu,
                                                                const std::string& cache_folder);

// One line for each launch. With `each`, also the TPCs of the first launch one by one.
[[nodiscard]] std::string identification_to_text(const gpu::Topology& topology,
                                                 const Identification& found, bool each);
// Schema demarc.topo.identity/1.
[[nodiscard]] std::string identification_to_json(const gpu::Topology& topology,
                                                 const Identification& found);

}  // namespace demarc::cuda
