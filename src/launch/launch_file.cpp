// Reads launch files. docs/gpu.md describes the format. Every error names the file and the key.
#include <algorithm>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/launch/launch.hpp"
#include "expression.hpp"
#include "image_json.hpp"
#include "launch_check_reader.hpp"
#include "launch_content_reader.hpp"
#include "launch_number.hpp"
#include "launch_scalar.hpp"
#include "tensor_map_json.hpp"

namespace demarc::gpu {
namespace {

constexpr std::string_view launch_schema = "demarc.launch/1";
constexpr std::size_t max_kernels = 1'000'000;  // after repeats
constexpr std::int64_t max_address = std::int64_t{1} << 48;

Result<Dim3> read_dim3(const Json& value, const Variables& variables, const std::string& where) {
  if (!value.is_array()) {
    DEMARC_TRY(const std::int64_t x, number_within(value, variables, 1, UINT32_MAX, where));
    return Dim3{static_cast<std::uint32_t>(x), 1, 1};
  }
  if (value.empty() || value.size() > 3)
    return invalid_input("{}: one to three numbers were expected", where);
  std::uint32_t sizes[3] = {1, 1, 1};
  for (std::size_t i = 0; i < value.size(); ++i) {
    DEMARC_TRY(const std::int64_t size,
               number_within(value[i], variables, 1, UINT32_MAX, fmt::format("{}[{}]", where, i)));
    sizes[i] = static_cast<std::uint32_t>(size);
  }
  return Dim3{sizes[0], sizes[1], sizes[2]};
}

class LaunchReader {
 public:
  LaunchReader(std::string_view where, std::filesystem::path folder,
               const LaunchFileOptions& options)
      : where_(where), folder_(std::move(folder)), options_(options) {}

  Result<Launch> read(const Json& json) {
    DEMARC_TRY(auto file, JsonObject::of(json, where_));
    DEMARC_TRY(const std::string schema, file.string("schema"));
    if (schema != launch_schema) {
      return invalid_input("{}.schema: '{}' was expected, found '{}'", where_, launch_schema,
                           schema);
    }
    DEMARC_CHECK(read_heading(file));
    DEMARC_CHECK(read_parameters(file));
    DEMARC_TRY(const Json* buffers, file.array("buffers"));
    DEMARC_CHECK(read_buffers(*buffers));
    if (file.has("variables")) {
      DEMARC_TRY(const Json* variables, file.array("variables"));
      DEMARC_CHECK(read_variables(*variables));
    }
    DEMARC_TRY(const Json* kernels, file.array("launches"));
    DEMARC_CHECK(read_steps(*kernels, launch_.parameters, where_ + ".launches"));
    if (launch_.kernels.empty())
      return invalid_input("{}.launches: at least one kernel was expected", where_);
    if (file.has("check")) {
      DEMARC_TRY(auto check, file.object("check"));
      DEMARC_TRY(launch_.check, read_check(check, launch_.buffers, folder_));
    }
    DEMARC_CHECK(file.finish());
    if (auto valid = validate(launch_); !valid)
      return invalid_input("{}: {}", where_, valid.error().message);
    return std::move(launch_);
  }

 private:
  Result<void> read_heading(JsonObject& file) {
    DEMARC_TRY(launch_.name, file.string_or("name", ""));
    DEMARC_TRY(launch_.summary, file.string_or("summary", ""));
    DEMARC_TRY(launch_.source, file.string_or("source", ""));
    DEMARC_TRY(launch_.ptx, file.string("ptx"));
    if (!bundled_name(launch_.ptx)) launch_.ptx = (folder_ / launch_.ptx).string();
    DEMARC_TRY(const std::int64_t seed, file.integer_or("seed", 0, INT64_MAX, 1));
    launch_.seed = static_cast<std::uint64_t>(seed);
    if (!file.has("groups")) return {};
    DEMARC_TRY(const Json* groups, file.array("groups"));
    for (const Json& group : *groups) {
      if (!group.is_string()) return invalid_input("{}.groups: names were expected", where_);
      launch_.groups.push_back(group.get<std::string>());
    }
    return {};
  }

