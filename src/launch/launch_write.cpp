// Writes launch files. docs/gpu.md describes the format.
#include "demarc/launch/launch_write.hpp"

#include <cmath>
#include <filesystem>

#include "demarc/base/json.hpp"
#include "demarc/base/text.hpp"
#include "image_json.hpp"
#include "tensor_map_json.hpp"

namespace demarc::gpu {
namespace {

std::string file_name(const std::string& path) {
  return bundled_name(path) ? path : std::filesystem::path(path).filename().string();
}

Json dim_json(const Dim3& dim) {
  return Json::array({dim.x, dim.y, dim.z});
}

// Whole numbers stay whole, so that those of 2^53 and more are read back as they were.
Json number_json(double value) {
  constexpr double most = 0x1p62;
  if (value == std::trunc(value) && std::abs(value) <= most) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

Json value_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return number_json(value);
}

std::string hex_text(const std::vector<std::byte>& bytes) {
  std::string text = "hex:";
  for (const std::byte byte : bytes) append(text, "{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

Json fill_json(const Launch& launch, const Fill& fill) {
  switch (fill.kind) {
    case FillKind::zero:
      break;
    case FillKind::iota:
      return "iota";
    case FillKind::random:
      return "random";
    case FillKind::file:
      return "@" + file_name(fill.file);
    case FillKind::values: {
      Json list = Json::array();
      for (const double value : fill.values) list.push_back(value_json(value));
      return list;
    }
    case FillKind::pointers:
      return {{"pointers", launch.buffers[fill.target].name}, {"stride", fill.stride}};
    case FillKind::generated: {
      Json out{{"generator", fill.generator}};
      for (const auto& [name, value] : fill.parameters) out[name] = value;
      return out;
    }
    case FillKind::bytes:
      return hex_text(fill.bytes);
  }
  return "zero";
}

void add_content(const Launch& launch, const Buffer& buffer, Json& out) {
  out["element"] = name_of(buffer.element);
  out["fill"] = fill_json(launch, buffer.fill);
  if (buffer.fill.low != 0 || buffer.fill.high != 0) {
    out["low"] = number_json(buffer.fill.low);
    out["high"] = number_json(buffer.fill.high);
  }
}

Json buffer_json(const Launch& launch, const Buffer& buffer) {
  Json out{{"name", buffer.name}, {"bytes", buffer.bytes}};
  add_content(launch, buffer, out);
  if (buffer.output) out["output"] = true;
  if (buffer.host) out["memory"] = "host";
  if (buffer.address != 0) out["address"] = buffer.address;
  return out;
}

// Floating values as bits where the format has them; an f16 is exact as a decimal.
std::string scalar_text(const Scalar& scalar) {
  const double value = to_double(scalar);
  switch (scalar.type) {
    case ScalarType::f32:
      return fmt::format("f32:0f{:08x}", static_cast<std::uint32_t>(scalar.bits));
    case ScalarType::f64:
      return fmt::format("f64:0d{:016x}", scalar.bits);
    case ScalarType::f16:
      if (std::isnan(value)) return std::signbit(value) ? "f16:-nan" : "f16:nan";
      if (std::isinf(value)) return value < 0 ? "f16:-inf" : "f16:inf";
      return fmt::format("f16:{}", value);
    case ScalarType::u64:
      // Expressions are of signed numbers.
      return fmt::format("u64:{}", scalar.bits);
    default:
      return fmt::format("{}:{}", name_of(scalar.type), static_cast<std::int64_t>(value));
  }
}

Result<Json> argument_json(const Launch& launch, const Argument& argument,
                           const std::string& where) {
  if (const auto use = used_buffer(launch, argument)) {
    const std::string& name = launch.buffers[use->buffer].name;
    const std::string place = use->offset == 0 ? name : fmt::format("{}+{}", name, use->offset);
    if (const auto* image = std::get_if<ImageUse>(&argument))
      return image_json(launch.images[image->image], place);
    const auto* const map = std::get_if<TensorMap>(&argument);
    return map != nullptr ? tensor_map_json(*map, place) : Json("buf:" + place);
  }
  if (const auto* structure = std::get_if<ByteArgument>(&argument))
    return Json(hex_text(structure->bytes));
  const auto* scalar = std::get_if<Scalar>(&argument);
  const bool integer = !is_floating(scalar->type);
  if (integer && scalar->type == ScalarType::u64 && scalar->bits > std::uint64_t{INT64_MAX}) {
    return invalid_input("{} is {}, and a launch file has whole numbers below 2^63", where,
                         scalar->bits);
  }
  // A 64-bit number passes through no double.
  if (scalar->type == ScalarType::i64) {
    return Json(fmt::format("i64:{}", static_cast<std::int64_t>(scalar->bits)));
  }
  return Json(scalar_text(*scalar));
}

Result<Json> kernel_json(const Launch& launch, const KernelLaunch& kernel) {
  Json out{{"kernel", kernel.kernel}, {"grid", dim_json(kernel.grid)}};
  out["block"] = dim_json(kernel.block);
  if (kernel.cluster) out["cluster"] = dim_json(*kernel.cluster);
  if (kernel.dynamic_shared_bytes != 0) out["shared"] = kernel.dynamic_shared_bytes;
  if (kernel.registers != 0) out["registers"] = kernel.registers;
  Json arguments = Json::array();
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    DEMARC_TRY(Json argument,
               argument_json(launch, kernel.arguments[i],
                             fmt::format("argument {} of '{}'", i + 1, kernel.kernel)));
    arguments.push_back(std::move(argument));
  }
  out["args"] = std::move(arguments);
  return out;
}

}  // namespace

Result<std::string> launch_to_json(const Launch& launch) {
  Json out{{"schema", "demarc.launch/1"}};
  if (!launch.name.empty()) out["name"] = launch.name;
  if (!launch.summary.empty()) out["summary"] = launch.summary;
  if (!launch.source.empty()) out["source"] = launch.source;
  if (!launch.groups.empty()) out["groups"] = launch.groups;
  out["ptx"] = file_name(launch.ptx);
  out["seed"] = launch.seed;
  out["buffers"] = Json::array();
  for (const Buffer& buffer : launch.buffers) out["buffers"].push_back(buffer_json(launch, buffer));
  for (const Buffer& variable : launch.variables) {
    Json one{{"name", variable.name}};
    add_content(launch, variable, one);
    out["variables"].push_back(std::move(one));
  }
  out["launches"] = Json::array();
  for (std::size_t i = 0; i < launch.kernels.size();) {
    std::size_t end = i + 1;
    while (end < launch.kernels.size() && launch.kernels[end] == launch.kernels[i]) ++end;
    DEMARC_TRY(Json one, kernel_json(launch, launch.kernels[i]));
    if (end - i > 1) {
      one = {{"repeat", "i"}, {"times", end - i}, {"launches", Json::array({std::move(one)})}};
    }
    out["launches"].push_back(std::move(one));
    i = end;
  }
  if (launch.check.exists()) {
    Json& check = out["check"];
    if (!launch.check.reference.empty()) check["reference"] = launch.check.reference;
    for (const auto& [buffer, file] : launch.check.files)
      check["file"][launch.buffers[buffer].name] = file_name(file);
    check["absolute"] = launch.check.absolute;
    check["relative"] = launch.check.relative;
  }
  return json_text(out, 1) + "\n";
}

}  // namespace demarc::gpu
