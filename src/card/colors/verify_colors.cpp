// Proves that colours hold: times their chunks, and a victim beside neighbours.
#include "demarc/card/verify_colors.hpp"

#include "colors/measuring.hpp"
#include "demarc/base/json.hpp"
#include "demarc/card/memory_timer.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t stream_bytes = std::uint64_t{256} << 20U;  // beyond any L2

Result<color::ColorScheme> scheme_of(const VerifyColorsPlan& plan, const std::string& card) {
  if (plan.masks.empty()) {
    DEMARC_TRY(const auto device, gpu::describe_card(card, plan.description));
    return color::color_scheme(device, plan.color_count);
  }
  // Whatever the masks are: whether they keep traffic apart is what is to be found out.
  return color::scheme_of_masks(plan.masks);
}

Result<std::shared_ptr<ColoredPool>> pool_of(const GpuPointer& gpu,
                                             const color::ColorScheme& scheme, std::uint64_t bytes,
                                             std::span<const ShareRequest> shares) {
  CardOptions options;
  options.use_masks = false;
  DEMARC_TRY(const CardPointer card, Card::open(gpu, options));
  return ColoredPool::create(card, scheme, bytes * scheme.pages_per_kept_page(), shares);
}

// The colours moved by the least difference that leaves none in place: as many others.
Result<color::ColorSet> other_colors(const color::ColorSet& colors) {
  for (std::uint32_t difference = 1; difference < colors.of(); ++difference) {
    color::ColorSet moved(0, colors.of());
    for (std::uint32_t color = 0; color < colors.of(); ++color) {
      if (colors.contains(color)) moved.insert(color ^ difference);
    }
    if (colors.common(moved).empty()) return moved;
  }
  return invalid_input("give some, but not all, of the colours 0 to {}", colors.of() - 1);
}

Result<void> measure_effects(ColoredPool& pool, const ColoredBuffer& own,
                             VerifyColorsReport& report) {
  DEMARC_TRY(const MemoryTimer timer, MemoryTimer::create(pool.arena().gpu()));
  DEMARC_TRY(const ColoredBuffer other, whole_chunks(pool, 1, stream_bytes));
  DEMARC_TRY(const ColoredBuffer same, whole_chunks(pool, 0, stream_bytes));
  const DevicePointer base = pool.arena().address();
  const auto own_chunks = chunks_of(own, stream_bytes);
  const auto other_chunks = chunks_of(other, stream_bytes);
  const auto same_chunks = chunks_of(same, stream_bytes);
  const auto shift = static_cast<std::uint32_t>(std::countr_zero(own.run_bytes()));
  const auto roles = alternating_roles(*pool.arena().gpu());
  const TimedStream victim{own_chunks, shift, false, false};
  DEMARC_TRY(const double alone, timer.stream_seconds(base, victim, {}, roles));
  const auto next_to = [&](const char* name, std::span<const std::uint32_t> chunks, bool writes,
                           bool counts) -> Result<void> {
    const TimedStream neighbour{chunks, shift, writes, false};
    DEMARC_TRY(const double seconds, timer.stream_seconds(base, victim, neighbour, roles));
    report.effects.push_back({name, seconds / alone, counts});
    return {};
  };
  DEMARC_CHECK(next_to("reads, other colours", other_chunks, false, true));
  DEMARC_CHECK(next_to("writes, other colours", other_chunks, true, true));
  DEMARC_CHECK(next_to("reads, the same colours", same_chunks, false, false));
  return next_to("writes, the same colours", same_chunks, true, false);
}

}  // namespace

Result<VerifyColorsReport> verify_colors(const VerifyColorsPlan& plan) {
  DEMARC_TRY(const auto driver, Driver::load());
  DEMARC_TRY(const GpuPointer gpu, Gpu::open(driver, plan.device));
  DEMARC_TRY(const color::ColorScheme scheme, scheme_of(plan, gpu->name()));
  color::ColorSet wanted(0, scheme.colors);
  for (const std::uint32_t color : plan.colors) wanted.insert(color);
  if (!wanted.is_well_formed()) {
    return invalid_input("give some, but not all, of the colours 0 to {}", scheme.colors - 1);
  }
  DEMARC_TRY(const color::ColorSet others, other_colors(wanted));
  const ShareRequest shares[] = {{wanted, 0}, {others, 0}};
  DEMARC_TRY(const auto pool, pool_of(gpu, scheme, plan.pool_bytes, shares));
  DEMARC_TRY(const ColoredBuffer own, whole_chunks(*pool, 0, stream_bytes));
  VerifyColorsReport report;
  report.card = gpu->name();
  report.expected = wanted;
  report.max_slowdown = plan.max_slowdown;
  DEMARC_TRY(report.audit, own.audit());
  DEMARC_CHECK(measure_effects(*pool, own, report));
  report.holds = report.audit.holds();
  for (const NeighbourEffect& effect : report.effects) {
    if (effect.counts) report.holds &= effect.slowdown <= plan.max_slowdown;
    report.felt |= !effect.counts && effect.slowdown > plan.max_slowdown;
  }
  report.holds &= report.felt;
  return report;
}

std::string report_to_text(const VerifyColorsReport& report) {
  std::string text =
      fmt::format("{}: chunks of {} bytes, by timing\n", report.card, report.audit.chunk_bytes);
  for (std::size_t color = 0; color < report.audit.chunks_of_color.size(); ++color) {
    text += fmt::format(
        "colour {:<3}{:>10} chunks{}\n", color, report.audit.chunks_of_color[color],
        report.expected.contains(static_cast<std::uint32_t>(color)) ? ", expected here" : "");
  }
  text += fmt::format("{} outside, {} unclear\n", report.audit.outside, report.audit.unclear);
  for (const NeighbourEffect& effect : report.effects) {
    text += fmt::format("neighbour {:<28}{:>6.3f}x the time alone{}\n", effect.neighbour,
                        effect.slowdown, effect.counts ? "" : ", for comparison");
  }
  if (!report.felt) {
    text += fmt::format(
        "neighbours in the same colours slow it by no more than {}x, so neighbours in other "
        "colours prove nothing\n",
        report.max_slowdown);
  }
  return text + (report.holds ? "the colours HOLD\n" : "the colours DO NOT HOLD\n");
}

std::string report_to_json(const VerifyColorsReport& report) {
  Json effects = Json::array();
  for (const NeighbourEffect& effect : report.effects) {
    effects.push_back(Json{
        {"neighbour", effect.neighbour}, {"slowdown", effect.slowdown}, {"counts", effect.counts}});
  }
  const Json json{{"schema", "demarc.verify.colors/2"},
                  {"card", report.card},
                  {"chunk_bytes", report.audit.chunk_bytes},
                  {"expected_colors", report.expected.members()},
                  {"chunks_of_color", report.audit.chunks_of_color},
                  {"outside", report.audit.outside},
                  {"unclear", report.audit.unclear},
                  {"max_slowdown", report.max_slowdown},
                  {"felt", report.felt},
                  {"holds", report.holds},
                  {"neighbours", effects}};
  return json_text(json, 2) + "\n";
}

}  // namespace demarc::cuda
