// The files of a program are found, and the program does not run.
#include "demarc/exec/program_files.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "demarc/base/files.hpp"
#include "demarc/base/process.hpp"
#include "paths.hpp"
#include "support.hpp"
#include "unchecked_matcher.hpp"

namespace demarc::cuda {
namespace {

namespace fs = std::filesystem;
using fatbin::test::made_elf;
using fatbin::test::message_of;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

auto file_named(const std::string& end) {
  return Field(&ProgramFile::path, EndsWith(end));
}
class FilesOfPrograms : public testing::Test {
 protected:
  void SetUp() override { path_ = std::getenv("PATH"); }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }

  std::string add(const std::string& name, const std::string& content,
                  fs::perms rights = fs::perms::owner_all) const {
    const fs::path file = folder / name;
    fs::create_directories(file.parent_path());
    EXPECT_TRUE(write_file(file, content));
    fs::permissions(file, rights);
    return file;
  }
  static ProgramFiles found_of(const std::vector<std::string>& command) {
    const auto found = find_program_files({.command = command, .pid = {}});
    EXPECT_TRUE(found) << message_of(found);
    return found ? *found : ProgramFiles();
  }
  static std::string refusal_of(const std::vector<std::string>& command) {
    const auto found = find_program_files({.command = command, .pid = {}});
    EXPECT_FALSE(found);
    EXPECT_TRUE(found || found.error().kind == ErrorKind::invalid_input);
    return message_of(found);
  }
  // A copy of the test's subject, which has libraries, in which the loader's name is another one.
  std::string with_loader(const std::string& loader) const {
    std::string content = read_file(test::build_dir() / "demarc_exec_subject").value();
    const std::string usual = "/lib64/ld-linux-x86-64.so.2";
    EXPECT_EQ(loader.size(), usual.size());
    content.replace(content.find(usual), usual.size(), loader);
    return add("with_loader", content);
  }

  // Until then it is a copy of this process, or has not loaded its libraries.
  static void wait_for_start(pid_t process, const std::string& program) {
    constexpr unsigned most_ms = 20000;
    const std::string link = fmt::format("/proc/{}/exe", process);
    std::error_code ignored;
    const fs::path wanted = fs::canonical(find_program(program));
    const auto runs = [&] {
      const std::string maps = read_file(fmt::format("/proc/{}/maps", process)).value_or("");
      return fs::read_symlink(link, ignored) == wanted && maps.find("/libc.so.6") != maps.npos;
    };
    for (unsigned i = 0; i < most_ms && !runs(); ++i) ::usleep(1000);
  }

  fs::path folder = fs::canonical(test::fresh_folder("program_files"));

