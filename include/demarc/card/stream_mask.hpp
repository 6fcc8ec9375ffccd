// Masks of streams: every launch of the stream carries it, also launches made by libraries. First
// through a field of the driver's private stream object, which also shows the hardware bit of each
// TPC; then, because that costs less at each launch, through the launch hook.
//
// HAZARDS. Undocumented; the field lies at a different offset in each driver. A wrong offset would
// corrupt the driver's state, so an offset is only used when the table below names the driver's
// CUDA version, or calibration has proved it, and in either case after verify_offset().
// Offsets: public record of libsmctrl's users; 13.0 confirmed on an H100 (580.159.04, all 66 TPCs).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "demarc/device/tpc_set.hpp"
#include "demarc/driver/launch.hpp"
#include "demarc/driver/launch_hook.hpp"

namespace demarc::cuda {

struct alignas(8) StreamField {  // atomic without locks
  std::uint32_t offset = 0;      // bytes into the driver's stream object
  bool wide = true;  // an "enabled" word and four disable words; else two words, upper then lower
  friend bool operator==(const StreamField&, const StreamField&) = default;
};

// Hardware bits of the first and of the last TPC that the driver shows.
struct EdgeBits {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

// What is known for this CUDA version on this kind of machine; nothing for an unknown one.
[[nodiscard]] std::optional<StreamField> known_stream_field(int cuda_version);

// Two ways to keep a stream's mask. At first it is written into the driver's stream object, in
// logical TPC order, and the driver translates it at every launch (130 to 160 ns each, seen). Once
// use_hook() has been called, the launch hook keeps it, in hardware order, and writes it into each
// descriptor itself; for streams whose launches do not show them to the hook, found out by an empty
// launch when their first mask is set, the driver keeps it. A graph takes the mask of the stream it
// was captured from in the first case, of the stream it is first launched into in the second.
class StreamMasks {
 public:
  // `idle` is a kernel without arguments or side effects, used to see what a mask becomes.
  // Finds the field (table first, then `remembered`), and proves it: a mask set in a throw-away
  // stream must show up in the descriptor. missing_capability when it does not or is not known.
  static Result<StreamMasks> open(GpuPointer gpu, LaunchHook& hook, const Function& idle,
                                  std::optional<StreamField> remembered = std::nullopt);

  // From now on masks are kept by the hook; those set before stay in the driver's objects. Does
  // nothing when the callback does not name streams or the topology has no hardware bits.
  void use_hook(LaunchHook& hook, const gpu::Topology& topology);
  [[nodiscard]] bool uses_hook() const { return hook_ != nullptr; }

  // Launches already made keep their mask; later ones of the stream get this one. The default
  // stream has no object of its own and is refused. The mask goes with the stream, also when
  // other code destroys it. Thread-safe against launches of other streams.
  [[nodiscard]] Result<void> set(CuStream stream, const gpu::TpcSet& enabled) const;
  // As if no mask had ever been set.
  [[nodiscard]] Result<void> clear(CuStream stream) const;
  // The TPCs the stream's mask enables; nothing when it has none.
  [[nodiscard]] std::optional<gpu::TpcSet> get(CuStream stream) const;
  [[nodiscard]] const StreamField& field() const { return field_; }
  [[nodiscard]] std::uint32_t tpc_count() const { return tpcs_; }
  [[nodiscard]] const EdgeBits& edge_bits() const { return bits_; }

 private:
  StreamMasks(StreamField field, EdgeBits bits, std::uint32_t tpcs, Function idle)
      : field_(field), bits_(bits), tpcs_(tpcs), idle_(std::move(idle)) {}
  [[nodiscard]] bool hook_sees(CuStream stream) const;
  StreamField field_;
  EdgeBits bits_;
  std::uint32_t tpcs_;
  Function idle_;
  LaunchHook* hook_ = nullptr;
  gpu::Topology topology_;
};

// The descriptor mask that a stream mask with only `tpc` disabled turns into; an error when the
// launch carried no mask or more than one bit.
[[nodiscard]] Result<std::uint32_t> hardware_bit_of(const Stream& stream, const StreamField& field,
                                                    LaunchHook& hook, const Function& idle,
                                                    gpu::TpcIndex tpc);

// Sets the mask at `field` of a stream without other users, launches, and demands that exactly one
// bit shows up for each of two TPCs, at different places, and none once cleared. A field that does
// not do so is missing_capability, a GPU that fails meanwhile check_failed.
[[nodiscard]] Result<EdgeBits> verify_offset(const GpuPointer& gpu, LaunchHook& hook,
                                             const Function& idle, const StreamField& field);

// Tries every 4-byte offset below `limit` whose words read as an unused mask, in a throw-away
// stream each, and returns the one that verify_offset() accepts. `trying` is told each offset
// before it is written to, because writing to a wrong one may end the process: run this in a
// process of its own (see calibrate_isolated). Offsets in `skip` are left out.
[[nodiscard]] Result<StreamField> calibrate(const GpuPointer& gpu, LaunchHook& hook,
                                            const Function& idle, std::uint32_t limit,
                                            std::span<const std::uint32_t> skip,
                                            const std::function<void(std::uint32_t)>& trying);

// The same for card `index` in processes of its own, one more for each that dies of a wrong write.
// Call before this process has used CUDA.
[[nodiscard]] Result<StreamField> calibrate_isolated(std::uint32_t index);

}  // namespace demarc::cuda
