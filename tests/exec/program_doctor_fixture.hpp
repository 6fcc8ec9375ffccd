// A program of files that a test makes, for tests of what is said of it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>

#include "demarc/base/files.hpp"
#include "demarc/exec/program_doctor.hpp"
#include "paths.hpp"
#include "support.hpp"

namespace demarc::cuda {

inline TenantCard card_named(const std::string& name) {
  return tenant_card(gpu::find_device(name).value());
}

class ProgramDoctor : public testing::Test {
 protected:
  // A file of the program with these fat binaries, and what else its text says.
  void add(const std::string& name, const std::vector<std::string>& images,
           const std::string& text = "code", const std::string& package = {}) {
    std::string section;
    for (const std::string& image : images) {
      section += image;
      section.resize((section.size() + 7) / 8 * 8);
    }
    std::vector<fatbin::test::MadeSection> sections{{".text", text}};
    if (!images.empty()) sections.push_back({".nv_fatbin", section});
    add_bytes(name, fatbin::test::made_elf(EM_X86_64, sections), package);
  }
  void add_bytes(const std::string& name, const std::string& content,
                 const std::string& package = {}) {
    ASSERT_TRUE(write_file(folder / name, content));
    program.files.push_back({folder / name, package});
  }
  ProgramFindings on(const std::string& card) const {
    return look_at_program(program, card_named(card));
  }
  static const FileCode& file_of(const ProgramFindings& findings, const std::string& name) {
    for (const FileCode& code : findings.files) {
      if (std::filesystem::path(code.file.path).filename() == name) return code;
    }
    throw std::logic_error("no such file: " + name);
  }

  std::filesystem::path folder = test::fresh_folder("program doctor");
  ProgramFiles program{.command = {"./app"},
                       .files = {},
                       .packages = {},
                       .missing = {},
                       .unchecked = {},
                       .loader = {}};
  const std::string ptx = fatbin::test::kept_file("ptx_only.fatbin");
  const std::string machine =
      fatbin::test::kept_file("elf_only.fatbin");  // for sm_75, sm_90a and sm_100
  const std::string unfit = fatbin::test::kept_file("managed.fatbin");  // PTX for sm_90
};

}  // namespace demarc::cuda
