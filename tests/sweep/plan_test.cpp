// What a sweep file may say, and the points that it makes.
#include "demarc/sweep/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "demarc/base/files.hpp"
#include "paths.hpp"

namespace demarc::sweep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// `axes` and what stands in braces of the command.
std::string file_of(const std::string& axes, const std::string& command,
                    const std::string& more = "") {
  return R"({"schema": "demarc.sweep/1", "command": ["topo", )" + command + R"(], "axes": {)" +
         axes + R"(}, "keep": {"m": "/a/b"})" + more + "}";
}

Plan plan_of(const std::string& text) {
  auto plan = Plan::parse(text, "s.json", test::fresh_folder("sweep-none"));
  EXPECT_TRUE(plan) << plan.error().message;
  return plan.value();
}

std::string error_of(const std::string& text) {
  const auto plan = Plan::parse(text, "s.json", test::fresh_folder("sweep-none"));
  return plan ? "" : plan.error().message;
}

std::vector<std::string> texts(const Plan& plan, std::size_t axis) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < plan.axes()[axis].size(); ++i) {
    all.push_back(to_text(plan.axes()[axis].value(i)));
  }
  return all;
}

TEST(SweepPlan, axes_are_lists_ranges_logarithms_files_and_zips) {
  const auto folder = test::fresh_folder("sweep-files");
  for (const char* name : {"b.conf", "a.conf", "c.json"}) {
    ASSERT_TRUE(write_file(folder / name, name));
  }
  const auto plan = Plan::parse(
      file_of(
          R"("list": [1, "two", true, 0.5], "range": {"from": 1, "to": 2, "step": 0.25},
                 "down": {"from": 9, "to": 5, "step": -2}, "log": {"from": 1, "to": 64, "points": 4, "scale": "log"},
                 "lin": {"from": 1, "to": 4, "points": 3}, "file": {"files": "*.conf"},
                 "both": {"zip": {"sets": [4, 8], "ways": {"from": 1, "to": 2, "step": 1}}})",
          R"("{list}{range}{down}{log}{lin}", "{file}", "--x={sets}:{ways}", "{other", "{1}", "{{lin}}")"),
      "s.json", folder);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(texts(*plan, 0), ElementsAre("1", "two", "true", "0.5"));
  EXPECT_THAT(texts(*plan, 1), ElementsAre("1", "1.25", "1.5", "1.75", "2"));
  EXPECT_THAT(texts(*plan, 2), ElementsAre("9", "7", "5"));
  EXPECT_THAT(texts(*plan, 3), ElementsAre("1", "4", "16", "64"));
  EXPECT_THAT(texts(*plan, 4), ElementsAre("1", "2.5", "4"));
  EXPECT_THAT(texts(*plan, 5),
              ElementsAre((folder / "a.conf").string(), (folder / "b.conf").string()));
  EXPECT_THAT(plan->axis_names(),
              ElementsAre("list", "range", "down", "log", "lin", "file", "sets", "ways"));
  EXPECT_EQ(plan->size(), 4U * 5 * 3 * 4 * 3 * 2 * 2);
  const Point last = plan->point(plan->size() - 1).value();
  EXPECT_THAT(last.arguments, ElementsAre("topo", "0.525644", (folder / "b.conf").string(),
                                          "--x=8:2", "{other", "{1}", "{4}"));
}

// The first axis changes slowest, and every combination is there once.
RC_GTEST_PROP(SweepPlan, points_are_all_combinations_in_order, ()) {
  const auto sizes =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 5)));
  std::string axes;
  std::string command;
  std::uint64_t size = 1;
  for (std::size_t a = 0; a < std::min<std::size_t>(sizes.size(), 6); ++a) {
    const std::string name = "a" + std::to_string(a);
    axes += (a == 0 ? "" : ", ") + ("\"" + name + "\": {\"from\": 1, \"to\": ") +
            std::to_string(sizes[a]) + ", \"step\": 1}";
    command += (a == 0 ? "\"{" : ", \"{") + name + "}\"";
    size *= static_cast<std::uint64_t>(sizes[a]);
  }
  const Plan plan = plan_of(file_of(axes, command));
  RC_ASSERT(plan.size() == size);
  std::set<std::vector<std::size_t>> seen;
  for (std::uint64_t i = 0; i < size; ++i) {
    const auto positions = plan.positions(i);
    if (!seen.empty()) RC_ASSERT(*seen.rbegin() < positions);
    seen.insert(positions);
    const auto values = plan.values(i);
    const Point point = plan.point(i).value();
    for (std::size_t a = 0; a < positions.size(); ++a) {
      RC_ASSERT(values[a] == Value(static_cast<std::int64_t>(positions[a] + 1)));
      RC_ASSERT(point.arguments[a + 1] == to_text(values[a]));
    }
  }
}

