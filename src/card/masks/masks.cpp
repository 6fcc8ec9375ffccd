// Sets masks of a process, of a stream or of the next launch, and takes them back.
#include "demarc/card/masks.hpp"

namespace demarc::cuda {

Result<ProcessMask> ProcessMask::set(const CardPointer& card, const gpu::TpcSet& enabled) {
  DEMARC_TRY(LaunchHook * hook, card->hook());
  ProcessMask mask(card, hook->process_mask());
  DEMARC_CHECK(mask.change(enabled));
  return mask;
}

Result<void> ProcessMask::change(const gpu::TpcSet& enabled) {
  DEMARC_TRY(LaunchHook * hook, card_->hook());
  DEMARC_TRY(const HardwareMask mask, card_->hardware_mask(enabled));
  hook->set_process_mask(mask);
  return {};
}

ProcessMask::~ProcessMask() {
  if (!card_) return;
  if (const auto hook = card_->hook()) (*hook)->set_process_mask(before_);
}

ProcessMask::ProcessMask(ProcessMask&& other) noexcept
    : card_(std::move(other.card_)), before_(other.before_) {}

Result<StreamMask> StreamMask::set(const CardPointer& card, CuStream stream,
                                   const gpu::TpcSet& enabled) {
  DEMARC_TRY(const StreamMasks* masks, card->stream_masks());
  StreamMask mask(card, stream, masks->get(stream));
  DEMARC_CHECK(mask.change(enabled));
  return mask;
}

Result<void> StreamMask::change(const gpu::TpcSet& enabled) {
  DEMARC_TRY(const StreamMasks* masks, card_->stream_masks());
  return masks->set(stream_, enabled);
}

StreamMask::~StreamMask() {
  if (!card_) return;
  const auto masks = card_->stream_masks();
  if (!masks) return;
  // Setting and clearing fail for default streams only, which set() has refused.
  if (before_) {
    static_cast<void>((*masks)->set(stream_, *before_));
  } else {
    static_cast<void>((*masks)->clear(stream_));
  }
}

StreamMask::StreamMask(StreamMask&& other) noexcept
    : card_(std::move(other.card_)), stream_(other.stream_), before_(other.before_) {}

Result<NextMask> NextMask::set(const CardPointer& card, const gpu::TpcSet& enabled) {
  DEMARC_TRY(LaunchHook * hook, card->hook());
  DEMARC_TRY(const HardwareMask mask, card->hardware_mask(enabled));
  hook->set_next_mask(mask);
  return NextMask(card);
}

NextMask::~NextMask() {
  if (!card_) return;
  if (const auto hook = card_->hook()) (*hook)->set_next_mask(std::nullopt);
}

NextMask::NextMask(NextMask&& other) noexcept : card_(std::move(other.card_)) {}

}  // namespace demarc::cuda
