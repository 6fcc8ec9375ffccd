// Opens the cards for a probe of translation, or a planted device.
#include "demarc/probe/open_translation.hpp"

#include "demarc/device/device.hpp"
#include "demarc/device/device_ref.hpp"
#include "demarc/driver/mapped_pieces.hpp"
#include "gpu_translation.hpp"
#include "planted_translation.hpp"

namespace demarc::probe {
namespace {

constexpr std::string_view no_translation =
    "a simulated card is not probed for TLBs: it has those of its description "
    "(address_translation), if any; name a card, cuda:N, or planted:h200";

std::uint64_t bytes_of(double gib) {
  return static_cast<std::uint64_t>(gib * static_cast<double>(std::uint64_t{1} << 30U));
}

}  // namespace

Result<std::unique_ptr<TimedTranslation>> open_translation(const TranslationNames& names) {
  DEMARC_TRY(const gpu::DeviceRef ref, gpu::parse_device_ref(names.device));
  if (const auto* planted = std::get_if<gpu::PlantedRef>(&ref)) {
    if (!names.peer.empty()) {
      return invalid_input("--peer {}: a planted translation has its own peer; leave out --peer",
                           names.peer);
    }
    DEMARC_TRY(PlantedHierarchy truth, planted_hierarchy(planted->name));
    return std::unique_ptr<TimedTranslation>(new PlantedTranslation(std::move(truth), names.seed));
  }
  const auto* card = std::get_if<gpu::CardRef>(&ref);
  if (card == nullptr) return invalid_input("--device {}: {}", names.device, no_translation);
  gpu::CardRef other = *card;
  if (!names.peer.empty()) {
    DEMARC_TRY(other, gpu::parse_ref_as<gpu::CardRef>(names.peer, no_translation, "--peer"));
  }
  DEMARC_TRY(const auto driver, cuda::Driver::load());
  DEMARC_TRY(const cuda::GpuPointer gpu, cuda::Gpu::open(driver, card->index));
  DEMARC_CHECK(gpu->check_whole());
  cuda::GpuPointer peer;
  if (!names.peer.empty()) {
    DEMARC_TRY(peer, cuda::Gpu::open(driver, other.index));
    DEMARC_CHECK(cuda::check_reach(*gpu, *peer));
  }
  DEMARC_TRY(auto opened,
             GpuTranslation::open(gpu, std::move(peer),
                                  {bytes_of(names.card_gib), bytes_of(names.host_gib)}));
  return std::unique_ptr<TimedTranslation>(std::move(opened));
}

}  // namespace demarc::probe
