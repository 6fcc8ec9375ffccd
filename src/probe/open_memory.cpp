// Opens the planted, simulated or real memory that --device names.
#include "demarc/probe/open_memory.hpp"

#include "demarc/card/card.hpp"
#include "demarc/device/device_ref.hpp"
#include "gpu_memory.hpp"
#include "planted_memory.hpp"
#include "simulated_memory.hpp"

namespace demarc::probe {

Result<OpenedMemory> open_memory(std::string_view device, std::uint64_t bytes, std::uint64_t seed) {
  OpenedMemory opened;
  DEMARC_TRY(const gpu::DeviceRef ref, gpu::parse_device_ref(device));
  if (const auto* planted = std::get_if<gpu::PlantedRef>(&ref)) {
    DEMARC_TRY(opened.memory, planted_memory(planted->name, seed));
    DEMARC_TRY(opened.device,
               gpu::find_device(planted->name == "h100" ? "h100-sxm" : planted->name));
    return opened;
  }
  if (const auto* simulated = std::get_if<gpu::SimulatedRef>(&ref)) {
    DEMARC_TRY(opened.device, gpu::find_device(simulated->name));
    DEMARC_TRY(opened.memory, SimulatedMemory::open(opened.device, seed));
    return opened;
  }
  DEMARC_TRY(const auto card, cuda::open_card(std::get<gpu::CardRef>(ref).index, {}));
  opened.device = card->device();
  DEMARC_TRY(opened.memory, GpuMemory::open(card->gpu(), bytes));
  return opened;
}

}  // namespace demarc::probe
