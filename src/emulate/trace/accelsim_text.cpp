// Reads the lines of Accel-Sim's files piece by piece, and names the place of an error.
#include "trace/accelsim_text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace demarc::emulate {
namespace {

constexpr std::size_t text_piece = std::size_t{1} << 18U;
constexpr std::size_t longest_line = std::size_t{1} << 20U;

}  // namespace

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

std::string_view unpacker_of(std::string_view beginning) {
  if (beginning.starts_with("\xfd"
                            "7zXZ"))
    return "xz";
  return beginning.starts_with("\x1f\x8b") ? "gzip" : "";
}

Result<AccelsimText> AccelsimText::open(const std::filesystem::path& path) {
  AccelsimText text;
  text.name_ = path.string();
  text.file_.reset(std::fopen(path.c_str(), "rb"));
  if (!text.file_) return invalid_input("{}: cannot be read: {}", text.name_, std::strerror(errno));
  DEMARC_CHECK(text.fill());
  const std::string_view unpacker = unpacker_of(text.buffer_);
  if (!unpacker.empty()) {
    return invalid_input("{}: the trace is compressed; unpack it first: {} -dk '{}'", text.name_,
                         unpacker, text.name_);
  }
  return text;
}

Result<bool> AccelsimText::next(std::string_view& out) {
  for (;;) {
    const std::size_t end = buffer_.find('\n', at_);
    if (end == std::string::npos && !at_end_) {
      if (buffer_.size() - at_ > longest_line) {
        ++line_;
        return fail(fmt::format("a line of more than {} bytes", longest_line));
      }
      DEMARC_CHECK(fill());
      continue;
    }
    if (at_ >= buffer_.size()) return false;
    out = without_blanks(std::string_view(buffer_).substr(at_, end - at_));
    at_ = std::min(end, buffer_.size() - 1) + 1;
    ++line_;
    if (!out.empty()) return true;
  }
}

Result<void> AccelsimText::rewind() {
  if (std::fseek(file_.get(), 0, SEEK_SET) != 0)
    return invalid_input("{}: cannot be read: {}", name_, std::strerror(errno));
  buffer_.clear();
  at_ = line_ = 0;
  at_end_ = false;
  return {};
}

tl::unexpected<Error> AccelsimText::fail(std::string_view what) const {
  return invalid_input("{}:{}: {}", name_, line_, what);
}

Result<void> AccelsimText::fill() {
  buffer_.erase(0, at_);
  at_ = 0;
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + text_piece);
  const std::size_t got = std::fread(buffer_.data() + kept, 1, text_piece, file_.get());
  buffer_.resize(kept + got);
  if (std::ferror(file_.get()) != 0)
    return invalid_input("{}: cannot be read: {}", name_, std::strerror(errno));
  at_end_ = got == 0;
  return {};
}

}  // namespace demarc::emulate
