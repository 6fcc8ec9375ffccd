// Reads whole files, and writes files so that a reader sees the old content or the new one.
#include "demarc/base/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>

#include "demarc/base/large_array.hpp"

namespace demarc {
// Not of an anonymous namespace: OutputFile::State holds them, which GCC refuses in a file that is
// included.
namespace files_detail {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// Where the content of `path` goes: a pipe or device (/dev/stdout) cannot be replaced by a rename,
// it is written directly, and so is what a descriptor of a process stands for. Else the content
// goes to a temporary file beside the file that `path` names, which may do so through symbolic
// links.
struct WriteTarget {
  std::filesystem::path place;
  std::string temporary;
  bool direct = false;

  explicit WriteTarget(const std::filesystem::path& path) : place(path) {
    constexpr int max_links = 40;  // as the kernel's
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    direct = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
    int links = 0;
    while (!direct && std::filesystem::is_symlink(place, ignored)) {
      const auto next = std::filesystem::read_symlink(place, ignored);
      direct = ignored || ++links > max_links || place.string().starts_with("/proc/");
      if (!direct) place = place.parent_path() / next;  // an absolute one replaces the folder
    }
    if (direct) place = path;
    temporary = fmt::format("{}.{}.tmp", place.string(), static_cast<long>(::getpid()));
  }
};

}  // namespace files_detail
namespace {

using files_detail::File;
using files_detail::WriteTarget;

// A file without a name in the folder of `target`; null where there can be none.
File open_unnamed(const WriteTarget& target) {
  if (::access("/proc/self/fd", X_OK) != 0) return nullptr;  // it could not be given a name
  const auto folder = target.place.has_parent_path() ? target.place.parent_path() : ".";
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor < 0) return nullptr;
  File file(::fdopen(descriptor, "wb"));
  if (!file) ::close(descriptor);
  return file;
}

// A name for such a file; false: errno says why not.
bool give_name(std::FILE* file, const std::string& name) {
  const std::string descriptor = fmt::format("/proc/self/fd/{}", ::fileno(file));
  ::unlink(name.c_str());  // of a process of the same number, which was killed
  return ::linkat(AT_FDCWD, descriptor.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

tl::unexpected<Error> unwritable(const std::filesystem::path& path, int cause) {
  return invalid_input("{}: cannot be written: {}", path.string(), std::strerror(cause));
}

}  // namespace

struct OutputFile::State {
  std::filesystem::path path;
  files_detail::WriteTarget target;
  files_detail::File file;
  bool named = false;  // the temporary file is to be removed

  explicit State(const std::filesystem::path& given) : path(given), target(given) {}
  ~State() {
    file.reset();
    if (named) std::remove(target.temporary.c_str());
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

OutputFile::OutputFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
OutputFile::~OutputFile() = default;
OutputFile::OutputFile(OutputFile&& other) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&& other) noexcept = default;

Result<OutputFile> OutputFile::open(const std::filesystem::path& path) {
  auto state = std::make_unique<State>(path);
  const WriteTarget& target = state->target;
  if (target.direct) {
    state->file.reset(std::fopen(target.place.c_str(), "wb"));
  } else {
    // A name that is too long must fail now as it will later.
    const bool nameable = target.place.filename().string().size() + 16 < NAME_MAX;
    if (nameable) state->file = open_unnamed(target);
    if (!state->file) {
      state->file.reset(std::fopen(target.temporary.c_str(), "wb"));
      state->named = state->file != nullptr;
    }
  }
  if (!state->file) return unwritable(path, errno);
  return OutputFile(std::move(state));
}

Result<void> OutputFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), state_->file.get()) != bytes.size())
    return unwritable(state_->path, errno);
  return {};
}

Result<void> OutputFile::finish() {
  State& state = *state_;
  const WriteTarget& target = state.target;
  if (std::fflush(state.file.get()) != 0) return unwritable(state.path, errno);
  if (!target.direct && !state.named) {
    if (!give_name(state.file.get(), target.temporary)) return unwritable(state.path, errno);
    state.named = true;
  }
  if (std::fclose(state.file.release()) != 0) return unwritable(state.path, errno);
  if (target.direct) return {};
  if (std::rename(target.temporary.c_str(), target.place.c_str()) != 0)
    return unwritable(state.path, errno);
  state.named = false;
  return {};
}

// Who asks for all there is gets no more than the limits below: a device or a pipe may have no end,
// a sparse file may be larger than memory.
Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t most) {
  constexpr std::uint64_t max_of_file = std::uint64_t{4} << 30U;
  constexpr std::uint64_t max_of_stream = std::uint64_t{256} << 20U;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return invalid_input("{}: this is a directory; a file was expected", path.string());
  }
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) return invalid_input("{}: cannot be read: {}", path.string(), std::strerror(errno));
  std::string content;
  const auto size = std::filesystem::file_size(path, ignored);
  const bool bounded = most != UINT64_MAX;
  if (!bounded) most = ignored ? max_of_stream : max_of_file;
  const auto too_long = [&] {
    return invalid_input("{}: it holds more than {} bytes, the largest size that is read",
                         path.string(), most);
  };
  if (!ignored && !bounded) {
    if (size > most) return too_long();
    content.reserve(size);
    ask_large_pages(content.data(), size);
  }
  char buffer[1 << 16];
  std::size_t got = 1;
  while (got > 0 && content.size() < most) {
    const auto step = std::min<std::uint64_t>(sizeof buffer, most - content.size());
    got = std::fread(buffer, 1, step, file.get());
    content.append(buffer, got);
  }
  if (std::ferror(file.get()) != 0) {
    return invalid_input("{}: cannot be read: {}", path.string(), std::strerror(errno));
  }
  if (!bounded && content.size() == most && std::fgetc(file.get()) != EOF) return too_long();
  return content;
}

Result<void> write_file(const std::filesystem::path& path, std::string_view content) {
  DEMARC_TRY(OutputFile file, OutputFile::open(path));
  DEMARC_CHECK(file.write(content));
  return file.finish();
}

Result<void> check_writable(const std::filesystem::path& path) {
  const WriteTarget target(path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return unwritable(path, EISDIR);
  if (target.direct) {
    if (::access(path.c_str(), W_OK) != 0) return unwritable(path, errno);
    return {};
  }
  const File file(std::fopen(target.temporary.c_str(), "wb"));
  if (!file) return unwritable(path, errno);
  std::remove(target.temporary.c_str());
  return {};
}

}  // namespace demarc
