// demarc list, help and completion, and what is offered for a slip.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

TEST(Names, are_listed_from_the_tables_that_have_them) {
  const auto listed = [](const char* kind) {
    const Outcome outcome = run_demarc({"list", kind});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_THAT(listed("workloads"), HasSubstr("vecadd"));
  EXPECT_THAT(listed("workloads"), HasSubstr("(short: va)"));
  EXPECT_THAT(listed("devices"), HasSubstr("h200"));
  EXPECT_THAT(listed("devices"), HasSubstr("NVIDIA H200, 132 SMs, with a memory system"));
  EXPECT_THAT(listed("machines"), HasSubstr("h200-x4  4 GPUs of 132 compute units each"));
  EXPECT_THAT(listed("modes"), HasSubstr("mask"));
  EXPECT_THAT(listed("policies"), HasSubstr("rr-skip"));
  const Outcome json = run_demarc({"list", "modes", "--json"});
  EXPECT_EQ(Json::parse(json.out)["kind"], "modes");
  EXPECT_FALSE(Json::parse(json.out)["names"][0]["meaning"].get<std::string>().empty());
  const Outcome slip = run_demarc({"list", "polices"});
  EXPECT_EQ(slip.exit_code, 1);
  EXPECT_EQ(slip.err,
            "demarc list: there is no list of 'polices'; did you mean policies? The lists are "
            "workloads, devices, machines, modes, policies\n");
}

// Whatever is listed can be used.
TEST(Names, of_devices_are_known_to_topo) {
  const Json devices = Json::parse(run_demarc({"list", "devices", "--json"}).out);
  ASSERT_GT(devices["names"].size(), 10U);
  for (const Json& one : devices["names"]) {
    const auto outcome = run_demarc({"topo", "--device", "sim:" + one["name"].get<std::string>()});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
}

TEST(Names, help_of_a_verb_is_its_page) {
  EXPECT_EQ(run_demarc({"help", "topo"}).out, run_demarc({"topo", "--help"}).out);
  EXPECT_EQ(run_demarc({"help", "probe", "memory"}).out,
            run_demarc({"probe", "memory", "--help"}).out);
  EXPECT_THAT(run_demarc({"help"}).out, HasSubstr("\n  isolate "));
  const Outcome none = run_demarc({"help", "nothing"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, testing::StartsWith("demarc help: there is no verb 'nothing'"));
  EXPECT_EQ(run_demarc({"emulate", "bundled:VA"}).exit_code, 0) << "short names serve everywhere";
  EXPECT_EQ(run_demarc({"-V"}).out, run_demarc({"--version"}).out);
}

// groff finds nothing wrong with them, and each option of --help stands there.
TEST(Names, manual_pages_hold_what_help_says) {
  const std::filesystem::path folder = fresh_folder("man");
  for (const std::string verb : {"isolate", "probe", "translate", "exec", "help"}) {
    const Outcome page = run_demarc({"help", verb, "--man"});
    ASSERT_EQ(page.exit_code, 0) << page.err;
    const std::string file = (folder / (verb + ".1")).string();
    ASSERT_TRUE(write_file(file, page.out));
    const Outcome shown = run_program({"groff", "-man", "-Tascii", "-ww", "-P-c", file});
    EXPECT_EQ(shown.exit_code, 0);
    EXPECT_EQ(shown.err, "") << verb;
    std::istringstream help(run_demarc({verb, "--help"}).out);
    int options = 0;
    for (std::string line; std::getline(help, line);) {
      if (!line.starts_with("  -")) continue;
      const std::string option = line.substr(2, line.find(' ', 2) - 2);
      EXPECT_THAT(shown.out, HasSubstr(option)) << verb;
      ++options;
    }
    EXPECT_GT(options, 0) << verb;
  }
  const Outcome program = run_demarc({"help", "--man"});
  EXPECT_EQ(program.exit_code, 0) << program.err;
  ASSERT_TRUE(write_file((folder / "demarc.1").string(), program.out));
  const Outcome shown =
      run_program({"groff", "-man", "-Tascii", "-ww", "-P-c", (folder / "demarc.1").string()});
  EXPECT_EQ(shown.err, "");
  EXPECT_THAT(shown.out, HasSubstr("demarc - let several workloads share one GPU"));
  EXPECT_THAT(shown.out, HasSubstr("demarc exec --part 1/2 -- ./detector &"));
  EXPECT_THAT(shown.out, HasSubstr("Share a card:"));
  EXPECT_THAT(shown.out, HasSubstr("demarc-exec(1), demarc-serve(1),"));
  EXPECT_EQ(run_demarc({"help", "--man", "probe", "memory"}).err,
            "demarc help: --man writes the page of the program or of one verb, not of probe "
            "memory\n");
  const std::string lease = run_demarc({"help", "lease", "--man"}).out;
  EXPECT_THAT(lease, HasSubstr("Usage: demarc lease list [OPTIONS]"));
  EXPECT_THAT(lease, Not(HasSubstr("list list")));
  EXPECT_THAT(run_demarc({"help", "nothing", "--man"}).err, HasSubstr("no verb 'nothing'"));
}

TEST(Names, an_option_that_is_gone_is_answered_with_what_took_its_place) {
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"exec", "--share", "1/2", "--", "true"},
        {"exec", "--share=50", "true"}}) {
    const Outcome outcome = run_demarc(line);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err,
                testing::StartsWith("demarc exec: --share is gone; give --part K/N for a part of "
                                    "the whole card (SMs, L2 and memory), or --sms 50% for SMs "
                                    "alone\nUsage: demarc exec [OPTIONS] [command...]; "));
  }
  for (const auto& [line, instead] :
       {std::pair{std::vector<std::string>{"capture", "--most", "1 GiB", "true"}, "--max-bytes"},
        {{"sweep", "run", "plan.json", "--most", "3"}, "--max-points"},
        {{"attack", "--limit", "5%"}, "--max-slowdown 1.05"},
        {{"attack", "--limit-p99", "8%"}, "--max-p99-slowdown 1.08"}}) {
    const Outcome outcome = run_demarc(line);
    EXPECT_EQ(outcome.exit_code, 1) << instead;
    EXPECT_THAT(outcome.err, HasSubstr(fmt::format(" is gone; give {}", instead)));
  }
  for (const auto& [line, meant] :
       {std::pair{std::vector<std::string>{"isolate", "--most-samples", "2"}, "--max-samples"},
        {{"verify", "--most-slowdown", "2"}, "--max-slowdown"}}) {
    EXPECT_THAT(run_demarc(line).err, HasSubstr(fmt::format("did you mean {}", meant)));
  }
  EXPECT_THAT(run_demarc({"verify", "--share", "50"}).err,
              testing::StartsWith("demarc verify: --share is gone; give --sms 50%"));
  EXPECT_THAT(run_demarc({"serve", "--share", "50"}).err,
              testing::StartsWith("demarc serve: unknown option --share"));
}

