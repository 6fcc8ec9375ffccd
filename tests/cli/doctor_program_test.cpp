// demarc doctor PROGRAM as a program: its exit codes, and that it runs nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"
#include "program.hpp"
#include "support.hpp"

namespace demarc::test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class DoctorOfProgram : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("DEMARC_LIBCUDA", fake_libcuda().c_str(), 1);
    ::setenv("DEMARC_FAKE_GPU", "version=13000,offset=1308,client=0", 1);
  }
  void TearDown() override {
    for (const char* name : {"DEMARC_LIBCUDA", "DEMARC_FAKE_GPU"}) ::unsetenv(name);
  }
  static Outcome doctor(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "doctor");
    return run_demarc(std::move(arguments));
  }
  static std::string program_in(const std::filesystem::path& folder) {
    const auto file = folder / "app";
    const std::string code = fatbin::test::kept_file("elf_only.fatbin");
    EXPECT_TRUE(write_file(file, fatbin::test::made_elf(EM_X86_64, {{".nv_fatbin", code}})));
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }
  std::filesystem::path folder = fresh_folder("doctor_of_program");
  // With machine code for sm_75, sm_90a and sm_100, and no PTX.
  const std::string machine_code = program_in(folder);
};

TEST_F(DoctorOfProgram, ends_with_0_if_it_can_be_isolated_and_with_3_if_not) {
  const Outcome with = doctor({"--device", "h100-sxm", machine_code, "an argument"});
  EXPECT_EQ(with.exit_code, 0) << with.err;
  EXPECT_EQ(with.err, "");
  EXPECT_THAT(
      with.out,
      AllOf(StartsWith("CAN BE ISOLATED: "), HasSubstr("\nMachine code runs in windows"),
            HasSubstr("\nok           app "),
            EndsWith("\n\ndemarc exec --part 1/2 -- " + machine_code + " 'an argument'\n")));
  const Outcome without = doctor({"--device", "sim:h200", machine_code});
  EXPECT_EQ(without.exit_code, 3);
  EXPECT_THAT(without.out, HasSubstr("\nrefused      app "));
  EXPECT_THAT(without.err,
              HasSubstr("demarc doctor: the program cannot be isolated on this card\n"));
  EXPECT_EQ(doctor({"--device", "h200", "true"}).exit_code, 3) << "of which nothing is known";
}

TEST_F(DoctorOfProgram, ends_with_1_for_wrong_input_and_with_2_without_a_card) {
  const Outcome none = doctor({"--device", "h200", "/nowhere/app"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.err, "demarc doctor: /nowhere/app: there is no such program\n");
  EXPECT_EQ(doctor({"--device", "h2000", "true"}).exit_code, 1);
  EXPECT_THAT(doctor({"--device", "planted:h100", "true"}).err,
              HasSubstr("--device planted:h100: give cuda:N, or a name of demarc list devices"));
  EXPECT_THAT(doctor({"--device", "h200", "--description", "h200", "true"}).err,
              HasSubstr("--description describes a card cuda:N, but --device h200 is a"));
  EXPECT_THAT(doctor({"--preload", "/x", "--device", "h200", "true"}).err,
              HasSubstr("--preload is looked at without a program"));
  EXPECT_EQ(doctor({"--device", "h200", "--pid", "1", "true"}).exit_code, 1);
  ::setenv("DEMARC_LIBCUDA", "/nowhere", 1);
  const Outcome lacking = doctor({"true"});
  EXPECT_EQ(lacking.exit_code, 2);
  EXPECT_EQ(lacking.out, "");
  EXPECT_THAT(lacking.err, HasSubstr("no NVIDIA driver on this machine"));
}

TEST_F(DoctorOfProgram, asks_the_driver_for_the_card) {
  const Outcome outcome = doctor({machine_code});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(" in a tenant on NVIDIA H100"));
}

TEST_F(DoctorOfProgram, takes_the_programs_options_as_the_programs) {
  const std::string file = folder / "never";
  const Outcome outcome =
      doctor({"--device", "h200", "touch", "--json", "-c", "--device", "none", file});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_THAT(outcome.out, EndsWith("-- touch --json -c --device none " + file + "\n"));
  EXPECT_FALSE(std::filesystem::exists(file)) << "it is never run";
  const Outcome behind = doctor({"--device", "h200", "--", "touch", "-c", file});
  EXPECT_THAT(behind.out, EndsWith("-- touch -c " + file + "\n"));
}

TEST_F(DoctorOfProgram, json_takes_the_place_of_the_text) {
  const Outcome outcome = doctor({"--device", "h200", "--json", machine_code});
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json.at("schema"), "demarc.doctor.program/1");
  EXPECT_EQ(json.at("verdict"), "cannot be isolated");
  EXPECT_EQ(json.at("device"), "h200");
}

TEST_F(DoctorOfProgram, looks_at_a_process_that_runs) {
  const Outcome outcome =
      doctor({"--device", "h200", "--pid", std::to_string(::getpid()), "--json"});
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("demarc_cli_tests"));
  const Outcome none = doctor({"--device", "h200", "--pid", "0"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.err, "demarc doctor: --pid 0: there is no such process\n");
}

}  // namespace
}  // namespace demarc::test