 private:
  std::string path_;
};

TEST_F(FilesOfPrograms, a_program_has_its_executable_first_and_the_libraries_of_its_loader) {
  const std::string subject = fs::canonical(test::build_dir() / "demarc_exec_subject");
  const ProgramFiles found = found_of({subject, "an argument"});
  EXPECT_THAT(found.command, ElementsAre(subject, "an argument"));
  ASSERT_FALSE(found.files.empty());
  EXPECT_EQ(found.files.front().path, subject);
  EXPECT_THAT(found.files, Contains(Field(&ProgramFile::path, HasSubstr("/libc.so.6"))));
  EXPECT_THAT(found.files, Each(Field(&ProgramFile::path, testing::StartsWith("/"))));
  EXPECT_THAT(found.files, Each(Field(&ProgramFile::package, "")));
  EXPECT_THAT(found.unchecked, IsEmpty());
  EXPECT_EQ(found.loader, "/lib64/ld-linux-x86-64.so.2");
}

TEST_F(FilesOfPrograms, a_program_does_not_run) {
  const std::string never = folder / "never";
  found_of({"touch", never});
  const std::string script = add("script", "#!/bin/sh\ntouch " + never + "\n");
  found_of({script});
  const std::string python = add("script.py", "open('" + never + "', 'w')\n");
  found_of({"python3", python});
  EXPECT_FALSE(fs::exists(never));
}

TEST_F(FilesOfPrograms, names_are_looked_up_in_path_and_what_is_no_program_is_refused) {
  const std::string program = add("app", made_elf(EM_X86_64, {}));
  ::setenv("PATH", folder.c_str(), 1);
  EXPECT_EQ(found_of({"app"}).files.front().path, program);
  EXPECT_EQ(refusal_of({"none"}), "none: there is no such program in PATH");
  EXPECT_EQ(refusal_of({"/nowhere/app"}), "/nowhere/app: there is no such program");
  EXPECT_EQ(refusal_of({folder}), folder.string() + ": is not a file");
  EXPECT_THAT(refusal_of({add("train.py", "import sys\n", fs::perms::owner_read)}),
              AllOf(HasSubstr("train.py: is not executable; chmod +x makes it so, or name"),
                    HasSubstr("such as python3 ")));
  EXPECT_THAT(refusal_of({add("text", "no line\n")}),
              HasSubstr("text: is neither an ELF executable nor a script whose first line names"));
  EXPECT_THAT(refusal_of({add("empty", "#!\n")}), HasSubstr("is neither an ELF executable"));
  EXPECT_THAT(refusal_of({add("short",
                              "\x7f"
                              "ELF")}),
              HasSubstr("an ELF file that ends"));
  EXPECT_EQ(refusal_of({}), "no program was given");
  const fs::path here = fs::current_path();
  fs::current_path(folder);
  ::setenv("PATH", "/nowhere", 1);
  EXPECT_EQ(refusal_of({"app"}), "app: is not in PATH; for the file in this folder give ./app");
  fs::current_path(here);
}

TEST_F(FilesOfPrograms, a_program_without_a_loader_has_no_libraries_that_it_could_be_asked_for) {
  const ProgramFiles found = found_of({add("static", made_elf(EM_X86_64, {}))});
  EXPECT_THAT(found.files, ElementsAre(file_named("/static")));
  EXPECT_THAT(found.unchecked, IsEmpty());
  EXPECT_EQ(found.loader, "");
}

TEST_F(FilesOfPrograms,
       a_loader_outside_of_the_usual_places_and_one_of_a_setuid_program_are_not_run) {
  for (const char* loader : {"/opt64/ld-linux-x86-64.so.2", "/lib64/../tmp/ld-linux.so.2",
                             "/usr/opt/ld-linux-x86-64.so", "lib64//ld-linux-x86-64.so.2"}) {
    const ProgramFiles found = found_of({with_loader(loader)});
    EXPECT_THAT(found.files, ElementsAre(file_named("/with_loader")));
    EXPECT_THAT(found.unchecked,
                ElementsAre(unchecked("with_loader", std::string("its dynamic loader ") + loader +
                                                         " does not lie in /lib or /usr/lib")));
  }
  EXPECT_THAT(found_of({with_loader("/usr/lib/ld-linux-x86-64.so")}).unchecked,
              ElementsAre(unchecked("with_loader", "its libraries are not known")))
      << "it is started, but is not there";
  const std::string other = with_loader("/lib64/ld-linux-x86-64.so.2");
  EXPECT_THAT(found_of({other}).files, SizeIs(testing::Gt(1U)));
  for (const mode_t rights : {mode_t{S_ISUID | 0700}, mode_t{S_ISGID | 0700}}) {
    ASSERT_EQ(::chmod(other.c_str(), rights), 0);
    const ProgramFiles found = found_of({other});
    EXPECT_THAT(found.files, ElementsAre(file_named("/with_loader")));
    EXPECT_THAT(found.unchecked, ElementsAre(unchecked("with_loader", "runs as another user")));
  }
}

TEST_F(FilesOfPrograms, a_setuid_interpreter_is_not_asked_for_packages) {
  const std::string python = folder / "python3.9";
  fs::rename(with_loader("/lib64/ld-linux-x86-64.so.2"), python);
  ASSERT_EQ(::chmod(python.c_str(), S_ISUID | 0700), 0);
  EXPECT_THAT(found_of({python, "-c", "import one"}).unchecked,
              ElementsAre(unchecked("python3.9", "runs as another user")));
}

TEST_F(FilesOfPrograms, a_library_in_the_place_of_a_program_has_no_loader_to_ask) {
  EXPECT_THAT(found_of({test::build_dir() / "libdemarc_machine_code.so"}).unchecked,
              ElementsAre(unchecked("machine_code.so", "it names libraries, but no dynamic")));
}

TEST_F(FilesOfPrograms, a_script_is_followed_to_its_interpreter) {
  const std::string script = add("run.sh", "#!/bin/sh -e\necho\n");
  const ProgramFiles found = found_of({script});
  EXPECT_EQ(found.files.front().path, fs::canonical("/bin/sh"));
  EXPECT_THAT(found.unchecked,
              ElementsAre(unchecked("run.sh", "it is a script of sh, and what it starts is not")));
  EXPECT_THAT(found_of({add("word", "#!/bin/sh sleep\n")}).unchecked,
              ElementsAre(unchecked("word", "it is a script of sh")));
  EXPECT_THAT(found_of({add("env", "#!/usr/bin/env\n")}).unchecked,
              ElementsAre(unchecked("env", "it is a script of env")));
  const std::string second = add("second", "#!" + script + "\n");
  EXPECT_THAT(found_of({second}).unchecked, SizeIs(2));
  const std::string fourth = add("fourth", "#!" + add("third", "#!" + second + "\n") + "\n");
  EXPECT_THAT(found_of({fourth}).unchecked, SizeIs(4));
  EXPECT_THAT(refusal_of({add("fifth", "#!" + fourth + "\n")}), HasSubstr("more than 4 scripts"));
  const std::string round = folder / "round";
  add("round", "#!" + round + "\n");
  EXPECT_THAT(refusal_of({round}), HasSubstr("more than 4 scripts name each other"));
  EXPECT_THAT(refusal_of({add("gone", "#!/nowhere/sh\n")}),
              testing::StrEq("/nowhere/sh: there is no such program"));
}

TEST_F(FilesOfPrograms, a_process_has_the_files_that_it_has_mapped_as_code) {
  ProcessOptions options;
  auto child = Process::spawn({"sleep", "100"}, options);
  ASSERT_TRUE(child);
  wait_for_start(child->pid(), "sleep");
  const auto of = [](std::int64_t pid) { return find_program_files({.command = {}, .pid = pid}); };
  const auto found = of(child->pid());
  ASSERT_TRUE(found) << message_of(found);
  EXPECT_THAT(found->command, ElementsAre(EndsWith("sleep"), "100"));
  EXPECT_THAT(found->files.front(), file_named("/sleep"));
  EXPECT_THAT(found->files, Contains(Field(&ProgramFile::path, HasSubstr("/libc.so.6"))));
  EXPECT_THAT(found->unchecked, IsEmpty());
  child->end(0);
  const pid_t gone = child->pid();
  EXPECT_EQ(message_of(of(gone)), fmt::format("--pid {}: there is no such process", gone));
  EXPECT_EQ(of(gone).error().kind, ErrorKind::invalid_input);
  EXPECT_EQ(message_of(of(0)), "--pid 0: there is no such process");
  EXPECT_THAT(message_of(find_program_files({.command = {"true"}, .pid = 1})),
              HasSubstr("give no program with it"));
}

TEST_F(FilesOfPrograms, a_process_with_mounts_of_its_own_has_its_files_behind_its_root) {
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    // Where this user may not, it stays in the mounts of all.
    const char apart = ::unshare(CLONE_NEWNS) == 0 ? 'y' : 'n';
    if (::write(ready[1], &apart, 1) == 1) ::pause();
    std::_Exit(0);
  }
  char apart = 0;
  ASSERT_EQ(::read(ready[0], &apart, 1), 1);
  const auto found = find_program_files({.command = {}, .pid = other});
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  ASSERT_TRUE(found) << message_of(found);
  const std::string root = apart == 'y' ? fmt::format("/proc/{}/root", other) : "";
  EXPECT_EQ(found->files.front().path, root + fs::read_symlink("/proc/self/exe").string());
  EXPECT_THAT(found->files, Contains(AllOf(Field(&ProgramFile::path, HasSubstr("/libc.so.6")),
                                           Field(&ProgramFile::path, testing::StartsWith(root)))));
}