TEST(Names, a_slip_is_answered_with_what_was_meant) {
  const auto error_of = [](const std::vector<std::string>& arguments) {
    const Outcome outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, 1);
    return outcome.err;
  };
  EXPECT_EQ(error_of({"islate"}),
            "demarc: there is no verb 'islate'; did you mean isolate? demarc --help shows all\n");
  const std::string usage =
      "Usage: demarc isolate [OPTIONS]; demarc isolate --help shows the options\n";
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"isolate", "--victimz", "va"}, {"isolate", "--victimz=va"}}) {
    EXPECT_EQ(
        error_of(line),
        "demarc isolate: unknown option --victimz; did you mean --victims or --victim-cmd?\n" +
            usage);
  }
  EXPECT_EQ(error_of({"isolate", "--xyzzy", "--victimz", "va", "w"}),
            "demarc isolate: unknown option --xyzzy\n" + usage)
      << "the first is named";
  EXPECT_EQ(error_of({"probe", "memory", "--divice", "x"}),
            "demarc probe: unknown option --divice; did you mean --device?\n"
            "Usage: demarc probe memory [OPTIONS]; demarc probe memory --help shows the options\n");
  EXPECT_EQ(error_of({"topo", "-x"}),
            "demarc topo: unknown option -x\n"
            "Usage: demarc topo [OPTIONS]; demarc topo --help shows the options\n");
  EXPECT_EQ(error_of({"--victims", "va"}),
            "demarc: unknown option --victims\n"
            "Usage: demarc [OPTIONS] [SUBCOMMAND]; demarc --help shows the options\n");
  EXPECT_THAT(
      error_of({"serve", "--cofnig", "f.toml"}),
      testing::StartsWith("demarc serve: unknown option --cofnig; did you mean --config?\nUsage: "))
      << "what is missing follows from the slip";
  EXPECT_THAT(error_of({"probe", "meory"}),
              testing::StartsWith("demarc probe: there is no demarc probe meory; did you mean "
                                  "memory?\nUsage: demarc probe [OPTIONS] SUBCOMMAND; "));
  EXPECT_THAT(error_of({"probe"}),
              testing::StartsWith("demarc probe: a subcommand is required: translation, memory\n"));
  EXPECT_THAT(error_of({"lease", "--sockt", "x", "list"}), HasSubstr("did you mean --socket?\n"));
  EXPECT_THAT(error_of({"lease", "list", "--sockt", "x"}), HasSubstr("did you mean --socket?\n"));
  EXPECT_THAT(error_of({"topo", "--device"}),
              testing::StartsWith("demarc topo: --device: a value is missing\nUsage: "));
  EXPECT_THAT(error_of({"serve"}),
              testing::StartsWith("demarc serve: --config is required\nUsage: "));
  EXPECT_THAT(error_of({"topo", "-"}),
              testing::StartsWith("demarc topo: unexpected argument '-'\nUsage: "));
  EXPECT_THAT(error_of({"lease", "list", "--json", "x"}),
              testing::StartsWith("demarc lease: unexpected argument 'x'; to name a file for the "
                                  "JSON write --json=x\nUsage: demarc lease list "));
  EXPECT_THAT(error_of({"rewrite", "a.ptx", "--color", "1"}),
              testing::StartsWith("demarc rewrite: --color requires --color-mask\nUsage: "));
  EXPECT_THAT(error_of({"exec", "--tenant", "a", "--device", "cuda:0", "--", "true"}),
              testing::ContainsRegex("^demarc exec: --[a-z]+ excludes --[a-z]+\nUsage: "));
  EXPECT_EQ(error_of({"isolate", "--seed", "x"}),
            "demarc isolate: --seed: 'x' is not a whole number from 0 to 2^64 - 1\n");
  EXPECT_THAT(error_of({"emulate", "bundled:vecad"}), HasSubstr("; did you mean vecadd?"));
  EXPECT_THAT(error_of({"isolate", "--device", "sim:gtx1080", "--victims", "mn", "--aggressors",
                        "va", "--modes", "mask"}),
              HasSubstr("; did you mean sn or mm or nn? demarc list workloads shows all"));
  EXPECT_THAT(error_of({"isolate", "--device", "sim:gtx1080", "--modes", "msak"}),
              HasSubstr("; did you mean mask?"));
  EXPECT_THAT(error_of({"topo", "--device", "sim:gtx1800"}), HasSubstr("; did you mean gtx1080"));
}

