// Writes buffers of a launch into files and prints them, by the type of their elements.
#include "buffer_options.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "demarc/base/files.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/base/text.hpp"
#include "demarc/launch/content_file.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

constexpr std::uint64_t usual_count = 16;

Result<std::size_t> buffer_named(const gpu::Launch& launch, std::string_view name,
                                 const std::string& where) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    if (launch.buffers[i].name == name) return i;
    known.push_back(launch.buffers[i].name);
  }
  if (known.empty()) return invalid_input("{}: the launch has no buffers", where);
  return invalid_input("{}: there is no buffer '{}'; the launch has: {}", where, name,
                       joined(known, ", "));
}

gpu::Scalar shown_element(const gpu::Buffer& buffer, const std::vector<std::byte>& content,
                          std::uint64_t index) {
  gpu::Scalar scalar{buffer.element, 0};
  const std::size_t size = gpu::size_of(buffer.element);
  std::memcpy(&scalar.bits, content.data() + index * size, size);
  return scalar;
}

// Calls one(value) with the element as a number of its own kind: a double for no integer.
template <class One>
auto with_value(const gpu::Scalar& scalar, One one) {
  const double value = gpu::to_double(scalar);
  switch (scalar.type) {
    case gpu::ScalarType::u64:
      return one(scalar.bits);
    case gpu::ScalarType::i64:
      return one(static_cast<std::int64_t>(scalar.bits));
    case gpu::ScalarType::f64:
      return one(value);
    case gpu::ScalarType::f16:
    case gpu::ScalarType::f32:
      return one(static_cast<float>(value));
    default:
      return one(static_cast<std::int64_t>(value));
  }
}

// Shortest text that reads back as the same element.
std::string element_text(const gpu::Scalar& scalar) {
  return with_value(scalar, [](auto value) { return fmt::format("{}", value); });
}

// JSON has no text for what is not a number or infinite: "nan", "-inf".
Json element_json(const gpu::Scalar& scalar) {
  if (!std::isfinite(gpu::to_double(scalar))) return element_text(scalar);
  return with_value(scalar, [](auto value) { return Json(value); });
}

}  // namespace

void BufferOptions::declare(CLI::App& app) {
  add_named_outputs(app, "--save", files_,
                    "write this buffer to FILE after the launch: as an array of NumPy if FILE ends "
                    "in .npy, else as bytes; may be repeated");
  app.add_option("--print", printed_,
                 "print the first COUNT elements of this buffer after the launch (default: 16); "
                 "may be repeated")
      ->option_text("NAME[:COUNT]")
      ->allow_extra_args(false);
}

Result<std::vector<ShownBuffer>> BufferOptions::choose(const gpu::Launch& launch) const {
  std::vector<ShownBuffer> shown;
  for (const std::string& text : files_) {
    const std::string where = "--save " + text;
    ShownBuffer one;
    one.file = file_of_named_output(text);
    const std::string_view name = std::string_view(text).substr(0, text.find('='));
    DEMARC_TRY(one.buffer, buffer_named(launch, name, where));
    const gpu::Buffer& buffer = launch.buffers[one.buffer];
    if (gpu::is_npy(one.file) && buffer.bytes % gpu::size_of(buffer.element) != 0) {
      return invalid_input(
          "{}: {} bytes are no whole number of {}; a name that does not end in .npy takes bytes",
          where, buffer.bytes, gpu::name_of(buffer.element));
    }
    shown.push_back(std::move(one));
  }
  for (const std::string& text : printed_) {
    const std::string where = "--print " + text;
    const std::size_t colon = std::min(text.rfind(':'), text.size());
    ShownBuffer one;
    DEMARC_TRY(one.buffer, buffer_named(launch, std::string_view(text).substr(0, colon), where));
    one.count = usual_count;
    if (colon < text.size()) {
      DEMARC_TRY(one.count, parse_u64(std::string_view(text).substr(colon + 1), where));
      if (one.count == 0) return invalid_input("{}: at least one element was expected", where);
    }
    const gpu::Buffer& buffer = launch.buffers[one.buffer];
    one.count = std::min(one.count, buffer.bytes / gpu::size_of(buffer.element));
    shown.push_back(std::move(one));
  }
  return shown;
}

Result<void> write_buffers(const std::vector<ShownBuffer>& shown, const gpu::Launch& launch,
                           const gpu::Memory& memory) {
  std::vector<OutputFile> files;
  for (const ShownBuffer& one : shown) {
    if (one.file.empty()) continue;
    const std::vector<std::byte>& content = memory[one.buffer];
    DEMARC_TRY(OutputFile file, OutputFile::open(one.file));
    DEMARC_CHECK(file.write(
        gpu::content_head(one.file, launch.buffers[one.buffer].element, content.size())));
    DEMARC_CHECK(file.write({reinterpret_cast<const char*>(content.data()), content.size()}));
    files.push_back(std::move(file));
  }
  for (OutputFile& file : files) DEMARC_CHECK(file.finish());
  return {};
}

std::string buffers_text(const std::vector<ShownBuffer>& shown, const gpu::Launch& launch,
                         const gpu::Memory& memory) {
  std::string text;
  for (const ShownBuffer& one : shown) {
    if (!one.file.empty()) continue;
    const gpu::Buffer& buffer = launch.buffers[one.buffer];
    append(text, "{} ({}, {} of {}):", buffer.name, gpu::name_of(buffer.element), one.count,
           buffer.bytes / gpu::size_of(buffer.element));
    for (std::uint64_t i = 0; i < one.count; ++i)
      append(text, " {}", element_text(shown_element(buffer, memory[one.buffer], i)));
    text += '\n';
  }
  return text;
}

Json buffers_json(const std::vector<ShownBuffer>& shown, const gpu::Launch& launch,
                  const gpu::Memory& memory) {
  Json all = Json::array();
  for (const ShownBuffer& one : shown) {
    if (!one.file.empty()) continue;
    const gpu::Buffer& buffer = launch.buffers[one.buffer];
    Json values = Json::array();
    for (std::uint64_t i = 0; i < one.count; ++i)
      values.push_back(element_json(shown_element(buffer, memory[one.buffer], i)));
    all.push_back({{"name", buffer.name},
                   {"element", gpu::name_of(buffer.element)},
                   {"elements", buffer.bytes / gpu::size_of(buffer.element)},
                   {"values", std::move(values)}});
  }
  return all;
}

}  // namespace demarc::cli
