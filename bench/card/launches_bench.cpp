// Where a launch is felt: the time of an empty launch beside traffic to one remainder of the
// memory, in streams beside whole colours, and beside a kernel that polls host memory, with
// domains by the stream's attribute and by the descriptor.
#include <cstdio>

#include "demarc/card/backend.hpp"
#include "demarc/card/launch_place.hpp"
#include "demarc/card/remainder_colors.hpp"
#include "demarc/driver/sync_domain.hpp"
#include "demarc/partition/partition.hpp"

namespace {

using namespace demarc;        // NOLINT: a program of its own
using namespace demarc::cuda;  // NOLINT

constexpr std::uint64_t pool_bytes = std::uint64_t{4} << 30U;
constexpr std::uint64_t dram_bytes = std::uint64_t{48} << 20U;
constexpr std::uint64_t l2_bytes = 512 << 10;
constexpr std::size_t streams = 15;

struct Kind {
  const char* name;
  std::uint64_t bytes;
  bool writes;
};
constexpr Kind kinds[] = {{"reads, from the L2", l2_bytes, false},
                          {"reads, from DRAM", dram_bytes, false},
                          {"stores, in the L2", l2_bytes, true},
                          {"stores, to DRAM", dram_bytes, true}};

constexpr const char* poll_ptx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry poll(.param .u64 flag) {
  .reg .u64 %at; .reg .u32 %v; .reg .pred %wait;
  ld.param.u64 %at, [flag];
AGAIN: ld.volatile.global.u32 %v, [%at];
  setp.eq.u32 %wait, %v, 0;
  @%wait bra AGAIN;
  ret;
})";

// The card in two halves, and a pool in two colours.
struct Halves {
  CardPointer card;
  std::vector<partition::Partition> parts;
  std::unique_ptr<Backend> back_end;
  std::shared_ptr<ColoredPool> pool;
};

Result<Halves> make_halves() {
  Halves halves;
  DEMARC_TRY(halves.card, open_card(0));
  DEMARC_TRY(halves.parts,
             partition::split(halves.card->topology(), 2, partition::SplitStrategy::gpc_aligned));
  DEMARC_TRY(halves.back_end, make_backend(halves.card, partition::Mode::mask));
  const GpuPointer& gpu = halves.card->gpu();
  DEMARC_TRY(const auto device, gpu::describe_card(gpu->name(), ""));
  DEMARC_TRY(const auto scheme, color::color_scheme(device, 2));
  const ShareRequest shares[] = {{{1, 2}, 0}, {{2, 2}, 0}};
  DEMARC_TRY(halves.pool, ColoredPool::create(halves.card, scheme, pool_bytes, shares));
  std::printf("%s, driver %s; %s\n", gpu->name().c_str(), gpu->driver().driver_version().c_str(),
              halves.pool->colors().account().c_str());
  return halves;
}

Result<void> beside_remainders(const Halves& halves, const LaunchTimer& launches) {
  const RemainderColors* colors = halves.pool->colors().remainders();
  if (colors == nullptr) return {};
  DEMARC_TRY(const auto stream, halves.back_end->open(halves.parts[0]));
  SmRoles roles(halves.card->gpu()->sm_count(), 1);
  for (const gpu::SmIndex sm : gpu::sms_of(halves.card->topology(), stream->tpcs())) {
    roles[sm] = 0;
  }
  const std::uint32_t shift = colors->coloring.hash().chunk_shift;
  std::vector<color::RemainderColoring::Window> single;
  for (std::uint32_t r = 0; r < colors->coloring.hash().modulus; ++r) single.push_back({r, 1});
  DEMARC_TRY(const auto remainders, colors->coloring.with_windows(single));
  DEMARC_TRY(const MemoryTimer timer, MemoryTimer::create(halves.card->gpu()));
  for (const Kind& kind : kinds) {
    std::printf("beside traffic to one remainder, %s, us:", kind.name);
    for (std::uint32_t r = 0; r < single.size(); ++r) {
      std::vector<std::uint32_t> chunks;
      const std::uint64_t bytes = std::min(kind.bytes, remainders.color_bytes(r));
      for (std::uint64_t at = 0; at < bytes; at += std::uint64_t{1} << shift) {
        chunks.push_back(static_cast<std::uint32_t>(
            remainders.position(color::LinearByte(at), r).raw() >> shift));
      }
      DEMARC_TRY(const double us,
                 timer.beside(halves.pool->arena().address(), {chunks, shift, kind.writes, false},
                              roles, [&] { return launches.microseconds(stream->stream()); }));
      std::printf(" %.2f", us);
    }
    std::printf("\n");
  }
  return {};
}

