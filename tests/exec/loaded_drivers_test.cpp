// Drivers are found in a process by the names that they were linked under.
#include "loaded_drivers.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "demarc/base/files.hpp"
#include "demarc/base/owned_file.hpp"
#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using testing::Contains;
using testing::Not;

class LoadedDrivers : public testing::Test {
 protected:
  LoadedDrivers() {
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    std::filesystem::copy_file(test::fake_libcuda(), copy);
    // The one that it is a copy of: a single one is believed by its name.
    original = ::dlopen(test::fake_libcuda().c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  ~LoadedDrivers() override {
    ::dlclose(original);
    ::unsetenv("DEMARC_LIBCUDA");
  }
  static std::vector<std::string> found() { return drivers_of(::getpid()).value(); }
  const std::filesystem::path copy = test::fresh_folder("loaded_drivers") / "innocent.so";
  void* original = nullptr;
};

TEST_F(LoadedDrivers, a_renamed_and_deleted_copy_is_one) {
  EXPECT_THAT(found(), Contains(test::fake_libcuda().string()));
  EXPECT_THAT(found(), Not(Contains(copy.string())));
  void* loaded = ::dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(loaded, nullptr) << ::dlerror();
  EXPECT_THAT(found(), Contains(copy.string()).Times(1));
  std::filesystem::remove(copy);
  EXPECT_THAT(found(), Contains(copy.string() + " (deleted)").Times(1));
  ::dlclose(loaded);
}

TEST_F(LoadedDrivers, a_file_that_is_read_is_none) {
  const OwnedFile file(::open(copy.c_str(), O_RDONLY | O_CLOEXEC));
  const std::size_t bytes = std::filesystem::file_size(copy);
  void* read = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  ASSERT_NE(read, MAP_FAILED);
  EXPECT_THAT(found(), Not(Contains(copy.string())));
  ::munmap(read, bytes);
}

// As dlmopen() does: the header is mapped once more, and then the code.
TEST_F(LoadedDrivers, a_file_that_was_loaded_twice_is_two) {
  constexpr std::size_t page_bytes = 4096;
  const auto named = copy.parent_path() / "libcuda.so.1";
  std::filesystem::copy_file(copy, named);
  const OwnedFile file(::open(named.c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<void*> places;
  for (std::size_t copies = 1; copies <= 2; ++copies) {
    void* const place =
        ::mmap(nullptr, 2 * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    places.push_back(place);
    for (const std::size_t at : {std::size_t{0}, page_bytes}) {
      ASSERT_NE(::mmap(static_cast<char*>(place) + at, page_bytes,
                       at == 0 ? PROT_READ : PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
                       file.get(), static_cast<off_t>(at)),
                MAP_FAILED);
    }
    EXPECT_THAT(found(), Contains(named.string()).Times(copies));
  }
  for (void* const place : places) ::munmap(place, 2 * page_bytes);
}

TEST_F(LoadedDrivers, a_process_that_is_gone_tells_nothing) {
  EXPECT_EQ(drivers_of(0), std::nullopt);
}

// A library of two pages that no linker has loaded, with what is looked at in it and no more.
struct PlantedLibrary {
  static constexpr std::size_t page_bytes = 4096;
  static constexpr std::uint64_t dynamic_at = 0x200, names_at = 0x300, content_at = 0x280;
  std::string file = "innocent.so";
  std::string magic = ELFMAG;
  std::string first_name;  // that no entry means
  std::string name = "libcuda.so.1";
  std::uint64_t name_at = 0x40;           // from names_at
  std::uint64_t first_address = 0x10000;  // that the file gives to its first byte
  bool names_are_loaded = false;          // their address is that in memory
  std::string content = "cuGetExportTable";
  std::vector<std::int64_t> entries{DT_NEEDED, DT_STRTAB, DT_SONAME};
  std::size_t entries_that_count = 3;

  // Whether it is one, where a driver is loaded too.
  [[nodiscard]] bool is_driver() const {
    const auto path = test::fresh_folder("planted_library") / file;
    std::string bytes(2 * page_bytes, '\0');
    EXPECT_TRUE(write_file(path, bytes));
    // No memory follows it.
    char* const place = static_cast<char*>(
        ::mmap(nullptr, 3 * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    put_into(bytes, reinterpret_cast<std::uint64_t>(place));
    EXPECT_TRUE(write_file(path, bytes));
    const OwnedFile opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(::mmap(place, bytes.size(), PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
                     opened.get(), 0),
              place);
    const auto found = drivers_of(::getpid()).value();
    ::munmap(place, 3 * page_bytes);
    return std::find(found.begin(), found.end(), path.string()) != found.end();
  }

 private:
  template <class T>
  static void put(std::string& bytes, std::uint64_t at, const T& value) {
    std::memcpy(&bytes.at(at), &value, sizeof value);
  }
  static void put_text(std::string& bytes, std::uint64_t at, const std::string& text) {
    bytes.replace(at, text.size(), text);
  }
  void put_into(std::string& bytes, std::uint64_t base) const {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, magic.data(), magic.size());
    header.e_phoff = sizeof header;
    header.e_phnum = 3;
    put(bytes, 0, header);
    Elf64_Phdr parts[3] = {};
    parts[0].p_type = PT_LOAD;
    parts[0].p_offset = page_bytes / 2;
    parts[0].p_vaddr = first_address + page_bytes / 2;
    // Another one lies elsewhere than in the file.
    parts[1].p_type = PT_LOAD;
    parts[1].p_offset = page_bytes;
    parts[1].p_vaddr = first_address + 3 * page_bytes;
    parts[2].p_type = PT_DYNAMIC;
    parts[2].p_vaddr = first_address + dynamic_at;
    parts[2].p_memsz = entries_that_count * sizeof(Elf64_Dyn);
    put(bytes, sizeof header, parts);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      Elf64_Dyn entry{};
      entry.d_tag = entries[i];
      entry.d_un.d_ptr = 0x555;
      if (entry.d_tag == DT_STRTAB) {
        entry.d_un.d_ptr = (names_are_loaded ? base : first_address) + names_at;
      }
      if (entry.d_tag == DT_SONAME) entry.d_un.d_val = name_at;
      put(bytes, dynamic_at + i * sizeof entry, entry);
    }
    put_text(bytes, content_at, content);
    put_text(bytes, names_at, first_name);
    put_text(bytes, names_at + name_at, name);
  }
};

TEST_F(LoadedDrivers, are_found_by_their_linked_name_wherever_that_lies_in_the_file) {
  EXPECT_TRUE(PlantedLibrary{}.is_driver());
  PlantedLibrary other;
  other.name = "libother.so.1";
  EXPECT_FALSE(other.is_driver());
  for (const std::uint64_t address : {0x0UL, 0x1000UL, 0x400000UL}) {
    PlantedLibrary moved;
    moved.first_address = address;
    EXPECT_TRUE(moved.is_driver()) << address;
    moved.names_are_loaded = true;
    EXPECT_TRUE(moved.is_driver()) << address;
  }
  constexpr std::size_t page = PlantedLibrary::page_bytes;
  const std::uint64_t bytes = other.name.size();
  PlantedLibrary last;
  last.name_at = 2 * page - bytes - PlantedLibrary::names_at;
  EXPECT_TRUE(last.is_driver()) << "nothing lies behind it";
  for (const std::uint64_t on_the_first : {1UL, 4UL, 12UL}) {
    PlantedLibrary across;
    across.name_at = page - on_the_first - PlantedLibrary::names_at;
    EXPECT_TRUE(across.is_driver()) << on_the_first << " characters on the first page";
  }
}

TEST_F(LoadedDrivers, have_a_linked_name_by_an_entry_of_their_own_table) {
  const auto with = [](std::vector<std::int64_t> entries, std::size_t that_count) {
    PlantedLibrary library;
    library.first_name = "libcuda.so.not";
    library.entries = std::move(entries);
    library.entries_that_count = that_count;
    return library;
  };
  EXPECT_TRUE(with({DT_SONAME, DT_STRTAB}, 2).is_driver());
  EXPECT_TRUE(with({DT_STRTAB, DT_SONAME, DT_NULL}, 3).is_driver());
  EXPECT_FALSE(with({DT_STRTAB, DT_NEEDED}, 2).is_driver()) << "it has none";
  EXPECT_FALSE(with({DT_STRTAB, DT_NULL, DT_SONAME}, 3).is_driver()) << "behind its end";
  EXPECT_FALSE(with({DT_STRTAB, DT_NEEDED, DT_SONAME}, 2).is_driver()) << "behind its end";
  EXPECT_FALSE(with({}, 0).is_driver());
  PlantedLibrary no_library;
  no_library.magic = "\177ELG";
  EXPECT_FALSE(no_library.is_driver());
}

TEST_F(LoadedDrivers, beside_another_one_have_what_every_driver_has_in_it) {
  PlantedLibrary empty;
  empty.content = "cuInit";
  EXPECT_FALSE(empty.is_driver());
  empty.file = "libcuda.so.580.159.04";
  EXPECT_FALSE(empty.is_driver());
}

TEST_F(LoadedDrivers, are_found_by_the_names_of_their_files_too) {
  ::unsetenv("DEMARC_LIBCUDA");
  PlantedLibrary named;
  named.name = "libother.so.1";
  EXPECT_FALSE(named.is_driver());
  named.file = "libcuda.so.580.159.04";
  EXPECT_TRUE(named.is_driver());
  ::setenv("DEMARC_LIBCUDA", "/opt/driver/libdriver.so", 1);
  named.file = "libdriver.so";
  EXPECT_TRUE(named.is_driver()) << "it was named to take the place of libcuda.so.1";
}

}  // namespace
}  // namespace demarc::cuda
