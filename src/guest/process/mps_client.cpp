// Asks the driver whether contexts of this process go through MPS.
#include "demarc/guest/mps_client.hpp"

namespace demarc::cuda {

Result<void> check_mps_client(const DriverApi& api, CuDevice device, const std::string& folder) {
  int client = 0;
  if (api.cuDeviceGetAttribute(&client, attribute_mps_enabled, device) != cu_success) {
    return missing_capability(
        "the driver does not tell whether this process is a client of MPS, whose folder is {}: "
        "CUDA "
        "12.1 or later does",
        folder);
  }
  if (client == 1) return {};
  return missing_capability(
      "this process is not a client of the MPS whose folder is {}, so it would take turns with the "
      "other programs on the card: does the daemon run (nvidia-cuda-mps-control), and is its "
      "folder "
      "visible here, as in a container?",
      folder);
}

}  // namespace demarc::cuda
