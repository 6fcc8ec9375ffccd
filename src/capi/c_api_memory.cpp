// libdemarc.so: coloured memory.
#include <cstring>
#include <type_traits>

#include "c_api_guard.hpp"
#include "demarc/card/colored_memory.hpp"
#include "demarc/demarc.h"

struct demarc_pool {
  std::shared_ptr<demarc::cuda::ColoredPool> pool;
};

struct demarc_buffer {
  demarc::cuda::ColoredBuffer buffer;
};

namespace {

using demarc::Result;
using demarc::c_api::guarded;

constexpr unsigned max_masks = std::extent_v<decltype(demarc_layout::mask)>;

Result<void> make_pool(const demarc_card* card, const demarc::color::ColorScheme& scheme,
                       uint64_t bytes, std::span<const demarc_share> shares, demarc_pool** pool) {
  std::vector<demarc::cuda::ShareRequest> requests;
  for (const demarc_share& share : shares) {
    requests.push_back({{share.colors, scheme.colors}, share.byte_cap});
  }
  DEMARC_TRY(auto made, demarc::cuda::ColoredPool::create(card->card, scheme, bytes, requests));
  *pool = new demarc_pool{std::move(made)};
  return {};
}

}  // namespace

DEMARC_EXPORT int demarc_pool_create_described(demarc_card* card, const char* description,
                                               uint32_t colors, uint64_t bytes,
                                               const demarc_share* shares, uint32_t share_count,
                                               demarc_pool** pool) {
  if (pool != nullptr) *pool = nullptr;
  return guarded(
      {{"card", card}, {"shares", shares, share_count}, {"pool", pool}}, [&]() -> Result<void> {
        DEMARC_TRY(const auto device,
                   demarc::gpu::describe_card(card->card->gpu()->name(),
                                              description == nullptr ? "" : description));
        DEMARC_TRY(const auto scheme, demarc::color::color_scheme(device, colors));
        return make_pool(card, scheme, bytes, {shares, share_count}, pool);
      });
}

DEMARC_EXPORT int demarc_pool_create(demarc_card* card, const uint64_t* masks, uint32_t mask_count,
                                     uint64_t bytes, const demarc_share* shares,
                                     uint32_t share_count, demarc_pool** pool) {
  if (pool != nullptr) *pool = nullptr;
  return guarded({{"card", card},
                  {"masks", masks, mask_count},
                  {"shares", shares, share_count},
                  {"pool", pool}},
                 [&]() -> Result<void> {
                   const auto& gpu = card->card->gpu();
                   const std::span given(masks, mask_count);
                   if (const auto device = demarc::gpu::describe_card(gpu->name())) {
                     DEMARC_CHECK(demarc::color::check_masks(*device, given));
                   }
                   DEMARC_TRY(const auto scheme, demarc::color::scheme_of_masks(given));
                   return make_pool(card, scheme, bytes, {shares, share_count}, pool);
                 });
}

DEMARC_EXPORT void demarc_pool_destroy(demarc_pool* pool) {
  delete pool;
}

DEMARC_EXPORT int demarc_pool_usage(const demarc_pool* pool, uint32_t share, demarc_usage* usage) {
  return guarded({{"pool", pool}, {"usage", usage}}, [&]() -> Result<void> {
    if (share >= pool->pool->shares()) {
      return demarc::invalid_input("share {}: the pool has {}", share, pool->pool->shares());
    }
    const auto found = pool->pool->usage(share);
    *usage = {found.capacity_bytes, found.used_bytes, found.wasted_bytes, found.largest_free_bytes};
    return {};
  });
}

DEMARC_EXPORT int demarc_buffer_create(demarc_pool* pool, uint32_t share, uint64_t bytes,
                                       demarc_buffer** buffer) {
  if (buffer != nullptr) *buffer = nullptr;
  return guarded({{"pool", pool}, {"buffer", buffer}}, [&]() -> Result<void> {
    DEMARC_TRY(auto made, pool->pool->allocate(share, bytes));
    *buffer = new demarc_buffer{std::move(made)};
    return {};
  });
}

DEMARC_EXPORT void demarc_buffer_destroy(demarc_buffer* buffer) {
  delete buffer;
}

DEMARC_EXPORT int demarc_buffer_upload(demarc_buffer* buffer, const void* source, uint64_t bytes,
                                       uint64_t offset) {
  return guarded({{"buffer", buffer}, {"source", source, bytes}},
                 [&] { return buffer->buffer.upload(source, bytes, offset); });
}

DEMARC_EXPORT int demarc_buffer_download(demarc_buffer* buffer, void* target, uint64_t bytes,
                                         uint64_t offset) {
  return guarded({{"buffer", buffer}, {"target", target, bytes}},
                 [&] { return buffer->buffer.download(target, bytes, offset); });
}

DEMARC_EXPORT int demarc_buffer_address(const demarc_buffer* buffer, uint64_t byte,
                                        uint64_t* address, uint64_t* run_bytes) {
  return guarded({{"buffer", buffer}, {"address", address}}, [&]() -> Result<void> {
    if (byte >= buffer->buffer.bytes()) {
      return demarc::invalid_input("byte {} of a buffer of {}", byte, buffer->buffer.bytes());
    }
    *address = buffer->buffer.address(byte).raw();
    if (run_bytes != nullptr) *run_bytes = buffer->buffer.run_left(byte);
    return {};
  });
}

DEMARC_EXPORT int demarc_buffer_layout(const demarc_buffer* buffer, demarc_layout* layout) {
  return guarded({{"buffer", buffer}, {"layout", layout}}, [&]() -> Result<void> {
    *layout = {};
    if (buffer->buffer.mask_count() == demarc::remainders) {
      return demarc::missing_capability(
          "the colours of this buffer are remainders: demarc_buffer_remainder_layout()");
    }
    const auto found = buffer->buffer.layout<max_masks>();
    layout->base = found.base;
    layout->first = found.first;
    layout->masks = buffer->buffer.mask_count();
    for (unsigned i = 0; i < layout->masks; ++i) {
      layout->mask[i] = found.mask[i];
      layout->pivot[i] = found.pivot[i];
      layout->wanted[i] = found.wanted[i];
    }
    return {};
  });
}

DEMARC_EXPORT int demarc_buffer_remainder_layout(const demarc_buffer* buffer,
                                                 demarc_remainder_layout* layout) {
  using Layout = demarc::colored_layout<demarc::remainders>;
  static_assert(sizeof(Layout) == sizeof *layout && std::is_trivially_copyable_v<Layout>);
  return guarded({{"buffer", buffer}, {"layout", layout}}, [&]() -> Result<void> {
    *layout = {};
    if (buffer->buffer.mask_count() != demarc::remainders) {
      return demarc::missing_capability(
          "the colours of this buffer are parities: demarc_buffer_layout()");
    }
    const Layout found = buffer->buffer.layout<demarc::remainders>();
    std::memcpy(layout, &found, sizeof found);
    return {};
  });
}

DEMARC_EXPORT int demarc_buffer_audit(demarc_buffer* buffer, demarc_audit* audit) {
  return guarded({{"buffer", buffer}, {"audit", audit}}, [&]() -> Result<void> {
    DEMARC_TRY(const auto found, buffer->buffer.audit());
    *audit = {found.chunks(), found.outside, found.unclear};
    if (found.holds()) return {};
    return demarc::check_failed("{} of {} chunks lie in foreign colours, {} are unclear",
                                found.outside, found.chunks(), found.unclear);
  });
}
