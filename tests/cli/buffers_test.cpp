// demarc emulate and run: what buffers and variables hold, from files and into files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/launch/content_file.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc {
namespace {

using test::run_demarc;
using testing::HasSubstr;
using testing::Not;

// scale<float>(float*, float*): out[i] = in[i] * gain + 1 for the 32 threads of a block.
constexpr const char* scale_ptx = R"(.version 8.0
.target sm_80
.address_size 64
.const .align 4 .f32 gain;
.visible .entry _Z5scaleIfEvPT_S1_(.param .u64 in, .param .u64 out)
{
.reg .b32 %r<2>;
.reg .b64 %rd<6>;
.reg .f32 %f<4>;
ld.param.u64 %rd1, [in];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd4, %rd1, %rd3;
add.u64 %rd5, %rd2, %rd3;
ld.global.f32 %f1, [%rd4];
ld.const.f32 %f2, [gain];
fma.rn.f32 %f3, %f1, %f2, 0f3f800000;
st.global.f32 [%rd5], %f3;
ret;
}
)";

class Buffers : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_file(folder / "scale.ptx", scale_ptx));
    save("in.npy", 1, 0);
    save("expected.npy", 2.5F, 1);
  }
  [[nodiscard]] std::string at(const std::string& name) const { return (folder / name).string(); }
  // Elements i * factor + offset.
  void save(const std::string& name, float factor, float offset) const {
    std::string bytes;
    for (int i = 0; i < 32; ++i) {
      const float value = static_cast<float>(i) * factor + offset;
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    ASSERT_TRUE(write_file(folder / name,
                           gpu::content_head(name, gpu::ScalarType::f32, bytes.size()) + bytes));
  }
  // The launch by hand, with gain 2.5, and these options.
  [[nodiscard]] test::Outcome scaled(const std::vector<std::string>& more,
                                     const std::string& verb = "emulate") const {
    std::vector<std::string> arguments{
        verb, at("scale.ptx"), "--block",
        "32", "--args",        "buf:128:@" + at("in.npy") + ":f32,buf:128:zero:f32",
    };
    if (more.empty() || more.front() != "--variable")
      arguments.insert(arguments.end(), {"--variable", "gain=f32:2.5"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_demarc(arguments);
  }
  [[nodiscard]] std::string launch_file(const std::string& more) const {
    EXPECT_TRUE(write_file(folder / "l.json", R"({"schema": "demarc.launch/1", "ptx": "scale.ptx",
  "buffers": [{"name": "in", "bytes": 128, "element": "f32", "fill": "@in.npy"},
              {"name": "out", "bytes": 128, "element": "f32", "output": true}],
  "launches": [{"kernel": "scale", "grid": 1, "block": 32, "args": ["buf:in", "buf:out"]}])" +
                                                  more + "}"));
    return at("l.json");
  }
  std::filesystem::path folder = test::fresh_folder("buffers");
};

TEST_F(Buffers, are_written_typed_or_as_bytes_by_the_name_of_the_file) {
  const auto outcome =
      scaled({"--save", "arg1=" + at("out.npy"), "--save", "arg1=" + at("out.bin")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string expected = read_file(folder / "expected.npy").value();
  EXPECT_EQ(read_file(folder / "out.npy").value(), expected);
  EXPECT_EQ(read_file(folder / "out.bin").value(), expected.substr(expected.size() - 128));
}

TEST_F(Buffers, are_printed_by_the_type_of_their_elements) {
  EXPECT_THAT(scaled({"--print", "arg1:4"}).out, HasSubstr("\narg1 (f32, 4 of 32): 1 3.5 6 8.5\n"));
  EXPECT_THAT(scaled({"--print", "arg0"}).out,
              HasSubstr("\narg0 (f32, 16 of 32): 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n"));
  EXPECT_THAT(scaled({"--print", "arg0:99"}).out, HasSubstr("arg0 (f32, 32 of 32): 0 1 2 "));
  const auto json = scaled({"--print", "arg1:2", "--print", "arg0:1", "--json"});
  EXPECT_EQ(Json::parse(json.out)["buffers"], Json::parse(R"([
      {"name": "arg1", "element": "f32", "elements": 32, "values": [1.0, 3.5]},
      {"name": "arg0", "element": "f32", "elements": 32, "values": [0.0]}])"));
}

TEST_F(Buffers, of_every_type_are_printed_exactly) {
  ASSERT_TRUE(write_file(folder / "idle.ptx",
                         ".version 8.0\n.target sm_80\n.address_size 64\n"
                         ".visible .entry idle(.param .u64 p) { ret; }\n"));
  const auto printed = [&](const std::string& element, const std::string& bytes) {
    EXPECT_TRUE(write_file(folder / "bytes", bytes));
    const auto outcome = run_demarc(
        {"emulate", at("idle.ptx"), "--args",
         fmt::format("buf:{}:@{}:{}", bytes.size(), at("bytes"), element), "--print", "arg0"});
    const auto colon = outcome.out.rfind(": ");
    return colon == std::string::npos ? outcome.err : outcome.out.substr(colon + 2);
  };
  EXPECT_EQ(printed("i8", "\xff\x7f"), "-1 127\n");
  EXPECT_EQ(printed("u8", "\xff\x7f"), "255 127\n");
  EXPECT_EQ(printed("u64", std::string(8, '\xff')), "18446744073709551615\n");
  EXPECT_EQ(printed("i64", std::string("\x01\0\0\0\0\0\x20\0", 8)), "9007199254740993\n");
  EXPECT_EQ(printed("f32", std::string("\xcd\xcc\xcc\x3d\0\0\x80\x7f\0\0\xc0\x7f", 12)),
            "0.1 inf nan\n");
  EXPECT_EQ(printed("f16", std::string("\0\x38", 2)), "0.5\n");
  EXPECT_EQ(printed("f64", std::string("\x9a\x99\x99\x99\x99\x99\xb9\x3f", 8)), "0.1\n");
  const auto json = run_demarc({"emulate", at("idle.ptx"), "--args",
                                "buf:8:@" + at("bytes") + ":u64", "--print", "arg0", "--json"});
  EXPECT_EQ(Json::parse(json.out)["buffers"][0]["values"][0], 4591870180066957722U);
  ASSERT_TRUE(write_file(folder / "bytes", std::string("\0\0\x80\xff", 4)));
  const auto infinite = run_demarc({"emulate", at("idle.ptx"), "--args",
                                    "buf:4:@" + at("bytes") + ":f32", "--print", "arg0", "--json"});
  EXPECT_EQ(Json::parse(infinite.out)["buffers"][0]["values"][0], "-inf");
}

TEST_F(Buffers, that_cannot_be_shown_are_refused_before_the_run) {
  const auto refused = [&](const std::vector<std::string>& more, const std::string& message) {
    const auto outcome = scaled(more);
    EXPECT_EQ(outcome.exit_code, 1) << message;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(outcome.out, "");
  };
  refused({"--print", "arg2"},
          "--print arg2: there is no buffer 'arg2'; the launch has: arg0, arg1");
  refused({"--print", "arg1:0"}, "--print arg1:0: at least one element was expected");
  refused({"--print", "arg1:x"}, "--print arg1:x: 'x' is not a whole number");
  refused({"--save", "out=" + at("x")}, "there is no buffer 'out'");
  refused({"--save", "arg1"}, "'arg1' is not NAME=FILE");
  refused({"--save", "arg1="}, "'arg1=' is not NAME=FILE");
  refused({"--save", "=" + at("x")}, "is not NAME=FILE");
  refused({"--save", "arg1=-"}, "arg1=-: standard output takes the report");
  refused({"--save", "arg1=/no/dir/x"}, "/no/dir/x: cannot be written: No such file");
  refused({"--save", "arg0=" + at("x"), "--save", "arg1=" + at("x")},
          "--save and --save both name " + at("x"));
  refused({"--save", "arg0=" + at("x"), "--trace", at("x")}, "both name " + at("x"));
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
  const auto halves = run_demarc(
      {"emulate", at("scale.ptx"), "--args", "buf:6,buf:6", "--save", "arg1=" + at("x.npy")});
  EXPECT_EQ(halves.exit_code, 1);
  EXPECT_THAT(halves.err, HasSubstr("6 bytes are no whole number of u32; a name that does not"));
  const auto none = run_demarc({"emulate", at("scale.ptx"), "--print", "arg0"});
  EXPECT_THAT(none.err, HasSubstr("--print arg0: the launch has no buffers"));
}

TEST_F(Buffers, of_a_launch_that_does_not_run_leave_the_old_files) {
  ASSERT_TRUE(write_file(folder / "old", "old"));
  const auto outcome =
      run_demarc({"emulate", at("scale.ptx"), "--args", "buf:4", "--save", "arg0=" + at("old")});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("takes 2 arguments, but the launch gives 1"));
  EXPECT_EQ(read_file(folder / "old").value(), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 4);
}

TEST_F(Buffers, are_written_where_the_check_does_not_hold) {
  const std::string check = R"(, "check": {"file": "expected.npy"})";
  const auto good =
      run_demarc({"emulate", "--launch", launch_file(check), "--variable", "gain=f32:2.5"});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("the outputs meet the reference"));
  const auto bad = run_demarc({"emulate", "--launch", launch_file(check), "--variable",
                               "gain=f32:3", "--save", "out=" + at("out.bin")});
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_THAT(bad.err, HasSubstr("output 'out' (f32): 31 of 32 elements differ; the first at [1]: "
                                 "expected 3.5, found 4"));
  EXPECT_EQ(std::filesystem::file_size(folder / "out.bin"), 128U);
  const auto tolerant = run_demarc(
      {"emulate", "--launch",
       launch_file(R"(, "check": {"file": "expected.npy", "absolute": 16, "relative": 0})"),
       "--variable", "gain=f32:3"});
  EXPECT_EQ(tolerant.exit_code, 0) << tolerant.err;
}

TEST_F(Buffers, constants_that_nobody_set_are_warned_of_by_name) {
  const std::string file = launch_file("");
  const auto unset = run_demarc({"emulate", "--launch", file, "--json"});
  EXPECT_EQ(unset.exit_code, 0) << unset.err;
  EXPECT_THAT(unset.err,
              HasSubstr("demarc emulate: warning: kernel '_Z5scaleIfEvPT_S1_' reads the "
                        "__constant__ variable 'gain', which has not been set: it contains zeros"));
  const Json warnings = Json::parse(unset.out)["warnings"];
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0]["variable"], "gain");
  EXPECT_EQ(warnings[0]["kernel"], "_Z5scaleIfEvPT_S1_");
  const std::string set =
      launch_file(R"(, "variables": [{"name": "gain", "element": "f32", "fill": [4]}])");
  const auto told = run_demarc({"emulate", "--launch", set, "--json", "--print", "out:2"});
  EXPECT_EQ(told.err, "");
  EXPECT_EQ(Json::parse(told.out)["warnings"], Json::array());
  EXPECT_EQ(Json::parse(told.out)["buffers"][0]["values"], Json::array({1.0, 5.0}));
}

