// What a configuration says without a card: what cannot be, and who is to have what.
#include <fmt/ranges.h>
#include <sys/un.h>

#include <bit>

#include "columns.hpp"
#include "demarc/lease/messages.hpp"
#include "demarc/serve/config.hpp"

namespace demarc::serve {
namespace {

using gpu::TpcSet;

constexpr std::size_t max_socket_path = sizeof(sockaddr_un::sun_path) - 1;

// For two tenants in the order of the file's names: the second one is at fault.
struct Pair {
  const TenantConfig& before;
  const TenantConfig& tenant;
};

std::string both_have(const Pair& pair, const FilePlace& place, const std::string& what) {
  return fmt::format("{}: tenant '{}': {} also belong{} to tenant '{}'", place, pair.tenant.name,
                     what, what.starts_with("the memory") || what.starts_with("part") ? "s" : "",
                     pair.before.name);
}

// Numbers that both lists have; the card says later which numbers there are.
Result<TpcSet> in_both(const Pair& pair, const std::string& first, const std::string& second) {
  const auto numbers = [](const TenantConfig& tenant, const std::string& list) -> Result<TpcSet> {
    if (list.empty()) return TpcSet{};
    auto set = gpu::parse_tpc_set(list, TpcSet::capacity, "the list");
    if (set) return set;
    return invalid_input("{}: {}", tenant.choice_place, set.error().message);
  };
  DEMARC_TRY(const TpcSet a, numbers(pair.before, first));
  DEMARC_TRY(const TpcSet b, numbers(pair.tenant, second));
  return a & b;
}

Result<void> find_common_tpcs(const Pair& pair, std::vector<std::string>& wrong) {
  const partition::TpcChoice& a = pair.before.choice;
  const partition::TpcChoice& b = pair.tenant.choice;
  const FilePlace& place = pair.tenant.choice_place;
  DEMARC_TRY(const TpcSet tpcs, in_both(pair, a.tpcs, b.tpcs));
  if (!tpcs.empty()) wrong.push_back(both_have(pair, place, "the TPCs " + to_string(tpcs)));
  DEMARC_TRY(const TpcSet gpcs, in_both(pair, a.gpcs, b.gpcs));
  if (!gpcs.empty()) wrong.push_back(both_have(pair, place, "the GPCs " + to_string(gpcs)));
  const auto& first = pair.before.tpc_part;
  const auto& second = pair.tenant.tpc_part;
  if (!first || !second || pair.before.split != pair.tenant.split) return {};
  const bool same = first->of == second->of;
  // TPCs that are dealt out in turn are no run of them, so the card says whether half and quarter
  // overlap.
  if (!same && pair.tenant.split == partition::SplitStrategy::distributed) return {};
  if (overlap(*first, *second)) {
    const std::string what = fmt::format("{}part {}", same ? "" : "TPCs of ", to_string(*second));
    wrong.push_back(both_have(pair, place, what));
  }
  return {};
}

Result<void> find_common(const Pair& pair, std::vector<std::string>& wrong) {
  if (const auto both = pair.tenant.colors.common(pair.before.colors); !both.empty()) {
    wrong.push_back(both_have(pair, pair.tenant.colors_place, "the colours " + to_string(both)));
  }
  DEMARC_CHECK(find_common_tpcs(pair, wrong));
  const auto& domain = pair.tenant.sync_domain;
  if (domain && domain == pair.before.sync_domain) {
    wrong.push_back(both_have(pair, pair.tenant.domain_place,
                              fmt::format("the memory synchronisation domain {}", *domain)));
  }
  return {};
}

double percent_of(const TenantConfig& tenant) {
  return tenant.tpc_part ? 100.0 / tenant.tpc_part->of : tenant.choice.sms_percent;
}

// Nearly: the card's memory has more than its colours.
std::optional<std::uint64_t> max_bytes(const Config& config, const TenantConfig& tenant) {
  if (!config.memory) return std::nullopt;
  return *config.memory / config.colors * tenant.colors.size();
}

std::string wished_tpcs(const TenantConfig& tenant) {
  const partition::TpcChoice& choice = tenant.choice;
  if (tenant.tpc_part) {
    return fmt::format("part {}, {}", to_string(*tenant.tpc_part), to_string(tenant.split));
  }
  if (!choice.gpcs.empty()) return "GPCs " + choice.gpcs;
  if (choice.sms != 0) return fmt::format("{} SMs of the rest", choice.sms);
  if (choice.sms_percent != 0) {
    return fmt::format("{} % of the SMs", choice.sms_percent);
  }
  const auto set = gpu::parse_tpc_set(choice.tpcs, TpcSet::capacity, "tpcs");
  return fmt::format("{} ({})", choice.tpcs, set ? set->size() : 0);
}

std::string wished_bytes(const Config& config, const TenantConfig& tenant) {
  if (tenant.bytes) return fmt::format("{} MiB", *tenant.bytes >> 20U);
  const auto most = max_bytes(config, tenant);
  return most ? fmt::format("about {} MiB", *most >> 20U) : "all of its colours";
}

std::string wished_domain(const TenantConfig& tenant) {
  if (tenant.no_domain) return "none";
  return tenant.sync_domain ? std::to_string(*tenant.sync_domain) : "free";
}

}  // namespace

Result<void> check_without_card(const Config& config) {
  std::vector<std::string> wrong;
  if (config.memory && *config.memory < config.colors * lease::extent_step) {
    wrong.push_back(fmt::format("{}: memory: {} bytes are less than {} for each of {} colours",
                                config.source, *config.memory, lease::extent_step, config.colors));
  }
  if (config.socket.size() > max_socket_path) {
    wrong.push_back(fmt::format("{}: socket: the path has {} characters; at most {} are possible",
                                config.source, config.socket.size(), max_socket_path));
  }
  double percent = 0;
  for (std::size_t i = 0; i < config.tenants.size(); ++i) {
    const TenantConfig& tenant = config.tenants[i];
    for (std::size_t before = 0; before < i; ++before) {
      DEMARC_CHECK(find_common({config.tenants[before], tenant}, wrong));
    }
    const double own = percent_of(tenant);
    percent += own;
    constexpr double rounding = 1e-6;
    if (own > 0 && percent > 100 + rounding) {
      wrong.push_back(fmt::format(
          "{}: tenant '{}': the shares of the tenants up to this one are {:.4g} % of the SMs",
          tenant.choice_place, tenant.name, percent));
    }
    if (tenant.bytes && *tenant.bytes < lease::extent_step) {
      wrong.push_back(fmt::format("{}: tenant '{}': {} bytes were asked for, but the least is {}",
                                  tenant.bytes_place, tenant.name, *tenant.bytes,
                                  lease::extent_step));
    }
    const auto most = max_bytes(config, tenant);
    if (tenant.bytes && most && *tenant.bytes > *most) {
      wrong.push_back(
          fmt::format("{}: tenant '{}': {} bytes were asked for, but its colours hold {}",
                      tenant.bytes_place, tenant.name, *tenant.bytes, *most));
    }
  }
  if (wrong.empty()) return {};
  return invalid_input("{}", fmt::join(wrong, "\n"));
}

std::string config_to_text(const Config& config) {
  std::vector<std::vector<std::string>> lines{{"tenant", "TPCs", "colours", "bytes", "domain"}};
  for (const TenantConfig& tenant : config.tenants) {
    lines.push_back({tenant.name, wished_tpcs(tenant), to_string(tenant.colors),
                     wished_bytes(config, tenant), wished_domain(tenant)});
  }
  return fmt::format("{}: {} tenant{}\n", config.source, config.tenants.size(),
                     config.tenants.size() == 1 ? "" : "s") +
         in_columns(lines);
}

}  // namespace demarc::serve