class Completion : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path folder = fresh_folder("completion");
    std::filesystem::create_symlink(build_dir() / "demarc", folder / "demarc");
    ::setenv("PATH", (folder.string() + ":" + ::getenv("PATH")).c_str(), 1);
  }
  // The lines that a shell prints of this script.
  static std::vector<std::string> said(const std::vector<std::string>& command) {
    const Outcome outcome = run_program(command);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::vector<std::string> lines;
    std::istringstream out(outcome.out);
    for (std::string line; std::getline(out, line);) lines.push_back(line);
    return lines;
  }
  static std::vector<std::string> words(std::vector<std::string> line) {
    line.insert(line.begin(), {"completion", "--words"});
    const Outcome outcome = run_demarc(line);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::vector<std::string> lines;
    std::istringstream out(outcome.out);
    for (std::string one; std::getline(out, one);) lines.push_back(one);
    return lines;
  }
};

TEST_F(Completion, offers_verbs_then_options_then_the_names_that_an_option_takes) {
  EXPECT_THAT(words({""}), IsSupersetOf({"isolate", "topo", "list", "completion"}));
  EXPECT_THAT(words({"iso"}), testing::ElementsAre("isolate"));
  EXPECT_THAT(words({"isolate", "--victims"}), testing::ElementsAre("--victims"));
  EXPECT_THAT(words({"isolate", "--victims", "va"}), testing::ElementsAre("va"));
  EXPECT_THAT(words({"isolate", "--device", "sim:h2"}), testing::ElementsAre("sim:h200"));
  EXPECT_THAT(words({"translate", "--device", "sim:h200"}),
              testing::ElementsAre("sim:h200-x2", "sim:h200-x4"));
  EXPECT_THAT(words({"probe", ""}), IsSupersetOf({"memory", "translation"}));
  EXPECT_THAT(words({"probe", "translation", "--pe"}), testing::ElementsAre("--peer"));
  EXPECT_THAT(words({"list", "w"}), testing::ElementsAre("workloads"));
  EXPECT_THAT(words({"help", "iso"}), testing::ElementsAre("isolate"));
  EXPECT_THAT(words({"completion", "z"}), testing::ElementsAre("zsh"));
  EXPECT_THAT(words({"isolate", "--modes", "none,mas"}), Contains("none,mask"));
  EXPECT_THAT(words({"nothing", "-"}), testing::IsEmpty());
  EXPECT_THAT(words({"exec", "--part", "2/"}), testing::ElementsAre("2/2", "2/3", "2/4"));
  EXPECT_THAT(words({"exec", "--device", "c"}), testing::ElementsAre("cuda:0"));
  EXPECT_THAT(words({"isolate", "--split", "side"}),
              testing::ElementsAre("side-aware", "side-aligned"));
  EXPECT_THAT(words({"translate", "--split", ""}),
              testing::ElementsAre("roundrobin", "contiguous", "dim0", "native"));
  EXPECT_THAT(words({"translate", "--app", "RL,F"}), testing::ElementsAre("RL,FIR", "RL,FFT"));
  EXPECT_THAT(words({"topo", "--color=a"}), testing::ElementsAre("--color=auto", "--color=always"));
  EXPECT_THAT(words({"isolate", "--modes=none,mas"}), Contains("--modes=none,mask"));
  EXPECT_THAT(words({"rewrite", "--color", "a"}), testing::IsEmpty()) << "it takes a number there";
  EXPECT_THAT(words({"isolate", "--work"}), testing::IsEmpty()) << "it is hidden";
  EXPECT_THAT(words({"isolate", "--colo"}), testing::ElementsAre("--colors", "--color"));
  const Outcome slip = run_demarc({"completion", "fsh"});
  EXPECT_EQ(slip.exit_code, 1);
  EXPECT_THAT(slip.err, HasSubstr("there is for bash, zsh, fish; did you mean zsh or fish?"));
}