TEST_F(FilesOfPrograms, a_process_whose_files_are_not_told_is_an_error_of_the_machine) {
  const pid_t ended = ::fork();
  if (ended == 0) std::_Exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(ended), &info, WEXITED | WNOWAIT), 0);
  const auto found = find_program_files({.command = {}, .pid = ended});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(found.error().message, HasSubstr("/maps cannot be read, or is empty: ask as the "));
  ::waitpid(ended, nullptr, 0);
}

TEST_F(FilesOfPrograms, a_file_of_a_process_that_is_gone_is_not_checked) {
  const std::string copy = folder / "sleeper";
  fs::copy_file(find_program("sleep"), copy);
  auto child = Process::spawn({copy, "100"}, {});
  ASSERT_TRUE(child);
  wait_for_start(child->pid(), copy);
  fs::remove(copy);
  const auto found = find_program_files({.command = {}, .pid = child->pid()});
  ASSERT_TRUE(found) << message_of(found);
  EXPECT_THAT(found->unchecked, ElementsAre(unchecked("sleeper", "the file is gone")));
  EXPECT_THAT(found->files, Not(Contains(file_named("sleeper"))));
}

TEST_F(FilesOfPrograms, what_a_loader_says_is_read_line_by_line) {
  const std::string loader = add("ld.so", R"sh(#!/bin/sh
echo "	linux-vdso.so.1 (0x00007ffc)"
echo "	libgone.so.1 => not found"
echo "	libthere.so => /usr/lib/lib (x) there.so (0x00007f00)"
echo "	/lib64/ld.so (0x00007f01)"
echo
echo "	$1 $2 => /asked (0x0)"
)sh");
  std::vector<Unchecked> not_found;
  EXPECT_THAT(libraries_of(loader, folder / "a" / ".." / "b", 60, not_found),
              ElementsAre("/usr/lib/lib (x) there.so", "/lib64/ld.so", "/asked"));
  EXPECT_THAT(not_found, ElementsAre(unchecked("libgone.so.1", "the dynamic loader does not")));
}

