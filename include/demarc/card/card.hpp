// A card that is ready for partitioning: its topology is known, its masks are proved, its probe
// kernels are loaded. Everything above the driver layer starts from this object.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "demarc/card/probe_kernels.hpp"
#include "demarc/card/stream_mask.hpp"
#include "demarc/device/device.hpp"
#include "demarc/driver/launch_hook.hpp"

namespace demarc::cuda {

// What finding the topology took and gave. It is kept in a file for each GPU UUID and driver
// version.
struct CardFacts {
  gpu::Device device;
  bool by_descriptor = false;              // GPCs found from task descriptors
  bool by_cluster = false;                 // and from cluster co-location; with both, they agreed
  std::vector<gpu::TpcIndex> unconfirmed;  // whose GPC only one way could tell
  std::vector<std::string> notes;
  std::optional<StreamField> stream_field;  // where the driver keeps a stream's mask
  bool from_cache = false;
};

struct CardOptions {
  bool refresh = false;   // measure again even when a file exists, and write it
  bool use_masks = true;  // false: never subscribe to the launch callback. Green contexts need
                          // that: the driver refuses to create one afterwards (seen on CUDA 13.0)
  std::optional<StreamField> stream_field;  // found by calibrate_isolated(); used where the CUDA
                                            // version is not known
  std::vector<std::string> notes;           // sentences to keep with what is found
  bool remember = true;                     // write what was measured into the cache folder
  std::string cache_folder;  // empty: $DEMARC_CACHE, $XDG_CACHE_HOME/demarc or ~/.cache/demarc
};

class Card {
 public:
  // missing_capability for a MIG instance. check_failed if what is remembered of the card differs
  // from what the driver says now.
  static Result<std::shared_ptr<Card>> open(const GpuPointer& gpu, const CardOptions& options = {});

  [[nodiscard]] const GpuPointer& gpu() const { return gpu_; }
  [[nodiscard]] const CardFacts& facts() const { return facts_; }
  [[nodiscard]] const gpu::Device& device() const { return facts_.device; }
  [[nodiscard]] const gpu::Topology& topology() const { return facts_.device.topology; }
  [[nodiscard]] const ProbeKernels& kernels() const { return naming_ ? *naming_ : *kernels_; }
  // A stream of the card's own, without a mask, for probes.
  [[nodiscard]] const Stream& stream() const { return *stream_; }

  // The launch hook, with a proved descriptor layout. An error says why masks are refused here.
  [[nodiscard]] Result<LaunchHook*> hook() const;
  [[nodiscard]] Result<const StreamMasks*> stream_masks() const;
  [[nodiscard]] Result<HardwareMask> hardware_mask(const gpu::TpcSet& enabled) const;
  // True when the SMs that kernels see are renumbered, as inside MPS: %smid then counts the SMs a
  // launch may use and does not name them.
  [[nodiscard]] bool virtual_sms() const { return virtual_sms_; }
  // Whether kernels() name SMs, although %smid may not. An error says why they cannot here.
  [[nodiscard]] Result<void> names_sms() const;

 private:
  Card() = default;
  Result<void> prepare_masks();
  Result<void> find_facts();
  Result<void> look_for_renumbering();
  [[nodiscard]] Result<bool> counts_sms_of_a_launch() const;
  [[nodiscard]] Result<void> compare_bits() const;

  GpuPointer gpu_;
  CardFacts facts_;
  std::optional<ProbeKernels> kernels_;
  std::optional<ProbeKernels> naming_;  // where kernels_ count the SMs of a launch
  std::optional<Stream> stream_;
  LaunchHook* hook_ = nullptr;
  std::optional<StreamMasks> stream_masks_;
  Error mask_refusal_;
  bool virtual_sms_ = false;
  std::optional<Error> nameless_;  // why kernels() do not name SMs
};

using CardPointer = std::shared_ptr<Card>;

// The driver, card `index` and its facts in one step. With options.refresh and a driver of an
// unknown CUDA version, the place of the stream mask is looked for first, in processes of its own:
// then this process must not have used CUDA yet.
[[nodiscard]] Result<CardPointer> open_card(std::uint32_t index, const CardOptions& options = {});

// The folder of all cards' facts: `cache_folder`, or, if that is empty, what CardOptions says.
[[nodiscard]] std::string facts_folder(const std::string& cache_folder);
// The file of a card's facts. A file that cannot be understood is an error that names it.
[[nodiscard]] std::string facts_path(const Gpu& gpu, const std::string& cache_folder);
[[nodiscard]] std::string facts_to_json(const CardFacts& facts);
[[nodiscard]] Result<CardFacts> parse_facts(std::string_view text, std::string_view source);
// The card's facts as they were remembered; nothing if no file keeps them. An error if they are
// not this card's, see check_facts().
[[nodiscard]] Result<std::optional<CardFacts>> remembered_facts(const Gpu& gpu,
                                                                const std::string& cache_folder);
// Checks that facts read from `source` can be of this card and driver: name, UUID, compute
// capability, SMs and memory. check_failed names what differs.
[[nodiscard]] Result<void> check_facts(const CardFacts& facts, const Gpu& gpu,
                                       std::string_view source);

}  // namespace demarc::cuda
