// libsmctrl.so: the interface of libsmctrl (RTAS 2023), served by Demarc, so that programs that
// were written for it need only link with this library. As in libsmctrl, a set bit DISABLES a TPC,
// bits are in logical order, and masks of 64 bits disable every TPC from 64 on. An error ends the
// program, because it must not go on without a partition.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "demarc/card/masks.hpp"

namespace {

using demarc::cuda::CardPointer;
using demarc::gpu::TpcSet;
__extension__ using Mask128 = unsigned __int128;

[[noreturn]] void give_up(const char* what, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", what, why.c_str());
  std::exit(1);
}

template <class T>
T or_give_up(demarc::Result<T> result, const char* what) {
  if (!result) give_up(what, result.error().message);
  return std::move(*result);
}

// The card of the calling thread's context, else the first one.
const CardPointer& smctrl_card(const char* what) {
  static const CardPointer card = [what] {
    const auto driver = or_give_up(demarc::cuda::Driver::load(), what);
    const auto of_thread = driver->ask("this thread has no card", driver->api().cuCtxGetDevice);
    const auto gpu = or_give_up(
        demarc::cuda::Gpu::open(driver, static_cast<std::uint32_t>(of_thread.value_or(0))), what);
    return or_give_up(demarc::cuda::Card::open(gpu), what);
  }();
  return card;
}

TpcSet enabled_by(Mask128 disabled) {
  return TpcSet::from_words(static_cast<std::uint64_t>(~disabled),
                            static_cast<std::uint64_t>(~disabled >> 64));
}

Mask128 widened(std::uint64_t mask) {
  return ~Mask128{0} << 64 | mask;
}

}  // namespace

#define SMCTRL_EXPORT extern "C" __attribute__((visibility("default")))

SMCTRL_EXPORT void libsmctrl_set_global_mask(std::uint64_t mask) {
  const char* what = "libsmctrl_set_global_mask";
  const CardPointer& card = smctrl_card(what);
  auto* hook = or_give_up(card->hook(), what);
  hook->set_process_mask(or_give_up(card->hardware_mask(enabled_by(widened(mask))), what));
}

SMCTRL_EXPORT void libsmctrl_set_next_mask(std::uint64_t mask) {
  const char* what = "libsmctrl_set_next_mask";
  const CardPointer& card = smctrl_card(what);
  auto* hook = or_give_up(card->hook(), what);
  hook->set_next_mask(or_give_up(card->hardware_mask(enabled_by(widened(mask))), what));
}

SMCTRL_EXPORT void libsmctrl_set_stream_mask_ext(void* stream, Mask128 mask) {
  const char* what = "libsmctrl_set_stream_mask";
  const auto* masks = or_give_up(smctrl_card(what)->stream_masks(), what);
  const auto set = masks->set(static_cast<demarc::cuda::CuStream>(stream), enabled_by(mask));
  if (!set) give_up(what, set.error().message);
}

SMCTRL_EXPORT void libsmctrl_set_stream_mask(void* stream, std::uint64_t mask) {
  libsmctrl_set_stream_mask_ext(stream, widened(mask));
}

// *tpcs_for_gpc becomes an array of one word a GPC, owned by the library; bit t is TPC t.
SMCTRL_EXPORT int libsmctrl_get_gpc_info(std::uint32_t* num_enabled_gpcs,
                                         std::uint64_t** tpcs_for_gpc, int) {
  const auto& topology = smctrl_card("libsmctrl_get_gpc_info")->topology();
  static std::vector<std::uint64_t> words;
  words.assign(topology.gpc_count(), 0);
  for (const auto tpc : TpcSet::first(64) & all_tpcs(topology)) {
    words[topology.tpcs[tpc].gpc.raw()] |= std::uint64_t{1} << tpc.raw();
  }
  *num_enabled_gpcs = topology.gpc_count();
  *tpcs_for_gpc = words.data();
  return 0;
}

SMCTRL_EXPORT int libsmctrl_get_tpc_info(std::uint32_t* num_tpcs, int) {
  *num_tpcs = smctrl_card("libsmctrl_get_tpc_info")->topology().tpc_count();
  return 0;
}

SMCTRL_EXPORT int libsmctrl_get_tpc_info_cuda(std::uint32_t* num_tpcs, int device) {
  return libsmctrl_get_tpc_info(num_tpcs, device);
}
