// Tells what a block of bytes is and where it ends.
#include "demarc/fatbin/image.hpp"

#include <algorithm>

#include "bytes.hpp"
#include "elf.hpp"
#include "formats.hpp"
#include "ptx_text.hpp"

namespace demarc::fatbin {
namespace {

Result<std::string_view> whole_cubin(std::string_view bytes, std::string_view name) {
  DEMARC_TRY(const Elf elf, Elf::read(bytes, name));
  if (!elf.is_cubin()) {
    return invalid_input("{}: an ELF file of machine {}; device code has machine {}", name,
                         elf.header().e_machine, EM_CUDA);
  }
  return bytes.substr(0, elf.size());
}

Result<std::string_view> whole_fat_binary(std::string_view bytes, std::string_view name) {
  const auto header = field<FatBinaryHeader>(bytes, 0);
  if (!header) return invalid_input("{}: a fat binary that ends in its header", name);
  if (header->version != 1 || header->header_bytes != sizeof *header) {
    return invalid_input(
        "{}: a fat binary of version {} with a header of {} bytes; known is version 1 with {}",
        name, header->version, header->header_bytes, sizeof *header);
  }
  if (!fits(sizeof *header, header->entry_bytes, bytes.size())) {
    return invalid_input("{}: a fat binary that states {} bytes of entries, where {} can be", name,
                         header->entry_bytes, bytes.size() - sizeof *header);
  }
  return bytes.substr(0, sizeof *header + header->entry_bytes);
}

// What is none of the others is text, or it is refused as text.
struct Format {
  ImageKind kind;
  std::string_view name;
  std::string_view magic;
  Result<std::string_view> (*whole)(std::string_view bytes, std::string_view name);
};
constexpr Format formats[] = {
    {ImageKind::cubin, "cubin", elf_magic, whole_cubin},
    {ImageKind::fat_binary, "fat binary", fat_binary_magic, whole_fat_binary},
    {ImageKind::ptx, "PTX", "", ptx_text},
};

// As many bytes from `address` as an image may have, and the address space has.
std::string_view max_from(const void* address) {
  const std::uint64_t room = UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(address);
  return {static_cast<const char*>(address), std::min(room, max_image_bytes)};
}

// The fat binaries whose addresses stand at `list`, up to a null pointer.
Result<std::vector<std::string_view>> read_prelinked(const void* list, std::string_view name) {
  std::vector<std::string_view> found;
  const std::string_view addresses = max_from(list);
  while (list != nullptr) {
    const auto next = field<const char*>(addresses, found.size() * sizeof(const char*));
    if (*next == nullptr) break;
    if (found.size() == max_prelinked) {
      return invalid_input("{}: a wrapper with more than {} fat binaries", name, max_prelinked);
    }
    const std::string_view bytes = max_from(*next);
    if (!begins_with(bytes, fat_binary_magic)) {
      return invalid_input("{}: a wrapper whose linked binary {} is not a fat binary", name,
                           found.size());
    }
    DEMARC_TRY(found.emplace_back(), whole_fat_binary(bytes, name));
  }
  return found;
}

Result<Image> unwrap(const Wrapper& wrapper, std::string_view name) {
  if (wrapper.version != 1 && wrapper.version != 2) {
    return invalid_input("{}: a wrapper of version {}; known are 1 and 2", name, wrapper.version);
  }
  if (wrapper.data == nullptr) {
    return invalid_input("{}: a wrapper that points to nothing", name);
  }
  const std::string_view bytes = max_from(wrapper.data);
  if (!begins_with(bytes, fat_binary_magic))
    return invalid_input("{}: a wrapper that points to something else than a fat binary", name);
  Image image;
  image.kind = ImageKind::fat_binary;
  DEMARC_TRY(image.bytes, whole_fat_binary(bytes, name));
  if (wrapper.version == 2) {
    DEMARC_TRY(image.prelinked, read_prelinked(wrapper.other, name));
  }
  return image;
}

Result<Image> whole_image(std::string_view bytes, std::string_view name) {
  const auto* const format = std::ranges::find_if(
      formats, [&](const Format& row) { return begins_with(bytes, row.magic); });
  Image image;
  image.kind = format->kind;
  DEMARC_TRY(image.bytes, format->whole(bytes, name));
  return image;
}

}  // namespace

std::string_view name(ImageKind kind) {
  return std::ranges::find(formats, kind, &Format::kind)->name;
}

Result<Image> image_at(const void* address, std::string_view name) {
  if (address == nullptr) return invalid_input("{}: no image at all: a null pointer", name);
  const std::string_view bytes = max_from(address);
  // No program's memory reaches the end of the address space: behind a magic is room for a record.
  if (begins_with(bytes, wrapper_magic)) return unwrap(*field<Wrapper>(bytes, 0), name);
  DEMARC_TRY(Image image, whole_image(bytes, name));
  if (image.bytes.size() >= bytes.size())
    return invalid_input("{}: has no end within {} bytes", name, bytes.size());
  return image;
}

Result<Image> image_in(std::string_view bytes, std::string_view name) {
  if (bytes.empty()) return invalid_input("{}: is empty", name);
  if (begins_with(bytes, wrapper_magic)) {
    return invalid_input(
        "{}: a wrapper points to a fat binary in its program's memory; a file has none behind it",
        name);
  }
  DEMARC_TRY(Image image, whole_image(bytes.substr(0, max_image_bytes), name));
  if (image.kind == ImageKind::ptx &&
      bytes.find_first_not_of('\0', image.bytes.size()) != std::string_view::npos) {
    return invalid_input("{}: PTX text that goes on behind a NUL (byte {})", name,
                         image.bytes.size());
  }
  return image;
}

}  // namespace demarc::fatbin
