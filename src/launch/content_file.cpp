// Reads and writes files that hold the elements of a buffer.
#include "demarc/launch/content_file.hpp"

#include <filesystem>
#include <vector>

#include "demarc/base/files.hpp"
#include "demarc/base/npy.hpp"

namespace demarc::gpu {
namespace {

// The head of a file whose elements are of that type. `begin` as parse_npy_header() takes it.
Result<NpyHeader> fitting_head(const std::string& begin, const std::string& file,
                               ScalarType element) {
  DEMARC_TRY(NpyHeader head, parse_npy_header(begin, file));
  const bool boolean = head.type == "b1" && element == ScalarType::u8;
  if (head.type == numpy_name_of(element) || boolean) return head;
  return invalid_input(
      "{}: its elements are {}, but {} was expected, because the elements are declared {}", file,
      head.type, numpy_name_of(element), name_of(element));
}

Result<void> check_length(const NpyHeader& head, std::uint64_t file_bytes,
                          const std::string& file) {
  if (file_bytes - head.header_bytes == head.data_bytes) return {};
  return invalid_input("{}: {} bytes follow its header, but its shape needs {}", file,
                       file_bytes - head.header_bytes, head.data_bytes);
}

}  // namespace

bool is_npy(std::string_view file) {
  return file.ends_with(".npy");
}

Result<std::optional<std::uint64_t>> content_bytes(const std::string& file, ScalarType element) {
  std::error_code ignored;
  const std::filesystem::path path = file;
  if (!std::filesystem::exists(path, ignored) || std::filesystem::is_directory(path, ignored)) {
    DEMARC_CHECK(read_file(path, 1));  // says which of the two, and why
  }
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  const std::uint64_t bytes = std::filesystem::file_size(path, ignored);
  if (ignored) return std::nullopt;
  if (!is_npy(file)) return bytes;
  DEMARC_TRY(const std::string begin, read_file(path, max_npy_header_bytes));
  DEMARC_TRY(const NpyHeader head, fitting_head(begin, file, element));
  DEMARC_CHECK(check_length(head, bytes, file));
  return head.data_bytes;
}

Result<std::string> read_content(const std::string& file, ScalarType element, std::uint64_t most) {
  // No more than shows that it is too much: the file may be a device without an end.
  const std::uint64_t head_bytes = is_npy(file) ? max_npy_header_bytes : 0;
  DEMARC_TRY(std::string content, read_file(file, head_bytes + most + 1));
  std::uint64_t held = content.size();
  if (is_npy(file)) {
    DEMARC_TRY(const NpyHeader head, fitting_head(content, file, element));
    held = head.data_bytes;
    if (held <= most) DEMARC_CHECK(check_length(head, content.size(), file));
    content.erase(0, head.header_bytes);
  }
  if (held <= most) return content;
  std::error_code endless;
  if (!is_npy(file)) held = std::filesystem::file_size(file, endless);
  return invalid_input("{} holds {} bytes, more than the buffer's {}", file,
                       endless ? fmt::format("at least {}", content.size()) : fmt::to_string(held),
                       most);
}

std::string content_head(std::string_view file, ScalarType element, std::uint64_t bytes) {
  if (!is_npy(file)) return {};
  return npy_header(numpy_name_of(element), std::vector<std::uint64_t>{bytes / size_of(element)});
}

}  // namespace demarc::gpu