Result<void> in_streams(Halves& halves) {
  std::vector<std::unique_ptr<PartitionStream>> opened(streams);
  std::vector<const Stream*> each;
  for (auto& stream : opened) {
    DEMARC_TRY(stream, halves.back_end->open(halves.parts[0]));
    each.push_back(&stream->stream());
  }
  DEMARC_TRY(const LaunchTimes times,
             time_launches(halves.card, *halves.pool, each, opened[0]->tpcs()));
  for (std::size_t s = 0; s < streams; ++s) {
    std::printf("stream %2zu: alone %.2f us, beside colour 0 %.2f, beside colour 1 %.2f\n", s,
                times.alone[s], times.beside[s][0], times.beside[s][1]);
  }
  const LaunchPlace place = times.quietest();
  std::printf("quietest: stream %zu in colour %u\n", place.stream, place.share);
  return {};
}

Result<void> beside_polling(const Halves& halves, const LaunchTimer& launches) {
  const GpuPointer& gpu = halves.card->gpu();
  DEMARC_TRY(const Module module, Module::load(gpu, poll_ptx, "poll.ptx"));
  DEMARC_TRY(const Function poll, module.function("poll"));
  DEMARC_TRY(const HostBuffer flag, HostBuffer::allocate(gpu, 64));
  DEMARC_TRY(const Stream polling, Stream::create(gpu));
  DEMARC_TRY(LaunchHook* const hook, halves.card->hook());
  auto* word = reinterpret_cast<volatile std::uint32_t*>(flag.bytes().data());
  enum class How { common, attribute, descriptor };
  for (const auto& [name, how] :
       {std::pair{"in domain 0, as all", How::common},
        std::pair{"in domain 1 by the stream's attribute", How::attribute},
        std::pair{"in domain 1 by the descriptor", How::descriptor}}) {
    DEMARC_TRY(const Stream victim, Stream::create(gpu));
    if (how == How::attribute) DEMARC_CHECK(set_sync_domain(*gpu, victim.handle(), 1));
    *word = 0;
    DEMARC_CHECK(launch(polling, poll, LaunchShape::line(64, 64), flag.address()));
    if (how == How::descriptor) hook->set_sync_domain(1);
    const auto us = launches.microseconds(victim);
    hook->set_sync_domain(std::nullopt);
    *word = 1;
    DEMARC_CHECK(polling.wait());
    if (!us) return tl::unexpected(us.error());
    std::printf("beside 64 blocks that poll the host in domain 0, %s: %.2f us\n", name, *us);
  }
  return {};
}

Result<void> measure() {
  DEMARC_TRY(Halves halves, make_halves());
  DEMARC_TRY(const LaunchTimer launches, LaunchTimer::create(halves.card));
  DEMARC_CHECK(beside_remainders(halves, launches));
  DEMARC_CHECK(in_streams(halves));
  if (sync_domain_count(*halves.card->gpu()) < 2) return {};
  return beside_polling(halves, launches);
}

}  // namespace

int main() {
  if (const auto done = measure(); !done) {
    std::printf("launches_bench: not run: %s\n", done.error().message.c_str());
  }
  return 0;
}
