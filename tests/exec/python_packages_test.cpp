// The packages of a Python program are found by its interpreter, and none is imported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "demarc/base/files.hpp"
#include "demarc/exec/program_files.hpp"
#include "paths.hpp"
#include "program.hpp"
#include "python_packages.hpp"
#include "support.hpp"
#include "unchecked_matcher.hpp"

namespace demarc::cuda {
namespace {

namespace fs = std::filesystem;
using fatbin::test::message_of;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

auto file_of(const std::string& package, const std::string& end) {
  return AllOf(Field(&ProgramFile::path, EndsWith(end)), Field(&ProgramFile::package, package));
}
class PythonPackages : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* path = std::getenv("PYTHONPATH")) path_ = path;
    ::setenv("PYTHONPATH", site.c_str(), 1);
    programs_ = std::getenv("PATH");
    // A script that starts the interpreter, such as pyenv's, takes longer than all else.
    static const std::string interpreter =
        test::run_program({"python3", "-c", "import sys; print(sys.executable, end='')"}).out;
    ::setenv("PATH", (fs::path(interpreter).parent_path().string() + ":" + programs_).c_str(), 1);
  }
  void TearDown() override {
    ::setenv("PATH", programs_.c_str(), 1);
    if (path_) {
      ::setenv("PYTHONPATH", path_->c_str(), 1);
    } else {
      ::unsetenv("PYTHONPATH");
    }
  }
  std::string add(const std::string& name, const std::string& content) const {
    const fs::path file = folder / name;
    fs::create_directories(file.parent_path());
    EXPECT_TRUE(write_file(file, content));
    return file;
  }
  // A package that ends the process which imports it.
  void add_package(const std::string& name, const std::vector<std::string>& libraries = {}) const {
    add("site-packages/" + name + "/__init__.py", "import os\nos._exit(9)\n");
    for (const std::string& library : libraries) add("site-packages/" + name + "/" + library, "x");
  }
  void add_needs(const std::string& name, const std::string& lines) const {
    const std::string info = "site-packages/" + name + "-1.0.dist-info/";
    add(info + "METADATA", "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n" + lines);
    add(info + "top_level.txt", name + "\n");
  }
  ProgramFiles look(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command{"python3"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const auto found = find_program_files({.command = command, .pid = {}});
    EXPECT_TRUE(found) << message_of(found);
    return found ? *found : ProgramFiles();
  }

  fs::path folder = fs::canonical(test::fresh_folder("python"));
  fs::path site = folder / "site-packages";

 private:
  std::optional<std::string> path_;
  std::string programs_;
};

TEST_F(PythonPackages, of_a_script_are_those_that_its_text_imports_anywhere) {
  for (const char* name : {"one", "two", "three", "four", "five", "six"})
    add_package(name, {"_c.so"});
  const std::string script = add("train.py", R"(import os, one
from two.part import thing
def f():
    import three.part as t
    try:
        from four import *
    except ImportError:
        import nowhere
__import__("five")
"import six"
)");
  const ProgramFiles found = look({script, "--flag"});
  EXPECT_THAT(found.packages, ElementsAre("five", "four", "one", "three", "two"));
  EXPECT_THAT(found.missing, ElementsAre("nowhere"));
  EXPECT_THAT(found.files, Contains(file_of("one", "site-packages/one/_c.so")));
  EXPECT_THAT(found.unchecked, IsEmpty());
  EXPECT_TRUE(is_python(fs::path(found.files.front().path).filename()))
      << "the executable is first";
  EXPECT_EQ(found.files.front().package, "");
}

TEST_F(PythonPackages, leave_out_what_no_program_could_load) {
  add_package("one", {"a.so"});
  ASSERT_EQ(::mkfifo((site / "one" / "pipe.so").c_str(), 0600), 0);
  fs::create_directory(site / "one" / "folder.so");
  const ProgramFiles found = look({"-c", "import one"});
  EXPECT_THAT(found.files, Contains(file_of("one", "/one/a.so")));
  EXPECT_THAT(found.files, Not(Contains(file_of("one", "/pipe.so")))) << "reading it has no end";
  EXPECT_THAT(found.files, Not(Contains(file_of("one", "/folder.so"))));
}

TEST_F(PythonPackages, have_the_files_that_may_hold_code_at_any_depth) {
  add_package("one", {"lib/deep/libx.so.12", "kernel.cubin", "kernel.ptx", "all.fatbin", "text.py",
                      "libx.a", "so.txt"});
  fs::create_symlink(site / "one" / "lib" / "deep" / "libx.so.12", site / "one" / "libx.so");
  const ProgramFiles found = look({"-c", "import one"});
  std::vector<std::string> names;
  for (const ProgramFile& file : found.files) {
    if (file.package == "one") names.push_back(fs::path(file.path).filename());
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("libx.so.12", "kernel.cubin", "kernel.ptx",
                                                   "all.fatbin"));
}

