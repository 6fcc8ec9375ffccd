#include "gpu/part_streams.hpp"

#include <algorithm>

namespace demarc::study {
namespace {

// Long enough that every SM of a part gets a block of the probe.
constexpr std::uint64_t probe_spin_cycles = 200'000;
constexpr std::uint32_t probe_blocks_per_sm = 4;

Result<cuda::Placement> where_it_runs(const cuda::GpuPointer& gpu, const cuda::Stream& stream,
                                      const cuda::ProbeKernels& kernels) {
  return cuda::probe_placement(stream, kernels,
                               cuda::LaunchShape::line(probe_blocks_per_sm * gpu->sm_count(), 32),
                               probe_spin_cycles);
}

// The stream's mask is taken away before the stream is: the driver uses the objects of destroyed
// streams again and leaves the mask in them, so that a later stream would be confined unasked (seen
// on an H100, driver 580.159.04).
std::shared_ptr<const cuda::Stream> unmasked_at_the_end(cuda::CardPointer card,
                                                        const cuda::StreamMasks& masks,
                                                        cuda::Stream created) {
  auto* stream = new cuda::Stream(std::move(created));
  return {stream, [card = std::move(card), &masks](const cuda::Stream* ending) {
            (void)masks.clear(ending->handle());
            delete ending;
          }};
}

// A green context, destroyed after the stream that was made in it.
class GreenContext {
 public:
  GreenContext(cuda::GpuPointer gpu, cuda::CuGreenContext handle)
      : gpu_(std::move(gpu)), handle_(handle) {}
  ~GreenContext() {
    stream.reset();
    if (!gpu_->stuck()) (void)gpu_->api().cuGreenCtxDestroy(handle_);
  }
  GreenContext(const GreenContext&) = delete;
  GreenContext& operator=(const GreenContext&) = delete;

  std::unique_ptr<cuda::Stream> stream;

