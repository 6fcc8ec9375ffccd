// Reads and writes whole files. Writing is atomic: a reader sees the old file or the new one, never
// a part. A pipe or device is written directly. For a symbolic link, the file that it names is
// written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"

namespace demarc {

// The whole content of `path`, or its first `most` bytes; an error names the path and the cause.
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path,
                                            std::uint64_t most = UINT64_MAX);

// A file that is written piece by piece. It gets its name only when finish() has succeeded. Until
// then, and if it is given up, an old file of that name stays. If the file system allows files
// without a name, not even a killed process leaves anything behind. Errors name the path and the
// cause.
//
//   DEMARC_TRY(OutputFile file, OutputFile::open(path));
//   DEMARC_CHECK(file.write(bytes));  // as often as need be
//   DEMARC_CHECK(file.finish());
class OutputFile {
 public:
  [[nodiscard]] static Result<OutputFile> open(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;

  [[nodiscard]] Result<void> write(std::string_view bytes);
  [[nodiscard]] Result<void> finish();  // call it once; nothing may be written after it

 private:
  struct State;
  explicit OutputFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Writes `content` as an OutputFile.
[[nodiscard]] Result<void> write_file(const std::filesystem::path& path, std::string_view content);

// Checks that write_file() could write `path`, by making and removing its temporary file. Call it
// before the work whose result goes there. An error names the path and the cause.
[[nodiscard]] Result<void> check_writable(const std::filesystem::path& path);

}  // namespace demarc
