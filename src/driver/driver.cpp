// Loads libcuda, fills the table of its functions, and puts its errors into words.
#include "demarc/driver/driver.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "demarc/driver/driver_errors.hpp"
#include "demarc/driver/driver_version.hpp"

namespace demarc::cuda {
namespace {

constexpr const char* usual_places[] = {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
                                        "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
                                        "/usr/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};

Result<void*> open_library(const std::string& path, std::string& origin) {
  std::vector<std::string> candidates;
  const char* environment = std::getenv("DEMARC_LIBCUDA");
  if (!path.empty()) {
    candidates = {path};
  } else if (environment != nullptr && *environment != '\0') {
    candidates = {environment};
  } else {
    candidates.assign(std::begin(usual_places), std::end(usual_places));
  }
  std::string reason;
  for (const std::string& candidate : candidates) {
    if (void* library = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      origin = candidate;
      return library;
    }
    const char* text = ::dlerror();
    if (reason.empty() && text != nullptr) reason = text;
  }
  return missing_capability("no NVIDIA driver on this machine: {}", reason);
}

Result<DriverApi> fill_table(void* library, const std::string& origin) {
  DriverApi api;
  std::string missing;
  // POSIX lets a function pointer be read from what dlsym returns.
#define DEMARC_CUDA_LOAD(required, symbol, parameters)                            \
  api.symbol = reinterpret_cast<decltype(api.symbol)>(::dlsym(library, #symbol)); \
  if ((required) != 0 && api.symbol == nullptr && missing.empty()) missing = #symbol;
  DEMARC_CUDA_FUNCTIONS(DEMARC_CUDA_LOAD)
#undef DEMARC_CUDA_LOAD
  if (!missing.empty()) {
    return missing_capability("{}: the driver is too old: it has no {}", origin, missing);
  }
  return api;
}

Result<std::string> path_of(void* library, const std::string& name) {
  const link_map* map = nullptr;
  char* path = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) path = ::realpath(map->l_name, nullptr);
  if (path == nullptr) return missing_capability("{}: its file is not found", name);
  std::string found = path;
  std::free(path);
  return found;
}

}  // namespace

std::string version_in(std::istream& text) {
  std::string word;
  while (text >> word) {
    const bool numeric = word.find_first_not_of("0123456789.") == std::string::npos;
    if (numeric && word.find('.') != std::string::npos) return word;
  }
  return {};
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Result<std::shared_ptr<const Driver>> Driver::load(const std::string& path) {
  std::string origin;
  DEMARC_TRY(void* library, open_library(path, origin));
  DEMARC_TRY(const DriverApi api, fill_table(library, origin));
  return from_table(api, origin);
}

Result<int> Driver::peek_version() {
  std::string origin;
  DEMARC_TRY(void* library, open_library({}, origin));
  const auto get_version =
      reinterpret_cast<CuResult (*)(int*)>(::dlsym(library, "cuDriverGetVersion"));
  int version = 0;
  if (get_version == nullptr || get_version(&version) != cu_success) {
    return missing_capability("{}: the driver does not say its version", origin);
  }
  return version;
}

Result<std::vector<std::string>> Driver::files() {
  std::string origin;
  DEMARC_TRY(void* library, open_library({}, origin));
  DEMARC_TRY(std::string path, path_of(library, origin));
  std::vector<std::string> files{std::move(path)};
  constexpr const char* management = "libnvidia-ml.so.1";
  if (void* other = ::dlopen(management, RTLD_LAZY | RTLD_LOCAL)) {
    DEMARC_TRY(std::string beside, path_of(other, management));
    files.push_back(std::move(beside));
  }
  return files;
}

Result<std::shared_ptr<const Driver>> Driver::from_table(const DriverApi& api, std::string origin,
                                                         std::chrono::milliseconds patience) {
  std::shared_ptr<Driver> driver(new Driver);
  driver->api_ = api;
  driver->origin_ = std::move(origin);
  constexpr std::chrono::milliseconds pause(100);
  CuResult code = api.cuInit(0);
  for (; code == cu_error_mps_server_not_ready && patience >= pause; patience -= pause) {
    std::this_thread::sleep_for(pause);
    code = api.cuInit(0);
  }
  if (code != cu_success) {
    const char* name = nullptr;
    api.cuGetErrorName(code, &name);
    const std::string text = name == nullptr ? fmt::format("error {}", code) : name;
    // "Unknown" is also what a machine without a device file gets.
    if (kind_of(code) == ErrorKind::check_failed && code != cu_error_unknown) {
      return check_failed("{}: the GPU failed (cuInit: {})", driver->origin_, text);
    }
    return missing_capability("{}: the driver finds no usable GPU (cuInit: {})", driver->origin_,
                              text);
  }
  DEMARC_CHECK(driver->check(api.cuDriverGetVersion(&driver->cuda_version_), "cuDriverGetVersion"));
  std::ifstream of_kernel("/proc/driver/nvidia/version");
  driver->driver_version_ = version_in(of_kernel);
  if (driver->driver_version_.empty()) {
    driver->driver_version_ = "cuda-" + cuda_version_text(driver->cuda_version_);
  }
  return std::shared_ptr<const Driver>(std::move(driver));
}

Result<std::uint32_t> Driver::device_count() const {
  DEMARC_TRY(const int count, ask("cannot count the GPUs", api_.cuDeviceGetCount));
  return static_cast<std::uint32_t>(count);
}

Result<void> Driver::check(CuResult code, std::string_view what) const {
  if (code == cu_success) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  api_.cuGetErrorName(code, &name);
  api_.cuGetErrorString(code, &text);
  return tl::unexpected(
      Error{kind_of(code),
            fmt::format("{}: {} ({})", what,
                        name == nullptr ? fmt::format("CUDA error {}", code) : std::string(name),
                        text == nullptr ? "no description" : text)});
}

}  // namespace demarc::cuda
