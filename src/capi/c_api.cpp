// libdemarc.so: the C interface.
#include <algorithm>
#include <functional>

#include "c_api_guard.hpp"
#include "demarc/base/version.hpp"
#include "demarc/demarc.h"
#include "demarc/driver/sync_domain.hpp"
#include "demarc/guest/slo_misses.hpp"
#include "demarc/partition/partition.hpp"

namespace demarc::c_api {

std::string& last_error() {
  thread_local std::string error;
  return error;
}

int report(const Result<void>& result) {
  last_error() = result ? "" : result.error().message;
  return result ? 0 : static_cast<int>(result.error().kind);
}

Result<void> check_given(std::initializer_list<Needed> needed) {
  for (const Needed& one : needed) {
    if (one.pointer == nullptr && one.count > 0)
      return invalid_input("the argument '{}' is NULL", one.name);
  }
  return {};
}

}  // namespace demarc::c_api

namespace {

using demarc::Result;
using demarc::c_api::guarded;
using demarc::gpu::TpcSet;

TpcSet set_of(const demarc_tpcs& tpcs) {
  return TpcSet::from_words(tpcs.enabled[0], tpcs.enabled[1]);
}

Result<demarc::gpu::Tpc> tpc_of(const demarc_card* card, std::uint32_t tpc) {
  const auto& tpcs = card->card->topology().tpcs;
  if (tpc >= tpcs.size()) {
    return demarc::invalid_input("there is no TPC {}; the card has {}", tpc, tpcs.size());
  }
  return tpcs[demarc::gpu::TpcIndex(tpc)];
}

// 0, and an error, without a card.
template <class Count>
std::uint32_t count_of(const demarc_card* card, Count&& count) {
  std::uint32_t found = 0;
  guarded({{"card", card}}, [&]() -> Result<void> {
    found = count(*card->card);
    return {};
  });
  return found;
}

// Programs may look at the result alone.
int open_for(demarc_card** card, const std::function<Result<demarc_card*>()>& open) {
  if (card != nullptr) *card = nullptr;
  return guarded({{"card", card}}, [&]() -> Result<void> {
    DEMARC_TRY(*card, open());
    return {};
  });
}

Result<void> count_outside(demarc_card* card, void* stream, const demarc_tpcs* tpcs,
                           std::uint64_t* outside) {
  using namespace demarc::cuda;  // NOLINT
  const CardPointer& opened = card->card;
  const GpuPointer& gpu = opened->gpu();
  DEMARC_TRY(const DeviceBuffer counts, placement_counters(gpu, opened->kernels()));
  DevicePointer address = counts.address();
  DevicePointer none = 0;
  std::uint64_t spin = 2000;
  void* arguments[] = {&address, &none, &spin};
  const auto handle = static_cast<CuStream>(stream);
  DEMARC_CHECK(
      gpu->check(gpu->api().cuLaunchKernel(opened->kernels().where().handle(), 4 * gpu->sm_count(),
                                           1, 1, 64, 1, 1, 0, handle, arguments, nullptr),
                 "cannot launch the probe"));
  DEMARC_CHECK(gpu->check(gpu->api().cuStreamSynchronize(handle), "the probe failed"));
  DEMARC_TRY(const Placement placement, read_placement(counts, opened->kernels()));
  *outside = placement.outside(demarc::gpu::sms_of(opened->topology(), set_of(*tpcs)));
  return {};
}

}  // namespace

DEMARC_EXPORT const char* demarc_version(void) {
  return demarc::version();
}

DEMARC_EXPORT const char* demarc_error(void) {
  return demarc::c_api::last_error().c_str();
}

DEMARC_EXPORT int demarc_open(uint32_t device, demarc_card** card) {
  return open_for(card, [&]() -> Result<demarc_card*> {
    DEMARC_TRY(auto opened, demarc::cuda::open_card(device));
    DEMARC_CHECK(opened->hook());
    return new demarc_card{std::move(opened), std::nullopt};
  });
}

DEMARC_EXPORT int demarc_open_observer(uint32_t device, demarc_card** card) {
  return open_for(card, [&]() -> Result<demarc_card*> {
    demarc::cuda::CardOptions options;
    options.use_masks = false;
    DEMARC_TRY(auto opened, demarc::cuda::open_card(device, options));
    return new demarc_card{std::move(opened), std::nullopt};
  });
}

DEMARC_EXPORT void demarc_close(demarc_card* card) {
  delete card;
}

DEMARC_EXPORT uint32_t demarc_tpc_count(const demarc_card* card) {
  return count_of(card, [](const auto& of) { return of.topology().tpc_count(); });
}

DEMARC_EXPORT uint32_t demarc_sm_count(const demarc_card* card) {
  return count_of(card, [](const auto& of) { return of.topology().sm_count(); });
}

