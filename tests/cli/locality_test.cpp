// demarc locality as a user meets it: the launch on the command line, its JSON, and its errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc {
namespace {

using test::run_demarc;
using testing::HasSubstr;

// out[i] = in[i] + in[i + 1]
std::string halo_file() {
  static const std::string path = [] {
    const auto file = test::fresh_folder("locality") / "k.ptx";
    std::ofstream(file) << R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry halo(.param .u64 from, .param .u64 to)
{
.reg .b32 %r<8>;
.reg .b64 %rd<8>;
.reg .f32 %f<4>;
ld.param.u64 %rd1, [from];
ld.param.u64 %rd2, [to];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.s32 %r4, %r1, %r2, %r3;
mul.wide.s32 %rd3, %r4, 4;
add.s64 %rd4, %rd1, %rd3;
ld.global.f32 %f1, [%rd4];
ld.global.f32 %f2, [%rd4+4];
add.f32 %f3, %f1, %f2;
add.s64 %rd5, %rd2, %rd3;
st.global.f32 [%rd5], %f3;
ret;
}
)";
    return file.string();
  }();
  return path;
}

std::vector<std::string> locality_of_halo(const std::vector<std::string>& more) {
  std::vector<std::string> all{"locality", halo_file()};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(LocalityVerb, gives_every_promised_key_of_the_example) {
  const auto outcome =
      run_demarc(locality_of_halo({"--kernel", "halo", "--grid", "8", "--block", "64", "--args",
                                   "buf:65536,buf:65536", "--json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "demarc.locality/1");
  EXPECT_EQ(json["kernel"], "halo");
  EXPECT_EQ(json["grid"], Json::array({8, 1, 1}));
  EXPECT_EQ(json["block"], Json::array({64, 1, 1}));
  EXPECT_EQ(json["method"], "symbolic");
  ASSERT_EQ(json["accesses"].size(), 3U);
  const Json& second = json["accesses"][1];
  EXPECT_EQ(second["instruction"], "ld.global.f32 %f2, [%rd4+4];");
  EXPECT_EQ(second["line"], 18);
  EXPECT_EQ(second["space"], "global");
  EXPECT_EQ(second["kind"], "load");
  EXPECT_EQ(second["expression"], "param0 + 4*(tid.x + ctaid.x*ntid.x + 1)");
  EXPECT_EQ(second["class"], "affine");
  EXPECT_EQ(second["sectors_per_request"], 5.0);
  // Neighbours share one word: 7 cells of one over C(8, 2) * 2 loads * 64 threads.
  EXPECT_DOUBLE_EQ(json["inter"]["degree_of_sharing"], 7.0 / (28 * 2 * 64));
  EXPECT_EQ(json["inter"]["appearance_frequency"], 1.0);
  EXPECT_DOUBLE_EQ(json["inter"]["spscore"], 1 - 14.0 / 64);
  EXPECT_DOUBLE_EQ(json["inter"]["paver_degree_of_sharing"], 7.0 / 8);
  EXPECT_DOUBLE_EQ(json["intra"]["degree_of_sharing"], 63.0 / (2016 * 2));
  EXPECT_EQ(json["intra"]["appearance_frequency"], 1.0);
}

TEST(LocalityVerb, says_which_translation_architecture_the_pages_speak_for) {
  const auto outcome = run_demarc(locality_of_halo(
      {"--grid", "8", "--block", "64", "--args", "buf:65536,buf:65536", "--gpus", "4", "--json"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json pages = Json::parse(outcome.out)["pages"];
  ASSERT_EQ(pages.size(), 3U);
  EXPECT_EQ(pages[0]["page_bytes"], 4096);
  EXPECT_EQ(pages[0]["prefers"], "centralised");
}

TEST(LocalityVerb, writes_a_page) {
  const auto page = test::fresh_folder("page") / "out.html";
  const auto outcome = run_demarc(locality_of_halo(
      {"--grid", "8", "--block", "64", "--args", "buf:65536,buf:65536", "--html", page.string()}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(std::filesystem::file_size(page), 100'000U);
  // The command as it was given.
  EXPECT_THAT(read_file(page).value_or(""), HasSubstr("--args buf:65536,buf:65536"));
}

TEST(LocalityVerb, the_text_goes_to_its_file_beside_a_page_too) {
  const auto folder = test::fresh_folder("locality_both");
  const auto outcome = run_demarc(
      locality_of_halo({"--grid", "8", "--block", "64", "--args", "buf:65536,buf:65536", "--html",
                        (folder / "x.html").string(), "-o", (folder / "x.txt").string()}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(read_file(folder / "x.txt").value_or(""), HasSubstr("kernel halo"));
  EXPECT_TRUE(std::filesystem::exists(folder / "x.html"));
}

TEST(LocalityVerb, the_method_is_the_one_that_was_asked_for) {
  const auto method = [](const std::string& file, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"locality", file,    "--grid", "8",
                                       "--block",  "64",    "--args", "buf:65536,buf:65536",
                                       "--json",   "--maps"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto outcome = run_demarc(arguments);
    if (outcome.exit_code != 0) return outcome.err;
    const Json json = Json::parse(outcome.out);
    EXPECT_FALSE(json["inter"]["map"]["cells"].empty());
    return json["method"].get<std::string>();
  };
  EXPECT_EQ(method(halo_file(), {"--method", "emulated"}), "emulated");
  EXPECT_EQ(method(halo_file(), {"--method", "symbolic"}), "symbolic");
  // An address that is read from memory has no closed form.
  std::string text = read_file(halo_file()).value();
  text.insert(text.find("add.s64 %rd5"),
              "ld.global.u32 %r5, [%rd4];\nand.b32 %r5, %r5, 255;\nmul.wide.u32 %rd6, %r5, 4;\n"
              "add.s64 %rd6, %rd1, %rd6;\nld.global.f32 %f1, [%rd6];\n");
  const auto indirect = (test::fresh_folder("locality_indirect") / "k.ptx").string();
  ASSERT_TRUE(write_file(indirect, text));
  EXPECT_EQ(method(indirect, {}), "mixed");
  EXPECT_EQ(method(indirect, {"--method", "emulated"}), "emulated");
  EXPECT_THAT(method(indirect, {"--method", "symbolic"}), HasSubstr("demarc locality: "));
}

TEST(LocalityVerb, leaves_out_the_prediction_where_the_description_lacks_what_it_needs) {
  const std::vector<std::string> launch{
      "--grid", "8", "--block", "64", "--args", "buf:65536,buf:65536", "--device", "sim:p100"};
  const auto text = run_demarc(locality_of_halo(launch));
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("lacks the size of the L2"));
  EXPECT_THAT(text.out, testing::Not(HasSubstr("hit rate ")));
  auto as_json = launch;
  as_json.emplace_back("--json");
  const auto json = run_demarc(locality_of_halo(as_json));
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const Json prediction = Json::parse(json.out)["prediction"];
  EXPECT_TRUE(prediction.contains("left_out"));
  EXPECT_FALSE(prediction.contains("whole_l2"));
  EXPECT_THAT(run_demarc({"demo", "--device", "sim:p100"}).err,
              HasSubstr("--device sim:p100: no hit rates are predicted"))
      << "the page has a name of its own";
  EXPECT_THAT(run_demarc({"demo", "--help"}).out, HasSubstr("--html TEXT=demarc-demo.html"));
  const auto demo = run_demarc({"demo", "--device", "sim:p100", "--html", "-"});
  EXPECT_EQ(demo.exit_code, 1);
  EXPECT_THAT(demo.err, HasSubstr("--device sim:p100: no hit rates are predicted"));
}

TEST(LocalityVerb, notes_of_what_was_left_out_stand_in_text_and_page) {
  const auto folder = test::fresh_folder("left_out");
  std::ofstream(folder / "k.ptx") << R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b64 %rd<3>;
.reg .f32 %f<3>;
ld.param.u64 %rd1, [p];
ldx.global.f32 %f1, [%rd1];
ret;
}
)";
  const auto page = folder / "out.html";
  const auto outcome = run_demarc({"locality", (folder / "k.ptx").string(), "--grid", "1",
                                   "--block", "32", "--args", "buf:64", "--html", page.string()});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("k.ptx:9: ldx.global.f32 %f1, [%rd1];"));
  EXPECT_THAT(read_file(page).value_or(""), HasSubstr("k.ptx:9: ldx.global.f32 %f1, [%rd1];"));
}

// The launches of tests/emulate/textures.
std::string texture_launch(const std::string& name) {
  return (test::source_dir() / "tests" / "emulate" / "textures" / name).string();
}

TEST(LocalityVerb, counts_texels_and_says_for_which_figures_a_card_has_others) {
  const auto page = test::fresh_folder("locality_textures") / "out.html";
  const auto plane =
      run_demarc({"locality", "--launch", texture_launch("plane-linear.json"), "--html", page});
  ASSERT_EQ(plane.exit_code, 0) << plane.err;
  EXPECT_THAT(plane.out, HasSubstr("method mixed"));
  const auto note = HasSubstr("so its sectors, lines, pages and hit rates differ: ");
  EXPECT_THAT(plane.out, note);
  EXPECT_THAT(plane.out, testing::ContainsRegex("fetches.ptx:[0-9]+: tex.2d.v4.f32.f32"));
  EXPECT_THAT(read_file(page).value_or(""), note);
  const auto json =
      run_demarc({"locality", "--launch", texture_launch("plane-linear.json"), "--json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const Json accesses = Json::parse(json.out)["accesses"];
  const auto fetch = std::find_if(accesses.begin(), accesses.end(), [](const Json& one) {
    return one["instruction"].get<std::string>().starts_with("tex.2d");
  });
  ASSERT_NE(fetch, accesses.end());
  EXPECT_EQ((*fetch)["kind"], "load");
  EXPECT_EQ((*fetch)["method"], "emulated");
  EXPECT_GT((*fetch)["executed"], 64) << "64 threads, up to four texels each";
  const auto linear = run_demarc({"locality", "--launch", texture_launch("memory-f32.json")});
  ASSERT_EQ(linear.exit_code, 0) << linear.err;
  EXPECT_THAT(linear.out, testing::Not(note));
}

TEST(LocalityVerb, refuses_textures_where_it_cannot_know_what_they_read) {
  const auto symbolic = run_demarc(
      {"locality", "--launch", texture_launch("plane-linear.json"), "--method", "symbolic"});
  EXPECT_EQ(symbolic.exit_code, 1);
  EXPECT_THAT(symbolic.err, HasSubstr("may touch global memory and has no closed form"));
  // A command line has no handles.
  const auto number =
      run_demarc({"locality", texture_launch("fetches.ptx"), "--kernel", "fetch_2d", "--grid", "1",
                  "--block", "64", "--args", "buf:1024,buf:1024,u64:1"});
  EXPECT_EQ(number.exit_code, 3);
  EXPECT_THAT(number.err, HasSubstr("0x1 is not a handle of a texture of the launch file"));
}

TEST(LocalityVerb, an_address_behind_its_buffer_is_a_finding_that_names_the_line) {
  const auto page = test::fresh_folder("locality_finding") / "out.html";
  const auto outcome = run_demarc(locality_of_halo(
      {"--grid", "8", "--block", "64", "--args", "buf:4,buf:65536", "--html", page.string()}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto names = HasSubstr("k.ptx:17: ld.global.f32 %f1, [%rd4]");
  EXPECT_THAT(outcome.out, names);
  EXPECT_THAT(outcome.out, HasSubstr("finding: out-of-bounds"));
  EXPECT_THAT(outcome.out, HasSubstr("degree of sharing"));
  EXPECT_THAT(read_file(page).value_or(""), names);
}

TEST(LocalityVerb, a_block_that_executes_more_than_the_limit_hangs_and_the_line_is_named) {
  EXPECT_EQ(run_demarc({"locality", "bundled:vecadd", "--method", "emulated"}).exit_code, 0);
  const auto outcome =
      run_demarc({"locality", "bundled:vecadd", "--method", "emulated", "--limit", "10"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("does not run to its end: hang: bundled:vecadd:"));
  EXPECT_THAT(outcome.err, HasSubstr("executed more than 10 warp instructions without ending"));
}

TEST(LocalityVerb, picks_a_kernel_of_a_bundled_launch) {
  const auto outcome = run_demarc({"locality", "bundled:backprop", "--kernel", "layer_forward"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("kernel layer_forward, 1x64x1 blocks of 16x16x1 threads"));
  const auto unknown = run_demarc({"locality", "bundled:backprop", "--kernel", "other"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("--kernel other: there is no kernel 'other'"));
}

TEST(LocalityVerb, refuses_what_is_wrong_and_says_what_would_be_right) {
  const struct {
    std::vector<std::string> arguments;
    const char* message;
  } cases[] = {
      {locality_of_halo({"--grid", "8x", "--block", "64", "--args", "buf:64,buf:64"}), "--grid"},
      {locality_of_halo({"--grid", "0", "--block", "64", "--args", "buf:64,buf:64"}), "grid"},
      {locality_of_halo({"--grid", "8", "--block", "2048", "--args", "buf:64,buf:64"}), "1024"},
      {locality_of_halo(
           {"--kernel", "hallo", "--grid", "8", "--block", "64", "--args", "buf:64,buf:64"}),
       "its entries are: halo"},
      {locality_of_halo({"--grid", "8", "--block", "64", "--args", "buf:65536"}),
       "takes 2 arguments, but the launch gives 1"},
      {locality_of_halo({"--grid", "8", "--block", "64", "--args", "buf:65536,puf:1"}), "puf"},
      {locality_of_halo(
           {"--grid", "8", "--block", "64", "--args", "buf:64,buf:64", "--granularity", "33"}),
       "element, 32, 128"},
      {locality_of_halo(
           {"--grid", "8", "--block", "64", "--args", "buf:64,buf:64", "--count", "all"}),
       "accesses, multiset, distinct"},
      {locality_of_halo(
           {"--grid", "8", "--block", "64", "--args", "buf:64,buf:64", "--loads", "--stores"}),
       "exclude each other"},
      {locality_of_halo(
           {"--grid", "8", "--block", "64", "--args", "buf:64,buf:64", "--stores", "--atomics"}),
       "exclude each other"},
      {locality_of_halo(
           {"--grid", "8", "--block", "64", "--args", "buf:64,buf:64", "--method", "fast"}),
       "--method: 'fast' is none of automatic, symbolic, emulated"},
      {locality_of_halo(
           {"--grid", "8", "--block", "64", "--args", "buf:65536,buf:65536", "--maps"}),
       "give --json too"},
      {{"locality", "/no/such/file.ptx", "--grid", "1"}, "/no/such/file.ptx"},
      {{"locality", "bundled:hotspot", "--instance", "1"},
       "--instance 1: kernel 'calculate_temp' is launched 1 times, counted from 0"},
      {{"locality", "bundled:hotspot", "--instance", "-1"}, "--instance"},
      {{"locality", "bundled:hotspot", "--gpus", "65"}, "--gpus: Value 65 not in range 1 to 64"},
      {{"locality", "bundled:hotspot", "--device", "cuda:0"},
       "--device cuda:0: predictions are made for a description of a device; use sim:NAME"},
      {{"locality", "bundled:hotspot", "--device", "sim:none"}, "none"},
  };
  for (const auto& one : cases) {
    const auto outcome = run_demarc(one.arguments);
    EXPECT_EQ(outcome.exit_code, 1) << one.message;
    EXPECT_THAT(outcome.err, HasSubstr(one.message));
  }
}

}  // namespace
}  // namespace demarc
