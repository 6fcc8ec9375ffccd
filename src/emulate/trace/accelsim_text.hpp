// The lines of Accel-Sim's text files.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"

namespace demarc::emulate {

// Without the blanks before and behind.
[[nodiscard]] std::string_view without_blanks(std::string_view text);

// The program that unpacks a file that begins so; empty: it is not compressed.
[[nodiscard]] std::string_view unpacker_of(std::string_view beginning);

// The lines of a file that may be larger than memory, without empty ones and outer blanks. Errors
// name the file, and the line where there is one.
class AccelsimText {
 public:
  [[nodiscard]] static Result<AccelsimText> open(const std::filesystem::path& path);

  // The next line, valid until the next call; false: there are no more.
  [[nodiscard]] Result<bool> next(std::string_view& out);
  [[nodiscard]] Result<void> rewind();
  // An error at the line that came last.
  [[nodiscard]] tl::unexpected<Error> fail(std::string_view what) const;

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  [[nodiscard]] Result<void> fill();

  std::string name_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;
  bool at_end_ = false;
};

}  // namespace demarc::emulate
