// Subscribes to the driver's callbacks.
#include "demarc/driver/callback_table.hpp"

#include <dlfcn.h>

#include <vector>

#include "demarc/driver/function_calls.hpp"
#include "demarc/driver/functions.hpp"

namespace demarc::cuda {
namespace {

constexpr std::size_t subscribe_entry = 3;
constexpr std::size_t enable_entry = 6;
constexpr std::size_t max_table_bytes = 4096;

Result<void> refused_function(int id, std::string_view name) {
  return missing_capability(
      "the driver refuses callback {} of domain {}, that of {}: a program could call this function "
      "without being watched",
      id, function_domain, name);
}

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
  if (bytes < (enable_entry + 1) * sizeof(void*) || bytes > max_table_bytes) {
    return missing_capability(
        "driver {}: the callback table has {} bytes, which is not a layout known to Demarc; use "
        "--mode green",
        version, bytes);
  }
  const auto* entries = static_cast<void* const*>(table);
  const auto subscribe = reinterpret_cast<SubscribeFunction>(entries[subscribe_entry]);
  enable_ = reinterpret_cast<EnableFunction>(entries[enable_entry]);
  get_table_ = get_table;
  if (const CuResult code = subscribe(&handle_, callback, user); code != cu_success) {
    return missing_capability(
        "driver {} refuses the launch callback (error {}): it has one subscriber in a process, and "
        "another tool is that, such as a profiler (nsys, ncu, CUPTI, torch.profiler); run the "
        "program "
        "without it",
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

Result<void> CallbackTable::enable_existing(std::span<const int> functions) const {
  for (const int id : functions) {
    const std::string_view name = function_names()[static_cast<std::size_t>(id)];
    if (enable_(1, handle_, function_domain, id) != cu_success && is_exported(name)) {
      return refused_function(id, name);
    }
  }
  return {};
}

// Drivers before CUDA 13.0 have fewer functions than are known, later ones have more.
Result<void> CallbackTable::enable_functions() const {
  constexpr int max_functions = 4096;
  const auto names = function_names();
  const int known = static_cast<int>(names.size());
  int last = 0;
  std::vector<int> refused;
  for (int id = 1; id < known || (id == last + 1 && id < max_functions); ++id) {
    if (enable_(1, handle_, function_domain, id) == cu_success) {
      last = id;
    } else if (id < known) {
      refused.push_back(id);
    }
  }
  if (last == 0) {
    return missing_capability("the driver refuses all callbacks of domain {}", function_domain);
  }
  for (const int id : refused) {
    const std::string_view name = names[static_cast<std::size_t>(id)];
    if (id < last || is_exported(name)) return refused_function(id, name);
  }
  return {};
}

bool CallbackTable::is_exported(std::string_view function) const {
  Dl_info driver{};
  if (::dladdr(reinterpret_cast<void*>(get_table_), &driver) == 0) return false;
  void* library = ::dlopen(driver.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  const bool found = ::dlsym(library, std::string(function).c_str()) != nullptr;
  ::dlclose(library);
  return found;
}

}  // namespace demarc::cuda
