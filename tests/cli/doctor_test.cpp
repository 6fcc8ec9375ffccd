// demarc doctor as a program: where its answers go, and its exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class DoctorVerb : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    ::setenv("DEMARC_CACHE", folder.c_str(), 1);
    ::setenv("DEMARC_FAKE_GPU", "version=13000,offset=1308,client=0", 1);
  }
  void TearDown() override {
    for (const char* name : {"DEMARC_LIBCUDA", "DEMARC_CACHE", "DEMARC_FAKE_GPU"}) ::unsetenv(name);
  }
  std::filesystem::path folder = fresh_folder("doctor");
};

TEST_F(DoctorVerb, ends_with_0_where_programs_can_be_confined_and_they_are) {
  const Outcome good = run_demarc({"doctor"});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out, StartsWith("driver    works "));
  EXPECT_THAT(good.out, HasSubstr("\npreload   works      " +
                                  (build_dir() / "libdemarc_preload.so").string() + "\n"));
  EXPECT_EQ(good.err, "");
  EXPECT_EQ(run_demarc({"exec", "--tpcs", "1", "--", "true"}).exit_code, 3);  // no context made
}

TEST_F(DoctorVerb, without_a_driver_it_says_all_it_can_and_ends_with_2) {
  ::setenv("DEMARC_LIBCUDA", "/nowhere", 1);
  const Outcome lacking = run_demarc({"doctor"});
  EXPECT_EQ(lacking.exit_code, 2);
  EXPECT_THAT(lacking.out, AllOf(StartsWith("driver    does not "), HasSubstr("\nnvcc ")));
  EXPECT_EQ(lacking.err, "demarc doctor: this machine lacks: driver (for exec, isolate, serve)\n");
}

TEST_F(DoctorVerb, json_goes_to_standard_output_or_into_a_file) {
  const Outcome shown = run_demarc({"doctor", "--json"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("\"schema\": \"demarc.doctor/1\""));
  const auto file = folder / "doctor.json";
  const Outcome written = run_demarc({"doctor", "--json=" + file.string()});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_THAT(written.out, StartsWith("driver    works "));
  EXPECT_THAT(read_file(file).value_or(""), HasSubstr("\"schema\": \"demarc.doctor/1\""));
  const Outcome refused = run_demarc({"doctor", "--json=/nowhere/doctor.json"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("/nowhere/doctor.json"));
  EXPECT_EQ(refused.out, "");
}

TEST_F(DoctorVerb, inside_another_exec_programs_cannot_be_confined) {
  const Outcome inside =
      run_demarc({"exec", "--tpcs", "1,3", "--", (build_dir() / "demarc").string(), "doctor"});
  EXPECT_THAT(inside.out, HasSubstr("\nprocesses does not   this runs inside another demarc exec"));
  EXPECT_THAT(inside.err, HasSubstr("processes (for exec)"));
}

TEST_F(DoctorVerb, a_simulated_device_is_refused) {
  const Outcome refused = run_demarc({"doctor", "--device", "sim:h200"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(
      refused.err,
      "demarc doctor: --device sim:h200: a simulated GPU needs nothing to work; give cuda:N\n");
}

}  // namespace
}  // namespace demarc::test
