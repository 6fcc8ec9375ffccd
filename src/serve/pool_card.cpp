// The coloured pool behind the server: takes it, proves it, lends its pages, fills them with zeros.
#include "pool_card.hpp"

#include <algorithm>

#include "demarc/card/proof.hpp"
#include "demarc/color/color_scheme.hpp"
#include "demarc/color/page_colors.hpp"
#include "demarc/color/page_pieces.hpp"
#include "demarc/driver/page_mappings.hpp"
#include "demarc/driver/sync_domain.hpp"
#include "demarc/guest/lent_share.hpp"
#include "demarc/partition/partition.hpp"

namespace demarc::serve {
namespace {

constexpr std::uint64_t audited_bytes = std::uint64_t{8} << 20U;  // per share
constexpr std::uint64_t zero_bytes = std::uint64_t{16} << 20U;    // that are written at a time

// Colours are what timing says, before anybody relies on them.
Result<void> audit(cuda::ColoredPool& pool, std::size_t share, const color::ColorSet& colors) {
  const std::uint64_t bytes = std::min(audited_bytes, pool.usage(share).largest_free_bytes);
  DEMARC_TRY(const cuda::ColoredBuffer buffer, pool.allocate(share, bytes));
  DEMARC_TRY(const cuda::ColorAudit found, buffer.audit());
  if (found.holds()) return {};
  return check_failed(
      "colours {}: by timing {} of {} chunks belong to other colours, and {} are in doubt",
      to_string(colors), found.outside, found.chunks(), found.unclear);
}

// How much of the card's memory the arena gets.
Result<std::uint64_t> arena_bytes(const Config& config, const cuda::Gpu& gpu) {
  DEMARC_TRY(const std::uint64_t free, gpu.free_bytes());
  if (config.memory) {
    if (*config.memory <= free) return *config.memory;
    return missing_capability("memory: {} bytes were asked for, but {} are free on {}",
                              *config.memory, free, gpu.name());
  }
  if (config.reserve < free) return free - config.reserve;
  return missing_capability("reserve: {} bytes must be left, but {} are free on {}", config.reserve,
                            free, gpu.name());
}

// How many memory synchronisation domains there are to choose from; 1: that of all programs.
Result<std::uint32_t> domains_of(const cuda::GpuPointer& gpu) {
  const std::uint32_t count = cuda::sync_domain_count(*gpu);
  if (count >= 2) {
    const auto proved = cuda::prove_sync_domains(gpu);
    if (proved) return count;
    if (proved.error().kind != ErrorKind::missing_capability) return tl::unexpected(proved.error());
  }
  return 1U;
}

}  // namespace

Result<std::unique_ptr<PoolCard>> PoolCard::create(const Config& config) {
  DEMARC_TRY(const auto driver, cuda::Driver::load());
  DEMARC_TRY(const cuda::GpuPointer gpu, cuda::Gpu::open(driver, config.card));
  DEMARC_TRY(const gpu::Device device, gpu::describe_card(gpu->name(), config.description));
  DEMARC_TRY(const color::ColorScheme scheme, color::color_scheme(device, config.colors));
  DEMARC_TRY(const cuda::CardPointer card, cuda::Card::open(gpu));
  // Before memory is taken and measured, which takes a while: how much each has is told then.
  DEMARC_TRY(const std::uint32_t domains, domains_of(gpu));
  CardNumbers numbers{
      card->topology(), domains,
      [](const color::ColorSet&) -> Result<std::uint64_t> { return ~std::uint64_t{}; }, 0,
      ~std::uint64_t{}};
  if (const auto pages = color::page_colors(device); !pages) {
    numbers.window_bytes = 0;
    numbers.no_windows = pages.error().message;
  }
  DEMARC_CHECK(terms_of(config, numbers));
  DEMARC_TRY(const std::uint64_t bytes, arena_bytes(config, *gpu));
  std::vector<cuda::ShareRequest> requests;
  std::vector<color::ColorSet> colors;
  for (const TenantConfig& tenant : config.tenants) {
    if (std::find(colors.begin(), colors.end(), tenant.colors) != colors.end()) continue;
    DEMARC_TRY(const color::ColorSet counted, scheme.colors_for(tenant.colors));
    requests.push_back({counted, 0});
    colors.push_back(tenant.colors);
  }
  DEMARC_TRY(const auto pool, cuda::ColoredPool::create(card, scheme, bytes, requests,
                                                        cuda::Lending::by_descriptor));
  for (std::size_t i = 0; i < colors.size(); ++i) DEMARC_CHECK(audit(*pool, i, colors[i]));
  return adopt(card, pool, colors, domains);
}

Result<std::unique_ptr<PoolCard>> PoolCard::adopt(cuda::CardPointer card,
                                                  const std::shared_ptr<cuda::ColoredPool>& pool,
                                                  const std::vector<color::ColorSet>& colors,
                                                  std::optional<std::uint32_t> domains) {
  std::unique_ptr<PoolCard> side(new PoolCard(std::move(card), pool));
  side->zeros_.resize(zero_bytes);
  for (std::size_t i = 0; i < colors.size(); ++i) {
    DEMARC_TRY(const cuda::LentShare lent, pool->lend(i));
    // Whole steps are given, so whole steps are filled.
    const std::uint64_t bytes = lent.bytes / lease::extent_step * lease::extent_step;
    if (bytes == 0) {
      return missing_capability(
          "colours {} hold {} bytes of the arena, fewer than one step "
          "of {}",
          to_string(colors[i]), lent.bytes, lease::extent_step);
    }
    DEMARC_TRY(cuda::ColoredBuffer all, pool->allocate(i, bytes));
    lease::Share share = lent;
    share.bytes = bytes;
    side->shares_.emplace(colors[i], Lent{std::move(share), std::move(all)});
  }
  if (!domains) {
    DEMARC_TRY(domains, domains_of(side->card_->gpu()));
  }
  side->sync_domains_ = *domains;
  return side;
}

CardNumbers PoolCard::numbers() const {
  CardNumbers numbers{card_->topology(), sync_domains_,
                      [this](const color::ColorSet& colors) -> Result<std::uint64_t> {
                        DEMARC_TRY(const lease::Share found, share(colors));
                        return found.bytes;
                      }};
  if (const auto bytes = window_bytes(); bytes) {
    numbers.window_bytes = *bytes;
  } else {
    numbers.no_windows = bytes.error().message;
  }
  return numbers;
}

// An eighth of the mappings is left to the other programs of the machine. Shares of one pool take
// about as many for a page of their windows.
Result<std::uint64_t> PoolCard::window_bytes() const {
  std::size_t most = 1;
  for (const auto& [colors, lent] : shares_) {
    DEMARC_TRY(const auto pieces,
               color::page_pieces(*lent.share.law, table(), {{}, page_bytes()}, page_bytes()));
    most = std::max(most, pieces.size());
  }
  return cuda::max_mapped_pieces / 8 * 7 / most * page_bytes();
}

const std::string& PoolCard::uuid() const {
  return card_->gpu()->uuid();
}

std::uint64_t PoolCard::pages() const {
  return pool_->arena().pages();
}

std::uint64_t PoolCard::page_bytes() const {
  return pool_->arena().page_bytes();
}

Result<lease::Share> PoolCard::share(const color::ColorSet& colors) const {
  const auto found = shares_.find(colors);
  if (found != shares_.end()) return found->second.share;
  return invalid_input(
      "colours {}: the memory was not divided in this way when the server started: restart the "
      "server",
      to_string(colors));
}

std::vector<std::byte> PoolCard::table() const {
  const auto table = pool_->colors().table();
  return {table.begin(), table.end()};
}

Result<std::vector<OwnedFile>> PoolCard::lend(const color::PageRun& run) const {
  std::vector<OwnedFile> files;
  for (std::uint64_t i = 0; i < run.count; ++i) {
    DEMARC_TRY(OwnedFile file, pool_->arena().lend_page(run.first + i));
    files.push_back(std::move(file));
  }
  return files;
}

Result<void> PoolCard::scrub(const color::ColorSet& colors, const color::Extent& extent) {
  const auto found = shares_.find(colors);
  if (found == shares_.end()) return invalid_input("colours {} are no share", to_string(colors));
  const cuda::ColoredBuffer& all = found->second.all;
  for (std::uint64_t done = 0; done < extent.bytes; done += zero_bytes) {
    DEMARC_CHECK(all.upload(zeros_.data(), std::min(zero_bytes, extent.bytes - done),
                            extent.first - all.first() + done));
  }
  return {};
}

// Errors of the card and of a context stay, and each later call returns them.
Result<void> PoolCard::check_alive() const {
  const cuda::Gpu& gpu = *card_->gpu();
  DEMARC_CHECK(gpu.make_current());
  return gpu.check(gpu.api().cuCtxSynchronize(), "cuCtxSynchronize");
}

Result<void> PoolCard::prove(const gpu::TpcSet& tpcs) {
  const auto all = gpu::all_tpcs(card_->topology());
  if (!tpcs.is_subset_of(all)) {
    return invalid_input("TPCs {}: the card has the TPCs {}", to_string(tpcs), to_string(all));
  }
  return cuda::prove_partition(card_, tpcs);
}

Result<lease::ProvedMask> PoolCard::mask(const gpu::TpcSet& tpcs) const {
  DEMARC_TRY(const cuda::HardwareMask mask, card_->hardware_mask(tpcs));
  const auto sms = gpu::sms_of(card_->topology(), tpcs).size();
  return lease::ProvedMask{{mask.disabled.begin(), mask.disabled.end()},
                           static_cast<std::uint32_t>(sms)};
}

Result<void> PoolCard::move(const std::string& control, const gpu::TpcSet& tpcs) {
  DEMARC_TRY(const cuda::HardwareMask mask, card_->hardware_mask(tpcs));
  DEMARC_TRY(const cuda::Control program, cuda::Control::open(control));
  program.block().largest_cluster = partition::largest_cluster(card_->topology(), tpcs, 1);
  // Once: no other process has a reason to store the mask of a tenant's program, and the server
  // waits for none of them.
  return program.store_mask(mask, true, to_string(tpcs), 1);
}

}  // namespace demarc::serve