DEMARC_EXPORT uint32_t demarc_gpc_count(const demarc_card* card) {
  return count_of(card, [](const auto& of) { return of.topology().gpc_count(); });
}

DEMARC_EXPORT int demarc_gpc_of_tpc(const demarc_card* card, uint32_t tpc, uint32_t* gpc) {
  return guarded({{"card", card}, {"gpc", gpc}}, [&]() -> Result<void> {
    DEMARC_TRY(const demarc::gpu::Tpc found, tpc_of(card, tpc));
    *gpc = found.gpc.raw();
    return {};
  });
}

DEMARC_EXPORT int demarc_side_of_tpc(const demarc_card* card, uint32_t tpc, int32_t* side) {
  return guarded({{"card", card}, {"side", side}}, [&]() -> Result<void> {
    DEMARC_TRY(const demarc::gpu::Tpc found, tpc_of(card, tpc));
    *side = found.side ? static_cast<int32_t>(*found.side) : -1;
    return {};
  });
}

DEMARC_EXPORT int demarc_sms_of_tpc(const demarc_card* card, uint32_t tpc, uint32_t* sms,
                                    uint32_t capacity, uint32_t* count) {
  return guarded({{"card", card}, {"sms", sms, capacity}, {"count", count}}, [&]() -> Result<void> {
    DEMARC_TRY(const demarc::gpu::Tpc found, tpc_of(card, tpc));
    *count = static_cast<std::uint32_t>(found.sms.size());
    std::transform(found.sms.begin(), found.sms.begin() + std::min(*count, capacity), sms,
                   [](demarc::gpu::SmIndex sm) { return sm.raw(); });
    return {};
  });
}

DEMARC_EXPORT int demarc_set_process_mask(demarc_card* card, const demarc_tpcs* tpcs) {
  return guarded({{"card", card}}, [&]() -> Result<void> {
    if (tpcs == nullptr) {
      card->process.reset();
    } else if (card->process) {
      return card->process->change(set_of(*tpcs));
    } else {
      DEMARC_TRY(auto mask, demarc::cuda::ProcessMask::set(card->card, set_of(*tpcs)));
      card->process.emplace(std::move(mask));
    }
    return {};
  });
}

DEMARC_EXPORT int demarc_set_stream_mask(demarc_card* card, void* stream, const demarc_tpcs* tpcs) {
  return guarded({{"card", card}}, [&]() -> Result<void> {
    DEMARC_TRY(const auto* masks, card->card->stream_masks());
    const auto handle = static_cast<demarc::cuda::CuStream>(stream);
    return tpcs == nullptr ? masks->clear(handle) : masks->set(handle, set_of(*tpcs));
  });
}

DEMARC_EXPORT uint32_t demarc_sync_domain_count(const demarc_card* card) {
  return count_of(card, [](const auto& of) { return demarc::cuda::sync_domain_count(*of.gpu()); });
}

DEMARC_EXPORT int demarc_set_stream_sync_domain(demarc_card* card, void* stream, uint32_t domain) {
  return guarded({{"card", card}}, [&] {
    return demarc::cuda::set_sync_domain(*card->card->gpu(),
                                         static_cast<demarc::cuda::CuStream>(stream), domain);
  });
}

DEMARC_EXPORT int demarc_set_next_mask(demarc_card* card, const demarc_tpcs* tpcs) {
  return guarded({{"card", card}}, [&]() -> Result<void> {
    DEMARC_TRY(auto* hook, card->card->hook());
    if (tpcs == nullptr) {
      hook->set_next_mask(std::nullopt);
      return {};
    }
    DEMARC_TRY(const auto mask, card->card->hardware_mask(set_of(*tpcs)));
    hook->set_next_mask(mask);
    return {};
  });
}

DEMARC_EXPORT int demarc_check_cluster(const demarc_card* card, const demarc_tpcs* tpcs,
                                       uint32_t cluster_blocks, uint32_t blocks_per_sm) {
  return guarded({{"card", card}, {"tpcs", tpcs}}, [&]() -> Result<void> {
    const auto fits = demarc::partition::check_cluster(card->card->topology(), set_of(*tpcs),
                                                       cluster_blocks, blocks_per_sm);
    if (!fits) return demarc::check_failed("{}", fits.error().message);
    return {};
  });
}

DEMARC_EXPORT int demarc_count_outside(demarc_card* card, void* stream, const demarc_tpcs* tpcs,
                                       uint64_t* blocks_outside) {
  return guarded({{"card", card}, {"tpcs", tpcs}, {"blocks_outside", blocks_outside}},
                 [&] { return count_outside(card, stream, tpcs, blocks_outside); });
}

DEMARC_EXPORT int demarc_slo_miss(void) {
  return guarded({}, [] { return demarc::cuda::count_slo_miss(); });
}
