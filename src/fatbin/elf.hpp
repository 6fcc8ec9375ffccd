// ELF files of 64 bits as far as they are needed here: sections with their contents, all within
// the bytes that are there.
#pragma once

#include <elf.h>

#include <span>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::fatbin {

class Elf {
 public:
  struct Section {
    std::string_view name;
    std::string_view content;  // empty when the file has none of it (SHT_NOBITS and such)
    Elf64_Shdr header;
  };

  // Checks all headers: what they name lies within `bytes`. `name` stands in the messages.
  [[nodiscard]] static Result<Elf> read(std::string_view bytes, std::string_view name);

  [[nodiscard]] const Elf64_Ehdr& header() const { return header_; }
  [[nodiscard]] std::span<const Section> sections() const { return sections_; }
  [[nodiscard]] bool is_cubin() const { return header_.e_machine == EM_CUDA; }
  // Where the last thing ends that the headers name.
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  [[nodiscard]] Result<void> take(std::uint64_t offset, std::uint64_t length,
                                  std::string_view what);
  [[nodiscard]] Result<void> read_sections();
  [[nodiscard]] Result<void> name_sections(std::uint32_t names);
  [[nodiscard]] Result<void> read_segments();

  std::string_view bytes_;
  std::string_view name_;
  Elf64_Ehdr header_{};
  std::vector<Section> sections_;
  std::uint64_t size_ = 0;
};

// The sm that the machine code of a cubin is for; an error where its ABI is none of those known.
[[nodiscard]] Result<std::uint32_t> sm_of(const Elf& cubin, std::string_view name);

}  // namespace demarc::fatbin
