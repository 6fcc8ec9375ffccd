// The card's side on a real card: a coloured pool, whose shares are lent whole.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "demarc/card/colored_memory.hpp"
#include "demarc/serve/card_side.hpp"
#include "demarc/serve/config.hpp"

namespace demarc::serve {

class PoolCard : public CardSide {
 public:
  // Takes the memory, sorts it by colours and shows by timing, for each tenant, that its colours
  // are what they should be. Nothing else may run on the card meanwhile. Colours of other sets than
  // the configuration's are no shares from then on.
  [[nodiscard]] static Result<std::unique_ptr<PoolCard>> create(const Config& config);
  // The same on a pool that is there; share i of it is of colors[i]. `domains`: to choose from, as
  // was proved; without it they are proved here.
  [[nodiscard]] static Result<std::unique_ptr<PoolCard>> adopt(
      cuda::CardPointer card, const std::shared_ptr<cuda::ColoredPool>& pool,
      const std::vector<color::ColorSet>& colors, std::optional<std::uint32_t> domains = {});

  // For terms_of().
  [[nodiscard]] CardNumbers numbers() const;

  [[nodiscard]] const std::string& uuid() const override;
  [[nodiscard]] std::uint64_t pages() const override;
  [[nodiscard]] std::uint64_t page_bytes() const override;
  [[nodiscard]] Result<lease::Share> share(const color::ColorSet& colors) const override;
  [[nodiscard]] std::vector<std::byte> table() const override;
  [[nodiscard]] Result<std::vector<OwnedFile>> lend(const color::PageRun& run) const override;
  [[nodiscard]] Result<void> scrub(const color::ColorSet& colors,
                                   const color::Extent& extent) override;
  [[nodiscard]] Result<void> check_alive() const override;
  [[nodiscard]] Result<void> prove(const gpu::TpcSet& tpcs) override;
  [[nodiscard]] Result<lease::ProvedMask> mask(const gpu::TpcSet& tpcs) const override;
  [[nodiscard]] Result<void> move(const std::string& control, const gpu::TpcSet& tpcs) override;

 private:
  // That all tenants together can have; missing_capability where the colours change within pages.
  [[nodiscard]] Result<std::uint64_t> window_bytes() const;
  struct Lent {
    lease::Share share;
    cuda::ColoredBuffer all;  // all bytes of the share, for zeros
  };
  PoolCard(cuda::CardPointer card, std::shared_ptr<cuda::ColoredPool> pool)
      : card_(std::move(card)), pool_(std::move(pool)) {}

  cuda::CardPointer card_;
  std::shared_ptr<cuda::ColoredPool> pool_;
  std::uint32_t sync_domains_ = 1;
  std::map<color::ColorSet, Lent> shares_;  // by their colours
  std::vector<std::byte> zeros_;
};

}  // namespace demarc::serve
