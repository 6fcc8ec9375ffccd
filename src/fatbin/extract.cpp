// Writes the PTX of a file's images as files.
#include "demarc/base/files.hpp"
#include "listed.hpp"

namespace demarc::fatbin {

Result<std::vector<std::filesystem::path>> extract_ptx(const FileImages& file,
                                                       const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> written;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return invalid_input("{}: cannot be made: {}", folder.string(), error.message());
  const std::string stem = std::filesystem::path(file.path).filename().string();
  for (std::size_t i = 0; i < file.images.size(); ++i) {
    DEMARC_TRY(const std::vector<Entry> entries, entries_of(file.images[i]));
    for (std::size_t j = 0; j < entries.size(); ++j) {
      if (entries[j].kind != EntryKind::ptx) continue;
      DEMARC_TRY(const std::string text, content_of(entries[j]));
      const auto path =
          folder / fmt::format("{}.{}.{}.{}.ptx", stem, i, j, name(entries[j].target));
      DEMARC_CHECK(write_file(path, text));
      written.push_back(path);
    }
  }
  if (!written.empty()) return written;
  return invalid_input("{}: holds no PTX, only machine code; 'demarc ptx {} --list' lists it",
                       file.path, file.path);
}

}  // namespace demarc::fatbin
