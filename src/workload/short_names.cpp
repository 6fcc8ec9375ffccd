// The table of short names of bundled workloads.
#include "demarc/workload/short_names.hpp"

#include <algorithm>
#include <cctype>
#include <map>

namespace demarc::workload {

namespace {

const std::map<std::string, std::string, std::less<>>& short_names() {
  static const std::map<std::string, std::string, std::less<>> known{
      {"mm", "matmul_tiled"},
      {"va", "vecadd"},
      {"sp", "scalarprod"},
      {"sn", "bitonic"},
      {"chase", "stress_chase"},
      {"atomics", "stress_atomics"},
      {"compute", "stress_arithmetic"},
      {"dram_read", "stress_dram_read"},
      {"dram_write", "stress_dram_write"},
      {"host_read", "stress_host_read"},
      {"host_write", "stress_host_write"},
      {"host_poll", "stress_host_poll"},
      {"l2_read", "stress_l2_read"},
      {"l2_write", "stress_l2_write"}};
  return known;
}

}  // namespace

std::string full_name(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto found = short_names().find(lower);
  return found == short_names().end() ? lower : found->second;
}

std::string short_name(std::string_view full) {
  for (const auto& [name, meant] : short_names()) {
    if (meant == full) return name;
  }
  return "";
}

}  // namespace demarc::workload
