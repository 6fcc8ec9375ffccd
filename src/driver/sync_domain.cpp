// Puts streams into memory synchronisation domains and checks that the driver keeps them there.
#include "demarc/driver/sync_domain.hpp"

namespace demarc::cuda {

std::uint32_t sync_domain_count(const Gpu& gpu) {
  if (gpu.api().cuStreamSetAttribute == nullptr || gpu.api().cuStreamGetAttribute == nullptr) {
    return 1;
  }
  const auto count = gpu.attribute(attribute_sync_domains);
  return count && *count > 1 ? static_cast<std::uint32_t>(*count) : 1;
}

Result<void> set_sync_domain(const Gpu& gpu, CuStream stream, std::uint32_t domain) {
  if (const std::uint32_t count = sync_domain_count(gpu); domain >= count) {
    return missing_capability("{}: there is no memory synchronisation domain {}; it has {}",
                              gpu.name(), domain, count);
  }
  CuLaunchAttributeValue wanted{};
  wanted.domains[0] = wanted.domains[1] = static_cast<unsigned char>(domain);
  DEMARC_CHECK(
      gpu.check(gpu.api().cuStreamSetAttribute(stream, CuLaunchAttribute::sync_domain_map, &wanted),
                "cannot set the memory synchronisation domain of a stream"));
  CuLaunchAttributeValue kept{};
  DEMARC_CHECK(
      gpu.check(gpu.api().cuStreamGetAttribute(stream, CuLaunchAttribute::sync_domain_map, &kept),
                "cannot read the memory synchronisation domain of a stream"));
  if (kept.domains[0] == domain && kept.domains[1] == domain) return {};
  return check_failed("a stream was given the memory synchronisation domain {}, but has {} and {}",
                      domain, kept.domains[0], kept.domains[1]);
}

}  // namespace demarc::cuda