TEST_F(Buffers, kernels_are_chosen_by_the_names_that_people_write) {
  for (const char* name : {"scale", "scale<float>", "scale<float>(float*, float*)"}) {
    EXPECT_EQ(scaled({"--kernel", name}).exit_code, 0) << name;
    const auto chosen = run_demarc({"emulate", "--launch", launch_file(""), "--kernel", name});
    EXPECT_EQ(chosen.exit_code, 0) << chosen.err;
  }
  const auto misspelt = scaled({"--kernel", "scaal"});
  EXPECT_EQ(misspelt.exit_code, 1);
  EXPECT_THAT(
      misspelt.err,
      HasSubstr("there is no entry 'scaal'; its entries are: scale<float>(float*, float*)"));
  const auto locality = run_demarc(
      {"locality", "--launch", launch_file(""), "--kernel", "scale", "--variable", "gain=f32:1"});
  EXPECT_EQ(locality.exit_code, 0) << locality.err;
}

TEST_F(Buffers, inputs_of_another_type_or_order_are_refused) {
  std::string fortran = read_file(folder / "in.npy").value();
  fortran.replace(fortran.find("False"), 5, "True ");
  ASSERT_TRUE(write_file(folder / "in.npy", fortran));
  const auto outcome = scaled({});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("argument 1 (buffer 'arg0'): "));
  EXPECT_THAT(outcome.err, HasSubstr("in.npy: the array is in Fortran order"));
}

}  // namespace
}  // namespace demarc
