// What is said of a program: one screen, the command to type, and JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "demarc/base/json.hpp"
#include "program_doctor_fixture.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ProgramDoctorText : public ProgramDoctor {};

TEST_F(ProgramDoctorText, all_is_said_on_one_screen) {
  for (unsigned i = 0; i < 30; ++i) {
    add(fmt::format("libwith_a_long_name_that_goes_on_and_on_and_on_{}.so", i),
        {i % 2 == 0 ? machine : unfit}, "code", "a_package_with_a_name");
    add(fmt::format("libnone{}.so", i), {});
    program.unchecked.push_back({fmt::format("what{} {}", i, std::string(90, 'x')), "w\nhy"});
    program.missing.push_back(fmt::format("missing_module_{}", i));
  }
  add("libtorch_cuda.so", {machine}, "code", "torch");
  program.packages = {"torch", "triton", "numba", "cupy"};
  program.command = {"python3", "train.py", std::string(60, 'y')};
  const std::string text = findings_to_text(on("h200"));
  std::istringstream lines(text);
  unsigned count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_TRUE(line.size() <= 100 || line.starts_with("demarc exec")) << line;
  }
  EXPECT_LE(count, 25U) << text;
  EXPECT_THAT(text, HasSubstr("             28 more files with device code, 28 of their kernels"));
  EXPECT_THAT(text, HasSubstr("             and 28 more: --json has all\n"));
  EXPECT_THAT(text, HasSubstr("not installed: missing_module_0, missing_module_1"));
  EXPECT_THAT(text, HasSubstr("             30 files have no device code for this card\n"));
}

TEST_F(ProgramDoctorText, the_text_names_card_verdict_files_and_what_cannot_be_seen) {
  add("app", {ptx, ptx});
  add("libcublas.so.12", {machine});
  const ProgramFindings found = on("h200");
  const std::string text = findings_to_text(found);
  EXPECT_THAT(text,
              StartsWith("IN PART: ./app in a tenant on NVIDIA H200 (compute capability 9.0, "
                         "139.8 GiB)\nIts kernels with PTX run in the tenant's colours. In the "));
  EXPECT_EQ(text.substr(text.find("\n\n")), R"(

state        file                                            kernels: PTX  unfit PTX  machine code
replaced     libcublas.so.12 (cuBLAS)                                   0          0             1
ok           app                                                        2          0             0
not checked  libraries and code that the program loads by name while it runs

demarc exec --part 1/2 --report -- ./app
)");
}

TEST_F(ProgramDoctorText, commands_are_quoted_for_a_shell) {
  add("app", {ptx});
  program.command = {"./a b", "", "it's", "-x=1:2,3@%+", "$HOME", "*"};
  EXPECT_EQ(command_to_type(on("h200")),
            R"(demarc exec --part 1/2 -- './a b' '' 'it'\''s' -x=1:2,3@%+ '$HOME' '*')");
}

TEST_F(ProgramDoctorText, commands_name_the_card_that_was_asked_about) {
  TenantCard card = card_named("h200");
  card.options = {"--device", "cuda:1"};
  card.description = "my card.json";
  add("app", {ptx});
  EXPECT_EQ(command_to_type(look_at_program(program, card)),
            "demarc exec --device cuda:1 --part 1/2 --description 'my card.json' -- ./app");
  program.files.clear();
  add("app", {machine});
  EXPECT_EQ(command_to_type(look_at_program(program, card)),
            "demarc exec --device cuda:1 --sms 66 -- ./app")
      << "a description belongs to a part with colours";
}

TEST_F(ProgramDoctorText, lines_are_as_long_as_the_screen_is_wide) {
  ProgramFindings findings = on("h200");
  const std::string words = std::string(49, 'x') + " " + std::string(50, 'y');
  findings.because = words;
  EXPECT_THAT(findings_to_text(findings), HasSubstr("\n" + words + "\n"));
  findings.because = "x" + words;
  EXPECT_THAT(findings_to_text(findings), HasSubstr("x\nyyy"));
}

TEST_F(ProgramDoctorText, json_has_all_that_was_found) {
  add("app", {ptx, machine, unfit}, "code", "one");
  program.packages = {"one"};
  program.missing = {"two"};
  program.unchecked = {{"three", "why"}};
  const Json json = Json::parse(findings_to_json(on("h200"), "h200"));
  EXPECT_EQ(json.at("schema"), "demarc.doctor.program/1");
  EXPECT_EQ(json.at("device"), "h200");
  EXPECT_EQ(json.at("card"), "NVIDIA H200");
  EXPECT_EQ(json.at("compute_capability"), "9.0");
  EXPECT_EQ(json.at("memory_bytes"), gpu::find_device("h200")->dram.size_bytes);
  EXPECT_EQ(json.at("colors"), true);
  EXPECT_EQ(json.at("windows"), false);
  EXPECT_EQ(json.at("window_granule_bytes"), 0);
  EXPECT_THAT(json.at("why_no_windows").get<std::string>(), HasSubstr("256 bytes"));
  EXPECT_EQ(json.at("verdict"), "in part");
  EXPECT_EQ(json.at("program"), Json::array({"./app"}));
  const Json& file = json.at("files").at(0);
  EXPECT_EQ(file.at("path"), (folder / "app").string());
  EXPECT_EQ(file.at("package"), "one");
  EXPECT_EQ(file.at("state"), "refused");
  EXPECT_EQ(file.at("images"), 3);
  EXPECT_EQ(file.at("kernels_with_ptx"), 1);
  EXPECT_EQ(file.at("kernels_with_unfit_ptx"), 1);
  EXPECT_EQ(file.at("kernels_of_machine_code"), 1);
  EXPECT_EQ(json.at("packages"), Json::array({"one"}));
  EXPECT_EQ(json.at("missing"), Json::array({"two"}));
  EXPECT_EQ(json.at("not_checked").at(0), (Json{{"what", "three"}, {"why", "why"}}));
  EXPECT_EQ(json.at("command"), "demarc exec --part 1/2 --report -- ./app");
  const Json other = Json::parse(findings_to_json(on("h100-sxm"), "h100-sxm"));
  EXPECT_EQ(other.at("windows"), true);
  EXPECT_EQ(other.at("window_colors"), 4);
  EXPECT_EQ(other.at("window_granule_bytes"), 8192);
  const Json none = Json::parse(findings_to_json(on("gtx1080"), "gtx1080"));
  EXPECT_EQ(none.at("colors"), false);
  EXPECT_THAT(none.at("why_no_colors").get<std::string>(), StartsWith("GTX 1080: "));
}

}  // namespace
}  // namespace demarc::cuda
