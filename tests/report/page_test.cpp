// Tests that a page keeps text as it is, and how figures pack their numbers.
#include "demarc/report/page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "figure_json.hpp"

namespace demarc::report {
namespace {

// The JSON a page carries.
Json data_of(const Page& page) {
  const std::string html = page.html();
  const std::string open = "id=\"demarc-data\">";
  const auto start = html.find(open) + open.size();
  return Json::parse(html.substr(start, html.find("</script>", start) - start));
}

TEST(Page, carries_text_unchanged_whatever_it_holds) {
  const std::string hostile = "</script><!-- <script> \xe2\x80\xa8 \" \\ & 'x'";
  Page page(hostile);
  page.prose(hostile);
  const Json data = data_of(page);
  EXPECT_EQ(data["title"], hostile);
  EXPECT_EQ(data["blocks"][0]["text"], hostile);
}

TEST(Page, replaces_bytes_that_are_no_utf8_instead_of_failing) {
  Page page("bad \xff byte");
  EXPECT_EQ(data_of(page)["title"], "bad \xef\xbf\xbd byte");
}

TEST(Page, names_no_address_outside_itself_in_its_own_markup) {
  const std::string html = Page("t").html();
  EXPECT_THAT(html, ::testing::HasSubstr("default-src 'none'"));
  EXPECT_EQ(html.find("src=\"http"), std::string::npos);
  EXPECT_EQ(html.find("href=\"http"), std::string::npos);
}

TEST(Page, shows_date_version_and_revision_even_with_an_empty_context) {
  Page page("t");
  page.context({});
  const Json data = data_of(page);
  const Json& rows = data["blocks"][0]["rows"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0][0], "date");
  EXPECT_THAT(rows[0][1].get<std::string>(),
              ::testing::MatchesRegex("20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} UTC"));
  EXPECT_EQ(rows[1][0], "demarc");
}

TEST(Page, context_names_every_device_and_what_it_is_the_device_of) {
  Page page("t");
  page.context({.devices = {{"one", ""}}});
  page.context({.devices = {{"one", "this"}, {"two", "that"}}});
  const Json data = data_of(page);
  EXPECT_EQ(data["blocks"][0]["rows"][0], (Json{"device", "one"}));
  EXPECT_EQ(data["blocks"][1]["rows"][0], (Json{"device of this", "one"}));
  EXPECT_EQ(data["blocks"][1]["rows"][1], (Json{"device of that", "two"}));
}

TEST(FigureJson, packs_values_as_narrow_floats_only_when_nothing_is_lost) {
  HeatMap map{.rows = 1, .columns = 2, .cells = {{0, 0, 1}, {0, 1, 0.5}}};
  EXPECT_EQ(heat_map_json(map)["v"], (Json{{"f32", "AACAPwAAAD8="}}));
  map.cells[1].value = 16777217;
  EXPECT_TRUE(heat_map_json(map)["v"].contains("f64"));
}

// The values `last` ... 0 as one sample of a box.
Json box_of_values_to(int last) {
  Sample sample{"s", {}};
  for (int i = last; i >= 0; --i) sample.values.push_back(i);
  return distribution_json({.samples = {sample}})["samples"][0];
}

TEST(FigureJson, whiskers_of_a_thousand_values_are_percentiles) {
  const Json box = box_of_values_to(999);
  EXPECT_EQ(box["box"], Json::array({0.0, 9.0, 249.0, 499.0, 749.0, 989.0, 999.0}));
  EXPECT_EQ(box["whiskers"], Json::array({"p1", "p99"}));
}

TEST(FigureJson, whiskers_of_fewer_values_are_the_extremes_and_say_so) {
  const Json box = box_of_values_to(998);
  EXPECT_EQ(box["box"], Json::array({0.0, 0.0, 249.0, 499.0, 749.0, 998.0, 998.0}));
  EXPECT_EQ(box["whiskers"], Json::array({"min", "max"}));
}

TEST(FigureJson, histogram_counts_every_finite_value_once) {
  Distribution distribution{
      .samples = {{"s", {0, 1, 2, 3, 4, 4, std::numeric_limits<double>::quiet_NaN()}}},
      .view = DistributionView::histogram,
      .bins = 4};
  const Json json = distribution_json(distribution);
  EXPECT_EQ(json["samples"][0]["counts"], Json::array({1, 1, 1, 3}));
}

TEST(FigureJson, an_axis_is_logarithmic_if_one_value_is_more_than_eight_times_the_median) {
  EXPECT_TRUE(needs_logarithm({1, 1, 8.01}));
  EXPECT_TRUE(needs_logarithm({40, 2, 1}));
  EXPECT_FALSE(needs_logarithm({1, 1, 8}));
  EXPECT_FALSE(needs_logarithm({0, 1, 40})) << "a logarithm of 0 is not drawn";
  EXPECT_FALSE(needs_logarithm({}));
}

TEST(FigureJson, drops_edges_to_nodes_that_do_not_exist) {
  const Json json = graph_json({"", "", {{"a", "", 0}}, {{0, 0, ""}, {0, 1, ""}}});
  EXPECT_EQ(json["edges"].size(), 1U);
}

}  // namespace
}  // namespace demarc::report
