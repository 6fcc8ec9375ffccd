// demarc emulate, as a user calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc {
namespace {

using test::run_demarc;
using testing::HasSubstr;

constexpr const char* halo = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry halo(.param .u64 in, .param .u64 out)
{
.reg .b32 %r<5>;
.reg .b64 %rd<7>;
ld.param.u64 %rd1, [in];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.u32 %r1, %r1, %r2, %r3;
mad.wide.u32 %rd3, %r1, 4, %rd1;
mad.wide.u32 %rd4, %r1, 4, %rd2;
ld.global.u32 %r4, [%rd3+4];
st.global.u32 [%rd4], %r4;
ret;
}
)";

std::string file_with(const std::string& text) {
  const auto path = test::fresh_folder("emulate_verb") / "k.ptx";
  EXPECT_TRUE(write_file(path, text));
  return path.string();
}

std::vector<std::string> launch(const std::string& file, const char* bytes) {
  return {"emulate", file,      "--kernel", "halo",   "--grid",
          "2",       "--block", "64",       "--args", std::string("buf:") + bytes + ",buf:512"};
}

TEST(EmulateVerb, a_clean_kernel_exits_with_0_and_counts_what_it_did) {
  const auto outcome = run_demarc(launch(file_with(halo), "516"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("halo: 2 blocks, 4 warps, 1408 thread instructions, 44 warp instructions"));
}

TEST(EmulateVerb, a_finding_exits_with_3_and_names_line_block_and_thread) {
  const std::string file = file_with(halo);
  const auto outcome = run_demarc(launch(file, "512"));
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("out-of-bounds access: "));
  EXPECT_THAT(outcome.err, HasSubstr("k.ptx:16: ld.global.u32 %r4, [%rd3+4];"));
  EXPECT_THAT(outcome.err, HasSubstr("kernel halo, block (1,0,0), thread (63,0,0)"));
}

TEST(EmulateVerb, json_carries_the_statistics_and_the_findings) {
  auto arguments = launch(file_with(halo), "512");
  arguments.emplace_back("--json");
  const auto outcome = run_demarc(arguments);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.out, HasSubstr("\"schema\": \"demarc.emulate/1\""));
  EXPECT_THAT(outcome.out, HasSubstr("\"kind\": \"out-of-bounds access\""));
  EXPECT_THAT(outcome.out, HasSubstr("\"line\": 16"));
}

