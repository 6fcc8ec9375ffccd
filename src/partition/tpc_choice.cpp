// Finds the TPCs that a command line asks for.
#include "demarc/partition/tpc_choice.hpp"

#include "demarc/base/numbers.hpp"
#include "demarc/partition/partition.hpp"

namespace demarc::partition {
namespace {

int number_given(const TpcChoice& choice) {
  return (choice.tpcs.empty() ? 0 : 1) + (choice.gpcs.empty() ? 0 : 1) + (choice.sms == 0 ? 0 : 1) +
         (choice.sms_percent == 0 ? 0 : 1);
}

tl::unexpected<Error> not_one() {
  return invalid_input("give exactly one of --tpcs, --gpcs and --sms");
}

}  // namespace

Result<void> read_sms(std::string_view text, std::string_view what, TpcChoice& choice) {
  if (text.ends_with('%')) {
    const auto percent = parse_percent(text, what);
    if (percent && *percent > 0 && *percent <= 100) {
      choice.sms_percent = *percent;
      return {};
    }
  } else {
    const auto sms = parse_u64(text, what);
    if (sms && *sms > 0 && *sms <= UINT32_MAX) {
      choice.sms = static_cast<std::uint32_t>(*sms);
      return {};
    }
  }
  return invalid_input(
      "{}: '{}': a number of SMs from 1 on was expected, such as 66, or a percentage of the card's "
      "SMs, such as 50%",
      what, text);
}

Result<void> check_choice(const TpcChoice& choice) {
  if (number_given(choice) > 1) return not_one();
  constexpr std::uint32_t all = gpu::TpcSet::capacity;
  if (!choice.tpcs.empty()) DEMARC_CHECK(gpu::parse_tpc_set(choice.tpcs, all, "--tpcs"));
  if (!choice.gpcs.empty()) DEMARC_CHECK(gpu::parse_tpc_set(choice.gpcs, all, "--gpcs"));
  return {};
}

Result<gpu::TpcSet> choose_tpcs(const gpu::Topology& topology, const TpcChoice& choice,
                                const gpu::TpcSet& taken) {
  if (number_given(choice) != 1) return not_one();
  if (!choice.tpcs.empty()) {
    return gpu::parse_tpc_set(choice.tpcs, topology.tpc_count(), "--tpcs");
  }
  if (!choice.gpcs.empty()) return gpu::tpcs_of_gpcs(topology, choice.gpcs, "--gpcs");
  if (choice.sms != 0) return take_sms(topology, choice.sms, taken);
  return take_share(topology, choice.sms_percent, taken);
}

}  // namespace demarc::partition
