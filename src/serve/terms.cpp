// Works out what a configuration means on a card: TPCs, colours, bytes and domains of each tenant.
#include <algorithm>
#include <set>

#include "demarc/partition/partition.hpp"
#include "demarc/serve/config.hpp"

namespace demarc::serve {
namespace {

using gpu::TpcSet;

bool by_number(const TenantConfig& tenant) {
  return !tenant.tpc_part && tenant.choice.tpcs.empty() && tenant.choice.gpcs.empty();
}

Result<TpcSet> tpcs_of(const TenantConfig& tenant, const gpu::Topology& topology,
                       const TpcSet& taken) {
  if (tenant.tpc_part) {
    const auto parts = partition::split(topology, tenant.tpc_part->of, tenant.split);
    if (parts) return (*parts)[tenant.tpc_part->index].tpcs;
    return failure(parts.error().kind, "{}: {}",
                   fmt::make_format_args(tenant.split_place, parts.error().message));
  }
  auto tpcs = partition::choose_tpcs(topology, tenant.choice, taken);
  if (tpcs) return tpcs;
  std::string_view why = tpcs.error().message;
  if (by_number(tenant)) {
    return invalid_input("{}: tenant '{}': {}", tenant.choice_place, tenant.name, why);
  }
  if (why.starts_with("--")) why.remove_prefix(2);  // the key has the option's name
  return invalid_input("{}: {}", tenant.choice_place, why);
}

const Terms* kept_of(const std::vector<Terms>& kept, const TenantConfig& tenant) {
  const auto found = std::find_if(kept.begin(), kept.end(),
                                  [&](const Terms& terms) { return terms.name == tenant.name; });
  return found == kept.end() ? nullptr : &*found;
}

// Those that are kept first, then those that are named, then those by number, from what is left.
Result<std::vector<TpcSet>> all_tpcs(const Config& config, const gpu::Topology& topology,
                                     const std::vector<Terms>& kept) {
  std::vector<TpcSet> sets(config.tenants.size());
  TpcSet taken;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (const Terms* terms = kept_of(kept, config.tenants[i])) sets[i] = terms->tpcs;
    taken = taken | sets[i];
  }
  for (const bool number : {false, true}) {
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const TenantConfig& tenant = config.tenants[i];
      if (by_number(tenant) != number || kept_of(kept, tenant) != nullptr) continue;
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

// Kept and given ones first; then one from 1 on for each of the others, where the card has several.
Result<std::vector<std::optional<std::uint32_t>>> all_domains(const Config& config,
                                                              const CardNumbers& card,
                                                              const std::vector<Terms>& kept) {
  const std::uint32_t count = card.sync_domains;
  std::vector<std::optional<std::uint32_t>> domains;
  std::set<std::uint32_t> taken;
  for (std::uint32_t domain = 0; domain < std::min(count, 64U); ++domain) {
    if (((card.domains_beside >> domain) & 1U) != 0) taken.insert(domain);
  }
  for (const TenantConfig& tenant : config.tenants) {
    const Terms* terms = kept_of(kept, tenant);
    domains.push_back(terms != nullptr ? terms->sync_domain : tenant.sync_domain);
    if (!domains.back()) continue;
    if (*domains.back() >= count) {
      return invalid_input("{}: tenant '{}': the card has {}", tenant.domain_place, tenant.name,
                           count < 2 ? "one memory synchronisation domain for all programs"
                                     : fmt::format("the domains 1 to {} for tenants", count - 1));
    }
    taken.insert(*domains.back());
  }
  if (count < 2) return domains;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const TenantConfig& tenant = config.tenants[i];
    if (domains[i] || tenant.no_domain || kept_of(kept, tenant) != nullptr) continue;
    std::uint32_t domain = 1;
    while (taken.contains(domain)) ++domain;
    if (domain >= count) {
      return missing_capability(
          "{}: tenant '{}': no domain is free: the card has {} that a tenant can have, and "
          "programs "
          "beside the server may have some of them: divide it among fewer tenants (--part K/N: "
          "give a smaller N), or give sync_domain = \"none\"",
          tenant.domain_place, tenant.name, count - 1);
    }
    taken.insert(domain);
    domains[i] = domain;
  }
  return domains;
}

// Those that are kept and given first; what is left is divided evenly among the others.
Result<std::vector<std::uint64_t>> all_windows(const Config& config, const CardNumbers& card,
                                               const std::vector<Terms>& kept) {
  std::vector<std::uint64_t> windows(config.tenants.size());
  std::uint64_t left = card.window_bytes;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const Terms* terms = kept_of(kept, config.tenants[i]);
    if (terms != nullptr) windows[i] = terms->window_bytes;
    left -= windows[i];
  }
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const TenantConfig& tenant = config.tenants[i];
    if (kept_of(kept, tenant) != nullptr) continue;
    if (!tenant.windows) {
      others.push_back(i);
    } else if (*tenant.windows > 0 && card.window_bytes == 0) {
      return invalid_input("{}: tenant '{}': windows must be left out on this card: {}",
                           tenant.windows_place, tenant.name, card.no_windows);
    } else if (*tenant.windows > left) {
      return invalid_input(
          "{}: tenant '{}': {} bytes of windows were asked for, but the kernel module has mappings "
          "for {} and {} are left",
          tenant.windows_place, tenant.name, *tenant.windows, card.window_bytes, left);
    } else {
      windows[i] = *tenant.windows;
      left -= windows[i];
    }
  }
  for (const std::size_t other : others) {
    windows[other] = left / others.size() / lease::extent_step * lease::extent_step;
  }
  return windows;
}

}  // namespace

Result<std::vector<Terms>> terms_of(const Config& config, const CardNumbers& card,
                                    const std::vector<Terms>& kept) {
  DEMARC_CHECK(check_without_card(config));
  DEMARC_TRY(const auto tpcs, all_tpcs(config, card.topology, kept));
  DEMARC_TRY(const auto domains, all_domains(config, card, kept));
  DEMARC_TRY(const auto windows, all_windows(config, card, kept));
  std::vector<Terms> all;
  for (std::size_t i = 0; i < config.tenants.size(); ++i) {
    const TenantConfig& tenant = config.tenants[i];
    if (const Terms* terms = kept_of(kept, tenant)) {
      all.push_back(*terms);
      continue;
    }
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
    all.push_back({tenant.name, tpcs[i], tenant.colors, domains[i], *share, bytes,
                   std::min(windows[i], bytes)});
  }
  return all;
}

}  // namespace demarc::serve
