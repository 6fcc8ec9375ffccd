// Looks for images among the data of a file by how they begin.
#include <elf.h>

#include <algorithm>
#include <cstring>

#include "bytes.hpp"
#include "demarc/fatbin/files.hpp"
#include "formats.hpp"
#include "ptx_text.hpp"

namespace demarc::fatbin {
namespace {

constexpr std::string_view ptx_start = ".version ";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Host code that looks for fat binaries has the magic number too, and no header behind it.
bool is_fat_binary(std::string_view bytes) {
  const auto header = field<FatBinaryHeader>(bytes, 0);
  return header && header->version == 1 && header->header_bytes == sizeof(FatBinaryHeader) &&
         fits(sizeof(FatBinaryHeader), header->entry_bytes, bytes.size());
}

bool is_cubin(std::string_view bytes) {
  const auto header = field<Elf64_Ehdr>(bytes, 0);
  return header && header->e_machine == EM_CUDA;
}

// ".version 8.0", blanks, ".target": not what a program would print with other numbers.
bool is_ptx(std::string_view bytes) {
  const auto skip = [&bytes](const auto& condition) {
    const auto end = std::find_if_not(bytes.begin(), bytes.end(), condition);
    const bool any = end != bytes.begin();
    bytes.remove_prefix(static_cast<std::size_t>(end - bytes.begin()));
    return any;
  };
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  bytes.remove_prefix(ptx_start.size());
  if (!skip(is_digit) || !bytes.starts_with('.')) return false;
  bytes.remove_prefix(1);
  return skip(is_digit) && skip(is_blank) && bytes.starts_with(".target ");
}

class DataSearch {
 public:
  DataSearch(const std::string& content, const std::string& path,
             const std::vector<FileImage>& found)
      : content_(content), path_(path) {
    for (const FileImage& one : found) known_.push_back(one.image.bytes);
  }

  Result<std::vector<FileImage>> search() {
    DEMARC_CHECK(each(fat_binary_magic, is_fat_binary));
    DEMARC_CHECK(each(elf_magic, is_cubin));
    DEMARC_CHECK(each(ptx_start, is_ptx));
    return std::move(images_);
  }

 private:
  // What begins so, outside of the images that are known, those of this search too.
  template <class Condition>
  Result<void> each(std::string_view start, const Condition& is_image) {
    std::sort(known_.begin(), known_.end(),
              [](std::string_view a, std::string_view b) { return a.data() < b.data(); });
    const std::vector<std::string_view> known = known_;
    auto next = known.begin();
    for (std::size_t at = 0;;) {
      const void* place =
          ::memmem(content_.data() + at, content_.size() - at, start.data(), start.size());
      if (place == nullptr) return {};
      const char* const begin = static_cast<const char*>(place);
      at = static_cast<std::size_t>(begin - content_.data());
      while (next != known.end() && next->data() + next->size() <= begin) ++next;
      if (next != known.end() && next->data() <= begin) {
        at = static_cast<std::size_t>(next->data() + next->size() - content_.data());
        continue;
      }
      std::string_view rest = std::string_view(content_).substr(at);
      at += start.size();
      if (!is_image(rest)) continue;
      const std::string where = fmt::format("{}: byte {}", path_, at - start.size());
      if (start == ptx_start) {
        DEMARC_TRY(rest, ptx_text(rest, where));
      }
      DEMARC_TRY(Image image, image_in(rest, where));
      at += std::max(image.bytes.size(), start.size()) - start.size();
      known_.push_back(image.bytes);
      images_.push_back({where, {}, std::move(image)});
    }
  }

  const std::string& content_;
  const std::string& path_;
  std::vector<std::string_view> known_;
  std::vector<FileImage> images_;
};

}  // namespace

Result<std::vector<FileImage>> images_among_data(const std::string& content,
                                                 const std::string& path,
                                                 const std::vector<FileImage>& found) {
  return DataSearch(content, path, found).search();
}

}  // namespace demarc::fatbin