TEST(SweepPlan, its_resolved_text_makes_the_same_points) {
  const Plan plan = plan_of(file_of(
      R"("x": {"from": 1, "to": 3, "step": 1}, "u_v": [0], "p": {"zip": {"u": [1, 2], "v": ["a", "b"]}})",
      R"("{x}", "{u}", "{v}", "{u_v}")",
      R"(, "aggregate": {"over": ["x"], "statistics": ["mean", "p95"], "best": {"axis": "u", "measure": "m"}}, "time_limit_s": 2)"));
  const Plan again = plan_of(plan.text());
  EXPECT_EQ(again.text(), plan.text());
  EXPECT_EQ(again.size(), 6U);
  EXPECT_EQ(again.time_limit_s(), 2);
  for (std::uint64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(again.point(i)->key, plan.point(i)->key);
    EXPECT_EQ(again.point(i)->arguments, plan.point(i)->arguments);
  }
}

TEST(SweepPlan, every_example_makes_the_points_that_its_page_says) {
  const std::map<std::string, std::uint64_t> points = {
      {"colors.json", 8}, {"dispatch.json", 810}, {"splits.json", 16}, {"translation.json", 216}};
  std::map<std::string, std::uint64_t> found;
  const auto folder = test::source_dir() / "examples" / "sweeps";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto text = read_file(entry.path().string());
    ASSERT_TRUE(text) << text.error().message;
    const auto plan = Plan::parse(*text, entry.path().string(), folder);
    ASSERT_TRUE(plan) << plan.error().message;
    found[entry.path().filename().string()] = plan->size();
  }
  EXPECT_EQ(found, points);
}

