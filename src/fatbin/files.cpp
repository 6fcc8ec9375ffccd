// Finds the images in a file, whatever the file is.
#include "demarc/fatbin/files.hpp"

#include <algorithm>
#include <array>

#include "bytes.hpp"
#include "demarc/base/files.hpp"
#include "elf.hpp"
#include "formats.hpp"

namespace demarc::fatbin {
namespace {

constexpr std::array<std::string_view, 2> fat_sections = {fat_section, linked_section};

// The fat binaries of a section: one after the other, with zeros between them where the linker has
// aligned the next.
Result<void> read_section(const Elf::Section& section, const std::string& path,
                          std::vector<FileImage>& images) {
  const std::string place = fmt::format("{}: {}", path, section.name);
  if ((section.header.sh_flags & SHF_COMPRESSED) != 0) {
    return invalid_input(
        "{}: the section is compressed; objcopy --decompress-debug-sections "
        "makes a file that can be read",
        place);
  }
  if (section.header.sh_type == SHT_NOBITS && section.header.sh_size != 0)
    return invalid_input("{}: the section's content has been taken out of the file", place);
  std::string_view rest = section.content;
  for (std::size_t i = 0;; ++i) {
    const auto zeros = rest.find_first_not_of('\0');
    if (zeros == std::string_view::npos) return {};
    rest.remove_prefix(zeros);
    const std::string where = fmt::format("{}: image {}", place, i);
    if (!begins_with(rest, fat_binary_magic)) {
      return invalid_input("{}: no fat binary at byte {} of the section", where,
                           section.content.size() - rest.size());
    }
    DEMARC_TRY(Image image, image_in(rest, where));
    rest.remove_prefix(image.bytes.size());
    images.push_back({where, std::string(section.name), std::move(image)});
  }
}

Result<std::vector<FileImage>> read_sections(const Elf& elf, const std::string& path) {
  std::vector<FileImage> images;
  for (const Elf::Section& section : elf.sections()) {
    if (std::ranges::count(fat_sections, section.name) > 0)
      DEMARC_CHECK(read_section(section, path, images));
  }
  return images;
}

Result<void> read_program(const Elf& elf, FileImages& file) {
  DEMARC_TRY(file.images, read_sections(elf, file.path));
  if (!file.images.empty()) return {};
  return invalid_input("{}: an ELF file without device code (section {})", file.path,
                       fmt::join(fat_sections, " or "));
}

// All of the file is one image.
Result<void> read_one(FileImages& file) {
  DEMARC_TRY(Image image, image_in(*file.content, file.path));
  const std::string_view behind = std::string_view(*file.content).substr(image.bytes.size());
  if (behind.find_first_not_of('\0') != std::string_view::npos) {
    return invalid_input("{}: {} bytes follow behind the {}", file.path, behind.size(),
                         name(image.kind));
  }
  file.images.push_back({file.path, {}, std::move(image)});
  return {};
}

}  // namespace

Result<FileImages> read_images(const std::filesystem::path& path) {
  DEMARC_TRY(std::string content, read_file(path));
  return images_of(std::move(content), path.string());
}

Result<FileImages> read_loadable(const std::filesystem::path& path) {
  DEMARC_TRY(FileImages file, read_images(path));
  if (file.images.size() == 1) return file;
  return missing_capability("{}: it holds {} images; only one can be loaded", path.string(),
                            file.images.size());
}

Result<std::vector<FileImage>> images_of_program(const std::string& content,
                                                 const std::string& path) {
  DEMARC_TRY(const Elf elf, Elf::read(content, path));
  return read_sections(elf, path);
}

Result<FileImages> images_of(std::string content, std::string path) {
  FileImages file;
  file.path = std::move(path);
  file.content = std::make_shared<const std::string>(std::move(content));
  const std::string_view bytes = *file.content;
  if (begins_with(bytes, "!<arch>\n") || begins_with(bytes, "!<thin>\n")) {
    return invalid_input("{}: is an archive; 'ar x {}' takes out its members, which can be read",
                         file.path, file.path);
  }
  if (!begins_with(bytes, elf_magic)) {
    DEMARC_CHECK(read_one(file));
    return file;
  }
  DEMARC_TRY(const Elf elf, Elf::read(bytes, file.path));
  DEMARC_CHECK(elf.is_cubin() ? read_one(file) : read_program(elf, file));
  return file;
}

}  // namespace demarc::fatbin