  // Defaults, then the scale, then the caller's own values. A parameter may use those before it.
  Result<void> read_parameters(JsonObject& file) {
    std::map<std::string, Json> scaled;
    if (file.has("scales")) {
      DEMARC_TRY(const Json* scales, file.any("scales"));
      DEMARC_CHECK(JsonObject::of(*scales, where_ + ".scales"));
      if (!options_.scale.empty()) DEMARC_CHECK(choose_scale(*scales, scaled));
    } else if (!options_.scale.empty()) {
      return invalid_input("{}: it has no scales, so it has no scale '{}'", where_, options_.scale);
    }
    if (file.has("parameters")) {
      DEMARC_TRY(const Json* parameters, file.any("parameters"));
      DEMARC_CHECK(JsonObject::of(*parameters, where_ + ".parameters"));
      for (const auto& [name, value] : parameters->items()) {
        const auto chosen = options_.parameters.find(name);
        if (chosen != options_.parameters.end()) {
          launch_.parameters[name] = chosen->second;
          continue;
        }
        const auto scale = scaled.find(name);
        const Json& text = scale == scaled.end() ? value : scale->second;
        DEMARC_TRY(
            launch_.parameters[name],
            number_of(text, launch_.parameters, fmt::format("{}.parameters.{}", where_, name)));
      }
    }
    for (const auto& [name, value] : scaled) {
      if (!launch_.parameters.contains(name)) {
        return invalid_input("{}.scales.{}: the file has no parameter '{}'", where_, options_.scale,
                             name);
      }
    }
    for (const auto& [name, value] : options_.parameters) {
      if (launch_.parameters.contains(name)) continue;
      std::string known;
      for (const auto& [other, ignored] : launch_.parameters)
        known += (known.empty() ? "" : ", ") + other;
      return invalid_input("{}: the file has no parameter '{}'; it has: {}", where_, name, known);
    }
    return {};
  }

  Result<void> choose_scale(const Json& scales, std::map<std::string, Json>& scaled) {
    const auto row = scales.find(options_.scale);
    if (row == scales.end()) {
      std::string known;
      for (const auto& [name, value] : scales.items()) known += (known.empty() ? "" : ", ") + name;
      return invalid_input("{}.scales: there is no scale '{}'; known are: {}", where_,
                           options_.scale, known);
    }
    DEMARC_CHECK(JsonObject::of(*row, fmt::format("{}.scales.{}", where_, options_.scale)));
    for (const auto& [name, value] : row->items()) scaled[name] = value;
    return {};
  }

  Result<void> read_buffers(const Json& buffers) {
    // Names first: pointers may look forward.
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      DEMARC_TRY(auto object, JsonObject::of(buffers[i], fmt::format("{}.buffers[{}]", where_, i)));
      DEMARC_TRY(std::string name, object.string("name"));
      if (find_buffer(launch_.buffers, name) != launch_.buffers.size()) {
        return invalid_input("{}: two buffers have the name '{}'", object.where(), name);
      }
      launch_.buffers.emplace_back().name = std::move(name);
    }
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      DEMARC_TRY(auto object, JsonObject::of(buffers[i], fmt::format("{}.buffers[{}]", where_, i)));
      DEMARC_CHECK(read_buffer(object, launch_.buffers[i]));
    }
    return {};
  }

  // As buffers, but for what the module says itself: how large they are and where they lie.
  Result<void> read_variables(const Json& variables) {
    for (std::size_t i = 0; i < variables.size(); ++i) {
      DEMARC_TRY(auto object,
                 JsonObject::of(variables[i], fmt::format("{}.variables[{}]", where_, i)));
      Buffer variable;
      DEMARC_TRY(variable.name, object.string("name"));
      DEMARC_CHECK(read_content(object, launch_, folder_, variable));
      DEMARC_CHECK(object.finish());
      launch_.variables.push_back(std::move(variable));
    }
    return {};
  }

  Result<void> read_buffer(JsonObject& object, Buffer& buffer) {
    DEMARC_CHECK(object.string("name"));
    DEMARC_TRY(const Json* bytes, object.any("bytes"));
    DEMARC_TRY(const std::int64_t size, number_within(*bytes, launch_.parameters, 1,
                                                      max_buffer_bytes, object.where() + ".bytes"));
    buffer.bytes = static_cast<std::uint64_t>(size);
    DEMARC_TRY(buffer.output, object.boolean_or("output", false));
    DEMARC_TRY(const std::string memory, object.string_or("memory", "device"));
    if (memory != "device" && memory != "host") {
      return invalid_input("{}.memory: '{}' is neither device nor host", object.where(), memory);
    }
    buffer.host = memory == "host";
    if (object.has("address")) {
      DEMARC_TRY(const Json* address, object.any("address"));
      DEMARC_TRY(
          const std::int64_t number,
          number_within(*address, launch_.parameters, 1, max_address, object.where() + ".address"));
      buffer.address = static_cast<std::uint64_t>(number);
    }
    DEMARC_CHECK(read_content(object, launch_, folder_, buffer));
    return object.finish();
  }

