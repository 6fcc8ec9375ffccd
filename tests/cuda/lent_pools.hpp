// Pools on the stand-in whose shares other processes borrow.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "demarc/guest/lent_share.hpp"
#include "pools.hpp"

namespace demarc::test {

using PageSource = std::function<Result<std::vector<OwnedFile>>()>;

inline constexpr std::uint64_t page_of_share = 2 << 20;

inline std::int64_t objects_alive() {
  return fake_symbol<std::int64_t()>("fake_live_objects")();
}

inline std::shared_ptr<cuda::ColoredPool> lent_parities(
    const std::vector<std::uint32_t>& constants,
    std::span<const cuda::ShareRequest> shares = both_halves,
    cuda::Lending lending = cuda::Lending::by_descriptor) {
  return pool_of_constants(fake_gpu(), constants, shares, lending).value();
}

// Whether the driver would give the page of addresses that begins there.
inline bool is_free(const cuda::GpuPointer& gpu, std::uint64_t address) {
  return cuda::AddressRange::reserve(gpu, page_of_share, page_of_share, address)->address() ==
         address;
}

// Measured once.
inline const std::shared_ptr<cuda::ColoredPool>& lent_remainders() {
  fake::FakeConfig config = fake::small_gpu();
  config.remainders = true;
  static const auto pool =
      cuda::ColoredPool::create(fake_card(config).value(),
                                color::color_scheme(gpu::find_device("h200").value(), 2).value(),
                                4 * page_of_share, both_halves, cuda::Lending::by_descriptor)
          .value();
  configure(config);
  return pool;
}

// Lends pages of a pool, `most` a batch.
inline cuda::BorrowedShare::Lender pages_of_pool(const cuda::ColoredPool& pool,
                                                 std::uint64_t most = 2) {
  return [&pool, most](const color::PageRun& run) {
    return [&]() -> Result<std::vector<OwnedFile>> {
      std::vector<OwnedFile> batch;
      while (batch.size() < std::min(most, run.count)) {
        DEMARC_TRY(OwnedFile page, pool.arena().lend_page(run.first + batch.size()));
        batch.push_back(std::move(page));
      }
      return batch;
    }();
  };
}

// All of its bytes can be used.
inline Result<cuda::BorrowedShare> borrow(const cuda::ColoredPool& pool,
                                          const cuda::LentShare& lent) {
  DEMARC_TRY(auto share, cuda::BorrowedShare::open(pool.arena().gpu(), lent, pool.colors().table(),
                                                   pages_of_pool(pool)));
  DEMARC_CHECK(share.map({{}, share.bytes()}));
  return share;
}

}  // namespace demarc::test
