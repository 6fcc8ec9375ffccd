#include <algorithm>
#include <cstring>
#include <filesystem>

#include "demarc/base/files.hpp"
#include "demarc/base/random.hpp"
#include "demarc/gpu/launch.hpp"
#include "launch_generators.hpp"

namespace demarc::gpu {
namespace {

// Calls value(i) -> Scalar for every whole element; a partial one at the end keeps its zeros.
template <class Value>
void write_elements(const Buffer& buffer, std::span<std::byte> out, Value value) {
  const std::size_t size = size_of(buffer.element);
  for (std::size_t i = 0; i < out.size() / size; ++i) {
    const Scalar scalar = value(i);
    std::memcpy(out.data() + i * size, &scalar.bits, size);
  }
}

void fill_random(const Launch& launch, std::size_t index, std::span<std::byte> out) {
  const Buffer& buffer = launch.buffers[index];
  const Fill& fill = buffer.fill;
  // Buffers of one launch get unrelated streams.
  Random random(launch.seed * 0x9e3779b97f4a7c15ULL + index);
  if (is_floating(buffer.element)) {
    const double low = fill.low;
    const double width = fill.low == fill.high ? 1.0 : fill.high - fill.low;
    write_elements(buffer, out, [&](std::size_t) {
      return make_scalar(buffer.element, low + width * random.uniform());
    });
    return;
  }
  if (fill.low == fill.high) {
    write_elements(buffer, out, [&](std::size_t) { return Scalar{buffer.element, random()}; });
    return;
  }
  const auto low = static_cast<std::int64_t>(fill.low);
  const auto values = static_cast<std::uint64_t>(static_cast<std::int64_t>(fill.high) - low) + 1;
  write_elements(buffer, out, [&](std::size_t) {
    return make_scalar(buffer.element, low + static_cast<std::int64_t>(random.below(values)));
  });
}

Result<void> fill_from_file(const Buffer& buffer, std::span<std::byte> out) {
  // No more than shows that it is too much: the file may be a device without an end.
  DEMARC_TRY(const std::string content, read_file(buffer.fill.file, out.size() + 1));
  if (content.size() > out.size()) {
    std::error_code endless;
    const auto size = std::filesystem::file_size(buffer.fill.file, endless);
    return invalid_input(
        "buffer '{}': {} holds {} bytes, more than the buffer's {}", buffer.name, buffer.fill.file,
        endless ? fmt::format("at least {}", content.size()) : fmt::to_string(size), out.size());
  }
  std::memcpy(out.data(), content.data(), content.size());
  return {};
}

}  // namespace

Result<void> fill_buffer(const Launch& launch, std::size_t index,
                         std::span<const std::uint64_t> addresses, std::span<std::byte> out) {
  const Buffer& buffer = launch.buffers[index];
  const Fill& fill = buffer.fill;
  if (out.size() != buffer.bytes) {
    return invalid_input("buffer '{}': {} bytes given for {}", buffer.name, out.size(),
                         buffer.bytes);
  }
  std::fill(out.begin(), out.end(), std::byte{0});
  switch (fill.kind) {
    case FillKind::zero:
      break;
    case FillKind::iota:
      write_elements(buffer, out, [&](std::size_t i) {
        return make_scalar(buffer.element, static_cast<std::int64_t>(i));
      });
      break;
    case FillKind::random:
      fill_random(launch, index, out);
      break;
    case FillKind::file:
      return fill_from_file(buffer, out);
    case FillKind::values:
      if (fill.values.empty()) return invalid_input("buffer '{}': 'values' is empty", buffer.name);
      write_elements(buffer, out, [&](std::size_t i) {
        return make_scalar(buffer.element, fill.values[i % fill.values.size()]);
      });
      break;
    case FillKind::pointers:
      write_elements(buffer, out, [&](std::size_t i) {
        return Scalar{ScalarType::u64, addresses[fill.target] + i * fill.stride};
      });
      break;
    case FillKind::generated:
      return generate(launch, buffer, out);
  }
  return {};
}

}  // namespace demarc::gpu