  Result<void> read_steps(const Json& steps, const Variables& variables, const std::string& where) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      DEMARC_TRY(auto step, JsonObject::of(steps[i], fmt::format("{}[{}]", where, i)));
      DEMARC_CHECK(step.has("repeat") ? read_repeat(step, variables)
                                      : read_kernel(step, variables));
    }
    return {};
  }

  // {"repeat": "i", "times": EXPR, "launches": […]}: i counts from 0 within the launches below.
  Result<void> read_repeat(JsonObject& step, const Variables& outer) {
    DEMARC_TRY(const std::string variable, step.string("repeat"));
    if (outer.contains(variable)) {
      return invalid_input("{}.repeat: '{}' is already a parameter", step.where(), variable);
    }
    DEMARC_TRY(const Json* times, step.any("times"));
    DEMARC_TRY(const std::int64_t count,
               number_within(*times, outer, 0, static_cast<std::int64_t>(max_kernels),
                             step.where() + ".times"));
    DEMARC_TRY(const Json* inner, step.array("launches"));
    DEMARC_CHECK(step.finish());
    Variables variables = outer;
    if ((repeats_ += static_cast<std::size_t>(count)) > max_kernels) {
      return invalid_input("{}: more than {} repetitions in one launch", step.where(), max_kernels);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      variables[variable] = i;
      DEMARC_CHECK(read_steps(*inner, variables, step.where() + ".launches"));
    }
    return {};
  }

  Result<void> read_kernel(JsonObject& step, const Variables& variables) {
    if (launch_.kernels.size() >= max_kernels) {
      return invalid_input("{}: more than {} kernels in one launch", step.where(), max_kernels);
    }
    KernelLaunch kernel;
    DEMARC_TRY(kernel.kernel, step.string("kernel"));
    DEMARC_TRY(const Json* grid, step.any("grid"));
    DEMARC_TRY(kernel.grid, read_dim3(*grid, variables, step.where() + ".grid"));
    DEMARC_TRY(const Json* block, step.any("block"));
    DEMARC_TRY(kernel.block, read_dim3(*block, variables, step.where() + ".block"));
    if (step.has("cluster")) {
      DEMARC_TRY(const Json* cluster, step.any("cluster"));
      DEMARC_TRY(kernel.cluster, read_dim3(*cluster, variables, step.where() + ".cluster"));
    }
    if (step.has("shared")) {
      DEMARC_TRY(const Json* shared, step.any("shared"));
      DEMARC_TRY(
          const std::int64_t bytes,
          number_within(*shared, variables, 0, std::int64_t{1} << 20, step.where() + ".shared"));
      kernel.dynamic_shared_bytes = static_cast<std::uint32_t>(bytes);
    }
    if (step.has("registers")) {
      DEMARC_TRY(const Json* registers, step.any("registers"));
      DEMARC_TRY(const std::int64_t count,
                 number_within(*registers, variables, 1, 255, step.where() + ".registers"));
      kernel.registers = static_cast<std::uint32_t>(count);
    }
    DEMARC_TRY(const Json* arguments, step.array("args"));
    for (std::size_t i = 0; i < arguments->size(); ++i) {
      const Json& text = (*arguments)[i];
      const std::string place = fmt::format("{}.args[{}]", step.where(), i);
      if (text.is_object()) {
        DEMARC_TRY(Argument described, read_described(text, variables, place));
        kernel.arguments.push_back(std::move(described));
        continue;
      }
      if (!text.is_string()) {
        return invalid_input(
            "{}: text such as \"i32:n\", {{\"tensor_map\": …}}, {{\"texture\": …}} or "
            "{{\"surface\": …}} was expected",
            place);
      }
      DEMARC_TRY(Argument argument, read_argument(text.get<std::string>(), variables, place));
      kernel.arguments.push_back(std::move(argument));
    }
    DEMARC_CHECK(step.finish());
    launch_.kernels.push_back(std::move(kernel));
    return {};
  }

  Result<Argument> read_argument(std::string_view text, const Variables& variables,
                                 const std::string& place) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos) {
      return invalid_input("{}: '{}': expected TYPE:VALUE, as in i32:n, f32:1.5 or buf:NAME", place,
                           text);
    }
    const std::string_view type = text.substr(0, colon);
    const std::string_view value = text.substr(colon + 1);
    if (type == "buf") return read_buffer_use(value, variables, place);
    if (text.starts_with(hex_mark)) {
      DEMARC_TRY(std::vector<std::byte> bytes, parse_hex(value, place));
      return Argument{ByteArgument{std::move(bytes)}};
    }
    DEMARC_TRY(const ScalarType scalar_type, parse_scalar_type(type, place + " (or buf, hex)"));
    if (is_floating(scalar_type)) {
      const bool decimal = parse_double(value, place).has_value();
      if (decimal || parse_special(scalar_type, value)) {
        DEMARC_TRY(const Scalar scalar, parse_scalar(scalar_type, value, place));
        return Argument{scalar};
      }
    }
    DEMARC_TRY(const std::int64_t number, evaluate(value, variables, place));
    if (is_floating(scalar_type)) return Argument{make_scalar(scalar_type, number)};
    DEMARC_TRY(const Scalar scalar, parse_scalar(scalar_type, std::to_string(number), place));
    return Argument{scalar};
  }

  Result<Argument> read_described(const Json& value, const Variables& variables,
                                  const std::string& place) {
    DEMARC_TRY(auto item, JsonObject::of(value, place));
    for (const std::string_view kind : {"texture", "surface"}) {
      if (item.has(kind)) return read_image(item, kind, variables);
    }
    return read_tensor(item, variables);
  }

  // What is described twice is one, and has one handle.
  Result<Argument> read_image(JsonObject& item, std::string_view kind, const Variables& variables) {
    DEMARC_TRY(auto object, item.object(kind));
    DEMARC_CHECK(item.finish());
    DEMARC_TRY(const BufferUse use, read_place(object, variables));
    DEMARC_TRY(Image image, kind == "texture" ? read_texture(object, variables)
                                              : read_surface(object, variables));
    image.buffer = use.buffer;
    image.offset = use.offset;
    DEMARC_CHECK(validate(image, object.where()));
    const auto known = std::find(launch_.images.begin(), launch_.images.end(), image);
    const ImageUse made{static_cast<std::size_t>(known - launch_.images.begin())};
    if (known == launch_.images.end()) launch_.images.push_back(image);
    return Argument{made};
  }

  Result<BufferUse> read_place(JsonObject& object, const Variables& variables) {
    DEMARC_TRY(const std::string buffer, object.string("buffer"));
    DEMARC_TRY(const Argument use, read_buffer_use(buffer, variables, object.where() + ".buffer"));
    return std::get<BufferUse>(use);
  }

  Result<Argument> read_tensor(JsonObject& item, const Variables& variables) {
    DEMARC_TRY(auto object, item.object("tensor_map"));
    DEMARC_CHECK(item.finish());
    DEMARC_TRY(const BufferUse use, read_place(object, variables));
    DEMARC_TRY(TensorMap map, read_tensor_map(object, variables));
    map.buffer = use.buffer;
    map.offset = use.offset;
    DEMARC_CHECK(validate(map, object.where()));
    return Argument{std::move(map)};
  }

  // NAME, NAME+BYTES, or A|B@EXPR: the (EXPR mod count)-th of the names.
  Result<Argument> read_buffer_use(std::string_view text, const Variables& variables,
                                   const std::string& place) {
    std::string_view names = text;
    BufferUse use;
    if (const auto plus = text.find('+');
        plus != std::string_view::npos && text.find('@') == std::string_view::npos) {
      names = text.substr(0, plus);
      DEMARC_TRY(const std::int64_t offset, evaluate(text.substr(plus + 1), variables, place));
      if (offset < 0) return invalid_input("{}: the offset {} is below 0", place, offset);
      use.offset = static_cast<std::uint64_t>(offset);
    }
    if (const auto at = text.find('@'); at != std::string_view::npos) {
      DEMARC_TRY(const std::int64_t turn, evaluate(text.substr(at + 1), variables, place));
      if (turn < 0) return invalid_input("{}: the choice {} is below 0", place, turn);
      names = text.substr(0, at);
      const auto count = 1 + std::count(names.begin(), names.end(), '|');
      for (auto skip = turn % count; skip > 0; --skip) names.remove_prefix(names.find('|') + 1);
      names = names.substr(0, names.find('|'));
    }
    DEMARC_TRY(use.buffer, buffer_index(launch_.buffers, names, place));
    return Argument{use};
  }

  std::string where_;
  std::filesystem::path folder_;
  const LaunchFileOptions& options_;
  Launch launch_;
  std::size_t repeats_ = 0;
};

}  // namespace

Result<Launch> parse_launch_json(std::string_view text, std::string_view where,
                                 const std::filesystem::path& folder,
                                 const LaunchFileOptions& options) {
  DEMARC_TRY(const Json json, parse_json(text, where));
  return LaunchReader(where, folder, options).read(json);
}

Result<Launch> read_launch(const std::filesystem::path& path, const LaunchFileOptions& options) {
  DEMARC_TRY(const std::string text, read_file(path));
  return parse_launch_json(text, path.string(), path.parent_path(), options);
}

}  // namespace demarc::gpu
