// Packs what names an allocation into the 64 bytes of a CUDA handle, and reads them back.
#include "calls/ipc_handle.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace demarc::cuda {
namespace {

constexpr std::size_t key_digits = 32;

struct Layout {
  std::array<char, 16> mark;
  std::array<char, key_digits> key;
  std::uint64_t place;
  std::uint64_t bytes;
};
static_assert(sizeof(Layout) == sizeof(CuIpcHandle));

// The number is that of the layout.
constexpr std::array<char, 16> handle_mark{'d', 'e', 'm', 'a', 'r', 'c', ' ', 'm',
                                           'e', 'm', 'o', 'r', 'y', ' ', '1', '\0'};

bool is_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

template <class Text>
bool is_key(const Text& text) {
  return text.size() == key_digits && std::all_of(text.begin(), text.end(), is_digit);
}

}  // namespace

Result<CuIpcHandle> packed(const IpcHandle& handle) {
  if (!is_key(handle.key)) {
    return invalid_input("the key of lent memory has {} hexadecimal digits; '{}' came", key_digits,
                         handle.key);
  }
  Layout layout{handle_mark, {}, handle.place, handle.bytes};
  std::copy(handle.key.begin(), handle.key.end(), layout.key.begin());
  CuIpcHandle bytes;
  std::memcpy(&bytes, &layout, sizeof bytes);
  return bytes;
}

std::optional<IpcHandle> unpacked(const CuIpcHandle& bytes) {
  Layout layout;
  std::memcpy(&layout, &bytes, sizeof layout);
  if (layout.mark != handle_mark || !is_key(layout.key) || layout.bytes == 0) return std::nullopt;
  return IpcHandle{std::string(layout.key.begin(), layout.key.end()), layout.place, layout.bytes};
}

}  // namespace demarc::cuda
