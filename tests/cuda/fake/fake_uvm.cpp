// What the kernel sees of the driver: a device file that is asked for each context.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "fake_state.hpp"

namespace demarc::fake {

CuResult register_context(const cuda::CuUuid& card) {
  constexpr unsigned long register_card = 25;
  constexpr CuResult error_not_permitted = 800;
  std::string folder = (std::filesystem::temp_directory_path() / "demarc-fake-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return error_not_permitted;
  const std::string path = folder + "/nvidia-uvm";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  // An ordinary file refuses every such call; what counts is who else does.
  const bool kept_off =
      ::ioctl(file, register_card, &card) != 0 && (errno == EPERM || errno == ENOSYS);
  ::close(file);
  std::filesystem::remove_all(folder);
  return kept_off ? error_not_permitted : cuda::cu_success;
}

cuda::CuUuid card_uuid(int device) {
  const char* chosen = std::getenv("DEMARC_FAKE_CARD");
  cuda::CuUuid uuid{};
  const long first =
      chosen == nullptr ? FakeGpu::get().config.uuid : std::strtol(chosen, nullptr, 16);
  const auto byte = static_cast<char>(first - device);
  std::fill_n(uuid.bytes, sizeof uuid.bytes, byte);
  return uuid;
}

}  // namespace demarc::fake
