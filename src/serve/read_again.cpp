// What a running server can take over of a configuration that it reads again.
#include "demarc/base/text.hpp"
#include "demarc/serve/config.hpp"

namespace demarc::serve {
Result<Config> read_again(const Config& now, Config next) {
  const std::pair<const char*, bool> keys[] = {{"card", now.card != next.card},
                                               {"description", now.description != next.description},
                                               {"memory", now.memory != next.memory},
                                               {"reserve", now.reserve != next.reserve},
                                               {"socket", now.socket != next.socket},
                                               {"group", now.group != next.group},
                                               {"metrics", now.metrics != next.metrics},
                                               {"mps", now.mps != next.mps}};
  std::vector<std::string> changed;
  for (const auto& [key, differs] : keys) {
    if (differs) changed.emplace_back(key);
  }
  if (!changed.empty()) {
    return invalid_input(
        "{}: {}: this cannot change while the server runs: start the server again, or write what "
        "was there",
        next.source, joined(changed, ", "));
  }
  for (TenantConfig& tenant : next.tenants) {
    const auto colors = tenant.colors.counted_in(now.colors);
    if (!colors) {
      return invalid_input(
          "{}: tenant '{}': colours: the memory was divided into {} colours when the server "
          "started, "
          "of which this is not a whole number: start the server again",
          tenant.colors_place, tenant.name, now.colors);
    }
    tenant.colors = *colors;
  }
  next.colors = now.colors;
  return next;
}

bool same_wishes(const TenantConfig& a, const TenantConfig& b) {
  return a.choice.tpcs == b.choice.tpcs && a.choice.gpcs == b.choice.gpcs &&
         a.choice.sms == b.choice.sms && a.choice.sms_percent == b.choice.sms_percent &&
         a.tpc_part == b.tpc_part && a.split == b.split && a.colors == b.colors &&
         a.bytes == b.bytes && a.windows == b.windows && a.sync_domain == b.sync_domain &&
         a.no_domain == b.no_domain;
}

}  // namespace demarc::serve
