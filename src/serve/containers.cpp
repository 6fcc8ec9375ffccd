// Makes the edits of a container, and their file for the Container Device Interface.
#include "demarc/serve/containers.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "demarc/base/json.hpp"
#include "demarc/exec/confine.hpp"
#include "demarc/lease/sockets.hpp"
#include "demarc/serve/config.hpp"
#include "demarc/serve/tenant_sockets.hpp"

namespace demarc::serve {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_name = 63;

bool letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

Result<std::string> absolute(const std::string& path, std::string_view what, bool good) {
  if (!good) return invalid_input("'{}': there is no {} of this name", path, what);
  return fs::absolute(path).lexically_normal().string();
}

Json json_of(const ContainerEdits& edits) {
  Json environment = Json::array();
  for (const auto& [name, value] : edits.environment)
    environment.push_back(fmt::format("{}={}", name, value));
  Json mounts = Json::array();
  for (const ContainerMount& mount : edits.mounts) {
    Json options = Json::array();
    if (mount.read_only) options.push_back("ro");
    for (const char* option : {"nosuid", "nodev", "bind"}) options.push_back(option);
    mounts.push_back(Json{{"hostPath", mount.host},
                          {"containerPath", mount.container},
                          {"options", std::move(options)}});
  }
  return Json{{"env", std::move(environment)}, {"mounts", std::move(mounts)}};
}

}  // namespace

Result<ContainerPlaces> find_places(const ContainerPlaces& wanted) {
  std::error_code ignored;
  ContainerPlaces places;
  DEMARC_TRY(places.socket,
             absolute(wanted.socket, "socket", fs::is_socket(wanted.socket, ignored)));
  std::string program = wanted.program;
  if (program.empty()) {
    program = fs::read_symlink("/proc/self/exe", ignored).parent_path() / "demarc";
  }
  const bool runs = fs::is_regular_file(program, ignored) && ::access(program.c_str(), X_OK) == 0;
  DEMARC_TRY(places.program, absolute(program, "program", runs));
  DEMARC_TRY(const std::string preload, cuda::find_preload(wanted.preload));
  DEMARC_TRY(places.preload, absolute(preload, "library", fs::is_regular_file(preload, ignored)));
  DEMARC_TRY(places.compilers, cuda::find_compilers(places.preload));
  DEMARC_TRY(places.blas, cuda::find_blas(places.preload));
  return places;
}

ContainerEdits container_edits(const ContainerPlaces& places, const std::string& tenant) {
  ContainerEdits edits;
  // Not the server's own: by that one a container could have, and end, every tenant.
  const std::string socket = tenant_socket(places.socket, tenant);
  edits.environment = {{cuda::tenant_variable, tenant}, {lease::socket_variable, socket}};
  edits.mounts = {{places.program, container_program},
                  {places.preload, container_preload},
                  {socket, socket},
                  {places.compilers, container_compilers},
                  {places.blas, container_blas}};
  // Clients of MPS write into its folder.
  std::error_code ignored;
  const std::string mps = mps_folder(places.socket);
  if (fs::is_directory(mps, ignored)) edits.mounts.push_back({mps, mps, false});
  return edits;
}

Result<void> check_device_name(std::string_view tenant) {
  const bool good = !tenant.empty() && tenant.size() <= longest_name &&
                    letter_or_digit(tenant.front()) && letter_or_digit(tenant.back()) &&
                    std::all_of(tenant.begin(), tenant.end(), [](char c) {
                      return letter_or_digit(c) || c == '-' || c == '_' || c == '.';
                    });
  if (good) return {};
  return invalid_input(
      "tenant '{}': the name of a device has 1 to {} letters, digits, '-', '_' and '.', and begins "
      "and ends with a letter or a digit",
      tenant, longest_name);
}

Result<std::string> status_to_cdi(const lease::ServerStatus& status,
                                  const ContainerPlaces& places) {
  Json devices = Json::array();
  for (const auto& tenant : status.tenants) {
    DEMARC_CHECK(check_device_name(tenant.name));
    devices.push_back(Json{{"name", tenant.name},
                           {"containerEdits", json_of(container_edits(places, tenant.name))}});
  }
  if (devices.empty()) return invalid_input("the server has no tenants: there is no device");
  return json_text(
             Json{{"cdiVersion", "0.6.0"}, {"kind", tenant_kind}, {"devices", std::move(devices)}},
             2) +
         "\n";
}

}  // namespace demarc::serve
