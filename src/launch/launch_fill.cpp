// Fills the buffers and variables of a launch with their initial contents.
#include <algorithm>
#include <cstring>

#include "demarc/base/random.hpp"
#include "demarc/launch/content_file.hpp"
#include "demarc/launch/launch.hpp"
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

// Buffers and variables of one launch get unrelated streams.
void fill_random(const Launch& launch, const Buffer& buffer, std::size_t stream,
                 std::span<std::byte> out) {
  const Fill& fill = buffer.fill;
  Random random(launch.seed * 0x9e3779b97f4a7c15ULL + stream);
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
  DEMARC_TRY(const std::string content, read_content(buffer.fill.file, buffer.element, out.size()));
  std::memcpy(out.data(), content.data(), content.size());
  return {};
}

Result<void> fill_from_bytes(const Buffer& buffer, std::span<std::byte> out) {
  const std::vector<std::byte>& bytes = buffer.fill.bytes;
  if (bytes.size() != out.size()) {
    return invalid_input("{} bytes are given, {} were expected", bytes.size(), out.size());
  }
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return {};
}

Result<void> fill_kind(const Launch& launch, const Buffer& buffer, std::size_t stream,
                       std::span<const std::uint64_t> addresses, std::span<std::byte> out) {
  const Fill& fill = buffer.fill;
  switch (fill.kind) {
    case FillKind::zero:
      break;
    case FillKind::iota:
      write_elements(buffer, out, [&](std::size_t i) {
        return make_scalar(buffer.element, static_cast<std::int64_t>(i));
      });
      break;
    case FillKind::random:
      fill_random(launch, buffer, stream, out);
      break;
    case FillKind::file:
      return fill_from_file(buffer, out);
    case FillKind::values:
      if (fill.values.empty()) return invalid_input("'values' is empty");
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
    case FillKind::bytes:
      return fill_from_bytes(buffer, out);
  }
  return {};
}

Result<void> fill_content(const Launch& launch, const Buffer& buffer, std::size_t stream,
                          std::span<const std::uint64_t> addresses, std::span<std::byte> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  const auto filled = fill_kind(launch, buffer, stream, addresses, out);
  if (filled) return {};
  return invalid_input("{} '{}': {}", stream < launch.buffers.size() ? "buffer" : "variable",
                       buffer.name, filled.error().message);
}

}  // namespace

Result<void> fill_buffer(const Launch& launch, std::size_t index,
                         std::span<const std::uint64_t> addresses, std::span<std::byte> out) {
  const Buffer& buffer = launch.buffers[index];
  if (out.size() != buffer.bytes) {
    return invalid_input("buffer '{}': {} bytes given for {}", buffer.name, out.size(),
                         buffer.bytes);
  }
  return fill_content(launch, buffer, index, addresses, out);
}

Result<void> fill_variable(const Launch& launch, std::size_t index,
                           std::span<const std::uint64_t> addresses, std::span<std::byte> out) {
  Buffer variable = launch.variables[index];
  variable.bytes = out.size();
  return fill_content(launch, variable, launch.buffers.size() + index, addresses, out);
}

}  // namespace demarc::gpu