// What bash is given for a line that ends where the cursor stands.
TEST_F(Completion, bash_completes) {
  const auto offered = [](const std::string& line) {
    return said({"bash", "-c",
                 "source <(demarc completion bash); COMP_LINE=\"$1\"; COMP_POINT=${#1}; _demarc; "
                 "printf '%s\\n' \"${COMPREPLY[@]}\"",
                 "bash", line});
  };
  EXPECT_THAT(offered("demarc tra"), testing::ElementsAre("translate"));
  EXPECT_THAT(offered("demarc isolate --agg"), Contains("--aggressors"));
  EXPECT_THAT(offered("demarc "), IsSupersetOf({"isolate", "list"}));
  EXPECT_THAT(offered("demarc isolate --victims va,m"), Contains("va,mm"));
  EXPECT_THAT(offered("demarc topo --device sim:gtx10"), Contains("gtx1080"))
      << "what stands behind the colon";
  EXPECT_THAT(said({"bash", "-c", "source <(demarc completion bash); complete -p demarc"}).at(0),
              HasSubstr("-F _demarc demarc"));
}

TEST_F(Completion, fish_completes) {
  const auto lines =
      said({"fish", "--no-config", "-c",
            "demarc completion fish | source; complete -C 'demarc isolate --vic'; complete -C "
            "'demarc topo --device sim:gtx10'"});
  EXPECT_THAT(lines, IsSupersetOf({"--victims", "sim:gtx1080"}));
}

// Without a terminal zsh completes nothing: what the script would add is caught.
TEST_F(Completion, zsh_completes) {
  const auto lines = said(
      {"zsh", "-f", "-c",
       "autoload -Uz compinit; compinit -u -D; eval \"$(demarc completion "
       "zsh)\"; compadd() { print -l -- \"${(@)${(P)2}}\" }; _files() { }; words=(demarc isolate "
       "--vic); CURRENT=3; _demarc; print -- ${_comps[demarc]}"});
  EXPECT_THAT(lines, Contains("--victims"));
  EXPECT_THAT(lines, Contains("_demarc"));
}

}  // namespace
}  // namespace demarc::test
