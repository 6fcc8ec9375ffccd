// SM-affine persistent kernels (Fractional GPUs, RTAS 2019, section 4): every SM gets blocks.
// Blocks on foreign SMs leave at once; the others take block numbers from a counter. Only kernels
// that were written or rewritten for this are confined.
#include "backends/backends.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint32_t affine_threads = 64;
constexpr std::size_t allowed_words = 4;  // %smid up to 255

class AffinityPartitionStream : public PartitionStream {
 public:
  AffinityPartitionStream(CardPointer card, Stream stream, DeviceBuffer allowed,
                          const gpu::TpcSet& tpcs)
      : PartitionStream(std::move(card)),
        stream_(std::move(stream)),
        allowed_(std::move(allowed)),
        tpcs_(tpcs) {}
  const Stream& stream() const override { return stream_; }
  gpu::TpcSet tpcs() const override { return tpcs_; }
  Result<Placement> probe(std::uint32_t blocks, std::uint64_t spin_cycles) const override {
    const GpuPointer& gpu = card_->gpu();
    const Function& kernel = card_->kernels().affine();
    DEMARC_TRY(const std::uint32_t per_sm, kernel.blocks_per_sm(affine_threads, 0));
    DEMARC_TRY(const DeviceBuffer next, DeviceBuffer::allocate(gpu, 4));
    DEMARC_TRY(const DeviceBuffer places, DeviceBuffer::allocate<std::uint32_t>(gpu, blocks));
    DEMARC_CHECK(next.fill(0));
    DEMARC_CHECK(places.fill(0xff));
    DEMARC_CHECK(launch(stream_, kernel,
                        LaunchShape::line(per_sm * gpu->sm_count(), affine_threads),
                        allowed_.address(), next.address(), blocks, places.address(), spin_cycles));
    DEMARC_CHECK(stream_.wait());
    DEMARC_TRY(const auto sm_of_block, places.read<gpu::SmIndex>(blocks));
    Placement placement;
    placement.blocks.assign(gpu->sm_count(), 0);
    for (const gpu::SmIndex sm : sm_of_block) {
      if (sm >= placement.blocks.next_key()) {
        return check_failed("a block of the persistent kernel never ran");
      }
      ++placement.blocks[sm];
    }
    return placement;
  }

 private:
  Stream stream_;
  DeviceBuffer allowed_;
  gpu::TpcSet tpcs_;
};

class AffinityBackend : public Backend {
 public:
  explicit AffinityBackend(CardPointer card) : card_(std::move(card)) {}
  Mode mode() const override { return Mode::affinity; }

 protected:
  const Card& card() const override { return *card_; }
  Result<std::unique_ptr<PartitionStream>> make_stream(const partition::Partition& partition,
                                                       int stream_priority) override {
    const gpu::TpcSet tpcs = partition.tpcs & gpu::all_tpcs(card_->topology());
    if (tpcs.empty())
      return invalid_input("partition '{}' has no TPC on this card", partition.name);
    std::uint64_t words[allowed_words] = {};
    for (const gpu::SmIndex sm : gpu::sms_of(card_->topology(), tpcs)) {
      words[sm.raw() / 64] |= std::uint64_t{1} << (sm.raw() % 64);
    }
    DEMARC_TRY(DeviceBuffer allowed, DeviceBuffer::allocate(card_->gpu(), sizeof words));
    DEMARC_CHECK(allowed.upload(words, sizeof words));
    DEMARC_TRY(Stream stream, Stream::create(card_->gpu(), stream_priority));
    return std::unique_ptr<PartitionStream>(std::make_unique<AffinityPartitionStream>(
        card_, std::move(stream), std::move(allowed), tpcs));
  }

 private:
  CardPointer card_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_affinity_backend(const CardPointer& card) {
  if (card->virtual_sms()) {
    return missing_capability(
        "mode affinity: MPS renumbers SMs, so kernels cannot know where they run");
  }
  if (card->gpu()->sm_count() > 64 * allowed_words) {
    return missing_capability("mode affinity: {} SMs are more than {}", card->gpu()->sm_count(),
                              64 * allowed_words);
  }
  return std::unique_ptr<Backend>(std::make_unique<AffinityBackend>(card));
}

}  // namespace demarc::cuda
