// Opens the planted, simulated or real memory that --device names.
#include "demarc/probe/open_memory.hpp"

#include "demarc/card/card.hpp"
#include "gpu_memory.hpp"
#include "planted_memory.hpp"
#include "simulated_memory.hpp"

namespace demarc::probe {

Result<OpenedMemory> open_memory(std::string_view device, std::uint64_t bytes, std::uint64_t seed) {
  OpenedMemory opened;
  constexpr std::string_view planted = "planted:";
  if (device.substr(0, planted.size()) == planted) {
    const std::string_view name = device.substr(planted.size());
    DEMARC_TRY(opened.memory, planted_memory(name, seed));
    DEMARC_TRY(opened.device, gpu::find_device(name == "h100" ? "h100-sxm" : name));
    return opened;
  }
  DEMARC_TRY(const gpu::DeviceRef ref, gpu::parse_device_ref(device));
  if (ref.kind == gpu::DeviceRef::Kind::simulated) {
    DEMARC_TRY(opened.device, gpu::find_device(ref.name));
    DEMARC_TRY(opened.memory, SimulatedMemory::open(opened.device, seed));
    return opened;
  }
  DEMARC_TRY(const auto card, cuda::open_card(ref.index, {}));
  opened.device = card->device();
  DEMARC_TRY(opened.memory, GpuMemory::open(card->gpu(), bytes));
  return opened;
}

}  // namespace demarc::probe
