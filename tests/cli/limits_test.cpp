// Limits of a process that are too small: each ends with words and an exit code, and none by a
// signal.
#include "served_card.hpp"

namespace demarc {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Limits : public test::ServedCard {
 protected:
  // "CODE WORDS" of this program with these arguments, where a shell has set the limit.
  [[nodiscard]] static std::string said(const std::string& limit,
                                        const std::vector<std::string>& arguments) {
    std::vector<std::string> words{"/bin/sh", "-c", limit + R"(; exec "$@")", "sh",
                                   (test::build_dir() / "demarc").string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    ProcessOptions options;
    options.output = ChildStream::kept;
    options.error = ChildStream::kept;
    auto process = Process::spawn(words, options).value();
    const int code = process.wait(-1)->exit_code;
    return fmt::format("{} {}", code, process.kept());
  }
  [[nodiscard]] static std::vector<std::string> exec(const std::vector<std::string>& command) {
    std::vector<std::string> words{"exec", "--tpcs", "0-2", "--"};
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }
};

TEST_F(Limits, of_the_size_of_files_are_errors_of_who_writes) {
  EXPECT_THAT(said("ulimit -f 0", exec({"true"})),
              testing::AllOf(StartsWith("2 demarc exec: cannot make the control block of"),
                             EndsWith(" bytes: File too large: raise the limit (ulimit -f)\n")));
  const std::string served = said("ulimit -f 0", {"serve", "--config", two_tenants()});
  EXPECT_THAT(served, StartsWith("2 demarc serve: "));
  EXPECT_FALSE(std::filesystem::exists(socket)) << "nothing listens";
  ::setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
  EXPECT_THAT(said("ulimit -f 0", {"exec", "--part", "1/2", "--", "true"}),
              EndsWith("demarc-cuda0-2.sock.toml: cannot be written: File too large\n"));
  ::unsetenv("XDG_RUNTIME_DIR");
  const auto file = folder / "trace.json";
  EXPECT_THAT(said("ulimit -f 0", {"list", "modes", "--json=" + file.string()}),
              testing::AllOf(StartsWith("1 "), HasSubstr("File too large")));
}

TEST_F(Limits, of_the_size_of_files_are_the_programs_own_matter_in_a_program) {
  const std::vector<std::string> program{"sh", "-c", "kill -XFSZ $$"};
  EXPECT_THAT(said(":", exec(program)), EndsWith("the program's own exit code was 153\n"));
  EXPECT_THAT(said("trap '' XFSZ", exec(program)), EndsWith("the program's own exit code was 0\n"))
      << "who ignores it hands that on";
}

TEST_F(Limits, of_the_stack_are_refused_before_anything_runs) {
  const std::string refusal =
      "the stack of this process may have 1023 KiB, and 1024 are needed: raise the limit (ulimit "
      "-s)\n";
  EXPECT_EQ(said("ulimit -s 1023", exec({"true"})), "2 demarc exec: " + refusal);
  EXPECT_EQ(said("ulimit -s 1023", {"serve", "--config", two_tenants(), "--check"}),
            "2 demarc serve: " + refusal);
  EXPECT_THAT(said("ulimit -s 1024", {"serve", "--config", two_tenants(), "--check"}),
              StartsWith("0 "));
  EXPECT_THAT(said("ulimit -s 64", {"--version"}), StartsWith("0 demarc "));
}

TEST_F(Limits, of_open_files_are_named) {
  EXPECT_THAT(said("ulimit -n 447", {"serve", "--config", two_tenants()}),
              StartsWith("2 demarc serve: this process may have 447 files open, and a server needs "
                         "448 at least"));
  // From one that is not enough for the loader on, up to what is enough.
  bool seen = false;
  for (int files = 7; files < 20; ++files) {
    const std::string one =
        said(fmt::format("ulimit -n {}", files),
             exec({(test::build_dir() / "demarc_exec_subject").string(),
                   test::fake_libcuda().string(), folder / "log", "context", "count"}));
    EXPECT_THAT(one, testing::AnyOf(StartsWith("0 "), StartsWith("2 "))) << files;
    EXPECT_THAT(one, testing::Not(HasSubstr("Linux 5.9"))) << files;
    seen = seen || one.find("(ulimit -n)") != std::string::npos;
  }
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace demarc