 private:
  cuda::GpuPointer gpu_;
  cuda::CuGreenContext handle_;
};

Result<std::shared_ptr<GreenContext>> make_green(const cuda::GpuPointer& gpu,
                                                 cuda::CuDeviceResource* groups,
                                                 std::uint32_t count) {
  const cuda::DriverApi& api = gpu->api();
  cuda::CuResourceDesc description = nullptr;
  DEMARC_CHECK(gpu->check(api.cuDevResourceGenerateDesc(&description, groups, count),
                          "cannot describe a green context"));
  cuda::CuGreenContext handle = nullptr;
  DEMARC_CHECK(gpu->check(
      api.cuGreenCtxCreate(&handle, description, gpu->handle(), cuda::cu_green_default_stream),
      "cannot create a green context"));
  auto context = std::make_shared<GreenContext>(gpu, handle);
  cuda::CuStream stream = nullptr;
  DEMARC_CHECK(
      gpu->check(api.cuGreenCtxStreamCreate(&stream, handle, cuda::cu_stream_non_blocking, 0),
                 "cannot create a stream in a green context"));
  context->stream = std::make_unique<cuda::Stream>(cuda::Stream::adopt(gpu, stream));
  return context;
}

// The GPU's SMs in the smallest groups that can be put together freely.
Result<std::vector<cuda::CuDeviceResource>> smallest_groups(const cuda::GpuPointer& gpu) {
  const cuda::DriverApi& api = gpu->api();
  if (api.cuDeviceGetDevResource == nullptr || api.cuDevSmResourceSplitByCount == nullptr ||
      api.cuDevResourceGenerateDesc == nullptr || api.cuGreenCtxCreate == nullptr ||
      api.cuGreenCtxStreamCreate == nullptr || api.cuGreenCtxDestroy == nullptr) {
    return missing_capability("green contexts need a driver of CUDA 12.4 or later; this is {}",
                              gpu->driver().driver_version());
  }
  cuda::CuDeviceResource all{};
  DEMARC_CHECK(
      gpu->check(api.cuDeviceGetDevResource(gpu->handle(), &all, cuda::CuDeviceResource::sm_type),
                 "cannot ask for the SMs of the GPU"));
  unsigned count = 0;
  DEMARC_CHECK(gpu->check(api.cuDevSmResourceSplitByCount(nullptr, &count, &all, nullptr,
                                                          cuda::cu_split_ignore_coscheduling, 2),
                          "cannot split the SMs"));
  std::vector<cuda::CuDeviceResource> groups(count);
  cuda::CuDeviceResource rest{};
  DEMARC_CHECK(gpu->check(api.cuDevSmResourceSplitByCount(groups.data(), &count, &all, &rest,
                                                          cuda::cu_split_ignore_coscheduling, 2),
                          "cannot split the SMs"));
  groups.resize(count);
  return groups;
}

}  // namespace

std::string ranges_text(const std::vector<std::uint32_t>& ascending) {
  std::string out;
  for (std::size_t i = 0; i < ascending.size();) {
    std::size_t last = i;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    if (!out.empty()) out += ", ";
    out += last == i ? fmt::format("{}", ascending[i])
                     : fmt::format("{}-{}", ascending[i], ascending[last]);
    i = last + 1;
  }
  return out;
}

std::array<std::uint32_t, 8> sm_bits(const gpu::Topology& topology, const partition::TpcSet& tpcs) {
  std::array<std::uint32_t, 8> bits{};
  for (const std::uint32_t tpc : tpcs.members()) {
    for (const std::uint32_t sm : topology.tpcs.at(tpc).sms) bits[sm / 32] |= 1U << (sm % 32);
  }
  return bits;
}

Result<PartStreams> open_free_streams(const cuda::GpuPointer& gpu, std::uint32_t parts) {
  DEMARC_TRY(const auto kernels, cuda::ProbeKernels::load(gpu));
  PartStreams out;
  for (std::uint32_t part = 0; part < parts; ++part) {
    DEMARC_TRY(auto stream, cuda::Stream::create(gpu));
    DEMARC_TRY(const auto placement, where_it_runs(gpu, stream, kernels));
    if (const auto used = placement.used_sms().size(); used != gpu->sm_count()) {
      return check_failed("a stream without a mask ran on {} of {} SMs only", used,
                          gpu->sm_count());
    }
    out.streams.push_back(std::make_shared<const cuda::Stream>(std::move(stream)));
  }
  out.account = fmt::format("{} streams of one process", parts);
  return out;
}

Result<PartStreams> open_masked_streams(const cuda::CardPointer& opened,
                                        const std::vector<partition::Partition>& partitions,
                                        int first_priority) {
  const cuda::Card& card = *opened;
  DEMARC_TRY(const cuda::StreamMasks* masks, card.stream_masks());
  PartStreams out;
  for (const partition::Partition& part : partitions) {
    DEMARC_TRY(auto created,
               cuda::Stream::create(card.gpu(), out.streams.empty() ? first_priority : 0));
    auto stream = unmasked_at_the_end(opened, *masks, std::move(created));
    DEMARC_CHECK(masks->set(stream->handle(), part.tpcs));
    std::vector<std::uint32_t> allowed;
    for (const std::uint32_t tpc : part.tpcs.members()) {
      const auto& sms = card.topology().tpcs.at(tpc).sms;
      allowed.insert(allowed.end(), sms.begin(), sms.end());
    }
    std::sort(allowed.begin(), allowed.end());
    DEMARC_TRY(const auto placement, where_it_runs(card.gpu(), *stream, card.kernels()));
    if (const auto outside = placement.outside(allowed); outside != 0) {
      return check_failed("mask: {} of {} blocks of the probe ran outside part {}", outside,
                          placement.total(), part.name);
    }
    out.account += fmt::format("{}part {}: SMs {}", out.account.empty() ? "" : "; ", part.name,
                               ranges_text(placement.used_sms()));
    out.sms.push_back(static_cast<std::uint32_t>(placement.used_sms().size()));
    out.streams.push_back(std::move(stream));
  }
  return out;
}

Result<PartStreams> open_green_streams(const cuda::GpuPointer& gpu, std::uint32_t parts) {
  DEMARC_TRY(auto groups, smallest_groups(gpu));
  DEMARC_TRY(const auto kernels, cuda::ProbeKernels::load(gpu));
  const auto share = static_cast<std::uint32_t>(groups.size() / parts);
  if (share == 0) return missing_capability("green: {} SM groups are too few", groups.size());
  PartStreams out;
  std::vector<std::uint32_t> taken;
  for (std::uint32_t part = 0; part < parts; ++part) {
    DEMARC_TRY(const auto context, make_green(gpu, groups.data() + part * share, share));
    DEMARC_TRY(const auto placement, where_it_runs(gpu, *context->stream, kernels));
    const auto used = placement.used_sms();
    for (const std::uint32_t sm : used) {
      if (std::find(taken.begin(), taken.end(), sm) != taken.end()) {
        return check_failed("green: SM {} ran blocks of two parts", sm);
      }
    }
    taken.insert(taken.end(), used.begin(), used.end());
    out.account += fmt::format("{}part {}/{}: SMs {}", out.account.empty() ? "" : "; ", part + 1,
                               parts, ranges_text(used));
    out.sms.push_back(static_cast<std::uint32_t>(used.size()));
    // Shares ownership of the context, points at its stream.
    out.streams.push_back(std::shared_ptr<const cuda::Stream>(context, context->stream.get()));
  }
  return out;
}

}  // namespace demarc::study