TEST(EmulateVerb, a_bundled_launch_meets_its_reference) {
  const auto outcome = run_demarc({"emulate", "bundled:vecadd"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("the outputs meet the reference"));
}

TEST(EmulateVerb, without_checks_a_read_of_what_nobody_wrote_passes) {
  std::string text = halo;
  text.insert(text.find("ret;"),
              ".reg .pred %p;\nld.shared.u32 %r3, [word];\nsetp.eq.u32 %p, %r3, 7;\n@%p ");
  text.insert(text.find(".visible"), ".shared .align 4 .b32 word;\n");
  auto arguments = launch(file_with(text), "516");
  const auto checked = run_demarc(arguments);
  EXPECT_EQ(checked.exit_code, 3);
  EXPECT_THAT(checked.err, HasSubstr("uninitialised read"));
  arguments.emplace_back("--no-checks");
  EXPECT_EQ(run_demarc(arguments).exit_code, 0);
}

TEST(EmulateVerb, a_trace_is_written_and_begins_with_its_mark) {
  const auto path = test::fresh_folder("emulate_trace") / "vecadd.trace";
  const auto outcome = run_demarc({"emulate", "bundled:vecadd", "--trace", path.string()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto bytes = read_file(path);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->substr(0, 8), "DMRCTRC1");
}

// With a size that does not take long; a worst neighbour has none.
TEST(EmulateVerb, launch_files_of_the_examples_run_without_a_finding) {
  const auto examples = test::source_dir() / "examples";
  std::size_t files = 0;
  for (const char* folder : {"causes", "my_kernel", "worst"}) {
    for (const auto& entry : std::filesystem::directory_iterator(examples / folder)) {
      if (entry.path().extension() != ".json") continue;
      SCOPED_TRACE(entry.path().string());
      std::vector<std::string> words{"emulate", "--launch", entry.path().string()};
      const Json launch = Json::parse(read_file(entry.path()).value_or(""));
      const Json parameters = launch.value("parameters", Json::object());
      for (const auto& [name, value] :
           {std::pair{"blocks", "2"}, std::pair{"rounds", "2"}, std::pair{"launches", "3"},
            std::pair{"words", "4096"}, std::pair{"mib", "2"}, std::pair{"loads", "4"}}) {
        if (!parameters.contains(name)) continue;
        words.insert(words.end(), {"--param", fmt::format("{}={}", name, value)});
      }
      const auto outcome = run_demarc(words);
      EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
      ++files;
    }
  }
  EXPECT_EQ(files, 11U);
}

TEST(EmulateVerb, textures_of_a_launch_file_are_read_and_a_number_is_no_handle) {
  const auto folder = test::source_dir() / "tests" / "emulate" / "textures";
  const auto read = run_demarc({"emulate", "--launch", (folder / "plane-linear.json").string()});
  EXPECT_EQ(read.exit_code, 0) << read.err;
  EXPECT_THAT(read.out, HasSubstr("fetch_2d: 1 blocks"));
  EXPECT_THAT(read.out, HasSubstr("approximated: tex.2d.v4.f32.f32"));
  const auto number =
      run_demarc({"emulate", (folder / "fetches.ptx").string(), "--kernel", "fetch_2d", "--grid",
                  "1", "--block", "64", "--args", "buf:1024,buf:1024,u64:1"});
  EXPECT_EQ(number.exit_code, 3);
  EXPECT_THAT(number.err,
              HasSubstr("thread (0,0,0): 0x1 is not a handle of a texture of the launch "
                        "file"));
}

TEST(EmulateVerb, a_trace_goes_through_a_pipe_which_stays_one) {
  const auto path = test::fresh_folder("emulate_pipe") / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string bytes;
  std::thread reader([&] { bytes = read_file(path).value_or("nothing"); });
  const auto outcome = run_demarc({"emulate", "bundled:vecadd", "--trace", path.string()});
  reader.join();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(bytes.substr(0, 8), "DMRCTRC1");
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST(EmulateVerb, a_trace_goes_to_the_file_that_a_link_names) {
  const auto folder = test::fresh_folder("emulate_link");
  std::filesystem::create_symlink("real.trace", folder / "link");
  const auto outcome =
      run_demarc({"emulate", "bundled:vecadd", "--trace", (folder / "link").string()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "real.trace").value_or("").substr(0, 8), "DMRCTRC1");
}

TEST(EmulateVerb, a_run_that_fails_keeps_the_old_trace_and_leaves_nothing_beside_it) {
  const auto folder = test::fresh_folder("emulate_old_trace");
  ASSERT_TRUE(write_file(folder / "old", "old"));
  auto arguments = launch(file_with(halo), "516");
  arguments[3] = "nobody";
  arguments.insert(arguments.end(), {"--trace", (folder / "old").string()});
  EXPECT_EQ(run_demarc(arguments).exit_code, 1);
  EXPECT_EQ(read_file(folder / "old").value_or(""), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST(EmulateVerb, a_trace_to_standard_output_is_refused) {
  const auto outcome = run_demarc({"emulate", "bundled:vecadd", "--trace", "-"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("--trace -: standard output takes the report"));
  EXPECT_FALSE(std::filesystem::exists("-"));
}

TEST(EmulateVerb, a_file_of_contents_is_read_no_further_than_shows_that_it_is_too_long) {
  const auto outcome = run_demarc(launch(file_with(halo), "516:@/dev/zero"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("/dev/zero holds at least 517 bytes, more than the buffer's"));
}

TEST(EmulateVerb, a_file_of_contents_that_is_none_is_named_with_its_argument_by_every_verb) {
  const auto folder = test::fresh_folder("emulate_contents");
  ASSERT_TRUE(write_file(folder / "long", std::string(600, 'x')));
  const std::pair<std::string, std::string> cases[] = {
      {"/nonexistent", "/nonexistent: cannot be read: No such file"},
      {folder.string(), "this is a directory; a file was expected"},
      {(folder / "long").string(), "long holds 600 bytes, more than the buffer's 516"}};
  for (const char* verb : {"emulate", "locality"}) {
    for (const auto& [content, message] : cases) {
      auto arguments = launch(file_with(halo), ("516:@" + content).c_str());
      arguments[0] = verb;
      const auto outcome = run_demarc(arguments);
      EXPECT_EQ(outcome.exit_code, 1) << verb << " " << content;
      EXPECT_THAT(outcome.err, HasSubstr("argument 1 (buffer 'arg0'): "));
      EXPECT_THAT(outcome.err, HasSubstr(message));
      EXPECT_EQ(outcome.out, "");
    }
  }
}

TEST(EmulateVerb, an_endless_kernel_stops_at_the_limit_which_names_where) {
  std::string text = halo;
  text.insert(text.find("ret;"), "LOOP: bra LOOP;\n");
  auto arguments = launch(file_with(text), "516");
  arguments.insert(arguments.end(), {"--limit", "1000000"});
  const auto outcome = run_demarc(arguments);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("k.ptx:18: bra LOOP;"));
  EXPECT_THAT(outcome.err, HasSubstr("kernel halo, block (0,0,0)"));
  EXPECT_THAT(outcome.err, HasSubstr("more than 1000000 warp instructions"));
  for (const char* wrong : {"0", "-5", "abc", "1e9"}) {
    arguments.back() = wrong;
    const auto refused = run_demarc(arguments);
    EXPECT_EQ(refused.exit_code, 1) << wrong;
    EXPECT_THAT(refused.err, HasSubstr("--limit")) << wrong;
    EXPECT_LT(refused.err.size(), 200U) << refused.err;
  }
}

TEST(EmulateVerb, more_shared_memory_than_any_gpu_has_is_refused) {
  auto arguments = launch(file_with(halo), "516");
  arguments.insert(arguments.end(), {"--shared", "232449"});
  const auto outcome = run_demarc(arguments);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("232449 bytes of dynamic shared memory"));
}

TEST(EmulateVerb, all_that_is_malformed_is_reported_in_one_run_and_nothing_else) {
  std::string text = halo;
  text.insert(text.find("mov.u32 %r1"), "frobnicate.u32 %r1, %r2;\nadd.u32 %r1, %nope;\n");
  text.insert(text.find("ret;"), "bra NOWHERE;\n");
  const std::string file = file_with(text);
  for (const char* verb : {"emulate", "locality"}) {
    auto arguments = launch(file, "516");
    arguments[0] = verb;
    const auto outcome = run_demarc(arguments);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("k.ptx:11:"));
    EXPECT_THAT(outcome.err, HasSubstr("k.ptx:20:"));
    EXPECT_THAT(outcome.err, testing::Not(HasSubstr("unsupported")));
  }
}

TEST(EmulateVerb, a_file_without_an_entry_is_said_to_have_none) {
  const std::string file = file_with(".version 8.0\n.target sm_80\n.address_size 64\n");
  const auto outcome = run_demarc({"emulate", file, "--kernel", "a"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("k.ptx: it has no entry"));
}

TEST(EmulateVerb, one_kernel_of_a_bundled_launch_runs_on_that_launchs_arguments) {
  const auto outcome = run_demarc({"emulate", "bundled:backprop", "--kernel", "layer_forward"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("layer_forward: 64 blocks"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("adjust_weights")));
  const auto unknown = run_demarc({"emulate", "bundled:backprop", "--kernel", "other"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("its kernels are: adjust_weights, layer_forward"));
}

TEST(EmulateVerb, a_target_beside_a_file_which_has_its_own_is_refused) {
  auto arguments = launch(file_with(halo), "516");
  arguments.insert(arguments.end(), {"--sm", "90"});
  const auto outcome = run_demarc(arguments);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("--sm 90"));
}

TEST(EmulateVerb, what_is_approximated_is_told_in_text_and_json) {
  std::string text = halo;
  text.insert(text.find("ret;"), "ex2.approx.f32 %f1, %f1;\n");
  text.insert(text.find(".reg .b64"), ".reg .f32 %f<2>;\n");
  auto arguments = launch(file_with(text), "516");
  EXPECT_THAT(run_demarc(arguments).out,
              HasSubstr("approximated: ex2.approx.f32 (first in line 19)"));
  arguments.emplace_back("--json");
  EXPECT_THAT(run_demarc(arguments).out, HasSubstr("\"instruction\": \"ex2.approx.f32\""));
}

TEST(Everywhere, an_unknown_verb_is_named_with_the_way_to_those_there_are) {
  const auto outcome = run_demarc({"bogus", "--json"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err, "demarc: there is no verb 'bogus'; demarc --help shows all\n");
}

TEST(Everywhere, two_outputs_to_one_file_are_refused) {
  const auto folder = test::fresh_folder("two_outputs");
  ASSERT_TRUE(write_file(folder / "a", "old"));
  std::filesystem::create_symlink("a", folder / "b");
  for (const char* other : {"a", "./a", "b"}) {
    const auto outcome = run_demarc({"locality", "bundled:relu", "-o", (folder / "a").string(),
                                     "--html", (folder / other).string()});
    EXPECT_EQ(outcome.exit_code, 1) << other;
    EXPECT_THAT(outcome.err, HasSubstr("--output and --html both name"));
    EXPECT_EQ(read_file(folder / "a").value_or(""), "old");
  }
}

TEST(Everywhere, too_little_memory_is_an_error_like_others) {
  // A file with a hole: 4 GiB to read, none of them on the disk.
  const auto file = test::fresh_folder("large") / "k.ptx";
  ASSERT_TRUE(write_file(file, halo));
  std::filesystem::resize_file(file, std::uint64_t{4} << 30);
  const auto outcome =
      test::run_program({"/bin/sh", "-c", "ulimit -v 4000000; exec \"$0\" ptx \"$1\"",
                         (test::build_dir() / "demarc").string(), file.string()});
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("demarc ptx: out of memory"));
  EXPECT_EQ(outcome.out, "");
}

TEST(EmulateVerb, what_is_wrong_with_the_input_exits_with_1) {
  const std::string file = file_with(halo);
  const auto nobody = run_demarc(
      {"emulate", file, "--kernel", "nobody", "--grid", "1", "--block", "1", "--args", "buf:4"});
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_THAT(nobody.err, HasSubstr("nobody"));
  const auto arguments = run_demarc(
      {"emulate", file, "--kernel", "halo", "--grid", "1", "--block", "1", "--args", "buf:4"});
  EXPECT_EQ(arguments.exit_code, 1);
  EXPECT_THAT(arguments.err, HasSubstr("takes 2 arguments, but the launch gives 1"));
  std::string text = halo;
  text.insert(text.find("ret;"), "tcgen05.wait::ld.sync.aligned;\n");
  const auto uncovered = run_demarc(launch(file_with(text), "516"));
  EXPECT_EQ(uncovered.exit_code, 1);
  EXPECT_THAT(uncovered.err, HasSubstr("k.ptx:18: "));
  EXPECT_THAT(uncovered.err, HasSubstr("tcgen05.wait::ld.sync.aligned;"));
}

TEST(EmulateVerb, without_checks_a_race_passes) {
  std::string text = halo;
  text.insert(text.find("ret;"), "st.shared.u32 [word], %r3;\n");
  text.insert(text.find(".visible"), ".shared .align 4 .b32 word;\n");
  const std::string file = file_with(text);
  auto arguments = launch(file, "516");
  const auto checked = run_demarc(arguments);
  EXPECT_EQ(checked.exit_code, 3);
  EXPECT_THAT(checked.err, HasSubstr("k.ptx:19: st.shared.u32 [word], %r3;"));
  arguments.emplace_back("--no-checks");
  EXPECT_EQ(run_demarc(arguments).exit_code, 0);
}

TEST(EmulateVerb, an_accel_sim_trace_becomes_one_of_ours_which_a_simulation_takes_like_the_first) {
  const auto list = (test::source_dir() / "examples/accelsim/kernelslist.g").string();
  const auto ours = (test::fresh_folder("emulate_import") / "ours.trace").string();
  const auto imported = run_demarc({"emulate", "--import", list, "--trace", ours});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_EQ(imported.out,
            "_Z4axpyPfS_: 2 blocks, 4 warps, 11 warp instructions, 4 memory accesses\n"
            "second: 1 blocks, 1 warps, 2 warp instructions, 1 memory accesses\n");
  auto translated = run_demarc({"translate", "--stream", ours, "--json"});
  ASSERT_EQ(translated.exit_code, 0) << translated.err;
  const auto direct = run_demarc({"translate", "--stream", list, "--json"});
  ASSERT_EQ(direct.exit_code, 0) << direct.err;
  EXPECT_THAT(direct.out, HasSubstr("\"line_accesses\": 16"));
  for (auto at = translated.out.find(ours); at != std::string::npos;
       at = translated.out.find(ours)) {
    translated.out.replace(at, ours.size(), list);
  }
  EXPECT_EQ(translated.out, direct.out);
}

TEST(EmulateVerb, a_trace_is_not_imported_onto_itself_nor_from_a_file_without_a_name) {
  const auto folder = test::fresh_folder("emulate_import_same");
  const auto trace = folder / "kernel-1.traceg";
  std::filesystem::copy_file(test::source_dir() / "examples/accelsim/kernel-1.traceg", trace);
  const auto before = read_file(trace).value();
  const auto same = run_demarc({"emulate", "--import", trace.string(), "--trace",
                                (folder / "." / "kernel-1.traceg").string()});
  EXPECT_EQ(same.exit_code, 1);
  EXPECT_THAT(same.err, HasSubstr("that is the file to import; name another"));
  EXPECT_EQ(read_file(trace).value(), before);
  const auto unnamed = run_demarc({"emulate", "--import", "", "--trace", folder / "o.trace"});
  EXPECT_EQ(unnamed.exit_code, 1);
  EXPECT_THAT(unnamed.err, HasSubstr("the value is empty"));
}

TEST(EmulateVerb, an_import_runs_nothing_and_needs_a_place_for_the_trace) {
  const auto list = (test::source_dir() / "examples/accelsim/kernelslist.g").string();
  const auto ours = (test::fresh_folder("emulate_import_wrong") / "ours.trace").string();
  const auto refused = [&](std::vector<std::string> more, const std::string& what) {
    more.insert(more.begin(), {"emulate", "--import", list});
    const auto outcome = run_demarc(more);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(what));
    EXPECT_FALSE(std::filesystem::exists(ours));
  };
  refused({}, "--import requires --trace");
  refused({"--trace", ours, "bundled:vecadd"}, "ptx excludes --import");
  refused({"--trace", ours, "--launch", "bundled:vecadd"}, "--launch excludes --import");
  refused({"--trace", ours, "--grid", "2"}, "--grid excludes --import");
  refused({"--trace", ours, "--json"}, "--json excludes --import");
  const auto broken = (test::fresh_folder("emulate_import_broken") / "kernel-1.traceg").string();
  ASSERT_TRUE(write_file(broken, "-kernel name = k\n-grid dim = 2\n"));
  const auto outcome = run_demarc({"emulate", "--import", broken, "--trace", ours});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr(broken + ":2: '-grid dim' must be (x,y,z)"));
  EXPECT_FALSE(std::filesystem::exists(ours));
}

}  // namespace
}  // namespace demarc