TEST(SweepPlan, a_point_is_known_by_its_arguments_and_by_what_its_files_hold) {
  const auto folder = test::fresh_folder("sweep-keys");
  const std::string file = (folder / "in.conf").string();
  ASSERT_TRUE(write_file(file, "one"));
  const Plan plan = plan_of(file_of(R"("s": [1, 2])", "\"" + file + R"(", "--seed", "{s}")"));
  const Point first = plan.point(0).value();
  const Point second = plan.point(1).value();
  EXPECT_NE(first.key, second.key);
  EXPECT_EQ(first.input, second.input);
  EXPECT_NE(first.input, "");
  EXPECT_EQ(second.seed, "2");
  ASSERT_TRUE(write_file(file, "two"));
  EXPECT_NE(plan.point(0)->key, first.key);
  EXPECT_NE(plan.point(0)->input, first.input);
  EXPECT_EQ(plan_of(file_of(R"("s": [1])", R"("{s}")")).point(0)->input, "");
}

TEST(SweepPlan, what_is_wrong_is_named) {
  const std::string fine = R"("x": [1])";
  const std::string use = R"("{x}")";
  EXPECT_EQ(error_of(file_of(fine, use)), "");
  EXPECT_THAT(error_of("{"), HasSubstr("s.json"));
  EXPECT_THAT(error_of(R"({"schema": "demarc.sweep/2"})"), HasSubstr("reads demarc.sweep/1"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = file_of(fine, use);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return error_of(text.replace(at, from.size(), to));
  };
  EXPECT_THAT(with("topo", "serve"), HasSubstr("command: a sweep needs a verb that calculates"));
  EXPECT_THAT(with(R"("topo", )" + use, ""), HasSubstr("command: a sweep needs a verb"));
  EXPECT_THAT(with("\"topo\"", "3"), HasSubstr("command[0]: expected a string"));
  EXPECT_THAT(with("{x}", "{y}"), HasSubstr("command: there is no axis 'y'; axes are x"));
  EXPECT_THAT(with("{x}", "x"),
              HasSubstr("axes.x: neither the command nor keep uses it; write {x}"));
  EXPECT_THAT(with(R"({"x": [1]})", "{}"), HasSubstr("axes: expected at least one axis"));
  EXPECT_THAT(with("[1]", "[]"), HasSubstr("axes.x: an axis needs at least one value"));
  EXPECT_THAT(with("[1]", "[[1]]"), HasSubstr("axes.x[0]: expected a number, a string"));
  EXPECT_THAT(with("\"x\"", "\"1x\""), HasSubstr("a name has letters, digits and _"));
  EXPECT_THAT(with("\"m\"", "\"x\""), HasSubstr("keep.x: the name is taken"));
  EXPECT_THAT(with("\"/a/b\"", "\"a\""), HasSubstr("keep.m: expected a JSON pointer"));
  EXPECT_THAT(with("\"/a/b\"", "1"), HasSubstr("keep.m: expected a JSON pointer"));
  EXPECT_THAT(with(R"("m": "/a/b")", ""), HasSubstr("keep: expected a name"));
  EXPECT_THAT(with("\"keep\"", "\"extra\": 1, \"keep\""), HasSubstr("unknown key 'extra'"));
  const auto axis = [&](const std::string& value) { return with("[1]", value); };
  EXPECT_THAT(axis(R"({"from": 1, "to": 2, "step": 0})"), HasSubstr("has no values"));
  EXPECT_THAT(axis(R"({"from": 1, "to": 2, "step": -1})"), HasSubstr("has no values"));
  EXPECT_THAT(axis(R"({"from": 1e17, "to": 1.00000000000000001e17, "step": 1})"),
              HasSubstr("has no values"));
  EXPECT_THAT(axis("[18446744073709551615]"),
              HasSubstr("axes.x[0]: 18446744073709551615 is above"));
  EXPECT_THAT(axis(R"({"from": 1, "to": 9e9, "step": 1})"),
              HasSubstr("an axis has at most 1000000"));
  EXPECT_THAT(axis(R"({"from": 1, "to": 2, "points": 1})"), HasSubstr("points"));
  EXPECT_THAT(axis(R"({"from": 0, "to": 2, "points": 2, "scale": "log"})"),
              HasSubstr("numbers above 0"));
  EXPECT_THAT(axis(R"({"from": 1, "to": 2, "points": 2, "scale": "cubic"})"),
              HasSubstr("use linear or log"));
  EXPECT_THAT(axis(R"({"from": 1, "to": 2, "step": 1, "points": 2})"),
              HasSubstr("unknown key 'points'"));
  EXPECT_THAT(axis(R"({"from": 1})"), HasSubstr("the key 'to' is missing"));
  EXPECT_THAT(axis(R"({"files": "*.none"})"), HasSubstr("no file is named"));
  EXPECT_THAT(axis(R"({"zip": {}})"), HasSubstr("expected axes that change together"));
  EXPECT_THAT(axis(R"({"zip": {"x": [1], "z": [1, 2]}})"), HasSubstr("2 values beside 1 of x"));
  EXPECT_THAT(axis(R"({"zip": {"x": [1]}, "from": 1})"), HasSubstr("nothing may stand beside zip"));
  const auto aggregate = [&](const std::string& text) {
    return error_of(file_of(fine, use, ", \"aggregate\": " + text));
  };
  EXPECT_EQ(aggregate(R"({"over": [], "statistics": ["p1", "p99", "interval", "min", "max"]})"),
            "");
  EXPECT_THAT(aggregate(R"({"over": ["y"], "statistics": []})"), HasSubstr("there is no axis 'y'"));
  for (const char* wrong : {"p0", "p100", "p", "median", "pp"}) {
    EXPECT_THAT(aggregate(R"({"over": [], "statistics": [")" + std::string(wrong) + "\"]}"),
                HasSubstr("use mean, interval, min, max, p1 to p99"))
        << wrong;
  }
  EXPECT_THAT(aggregate(R"({"over": [], "statistics": [], "best": {"axis": "z", "measure": "m"}})"),
              HasSubstr("there is no axis 'z'"));
  EXPECT_THAT(aggregate(R"({"over": [], "statistics": [], "best": {"axis": "x", "measure": "n"}})"),
              HasSubstr("'n' is not kept"));
  EXPECT_THAT(error_of(file_of(fine, use, ", \"time_limit_s\": -1")),
              HasSubstr("time_limit_s: it must be 0 or more"));
  const std::string wide = R"("x": {"from": 1, "to": 1000000, "step": 1})";
  EXPECT_THAT(
      error_of(file_of(wide + R"(, "y": {"from": 1, "to": 1001, "step": 1})", R"("{x}{y}")")),
      HasSubstr("more than 1000000000 points"));
}

}  // namespace
}  // namespace demarc::sweep
