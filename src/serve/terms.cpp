// Works out what a configuration means on a card: TPCs, colours, bytes and domains of each tenant.
#include <algorithm>
#include <cmath>
#include <set>

#include "demarc/partition/partition.hpp"
#include "demarc/serve/config.hpp"

namespace demarc::serve {
namespace {

using partition::TpcSet;

// TPCs in the order in which numbers of SMs are taken.
std::vector<std::uint32_t> packed_order(const gpu::Topology& topology) {
  std::vector<std::uint32_t> order;
  TpcSet seen;
  for (std::uint32_t sms = 1; sms <= topology.sm_count(); ++sms) {
    const auto taken = partition::take_sms(topology, sms);
    if (!taken) break;
    for (const std::uint32_t tpc : (*taken - seen).members()) order.push_back(tpc);
    seen = *taken;
  }
  return order;
}

// At least so many SMs of TPCs that nobody has.
Result<TpcSet> take_free(const gpu::Topology& topology, const TpcSet& taken, std::uint32_t sms,
                         const TenantConfig& tenant) {
  TpcSet set;
  std::uint32_t have = 0;
  for (const std::uint32_t tpc : packed_order(topology)) {
    if (have >= sms) break;
    if (taken.contains(tpc)) continue;
    set.insert(tpc);
    have += static_cast<std::uint32_t>(topology.tpcs[tpc].sms.size());
  }
  if (have >= sms && sms != 0) return set;
  return invalid_input("{}: tenant '{}': {} SMs were asked for, but {} of {} are free",
                       tenant.choice_place, tenant.name, sms, have, topology.sm_count());
}

bool by_number(const TenantConfig& tenant) {
  return !tenant.tpc_part && tenant.choice.tpcs.empty() && tenant.choice.gpcs.empty();
}

Result<TpcSet> tpcs_of(const TenantConfig& tenant, const gpu::Topology& topology,
                       const TpcSet& taken) {
  if (tenant.tpc_part) {
    const auto parts =
        partition::split(topology, tenant.tpc_part->of, partition::SplitStrategy::gpc_aligned);
    if (parts) return (*parts)[tenant.tpc_part->number].tpcs;
    return invalid_input("{}: {}", tenant.choice_place, parts.error().message);
  }
  if (!by_number(tenant)) {
    auto tpcs = cuda::choose_tpcs(topology, tenant.choice);
    if (tpcs) return tpcs;
    return invalid_input("{}: {}", tenant.choice_place, tpcs.error().message);
  }
  std::uint32_t sms = tenant.choice.sms;
  if (sms == 0) {
    const double share = tenant.choice.share_percent * topology.sm_count() / 100.0;
    sms = static_cast<std::uint32_t>(std::ceil(share - 1e-9));
  }
  return take_free(topology, taken, sms, tenant);
}

// Those that are named first, then those by number, from what is left.
Result<std::vector<TpcSet>> all_tpcs(const Config& config, const gpu::Topology& topology) {
  std::vector<TpcSet> sets(config.tenants.size());
  TpcSet taken;
  for (const bool number : {false, true}) {
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const TenantConfig& tenant = config.tenants[i];
      if (by_number(tenant) != number) continue;
      DEMARC_TRY(sets[i], tpcs_of(tenant, topology, taken));
      for (std::size_t other = 0; other < sets.size(); ++other) {
        const TpcSet both = other == i ? TpcSet{} : sets[other] & sets[i];
        if (both.empty()) continue;
        return invalid_input("{}: tenant '{}': the TPCs {} also belong to tenant '{}'",
                             tenant.choice_place, tenant.name, to_string(both),
                             config.tenants[other].name);
      }
      taken = taken | sets[i];
    }
  }
  return sets;
}

Result<void> check_colors(const Config& config) {
  for (std::size_t i = 0; i < config.tenants.size(); ++i) {
    for (std::size_t before = 0; before < i; ++before) {
      const std::uint64_t both = config.tenants[i].colors & config.tenants[before].colors;
      if (both == 0) continue;
      return invalid_input("{}: tenant '{}': the colours {:#x} also belong to tenant '{}'",
                           config.tenants[i].colors_place, config.tenants[i].name, both,
                           config.tenants[before].name);
    }
  }
  return {};
}

// Given ones first; then one from 1 on for each of the others, where the card has several.
Result<std::vector<std::optional<std::uint32_t>>> all_domains(const Config& config,
                                                              std::uint32_t count) {
  std::vector<std::optional<std::uint32_t>> domains;
  std::set<std::uint32_t> taken;
  for (const TenantConfig& tenant : config.tenants) {
    domains.push_back(tenant.sync_domain);
    if (!tenant.sync_domain) continue;
    if (*tenant.sync_domain >= count) {
      return invalid_input("{}: tenant '{}': the card has the domains 0 to {}", tenant.domain_place,
                           tenant.name, count - 1);
    }
    if (!taken.insert(*tenant.sync_domain).second && *tenant.sync_domain != 0) {
      return invalid_input("{}: tenant '{}': the domain {} also belongs to another tenant",
                           tenant.domain_place, tenant.name, *tenant.sync_domain);
    }
  }
  if (count < 2) return domains;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    if (domains[i]) continue;
    std::uint32_t domain = 1;
    while (taken.contains(domain)) ++domain;
    if (domain >= count) {
      return invalid_input("{}: tenant '{}': no domain is free; the card has {}",
                           config.tenants[i].domain_place, config.tenants[i].name, count);
    }
    taken.insert(domain);
    domains[i] = domain;
  }
  return domains;
}

}  // namespace

Result<std::vector<Terms>> terms_of(const Config& config, const CardNumbers& card) {
  DEMARC_CHECK(check_colors(config));
  DEMARC_TRY(const auto tpcs, all_tpcs(config, card.topology));
  DEMARC_TRY(const auto domains, all_domains(config, card.sync_domains));
  std::vector<Terms> all;
  for (std::size_t i = 0; i < config.tenants.size(); ++i) {
    const TenantConfig& tenant = config.tenants[i];
    const auto share = card.share_bytes(tenant.colors);
    if (!share) {
      return invalid_input("{}: tenant '{}': {}", tenant.colors_place, tenant.name,
                           share.error().message);
    }
    const std::uint64_t bytes = tenant.bytes.value_or(*share);
    if (bytes > *share) {
      return invalid_input("{}: tenant '{}': {} bytes were asked for, but its colours hold {}",
                           tenant.bytes_place, tenant.name, bytes, *share);
    }
    all.push_back({tenant.name, tpcs[i], tenant.colors, domains[i], *share, bytes});
  }
  return all;
}

}  // namespace demarc::serve
