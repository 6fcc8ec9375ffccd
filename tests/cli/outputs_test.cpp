// Tests that every verb refuses an output that cannot be written before it begins its work.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "program.hpp"

namespace demarc::test {
namespace {

// Every option that names a file to write, after what else its verb needs. Nothing of this may be
// begun when the file cannot be written, so devices and inputs that do not exist do no harm.
const std::vector<std::vector<std::string>>& writing_options() {
  static const std::vector<std::vector<std::string>> options{
      {"attack", "--device", "sim:gtx1080", "--json"},
      {"blocks", "--json"},
      {"blocks", "-o"},
      {"demo", "--html"},
      {"demo", "--html", "/dev/null", "--json"},
      {"emulate", "bundled:vecadd", "--trace"},
      {"emulate", "bundled:vecadd", "--save"},
      {"isolate", "--device", "sim:gtx1080", "--json"},
      {"isolate", "--device", "sim:gtx1080", "--html"},
      {"isolate", "--device", "sim:gtx1080", "--csv"},
      {"locality", "bundled:hotspot", "-o"},
      {"locality", "bundled:hotspot", "--html"},
      {"probe", "memory", "--device", "sim:gtx1080", "-o"},
      {"probe", "memory", "--device", "sim:gtx1080", "--json"},
      {"ptx", "x.ptx", "-o"},
      {"rewrite", "x.ptx", "-o"},
      {"run", "bundled:vecadd", "--save"},
      {"schedule", "x.txt", "-o"},
      {"schedule", "x.txt", "--timeline"},
      {"schedule", "x.txt", "--svg"},
      {"schedule", "generate", "-o"},
      {"schedule", "plan", "x.json", "-o"},
      {"schedule", "study", "--html"},
      {"schedule", "study", "-o"},
      {"schedule", "compare", "--html"},
      {"schedule", "compare", "-o"},
      {"topo", "--device", "sim:gtx1080", "-o"},
      {"translate", "-o"},
      {"translate", "--html"},
      {"translate", "--timeline"},
      {"translate", "study", "--html"},
      {"translate", "study", "-o"},
  };
  return options;
}

TEST(Outputs, a_file_that_cannot_be_written_is_refused_before_the_work_and_named) {
  for (std::vector<std::string> arguments : writing_options()) {
    const std::string option = arguments.back();
    if (option == "--json") {
      arguments.back() += "=/no/dir/x";
    } else {
      arguments.push_back(option == "--save" ? "c=/no/dir/x" : "/no/dir/x");
    }
    const Outcome outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, 1) << arguments[0] << " " << option;
    EXPECT_NE(outcome.err.find(option + (option == "-o" ? "" : ":")), std::string::npos)
        << outcome.err;
    EXPECT_NE(outcome.err.find("/no/dir/x"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("cannot be written: No such file or directory"), std::string::npos)
        << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(DemoVerb, what_does_not_exist_is_refused_before_the_work_and_named) {
  struct Wrong {
    const char *option, *value, *said;
  };
  for (const Wrong& wrong : {Wrong{"--device", "sim:zzz", "there is no device 'zzz'"},
                             Wrong{"--victims", "fwt,zzz", "zzz"},
                             Wrong{"--aggressors", "fwt,", "--aggressors: an entry"}}) {
    const Outcome outcome = run_demarc({"demo", "--html", "/dev/null", wrong.option, wrong.value});
    EXPECT_EQ(outcome.exit_code, 1) << wrong.option;
    EXPECT_NE(outcome.err.find(wrong.said), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace demarc::test
