// Makes green contexts over any set of TPCs: splits the SMs into groups of one TPC and merges the
// wanted groups again. The driver chooses the order of the groups, so each group is looked at once.
//
// CUDA 13.0 refuses to create a green context (error 801) once the launch callback is subscribed in
// the process, so this mode and masks exclude each other there.
#include <optional>
#include <utility>

#include "backends/backends.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t group_spin_cycles = 5000;
constexpr unsigned max_groups = 256;

// A green context with one stream.
class GreenStream {
 public:
  static Result<GreenStream> create(const GpuPointer& gpu, std::vector<CuDeviceResource> resources,
                                    int priority) {
    const DriverApi& api = gpu->api();
    CuResourceDesc desc = nullptr;
    DEMARC_CHECK(gpu->check(api.cuDevResourceGenerateDesc(&desc, resources.data(),
                                                          static_cast<unsigned>(resources.size())),
                            "cannot describe a green context"));
    CuGreenContext context = nullptr;
    const CuResult code =
        api.cuGreenCtxCreate(&context, desc, gpu->handle(), cu_green_default_stream);
    if (code == cu_error_not_supported) {
      return missing_capability(
          "the driver refuses green contexts in this process, because masks were used in it; use "
          "only one of the modes green and mask per process");
    }
    DEMARC_CHECK(gpu->check(code, "cannot create a green context"));
    CuStream stream = nullptr;
    const CuResult made =
        api.cuGreenCtxStreamCreate(&stream, context, cu_stream_non_blocking, priority);
    if (made != cu_success) api.cuGreenCtxDestroy(context);
    DEMARC_CHECK(gpu->check(made, "cannot create a stream of a green context"));
    return GreenStream(gpu, context, Stream::adopt(gpu, stream));
  }
  ~GreenStream() {
    if (context_ == nullptr) return;
    stream_.reset();
    if (!gpu_->stuck()) gpu_->api().cuGreenCtxDestroy(context_);
  }
  GreenStream(GreenStream&& other) noexcept
      : gpu_(std::move(other.gpu_)),
        context_(std::exchange(other.context_, nullptr)),
        stream_(std::move(other.stream_)) {}
  GreenStream& operator=(GreenStream&&) = delete;
  const Stream& stream() const { return *stream_; }

 private:
  GreenStream(GpuPointer gpu, CuGreenContext context, Stream stream)
      : gpu_(std::move(gpu)), context_(context), stream_(std::move(stream)) {}
  GpuPointer gpu_;
  CuGreenContext context_;
  std::optional<Stream> stream_;
};

class GreenPartitionStream : public PartitionStream {
 public:
  GreenPartitionStream(CardPointer card, GreenStream green, const gpu::TpcSet& tpcs)
      : PartitionStream(std::move(card)), green_(std::move(green)), tpcs_(tpcs) {}
  const Stream& stream() const override { return green_.stream(); }
  gpu::TpcSet tpcs() const override { return tpcs_; }
  Result<Placement> probe(std::uint32_t blocks, std::uint64_t spin_cycles) const override {
    return probe_placement(green_.stream(), card_->kernels(), LaunchShape::line(blocks, 64),
                           spin_cycles);
  }

 private:
  GreenStream green_;
  gpu::TpcSet tpcs_;
};

class GreenBackend : public Backend {
 public:
  explicit GreenBackend(CardPointer card) : card_(std::move(card)) {}
  Mode mode() const override { return Mode::green; }

  Result<void> find_groups() {
    const GpuPointer& gpu = card_->gpu();
    CuDeviceResource all{};
    DEMARC_CHECK(gpu->check(
        gpu->api().cuDeviceGetDevResource(gpu->handle(), &all, CuDeviceResource::sm_type),
        "cannot read the SM resource"));
    std::vector<CuDeviceResource> groups(max_groups);
    CuDeviceResource rest{};
    unsigned count = max_groups;
    const CuResult split = gpu->api().cuDevSmResourceSplitByCount(
        groups.data(), &count, &all, &rest, cu_split_ignore_coscheduling, 2);
    if (split == cu_error_invalid_value) {
      return missing_capability("{}: the driver does not split the SMs into groups of two",
                                gpu->name());
    }
    DEMARC_CHECK(gpu->check(split, "cannot split the SMs into groups of two"));
    groups.resize(count);
    group_of_tpc_.assign(card_->topology().tpc_count(), std::nullopt);
    for (const CuDeviceResource& group : groups) {
      DEMARC_TRY(const GreenStream one, GreenStream::create(gpu, {group}, 0));
      DEMARC_TRY(const Placement placement,
                 probe_placement(one.stream(), card_->kernels(), LaunchShape::line(64, 64),
                                 group_spin_cycles));
      for (const gpu::SmIndex sm : placement.used_sms()) {
        if (const auto tpc = card_->topology().tpc_of_sm(sm)) group_of_tpc_[*tpc] = group;
      }
    }
    return {};
  }

 protected:
  const Card& card() const override { return *card_; }
  Result<std::unique_ptr<PartitionStream>> make_stream(const partition::Partition& partition,
                                                       int stream_priority) override {
    std::vector<CuDeviceResource> wanted;
    const gpu::TpcSet tpcs = partition.tpcs & gpu::all_tpcs(card_->topology());
    for (const gpu::TpcIndex tpc : tpcs) {
      if (!group_of_tpc_[tpc]) {
        return missing_capability("the driver gives no group of SMs for TPC {}", tpc);
      }
      wanted.push_back(*group_of_tpc_[tpc]);
    }
    DEMARC_TRY(GreenStream green,
               GreenStream::create(card_->gpu(), std::move(wanted), stream_priority));
    return std::unique_ptr<PartitionStream>(
        std::make_unique<GreenPartitionStream>(card_, std::move(green), tpcs));
  }

 private:
  CardPointer card_;
  PerIndex<gpu::TpcIndex, std::optional<CuDeviceResource>> group_of_tpc_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_green_backend(const CardPointer& card) {
  const DriverApi& api = card->gpu()->api();
  if (api.cuGreenCtxCreate == nullptr || api.cuDeviceGetDevResource == nullptr ||
      api.cuDevSmResourceSplitByCount == nullptr || api.cuDevResourceGenerateDesc == nullptr ||
      api.cuGreenCtxStreamCreate == nullptr || api.cuGreenCtxDestroy == nullptr) {
    return missing_capability(
        "mode green: this driver has no green contexts; CUDA 12.5 and later have them");
  }
  auto backend = std::make_unique<GreenBackend>(card);
  DEMARC_CHECK(backend->find_groups());
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace demarc::cuda
