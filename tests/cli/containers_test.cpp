// `demarc lease cdi` and `demarc lease check` beside a server on the stand-in for libcuda.
#include "not_run.hpp"
#include "serve/cdi_rules.hpp"
#include "served_card.hpp"

namespace demarc {
namespace {

using test::run_demarc;
using testing::HasSubstr;
using testing::Not;

class ContainersProgram : public test::ServedCard {};

TEST_F(ContainersProgram, are_described_for_each_tenant_of_a_server) {
  const auto server = serving(two_tenants());
  const std::string path = folder / "demarc.json";
  const auto written = run_demarc({"lease", "cdi", "-o", path});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  const Json file = read_json(path).value();
  EXPECT_THAT(test::CdiRules::faults_of(file), testing::IsEmpty());
  EXPECT_EQ(file["devices"].size(), 2U);
  const Json& edits = file["devices"][0]["containerEdits"];
  EXPECT_EQ(edits["env"][1], "DEMARC_SOCKET=" + socket + ".d/a.sock");
  EXPECT_EQ(edits["mounts"][0]["hostPath"], (test::build_dir() / "demarc").string());
  EXPECT_EQ(edits["mounts"][1]["hostPath"], (test::build_dir() / "libdemarc_preload.so").string());
  EXPECT_EQ(run_demarc({"lease", "cdi"}).out, read_file(path).value());
  const auto refused = run_demarc({"lease", "cdi", "--program", path});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("there is no program of this name"));
}

TEST_F(ContainersProgram, need_a_server) {
  EXPECT_EQ(run_demarc({"lease", "cdi"}).exit_code, 2);
  EXPECT_EQ(run_demarc({"lease", "check", "a"}).exit_code, 2);
  EXPECT_EQ(run_demarc({"lease", "check"}).exit_code, 1);
}

TEST_F(ContainersProgram, find_their_tenant_in_the_environment) {
  ::setenv("DEMARC_TENANT", "nobody", 1);
  const auto server = serving(two_tenants());
  const auto unknown = run_demarc({"exec", "--", "true"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("there is no tenant 'nobody'"));
  // The command line comes first.
  EXPECT_THAT(run_demarc({"exec", "--tenant", "nothing", "--", "true"}).err,
              HasSubstr("there is no tenant 'nothing'"));
  const auto both = run_demarc({"exec", "--tpcs", "0", "--", "true"});
  EXPECT_EQ(both.exit_code, 1);
  EXPECT_THAT(both.err,
              HasSubstr("--tenant, or DEMARC_TENANT in the environment, brings its own TPCs"));
  ::unsetenv("DEMARC_TENANT");
}

TEST_F(ContainersProgram, report_at_their_end_what_was_coloured) {
  const auto server = serving(two_tenants());
  const auto build = test::build_dir();
  const auto run = [&](const std::vector<std::string>& options, const std::string& step) {
    std::vector<std::string> words{"exec"};
    words.insert(words.end(), options.begin(), options.end());
    for (const std::string& word :
         {std::string("--"), (build / "demarc_exec_subject").string(),
          test::fake_libcuda().string(), (folder / "log").string(), std::string("context"), step}) {
      words.push_back(word);
    }
    return run_demarc(words);
  };
  const auto text = run({"--tenant", "a", "--report"}, "count");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.err,
              HasSubstr("tenant 'a'\nkernels in the tenant's colours, by launches:\n"
                        "           1  count\nno kernel ran on memory without a colour\n"));
  const auto json = run({"--tenant", "a", "--report", "--json"}, "map-memory");
  const auto read = parse_json(json.err.substr(json.err.find('{')), "report").value();
  EXPECT_EQ(read["schema"], "demarc.exec/2");
  EXPECT_EQ(read["tenant"]["refused_calls"][0]["name"], "cuMemCreate");
  EXPECT_THAT(run({"--tenant", "a"}, "count").err, Not(HasSubstr("by launches")));
  const auto none = run({"--tpcs", "0", "--report"}, "count");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("--report needs --part or --tenant"));
  for (const std::vector<std::string>& option : {std::vector<std::string>{"--allow-plain"},
                                                 {"--allow-spills", "8"},
                                                 {"--overlap-launches"},
                                                 {"--report"}}) {
    std::vector<std::string> arguments{"--tpcs", "0"};
    arguments.insert(arguments.end(), option.begin(), option.end());
    EXPECT_THAT(run(arguments, "count").err, HasSubstr(option[0] + " needs --part or --tenant"));
  }
  const std::string open = "open-library=" + (build / "libdemarc_machine_code.so").string();
  std::vector<std::string> words{"exec",
                                 "--tenant",
                                 "a",
                                 "--allow-plain",
                                 "--report",
                                 "--",
                                 (build / "demarc_exec_subject").string(),
                                 test::fake_libcuda().string(),
                                 (folder / "log").string(),
                                 open,
                                 "context",
                                 "count"};
  const auto plain = run_demarc(words);
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_THAT(plain.err, HasSubstr("it runs on memory without a colour"));
  EXPECT_THAT(plain.err,
              HasSubstr("kernels on memory WITHOUT A COLOUR, by launches:\n           1  count\n"));
  words[3] = "--strict";
  EXPECT_THAT(run_demarc(words).err, HasSubstr("no kernel ran on memory without a colour"));
}

TEST_F(ContainersProgram, run_in_a_process_namespace_of_their_own) {
  const std::vector<std::string> below{"unshare", "--pid", "--fork", "--mount-proc"};
  auto command = below;
  command.push_back("true");
  if (!test::program_exists("unshare") || test::run_program(command).exit_code != 0) {
    DEMARC_NOT_RUN("no process namespaces");
  }
  ::setenv("DEMARC_TENANT", "b", 1);
  const auto server = serving(two_tenants());
  command = below;
  const auto build = test::build_dir();
  for (const std::string& word :
       {(build / "demarc").string(), std::string("exec"), std::string("--audit"), std::string("--"),
        (build / "demarc_exec_subject").string(), test::fake_libcuda().string(),
        (folder / "log").string(), std::string("context"), std::string("launch"),
        std::string("exit=7")}) {
    command.push_back(word);
  }
  const auto ran = test::run_program(command);
  EXPECT_EQ(ran.exit_code, 7) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("1 process confined"));
  EXPECT_THAT(read_file(folder / "log").value(), HasSubstr("context 0"));
  ::unsetenv("DEMARC_TENANT");
}

}  // namespace
}  // namespace demarc
