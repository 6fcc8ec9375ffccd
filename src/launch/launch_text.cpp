// Reads the command-line form of a launch.
#include "demarc/base/numbers.hpp"
#include "demarc/launch/launch.hpp"
#include "launch_scalar.hpp"

namespace demarc::gpu {
namespace {

// Splits at `separator`; an empty text gives nothing.
std::vector<std::string_view> split_launch_text(std::string_view text, char separator) {
  std::vector<std::string_view> items;
  while (!text.empty()) {
    const auto end = text.find(separator);
    items.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return items;
    text.remove_prefix(end + 1);
    if (text.empty()) items.emplace_back();
  }
  return items;
}

Result<void> parse_fill(std::string_view text, Buffer& buffer, const std::string& where) {
  if (text == "zero") {
    buffer.fill.kind = FillKind::zero;
  } else if (text == "iota") {
    buffer.fill.kind = FillKind::iota;
  } else if (text == "random") {
    buffer.fill.kind = FillKind::random;
  } else if (text.starts_with('@') && text.size() > 1) {
    buffer.fill.kind = FillKind::file;
    buffer.fill.file = text.substr(1);
  } else {
    return invalid_input("{}: '{}' is not a content; expected zero, iota, random or @file", where,
                         text);
  }
  return {};
}

Result<Buffer> parse_buffer(std::string_view text, const std::string& where) {
  const auto parts = split_launch_text(text, ':');
  if (parts.empty() || parts.size() > 3) {
    return invalid_input("{}: expected buf:BYTES[:zero|iota|random|@file[:ELEMENT]]", where);
  }
  Buffer buffer;
  DEMARC_TRY(buffer.bytes, parse_bytes(parts[0], where));
  if (parts.size() > 1) DEMARC_CHECK(parse_fill(parts[1], buffer, where));
  if (parts.size() > 2) {
    DEMARC_TRY(buffer.element, parse_scalar_type(parts[2], where));
  }
  // A launch typed by hand has no reference; whatever it wrote is of interest.
  buffer.output = true;
  return buffer;
}

Result<Argument> parse_launch_argument(std::string_view text, const std::string& where,
                                       std::vector<Buffer>& buffers) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) {
    return invalid_input("{}: expected TYPE:VALUE, as in i32:7, f32:1.5 or buf:65536:iota", where);
  }
  const std::string_view type = text.substr(0, colon);
  const std::string_view value = text.substr(colon + 1);
  if (type == "hex") {
    DEMARC_TRY(std::vector<std::byte> bytes, parse_hex(value, where));
    return Argument{ByteArgument{std::move(bytes)}};
  }
  if (type == "buf") {
    DEMARC_TRY(Buffer buffer, parse_buffer(value, where));
    buffer.name = fmt::format("arg{}", buffers.size());
    buffers.push_back(std::move(buffer));
    return Argument{BufferUse{buffers.size() - 1, 0}};
  }
  DEMARC_TRY(const ScalarType scalar_type, parse_scalar_type(type, where + " (or buf, hex)"));
  DEMARC_TRY(const Scalar scalar, parse_scalar(scalar_type, value, where));
  return Argument{scalar};
}

}  // namespace

Result<Dim3> parse_dim3(std::string_view text, std::string_view what) {
  const auto parts = split_launch_text(text, ',');
  if (parts.empty() || parts.size() > 3) {
    return invalid_input("{}: '{}': expected X, X,Y or X,Y,Z", what, text);
  }
  std::uint32_t values[3] = {1, 1, 1};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    DEMARC_TRY(const std::uint64_t value, parse_u64(parts[i], what));
    if (value == 0 || value > UINT32_MAX)
      return invalid_input("{}: '{}' is not within 1 .. 2^32-1", what, parts[i]);
    values[i] = static_cast<std::uint32_t>(value);
  }
  return Dim3{values[0], values[1], values[2]};
}

Result<Buffer> parse_variable(std::string_view text) {
  const std::string where = fmt::format("--variable {}", text);
  constexpr std::string_view hex = "hex:";
  const auto equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos)
    return invalid_input("{}: NAME=VALUE was expected, as in taps=@taps.npy:f32", where);
  Buffer variable;
  variable.name = text.substr(0, equals);
  const std::string_view content = text.substr(equals + 1);
  if (content.starts_with(hex)) {
    variable.fill.kind = FillKind::bytes;
    DEMARC_TRY(variable.fill.bytes, parse_hex(content.substr(hex.size()), where));
    return variable;
  }
  const auto parts = split_launch_text(content, ':');
  if (parts.empty() || parts.size() > 2) {
    return invalid_input("{}: expected TYPE:VALUE, hex:00ff or zero|iota|random|@file[:ELEMENT]",
                         where);
  }
  const auto type = parse_scalar_type(parts[0], where);
  if (type && parts.size() == 2) {
    variable.element = *type;
    variable.fill.kind = FillKind::bytes;
    DEMARC_TRY(const Scalar value, parse_scalar(*type, parts[1], where));
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value.bits);
    variable.fill.bytes.assign(bytes, bytes + size_of(*type));
    return variable;
  }
  DEMARC_CHECK(parse_fill(parts[0], variable, where));
  if (parts.size() == 2) {
    DEMARC_TRY(variable.element, parse_scalar_type(parts[1], where));
  }
  return variable;
}

Result<Launch> parse_launch(const LaunchText& text) {
  Launch launch;
  launch.ptx = text.ptx;
  launch.seed = text.seed;
  KernelLaunch kernel;
  kernel.kernel = text.kernel;
  kernel.dynamic_shared_bytes = text.dynamic_shared_bytes;
  DEMARC_TRY(kernel.grid, parse_dim3(text.grid, "--grid"));
  DEMARC_TRY(kernel.block, parse_dim3(text.block, "--block"));
  if (!text.cluster.empty()) {
    DEMARC_TRY(kernel.cluster, parse_dim3(text.cluster, "--cluster"));
  }
  const auto items = split_launch_text(text.arguments, ',');
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string where = fmt::format("--args, argument {} ('{}')", i + 1, items[i]);
    auto argument = parse_launch_argument(items[i], where, launch.buffers);
    if (!argument) return tl::unexpected(std::move(argument).error());
    kernel.arguments.push_back(*std::move(argument));
  }
  launch.kernels.push_back(std::move(kernel));
  DEMARC_CHECK(validate(launch));
  return launch;
}

}  // namespace demarc::gpu
