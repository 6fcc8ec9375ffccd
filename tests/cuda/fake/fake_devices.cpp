// How many cards the stand-in has, and which of them a process sees: DEMARC_FAKE_DEVICES of them,
// one without, all of the same state; CUDA_VISIBLE_DEVICES may name one of them by UUID.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "fake_state.hpp"

namespace demarc::fake {
namespace {

std::string uuid_text(int device) {
  char byte[3];
  std::snprintf(byte, sizeof byte, "%02x", card_uuid(device).bytes[0] & 0xff);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}

}  // namespace

std::vector<int> visible_devices() {
  const char* count = std::getenv("DEMARC_FAKE_DEVICES");
  const char* chosen = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<int> devices;
  for (int i = 0; i < (count == nullptr ? 1 : std::atoi(count)); ++i) {
    if (chosen == nullptr || uuid_text(i) == chosen) devices.push_back(i);
  }
  return devices;
}

}  // namespace demarc::fake