TEST_F(PythonPackages, that_are_one_file_have_it) {
  add("site-packages/single.so", "x");
  fs::create_directories(site);
  add("site-packages/text.py", "");
  const std::string suffix = ".so";  // one that every interpreter takes
  const ProgramFiles found = look({"-c", "import single, text"});
  EXPECT_THAT(found.files, Contains(file_of("single", "site-packages/single" + suffix)));
  EXPECT_THAT(found.files, Not(Contains(Field(&ProgramFile::package, "text"))));
}

TEST_F(PythonPackages, of_modules_beside_the_script_are_the_programs_too) {
  add_package("deep", {"_c.so"});
  add("app/model/part/layers.py", "import deep\n");
  add("app/model/__init__.py", "from . import part\n");
  add("app/helper.py", "import model\n");
  const std::string script = add("app/main.py", "import helper\n");
  EXPECT_THAT(look({script}).packages, ElementsAre("deep", "helper", "model"));
  EXPECT_THAT(look({folder / "app" / ".." / "app" / "main.py"}).packages, Contains("deep"));
  add("app/__main__.py", "import helper\n");
  EXPECT_THAT(look({folder / "app"}).packages, Contains("deep")) << "a folder as a program";
  const fs::path link = folder / "link.py";
  fs::create_symlink(script, link);
  EXPECT_THAT(look({link}).packages, Contains("deep")) << "beside the file that is meant";
}

TEST_F(PythonPackages, bring_along_what_they_need) {
  for (const char* name : {"one", "two", "three", "torch", "more"}) add_package(name, {"_c.so"});
  add_needs("one",
            "Requires-Dist: two (>=1.0)\n"
            "Requires-Dist: torch>=2 ; extra == 'gpu'\n"
            "Requires-Dist: more ; extra == 'all'\n"
            "Requires-Dist: notinstalled\n");
  add_needs("two", "Requires-Dist: three\n");
  add_needs("three", "");
  add_needs("torch", "");
  add_needs("more", "");
  EXPECT_THAT(look({"-c", "import one"}).packages, ElementsAre("one", "three", "torch", "two"))
      << "of what they can do without the frameworks alone";
}

TEST_F(PythonPackages, of_frameworks_bring_the_libraries_beside_them) {
  add_package("torch", {"lib/libtorch_cuda.so"});
  add_package("triton", {"_C/libtriton.so"});
  add("site-packages/nvidia/cublas/lib/libcublas.so.12", "x");
  const ProgramFiles found = look({"-c", "import torch"});
  EXPECT_THAT(found.packages, ElementsAre("nvidia", "torch", "triton"));
  EXPECT_THAT(found.files, Contains(file_of("nvidia", "nvidia/cublas/lib/libcublas.so.12")));
  EXPECT_THAT(look({"-c", "import triton"}).packages, ElementsAre("triton"));
}

TEST_F(PythonPackages, are_asked_of_the_command_line_as_the_interpreter_reads_it) {
  for (const char* name : {"one", "two"}) add_package(name);
  add("site-packages/tool/__main__.py", "");
  add("site-packages/tool/__init__.py", "");
  EXPECT_THAT(look({"-u", "-W", "ignore", "-X", "dev", "-c", "import one"}).packages,
              ElementsAre("one"));
  EXPECT_THAT(look({"-c", "import one", "no script"}).unchecked, IsEmpty());
  EXPECT_THAT(look({"-cimport one"}).packages, ElementsAre("one"));
  EXPECT_THAT(look({"-m", "tool.run", "-c", "import one"}).packages, ElementsAre("tool"));
  EXPECT_THAT(look({"-mtool"}).packages, ElementsAre("tool"));
  EXPECT_THAT(look({"-E", "-c", "import one"}).missing, ElementsAre("one"))
      << "without PYTHONPATH it is not found";
  const std::string script = add("train.py", "import one\n");
  const std::string other = add("other.py", "import two\n");
  EXPECT_THAT(look({"-m", "tool", "--x", script}).packages, ElementsAre("one", "tool"))
      << "a launcher's script";
  EXPECT_THAT(look({"--", script, other}).packages, ElementsAre("one", "two"));
  EXPECT_THAT(look({}).unchecked, ElementsAre(unchecked("python3", "no script was named")));
  EXPECT_THAT(look({"-"}).unchecked, ElementsAre(unchecked("python3", "no script was named")));
  EXPECT_THAT(look({"-m"}).unchecked, ElementsAre(unchecked("python3", "no script was named")));
}