TEST_F(FilesOfPrograms, a_loader_that_fails_or_does_not_end_leaves_the_libraries_unknown) {
  std::vector<Unchecked> not_found;
  EXPECT_THAT(libraries_of(add("fails", "#!/bin/sh\nexit 7\n"), "/x", 60, not_found), IsEmpty());
  EXPECT_THAT(not_found, ElementsAre(unchecked("/x", "does not list them (exit code 7)")));
  not_found.clear();
  const std::string slow = add("slow", "#!/bin/sh\necho '	/a (0)'\nexec sleep 100\n");
  EXPECT_THAT(libraries_of(slow, "/x", 0.2, not_found), IsEmpty());
  EXPECT_THAT(not_found, ElementsAre(unchecked("/x", "did not list them within 0.2 s")));
  not_found.clear();
  EXPECT_THAT(libraries_of("/nowhere/ld.so", "/x", 60, not_found), IsEmpty());
  EXPECT_THAT(not_found, ElementsAre(unchecked("/x", "its libraries are not known: ")));
  not_found.clear();
  const std::string partly = add("partly", "#!/bin/sh\necho '	/a (0)'\nexit 1\n");
  EXPECT_THAT(libraries_of(partly, "/x", 60, not_found), ElementsAre("/a"))
      << "what is missing has a line of its own";
}

}  // namespace
}  // namespace demarc::cuda
