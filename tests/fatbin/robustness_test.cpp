// Bytes that are changed, cut or made up: an answer or an error, and never a crash.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "everything.hpp"
#include "support.hpp"

namespace demarc::fatbin::test {
namespace {

const std::vector<std::string>& all_kept() {
  static const std::vector<std::string> files = [] {
    std::vector<std::string> all;
    for (const char* name :
         {"none.fatbin", "lz4.fatbin", "options.fatbin", "11.8.fatbin", "managed_elf.fatbin",
          "elf_only.fatbin", "lto.fatbin", "counted_75.cubin", "managed_rdc_90.cubin"}) {
      all.push_back(kept_file(name));
    }
    all.push_back(made_elf(EM_X86_64, {{".nv_fatbin", all[0] + all[1]}}));
    all.emplace_back(small_ptx);
    return all;
  }();
  return files;
}

TEST(AnyBytes, every_byte_of_the_headers_changed_is_answered) {
  constexpr std::size_t headers = 96;
  for (const char* name : {"none.fatbin", "lz4.fatbin", "options.fatbin", "managed_elf.fatbin"}) {
    const std::string file = kept_file(name);
    for (std::size_t at = 0; at < headers; ++at) {
      for (const int change : {0x01, 0xff})
        do_everything(with(file, at, static_cast<char>(file[at] ^ change)));
    }
  }
}

TEST(AnyBytes, every_length_of_a_small_file_is_answered) {
  for (const char* name : {"none.fatbin", "lz4.fatbin"}) {
    const std::string file = kept_file(name);
    for (std::size_t length = 0; length < file.size(); ++length) {
      do_everything(std::string_view(file).substr(0, length));
      EXPECT_FALSE(image_in(std::string_view(file).substr(0, length), "cut")) << length;
    }
  }
}

RC_GTEST_PROP(AnyBytes, some_bytes_changed_anywhere_are_answered, ()) {
  std::string bytes = *rc::gen::elementOf(all_kept());
  const auto changes = *rc::gen::inRange(1, 5);
  for (int i = 0; i < changes; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
    bytes[at] = static_cast<char>(*rc::gen::inRange(0, 256));
  }
  do_everything(bytes);
}

RC_GTEST_PROP(AnyBytes, section_headers_of_a_cubin_changed_are_answered, ()) {
  std::string bytes = *rc::gen::elementOf(
      std::vector<std::string>{kept_file("counted_75.cubin"), kept_file("managed_rdc_90.cubin")});
  std::uint64_t headers = 0;
  std::memcpy(&headers, bytes.data() + offsetof(Elf64_Ehdr, e_shoff), sizeof headers);
  const auto at = *rc::gen::inRange<std::size_t>(headers, bytes.size() - 8);
  do_everything(with(bytes, at, *rc::gen::arbitrary<std::uint64_t>()));
}

// Of what is sound, memory and file say the same.
TEST(AnyBytes, an_image_has_the_same_end_in_memory_as_in_a_file) {
  for (const std::string& file : all_kept()) {
    const auto in_file = image_in(file, "f");
    const std::string ended = file + '\0';
    const auto in_memory = image_at(ended.data(), "m");
    ASSERT_EQ(in_file.has_value(), in_memory.has_value());
    if (!in_file) continue;
    EXPECT_EQ(in_file->bytes, in_memory->bytes);
  }
}

}  // namespace
}  // namespace demarc::fatbin::test
