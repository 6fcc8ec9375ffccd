// Opens the cards for a probe of translation, or a planted device.
#include "demarc/probe/open_translation.hpp"

#include "demarc/device/device.hpp"
#include "demarc/driver/mapped_pieces.hpp"
#include "gpu_translation.hpp"
#include "planted_translation.hpp"

namespace demarc::probe {
namespace {

Result<std::uint32_t> card_index(std::string_view name, std::string_view option) {
  DEMARC_TRY(const gpu::DeviceRef ref, gpu::parse_device_ref(name));
  if (ref.kind != gpu::DeviceRef::Kind::simulated) return ref.index;
  return invalid_input(
      "{} {}: simulated cards have no TLBs to find: the memory that they simulate is not "
      "translated (demarc translate simulates translation); name a card, cuda:N, or planted:h200",
      option, name);
}

std::uint64_t bytes_of(double gib) {
  return static_cast<std::uint64_t>(gib * static_cast<double>(std::uint64_t{1} << 30U));
}

}  // namespace

Result<std::unique_ptr<TimedTranslation>> open_translation(const TranslationNames& names) {
  constexpr std::string_view planted = "planted:";
  if (names.device.starts_with(planted)) {
    if (!names.peer.empty()) {
      return invalid_input("--peer {}: a planted translation has its own peer; leave out --peer",
                           names.peer);
    }
    DEMARC_TRY(PlantedHierarchy truth, planted_hierarchy(names.device.substr(planted.size())));
    return std::unique_ptr<TimedTranslation>(new PlantedTranslation(std::move(truth), names.seed));
  }
  DEMARC_TRY(const std::uint32_t index, card_index(names.device, "--device"));
  std::uint32_t peer_index = index;
  if (!names.peer.empty()) {
    DEMARC_TRY(peer_index, card_index(names.peer, "--peer"));
  }
  DEMARC_TRY(const auto driver, cuda::Driver::load());
  DEMARC_TRY(const cuda::GpuPointer gpu, cuda::Gpu::open(driver, index));
  DEMARC_CHECK(gpu->check_whole());
  cuda::GpuPointer peer;
  if (!names.peer.empty()) {
    DEMARC_TRY(peer, cuda::Gpu::open(driver, peer_index));
    DEMARC_CHECK(cuda::check_reach(*gpu, *peer));
  }
  DEMARC_TRY(auto opened,
             GpuTranslation::open(gpu, std::move(peer),
                                  {bytes_of(names.card_gib), bytes_of(names.host_gib)}));
  return std::unique_ptr<TimedTranslation>(std::move(opened));
}

}  // namespace demarc::probe
