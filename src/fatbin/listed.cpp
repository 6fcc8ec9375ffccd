// Lists the entries of an image, whatever its kind.
#include "listed.hpp"

#include "elf.hpp"
#include "ptx_text.hpp"

namespace demarc::fatbin {

Result<std::vector<Entry>> entries_of(const FileImage& found) {
  const Image& image = found.image;
  if (image.kind == ImageKind::fat_binary) return read_entries(image.bytes, found.where);
  Entry entry;
  entry.where = found.where;
  entry.kind = EntryKind::ptx;
  entry.stored = image.bytes;
  entry.content_bytes = image.bytes.size();
  if (image.kind == ImageKind::cubin) {
    entry.kind = EntryKind::cubin;
    DEMARC_TRY(const Elf elf, Elf::read(image.bytes, found.where));
    DEMARC_TRY(entry.target.sm, sm_of(elf, found.where));
  } else {
    DEMARC_TRY(entry.target, stated_target(image.bytes, found.where));
  }
  return std::vector<Entry>{std::move(entry)};
}

}  // namespace demarc::fatbin