TEST_F(PythonPackages, of_a_text_that_cannot_be_read_or_parsed_are_not_known) {
  const std::string script = add("train.py", "import (\n");
  EXPECT_THAT(look({script}).unchecked, ElementsAre(unchecked("train.py", "cannot be parsed")));
  EXPECT_THAT(look({folder / "none.py"}).unchecked,
              ElementsAre(unchecked("none.py", "it cannot be read (No such file")));
  EXPECT_THAT(look({"-c", "import ("}).unchecked,
              ElementsAre(unchecked("the text of -c", "cannot be parsed")));
}

TEST_F(PythonPackages, of_an_executable_script_are_found_by_the_interpreter_that_it_names) {
  add_package("one");
  const std::string script = add("train", "#!/usr/bin/env python3\nimport one\n");
  fs::permissions(script, fs::perms::owner_all);
  const auto found = find_program_files({.command = {script, "x"}, .pid = {}});
  ASSERT_TRUE(found) << message_of(found);
  EXPECT_THAT(found->packages, ElementsAre("one"));
  EXPECT_THAT(found->command, ElementsAre(script, "x"));
  EXPECT_THAT(found->unchecked, IsEmpty());
  add_package("two");
  EXPECT_THAT(
      find_program_files({.command = {script, add("two.py", "import two\n")}, .pid = {}})->packages,
      ElementsAre("one", "two"));
  const std::string with_options = add("other", "#!/usr/bin/env -S python3 -E\nimport one\n");
  fs::permissions(with_options, fs::perms::owner_all);
  EXPECT_THAT(find_program_files({.command = {with_options}, .pid = {}})->missing,
              ElementsAre("one"));
}

// An interpreter that does what the lines say.
class OtherPython : public PythonPackages {
 protected:
  ProgramFiles answer(const std::string& lines, double seconds = 60) const {
    const std::string python = add("python3.99", "#!/bin/sh\n" + lines + "\n");
    fs::permissions(python, fs::perms::owner_all);
    const auto found =
        find_program_files({.command = {python, "-c", ""}, .pid = {}, .limit_seconds = seconds});
    EXPECT_TRUE(found) << message_of(found);
    return found ? *found : ProgramFiles();
  }
};

TEST_F(OtherPython, that_does_not_answer_leaves_the_packages_unknown) {
  EXPECT_THAT(answer("exit 3").unchecked,
              ElementsAre(unchecked("packages of Python",
                                    "did not say which packages it has (exit "
                                    "code 3)")));
  EXPECT_THAT(answer("exec sleep 100", 0.2).unchecked,
              ElementsAre(unchecked("packages of Python", "within 0.2 s")));
  EXPECT_THAT(answer("echo nonsense").unchecked,
              ElementsAre(unchecked("packages of Python", "cannot be read")));
  EXPECT_THAT(answer("echo '{}'").unchecked, ElementsAre(unchecked("packages of Python", "")));
  EXPECT_THAT(answer("echo '[]'").unchecked,
              ElementsAre(unchecked("packages of Python", "cannot be read")));
}

TEST_F(OtherPython, may_print_before_it_answers_and_names_the_executable_that_it_is) {
  const std::string real = fs::canonical(test::build_dir() / "demarc_exec_subject");
  const ProgramFiles found = answer("echo hello; echo '{\"executable\": \"" + real +
                                    "\", \"packages\": [], \"missing\": [\"m\"], "
                                    "\"problems\": [[\"what\", \"why\"]]}'");
  EXPECT_EQ(found.files.front().path, real);
  EXPECT_THAT(found.files, Contains(Field(&ProgramFile::path, HasSubstr("/libc.so.6"))))
      << "with its libraries";
  EXPECT_THAT(found.missing, ElementsAre("m"));
  EXPECT_THAT(found.unchecked, ElementsAre(unchecked("what", "why")));
}

TEST_F(OtherPython, that_names_an_executable_which_is_none_leaves_its_libraries_unknown) {
  const std::string text = add("text", "no ELF file");
  const ProgramFiles found = answer("echo '{\"executable\": \"" + text +
                                    "\", \"packages\": [], \"missing\": [], \"problems\": []}'");
  EXPECT_THAT(found.unchecked, ElementsAre(unchecked("text", "is not an ELF file")));
}

TEST(Python, is_told_by_the_name_of_its_interpreter) {
  for (const char* name : {"python", "python3", "/usr/bin/python3.11"})
    EXPECT_TRUE(is_python(name)) << name;
  for (const char* name : {"pytho", "python3-config", "xpython", "pythonw"})
    EXPECT_FALSE(is_python(name)) << name;
}

}  // namespace
}  // namespace demarc::cuda
