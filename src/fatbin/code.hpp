// Goes through all code of an image, each piece by what it is.
#pragma once

#include <string>
#include <string_view>

#include "demarc/fatbin/entry.hpp"
#include "demarc/fatbin/image.hpp"

namespace demarc::fatbin {

// A fat binary has that of all its entries and of the fat binaries that it was linked from, because
// it is not known which of them the driver takes. Code that is neither PTX nor machine code is an
// error: `unknown` says what is then not known of it. Both take the code and its name.
template <class OfPtx, class OfCubin>
Result<void> for_each_code(const Image& image, std::string_view name, std::string_view unknown,
                           OfPtx of_ptx, OfCubin of_cubin) {
  const auto of_fat_binary = [&](std::string_view bytes) -> Result<void> {
    DEMARC_TRY(const std::vector<Entry> entries, read_entries(bytes, name));
    for (const Entry& entry : entries) {
      if (entry.kind != EntryKind::ptx && entry.kind != EntryKind::cubin) {
        return invalid_input("{}: is {}: it is unknown whether it has {}", entry.where,
                             kind_name(entry), unknown);
      }
      DEMARC_TRY(const std::string content, content_of(entry));
      DEMARC_CHECK(entry.kind == EntryKind::ptx ? of_ptx(content, entry.where)
                                                : of_cubin(content, entry.where));
    }
    return {};
  };
  if (image.kind == ImageKind::ptx) {
    DEMARC_CHECK(of_ptx(image.bytes, name));
  } else if (image.kind == ImageKind::cubin) {
    DEMARC_CHECK(of_cubin(image.bytes, name));
  } else {
    DEMARC_CHECK(of_fat_binary(image.bytes));
  }
  for (const std::string_view linked : image.prelinked) DEMARC_CHECK(of_fat_binary(linked));
  return {};
}

}  // namespace demarc::fatbin
