// Times pieces of a card's memory, of a peer's, or of pinned host memory, on the card.
#include "gpu_translation.hpp"

#include <algorithm>
#include <variant>

#include "demarc/driver/mapped_pieces.hpp"

namespace demarc::probe {
namespace {

constexpr std::uint64_t least_pages = 64;
constexpr std::uint64_t max_pieces = 65536;  // each is a call or three of the driver
constexpr std::uint32_t evicting_access = 512;

using Memory = std::variant<cuda::MappedPieces, cuda::HostBuffer>;

cuda::PageTraffic::Kind to_cuda(Traffic::Kind kind) {
  switch (kind) {
    case Traffic::Kind::read:
      return cuda::PageTraffic::Kind::read;
    case Traffic::Kind::write:
      return cuda::PageTraffic::Kind::write;
    case Traffic::Kind::page:
      return cuda::PageTraffic::Kind::page;
    case Traffic::Kind::word:
      return cuda::PageTraffic::Kind::word;
    case Traffic::Kind::atomic:
      break;
  }
  return cuda::PageTraffic::Kind::atomic;
}

// Why not; empty where nothing speaks against it.
std::string reason_of(const Result<void>& checked) {
  return checked ? std::string() : checked.error().message;
}

class GpuPages final : public TimedPages {
 public:
  GpuPages(const cuda::PageTimer& timer, const cuda::PageTraffic& evicting, Memory memory,
           const cuda::PageRange& range, std::string no_atomics)
      : timer_(timer),
        evicting_(evicting),
        memory_(std::move(memory)),
        range_(range),
        no_atomics_(std::move(no_atomics)) {}

  [[nodiscard]] std::uint64_t pages() const override { return range_.pages; }
  [[nodiscard]] std::uint64_t page_bytes() const override { return range_.page_bytes; }

  [[nodiscard]] const std::string& no_atomics() const override { return no_atomics_; }

  Result<WalkCycles> walk(std::span<const Visit> visits, Access access, Before before) override {
    std::vector<std::uint32_t> lines;
    lines.reserve(visits.size());
    const std::uint64_t lines_per_page = range_.page_bytes / line_bytes;
    for (const Visit& visit : visits) {
      lines.push_back(
          static_cast<std::uint32_t>(visit.page.raw() * lines_per_page + visit.line.raw()));
    }
    const bool atomics = access == Access::atomic;
    // So much is read of the place that no cache on the way keeps what was there before.
    std::optional<cuda::PageTraffic> between;
    if (before == Before::evicted) between = evicting_;
    DEMARC_TRY(const cuda::WalkTimes times, timer_.walk(range_, lines, atomics, between));
    return WalkCycles{times.first_cycles, times.again_cycles};
  }

  Result<double> accesses_per_second(const Traffic& traffic) override {
    cuda::PageRange range = range_;
    range.pages = std::min(traffic.pages, range_.pages);
    return timer_.accesses_per_second(range, {.kind = to_cuda(traffic.kind),
                                              .access_bytes = traffic.access_bytes,
                                              .sms = traffic.sms,
                                              .lasts = evicting_.lasts});
  }

 private:
  const cuda::PageTimer& timer_;
  cuda::PageTraffic evicting_;
  Memory memory_;
  cuda::PageRange range_;
  std::string no_atomics_;
};

}  // namespace

Result<std::unique_ptr<GpuTranslation>> GpuTranslation::open(cuda::GpuPointer gpu,
                                                             cuda::GpuPointer peer,
                                                             const TranslationLimits& limits) {
  if (peer != nullptr && peer->handle() == gpu->handle()) {
    return invalid_input("--peer cuda:{} is the probed card itself; name another card",
                         peer->index());
  }
  DEMARC_CHECK(gpu->make_current());
  DEMARC_TRY(cuda::PageTimer timer, cuda::PageTimer::create(gpu));
  DEMARC_TRY(const int l2_bytes, gpu->attribute(cuda::attribute_l2_bytes));
  DEMARC_TRY(const int clock_khz, gpu->attribute(cuda::attribute_clock_khz));
  std::unique_ptr<GpuTranslation> made(
      new GpuTranslation(std::move(gpu), std::move(peer), std::move(timer), limits));
  made->facts_.name = made->gpu_->name();
  if (made->peer_ != nullptr) made->facts_.peer = made->peer_->name();
  made->facts_.sms = made->gpu_->sm_count();
  made->facts_.l2_bytes = static_cast<std::uint64_t>(l2_bytes);
  made->facts_.sm_clock_hz = 1e3 * clock_khz;
  return made;
}

cuda::PageTraffic GpuTranslation::evicting() const {
  return {.kind = cuda::PageTraffic::Kind::read,
          .access_bytes = evicting_access,
          .sms = facts_.sms,
          .lasts = limits_.traffic_lasts};
}

Result<std::uint64_t> GpuTranslation::usable_bytes(const cuda::Gpu& owner) const {
  // The driver tells of the card whose context is current.
  DEMARC_CHECK(owner.make_current());
  const auto free = owner.free_bytes();
  DEMARC_CHECK(gpu_->make_current());
  if (!free) return tl::unexpected(free.error());
  return std::min(limits_.card_bytes, *free / 10 * 9);
}

Result<std::unique_ptr<TimedPages>> GpuTranslation::map(const Mapping& mapping) {
  const auto enough = [&](std::uint64_t bytes) -> Result<cuda::PageRange> {
    const std::uint64_t pages = bytes / mapping.page_bytes;
    if (pages >= least_pages) return cuda::PageRange{0, mapping.page_bytes, pages};
    return missing_capability("{} MiB of {} memory can be taken; the probe needs {} MiB",
                              bytes >> 20U, name_of(mapping.place),
                              least_pages * mapping.page_bytes >> 20U);
  };
  if (mapping.place == MemoryPlace::host) {
    DEMARC_TRY(cuda::PageRange range, enough(limits_.host_bytes));
    DEMARC_TRY(cuda::HostBuffer buffer, cuda::HostBuffer::allocate(gpu_, limits_.host_bytes));
    range.base = buffer.address();
    return std::unique_ptr<TimedPages>(new GpuPages(timer_, evicting(), Memory(std::move(buffer)),
                                                    range,
                                                    reason_of(cuda::check_host_atomics(*gpu_))));
  }
  const cuda::GpuPointer& owner = mapping.place == MemoryPlace::peer ? peer_ : gpu_;
  if (owner == nullptr) return missing_capability("no peer was named; name one with --peer cuda:N");
  DEMARC_TRY(const std::uint64_t usable, usable_bytes(*owner));
  const std::uint64_t pieces = std::min(usable / mapping.piece_bytes, max_pieces);
  DEMARC_TRY(cuda::PageRange range, enough(pieces * mapping.piece_bytes));
  DEMARC_TRY(cuda::MappedPieces mapped,
             cuda::MappedPieces::create(gpu_, owner, mapping.piece_bytes, pieces));
  range.base = mapped.address();
  return std::unique_ptr<TimedPages>(new GpuPages(timer_, evicting(), Memory(std::move(mapped)),
                                                  range,
                                                  reason_of(cuda::check_atomics(*gpu_, *owner))));
}

}  // namespace demarc::probe
