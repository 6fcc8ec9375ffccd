// Reads the check of a launch file.
#include "launch_check_reader.hpp"

#include <algorithm>
#include <vector>

namespace demarc::gpu {
namespace {

using ExpectedFiles = decltype(Check::files);

// "FILE" where there is one output, else {"OUTPUT": "FILE", …} with each of them.
Result<ExpectedFiles> read_expected(const Json& value, std::span<const Buffer> buffers,
                                    const std::filesystem::path& folder, const std::string& where) {
  std::vector<std::size_t> outputs;
  std::string names;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].output) continue;
    outputs.push_back(i);
    names += (names.empty() ? "" : ", ") + buffers[i].name;
  }
  if (outputs.empty()) {
    return invalid_input(
        "{}: no buffer is an output; add \"output\": true to the buffers to compare", where);
  }
  ExpectedFiles files;
  if (value.is_string() && outputs.size() == 1) {
    files[outputs.front()] = (folder / value.get<std::string>()).string();
    return files;
  }
  if (!value.is_object()) {
    return invalid_input("{}: {} was expected; the outputs are: {}", where,
                         outputs.size() == 1 ? "the name of a file" : "{\"OUTPUT\": \"FILE\", …}",
                         names);
  }
  for (const auto& [name, file] : value.items()) {
    DEMARC_TRY(const std::size_t buffer, buffer_index(buffers, name, where));
    if (!buffers[buffer].output)
      return invalid_input("{}: '{}' is not an output; the outputs are: {}", where, name, names);
    if (!file.is_string())
      return invalid_input("{}.{}: the name of a file was expected", where, name);
    files[buffer] = (folder / file.get<std::string>()).string();
  }
  for (const std::size_t output : outputs) {
    if (files.contains(output)) continue;
    return invalid_input("{}: there is no file for the output '{}'", where, buffers[output].name);
  }
  return files;
}

}  // namespace

std::size_t find_buffer(std::span<const Buffer> buffers, std::string_view name) {
  const auto it = std::find_if(buffers.begin(), buffers.end(),
                               [&](const Buffer& buffer) { return buffer.name == name; });
  return static_cast<std::size_t>(it - buffers.begin());
}

Result<std::size_t> buffer_index(std::span<const Buffer> buffers, std::string_view name,
                                 const std::string& where) {
  const std::size_t index = find_buffer(buffers, name);
  if (index < buffers.size()) return index;
  std::string known;
  for (const Buffer& buffer : buffers) known += (known.empty() ? "" : ", ") + buffer.name;
  return invalid_input("{}: there is no buffer '{}'; known are: {}", where, name, known);
}

Result<Check> read_check(JsonObject& object, std::span<const Buffer> buffers,
                         const std::filesystem::path& folder) {
  Check check;
  DEMARC_TRY(check.absolute, object.number_or("absolute", 0));
  DEMARC_TRY(check.relative, object.number_or("relative", 0));
  if (!object.has("file")) {
    DEMARC_TRY(check.reference, object.string("reference"));
    DEMARC_CHECK(object.finish());
    return check;
  }
  if (object.has("reference"))
    return invalid_input("{}: 'reference' and 'file' exclude each other", object.where());
  DEMARC_TRY(const Json* file, object.any("file"));
  DEMARC_CHECK(object.finish());
  DEMARC_TRY(check.files, read_expected(*file, buffers, folder, object.where() + ".file"));
  return check;
}

}  // namespace demarc::gpu
