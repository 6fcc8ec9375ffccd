// Work-groups and their waves on the compute units.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "translation_path.hpp"

namespace demarc::sim::translation {

inline constexpr std::uint32_t simds = 4;  // in each CU

// What a CU holds at a time: waves by registers and slots, work-groups by LDS.
struct Occupancy {
  std::uint32_t waves = 0;
  std::uint32_t groups = 0;
};
[[nodiscard]] Occupancy occupancy_of(const Settings& settings, const KernelShape& shape);
// The GPU that runs a work-group. `split` is not `native`.
[[nodiscard]] GpuIndex gpu_of_group(const Settings& settings, Split split, const KernelShape& shape,
                                    std::uint32_t group);
// The first work-group from `from` on that this GPU runs; as many as there are when none is left.
[[nodiscard]] std::uint32_t next_group_of(const Settings& settings, Split split,
                                          const KernelShape& shape, GpuIndex gpu,
                                          std::uint32_t from);

class Compute : public Part {
 public:
  struct Wave {
    CuIndex cu;
    std::uint32_t simd = 0;
    GroupSlot group;
    WavePosition at;
    MemoryInstruction next;  // valid while fetched
    bool fetched = false;
    bool past_barrier = false;
    bool ended = false;
    bool waits_for_loads = false;
    std::uint32_t loads = 0;     // in flight
    std::uint32_t accesses = 0;  // in flight, stores too
  };
  struct Group {
    std::uint32_t waves_left = 0;
    std::uint32_t waves = 0;
    std::vector<WaveSlot> at_barrier;
  };
  struct Cu {
    GpuIndex gpu;
    std::uint32_t waves = 0;
    std::uint32_t groups = 0;
    std::array<std::uint32_t, simds> simd_waves{};
    std::array<Cycles, simds> simd_free{};
    Turns shared_turn;  // the next row of shared memory goes then
    Cycles port_free;   // the line port behind the memory pipeline
    std::uint32_t lines_in_flight = 0;
    std::deque<WaveSlot> waiting_waves;  // they wait for room in flight
  };
  struct Dispatcher {
    std::uint32_t next_group = 0;  // first group not yet looked at
    std::uint32_t next_cu = 0;
    std::uint32_t dispatched = 0;  // in this step
    bool stalled = false;
  };
  struct State {
    PerIndex<CuIndex, Cu> cus;
    PerIndex<GpuIndex, Dispatcher> dispatchers;
    SlotPool<WaveSlot, Wave> waves;
    SlotPool<GroupSlot, Group> groups;
    KernelNumber kernel;
    std::uint32_t groups_left = 0;
    std::uint64_t lines = 0;
    bool finished = false;
  };

  Compute(Common& common, const Application& application, Split split, DataPath& data,
          TranslationPath& translation);

  State state;

  [[nodiscard]] const KernelShape& shape() const {
    return application_.kernels()[state.kernel.raw()];
  }

  // Events.
  void start_kernel(KernelNumber kernel);
  void dispatch(GpuIndex gpu);
  void wave_next(WaveSlot wave);
  void wave_issue(WaveSlot wave);
  void access_done(AccessSlot access);

 private:
  [[nodiscard]] bool place_group(GpuIndex gpu, std::uint32_t group);
  [[nodiscard]] Cycles shared_memory_done(Cu& cu, std::uint32_t rows);
  void end_wave(WaveSlot wave);

  const Application& application_;
  Split split_;
  DataPath& data_;
  TranslationPath& translation_;
  Ports line_ports_;
  Ports shared_ports_;
  Occupancy most_;
};

}  // namespace demarc::sim::translation
