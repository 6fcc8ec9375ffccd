// Subscribes to the driver's callbacks.
#include "demarc/cuda/callback_table.hpp"

namespace demarc::cuda {
namespace {

constexpr CuUuid callback_table_id = {{0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e, 0x90, 0xdd,
                                       0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b}};

constexpr std::size_t subscribe_entry = 3;
constexpr std::size_t enable_entry = 6;
constexpr std::size_t most_table_bytes = 4096;

using SubscribeFunction = CuResult (*)(std::uint32_t* handle, CallbackTable::Callback callback,
                                       void* user);

}  // namespace

Result<void> CallbackTable::subscribe(GetExportTable get_table, const std::string& version,
                                      Callback callback, void* user) {
  const void* table = nullptr;
  if (get_table == nullptr || get_table(&table, &callback_table_id) != cu_success ||
      table == nullptr) {
    return missing_capability(
        "driver {} does not offer the launch callback that masks need; use --mode green", version);
  }
  // Entry 0 of an export table is its size in bytes (0x60 on CUDA 13.0).
  const auto bytes = *static_cast<const std::size_t*>(table);
  if (bytes < (enable_entry + 1) * sizeof(void*) || bytes > most_table_bytes) {
    return missing_capability(
        "driver {}: the callback table has {} bytes, which is not a layout known to Demarc; use "
        "--mode green",
        version, bytes);
  }
  const auto* entries = static_cast<void* const*>(table);
  const auto subscribe = reinterpret_cast<SubscribeFunction>(entries[subscribe_entry]);
  enable_ = reinterpret_cast<EnableFunction>(entries[enable_entry]);
  if (const CuResult code = subscribe(&handle_, callback, user); code != cu_success) {
    return missing_capability(
        "driver {} refuses the launch callback (error {}); another tool, such as a profiler, may "
        "hold it",
        version, code);
  }
  return {};
}

Result<void> CallbackTable::enable(int domain, std::span<const int> ids) const {
  for (const int id : ids) {
    if (const CuResult code = enable_(1, handle_, domain, id); code != cu_success) {
      return missing_capability("the driver refuses callback {} of domain {} (error {})", id,
                                domain, code);
    }
  }
  return {};
}

Result<void> CallbackTable::enable_all(int domain) const {
  int id = 1;
  while (enable_(1, handle_, domain, id) == cu_success) ++id;
  if (id == 1) return missing_capability("the driver refuses all callbacks of domain {}", domain);
  return {};
}

}  // namespace demarc::cuda
