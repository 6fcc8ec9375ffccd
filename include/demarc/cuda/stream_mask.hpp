// The TPC mask in the driver's private stream object: every launch of the stream carries it, also
// launches made by libraries.
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

#include "demarc/cuda/launch.hpp"
#include "demarc/cuda/launch_hook.hpp"
#include "demarc/partition/tpc_set.hpp"

namespace demarc::cuda {

struct StreamField {
  std::uint32_t offset = 0;  // bytes into the driver's stream object
  bool wide = true;  // an "enabled" word and four disable words; else two words, upper then lower
  friend bool operator==(const StreamField&, const StreamField&) = default;
};

// What is known for this CUDA version on this kind of machine; nothing for an unknown one.
[[nodiscard]] std::optional<StreamField> known_stream_field(int cuda_version);

// Bits of a stream mask are in logical TPC order, unlike those of a descriptor.
class StreamMasks {
 public:
  // `idle` is a kernel without arguments or side effects, used to see what a mask becomes.
  // Finds the field (table first, then `remembered`), and proves it: a mask set in a throw-away
  // stream must show up in the descriptor. missing_capability when it does not or is not known.
  static Result<StreamMasks> open(GpuPointer gpu, LaunchHook& hook, const Function& idle,
                                  std::optional<StreamField> remembered = std::nullopt);

  // Launches already made keep their mask; later ones of the stream get this one. The default
  // stream has no object of its own and is refused. Thread-safe against launches of other streams.
  [[nodiscard]] Result<void> set(CuStream stream, const partition::TpcSet& enabled) const;
  // As if no mask had ever been set.
  [[nodiscard]] Result<void> clear(CuStream stream) const;
  // The TPCs the stream's mask enables; nothing when it has none.
  [[nodiscard]] std::optional<partition::TpcSet> get(CuStream stream) const;
  [[nodiscard]] const StreamField& field() const { return field_; }
  [[nodiscard]] std::uint32_t tpc_count() const { return tpcs_; }

 private:
  StreamMasks(StreamField field, std::uint32_t tpcs) : field_(field), tpcs_(tpcs) {}
  StreamField field_;
  std::uint32_t tpcs_;
};

// The descriptor mask that a stream mask with only logical TPC `tpc` disabled turns into; an error
// when the launch carried no mask or more than one bit.
[[nodiscard]] Result<std::uint32_t> hardware_bit_of(const Stream& stream, const StreamField& field,
                                                    LaunchHook& hook, const Function& idle,
                                                    std::uint32_t tpc);

// Sets the mask at `field` of a stream nobody else uses, launches, and demands that exactly one bit
// shows up for each of two TPCs, at different places, and none once cleared.
[[nodiscard]] Result<void> verify_offset(const GpuPointer& gpu, LaunchHook& hook,
                                         const Function& idle, const StreamField& field);

// Tries every 4-byte offset below `limit` whose words read as an unused mask, in a throw-away
// stream each, and returns the one that verify_offset() accepts. `trying` is told each offset
// before it is written to, because writing to a wrong one may end the process: run this in a
// process of its own (see calibrate_isolated). Offsets in `skip` are left out.
[[nodiscard]] Result<StreamField> calibrate(const GpuPointer& gpu, LaunchHook& hook,
                                            const Function& idle, std::uint32_t limit,
                                            std::span<const std::uint32_t> skip,
                                            const std::function<void(std::uint32_t)>& trying);

}  // namespace demarc::cuda
