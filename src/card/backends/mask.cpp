// Confines streams by stream masks: any set of TPCs, which may change at run time. The modes mask
// and throttle differ in the sets alone.
#include "backends/backends.hpp"
#include "demarc/card/masks.hpp"

namespace demarc::cuda {
namespace {

class MaskPartitionStream : public PartitionStream {
 public:
  MaskPartitionStream(CardPointer card, Stream stream, StreamMask mask, const gpu::TpcSet& tpcs)
      : PartitionStream(std::move(card)),
        stream_(std::move(stream)),
        mask_(std::move(mask)),
        tpcs_(tpcs) {}
  const Stream& stream() const override { return stream_; }
  gpu::TpcSet tpcs() const override { return tpcs_; }
  Result<void> change(const gpu::TpcSet& enabled) override {
    DEMARC_CHECK(mask_.change(enabled));
    tpcs_ = enabled & gpu::all_tpcs(card_->topology());
    return {};
  }
  Result<Placement> probe(std::uint32_t blocks, std::uint64_t spin_cycles) const override {
    return probe_placement(stream_, card_->kernels(), LaunchShape::line(blocks, 64), spin_cycles);
  }

 private:
  Stream stream_;
  StreamMask mask_;  // goes before its stream
  gpu::TpcSet tpcs_;
};

class MaskBackend : public Backend {
 public:
  MaskBackend(CardPointer card, Mode mode) : card_(std::move(card)), mode_(mode) {}
  Mode mode() const override { return mode_; }

 protected:
  const Card& card() const override { return *card_; }
  Result<std::unique_ptr<PartitionStream>> make_stream(const partition::Partition& partition,
                                                       int stream_priority) override {
    const gpu::TpcSet tpcs = partition.tpcs & gpu::all_tpcs(card_->topology());
    DEMARC_TRY(Stream stream, Stream::create(card_->gpu(), stream_priority));
    DEMARC_TRY(StreamMask mask, StreamMask::set(card_, stream.handle(), tpcs));
    return std::unique_ptr<PartitionStream>(
        std::make_unique<MaskPartitionStream>(card_, std::move(stream), std::move(mask), tpcs));
  }

 private:
  CardPointer card_;
  Mode mode_;
};

Result<std::unique_ptr<Backend>> masks_as(Mode mode, const CardPointer& card) {
  DEMARC_CHECK(card->stream_masks());
  return std::unique_ptr<Backend>(std::make_unique<MaskBackend>(card, mode));
}

}  // namespace

Result<std::unique_ptr<Backend>> make_mask_backend(const CardPointer& card) {
  return masks_as(Mode::mask, card);
}

Result<std::unique_ptr<Backend>> make_throttle_backend(const CardPointer& card) {
  return masks_as(Mode::throttle, card);
}

}  // namespace demarc::cuda
