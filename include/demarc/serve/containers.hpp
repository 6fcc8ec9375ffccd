// What a container of a tenant gets from the host: a file for the Container Device Interface (CDI),
// and the parts of it, for programs that start containers themselves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/process.hpp"
#include "demarc/base/result.hpp"
#include "demarc/lease/client.hpp"

namespace demarc::serve {

// The kind of device that a tenant is: --device demarc.dev/tenant=NAME.
inline constexpr const char* tenant_kind = "demarc.dev/tenant";
// Where a container finds these files.
inline constexpr const char* container_program = "/opt/demarc/bin/demarc";
inline constexpr const char* container_preload = "/opt/demarc/lib/libdemarc_preload.so";
inline constexpr const char* container_compilers = "/opt/demarc/lib/libdemarc_compilers.so";
inline constexpr const char* container_blas = "/opt/demarc/lib/libdemarc_blas.so";

// Files of the host.
struct ContainerPlaces {
  std::string socket;          // socket of the server
  std::string program;         // demarc
  std::string preload;         // libdemarc_preload.so
  std::string compilers = {};  // libdemarc_compilers.so, beside it
  std::string blas = {};       // libdemarc_blas.so, likewise
};
// The same places with absolute paths. Empty ones are looked for: demarc beside the running
// program, the library as cuda::find_preload() does. It is an error if one of them is missing or is
// something else.
[[nodiscard]] Result<ContainerPlaces> find_places(const ContainerPlaces& wanted);

struct ContainerMount {
  std::string host;
  std::string container;
  bool read_only = true;
  friend bool operator==(const ContainerMount&, const ContainerMount&) = default;
};
struct ContainerEdits {
  Environment environment;
  std::vector<ContainerMount> mounts;
};
// The tenant's own socket, and the folder of MPS if there is one, keep the paths of the host,
// because a lease names them so.
[[nodiscard]] ContainerEdits container_edits(const ContainerPlaces& places,
                                             const std::string& tenant);

// invalid_input for a name that CDI or Kubernetes would not take: 1 to 63 letters, digits, '-', '_'
// and '.', a letter or a digit first and last.
[[nodiscard]] Result<void> check_device_name(std::string_view tenant);

// CDI 0.6.0, one device per tenant; device nodes and libraries of the driver come with a file of
// its own. invalid_input for names as above and for a server without tenants.
[[nodiscard]] Result<std::string> status_to_cdi(const lease::ServerStatus& status,
                                                const ContainerPlaces& places);

}  // namespace demarc::serve
