// tools/isolate-tables.py: the tables of docs/measurements from the JSON of a study.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

Outcome tables_of(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"python3", (source_dir() / "tools/isolate-tables.py").string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_program(all);
}

Json worst(double slowdown, int runs) {
  return {{"slowdown", slowdown}, {"runs", runs}, {"aggressor", "b"}};
}

Json p99(double slowdown) {
  return {{"slowdown", {{"value", slowdown}, {"low", 1}, {"high", nullptr}}}, {"aggressor", "b"}};
}

Json row(const char* victim, double mean, Json tail99, Json tail_worst, double overhead) {
  return {{"victim", victim},
          {"mean_slowdown", {{"value", mean}}},
          {"p99", tail99},
          {"worst", tail_worst},
          {"run_slowdown", {{"value", mean + 1}}},
          {"run_p99", std::move(tail99)},
          {"run_worst", std::move(tail_worst)},
          {"overhead", overhead}};
}

Json study(const Json& modes) {
  return {{"schema", "demarc.isolate/4"},
          {"plan", {{"parts", 2}, {"victims", Json::array({{{"name", "va"}}, {{"name", "mm"}}})}}},
          {"modes", modes},
          {"errors", Json::array()},
          {"cells", Json::array()}};
}

std::string written(const std::filesystem::path& file, const Json& json) {
  EXPECT_TRUE(write_file(file.string(), json_text(json)));
  return file.string();
}

TEST(IsolateTablesScript, gives_each_number_its_name_and_joins_the_modes_of_several_files) {
  const auto folder = fresh_folder("isolate_tables");
  const std::string first =
      written(folder / "a.json", study({{{"mode", "mask"},
                                         {"victims",
                                          {row("va", 1.8, p99(1.9), worst(1.95, 1000), 0.8),
                                           row("mm", 1.2, nullptr, worst(1.3, 40), 1)}}},
                                        {{"mode", "mps"}, {"unavailable", "no daemon"}}}));
  const std::string second =
      written(folder / "b.json", study({{{"mode", "mask+color"},
                                         {"victims",
                                          {row("va", 1.002, p99(1.004), worst(1.05, 1000), 1.8),
                                           row("mm", 1, p99(0.998), worst(1.05, 1000), 1.3)}}}}));
  const Outcome outcome = tables_of({first, second});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("| victim | mask | mask+color |\n"
                             "|---|---:|---:|\n"
                             "| va | 1.800x / 1.900x | 1.002x / 1.004x |\n"
                             "| mm | 1.200x / 1.300x of 40 | 1.000x / 0.998x |\n"
                             "| average, mean | 1.500x | 1.001x |\n"
                             "| maximum, mean | 1.800x | 1.002x |\n"
                             "| average, p99 (victims: 1 to 2) | 1.900x | 1.001x |\n"
                             "| maximum, p99 (victims: 1 to 2) | 1.900x | 1.004x |\n"
                             "| average, worst run (victims: 1) | 1.300x |  |\n"
                             "| maximum, worst run (victims: 1) | 1.300x |  |\n"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("| va | 2.800x / 1.900x | 2.002x / 1.004x |\n"), std::string::npos);
  EXPECT_NE(outcome.out.find("neighbours / (2 times the time alone on the whole GPU)"),
            std::string::npos);
  EXPECT_NE(outcome.out.find("| va | 0.80x | 1.80x |\n"
                             "| mm | 1.00x | 1.30x |\n"
                             "| average | 0.90x | 1.55x |\n"
                             "| least and most | 0.80x to 1.00x | 1.30x to 1.80x |\n"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("mps was not run: no daemon"), std::string::npos);
}

TEST(IsolateTablesScript, reads_what_the_program_writes_and_makes_one_line_of_each_cell) {
  const auto folder = fresh_folder("isolate_tables_cells");
  const std::string json = (folder / "x.json").string();
  const std::string cells = (folder / "cells.csv").string();
  const std::string samples = (folder / "samples.csv").string();
  ASSERT_EQ(run_demarc({"isolate", "--device", "planted:h100", "--modes", "mask,mask+color",
                        "--victims", "va", "--aggressors", "mm", "--samples", "40", "--max-samples",
                        "40", "--rounds", "1", "--json=" + json})
                .exit_code,
            0);
  const Outcome outcome =
      tables_of({json, "--cells", cells, "--samples", samples, "--samples-of", "mask+color"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json study = Json::parse(read_file(json).value());
  const Json& idle = study["cells"][0];
  const auto us = [](const Json& ns) { return fmt::format("{:.2f}", ns.get<double>() / 1e3); };
  const Json& times = idle["times_ns"];
  EXPECT_TRUE(read_file(cells).value().starts_with(
      "mode,victim,aggressor,runs,kernels_mean_us,kernels_p50_us,kernels_p99_us,kernels_worst_us,"
      "run_mean_us,run_p99_us,run_worst_us\n" +
      fmt::format("mask,va,-,40,{0},{1},,{2},{0},,{2}\nmask,va,mm,40,", us(times["mean"]),
                  us(times["p50"]), us(times["worst"]))))
      << read_file(cells).value();
  const std::string lines = read_file(samples).value();
  EXPECT_NE(lines.find(fmt::format("mask+color,va,-,kernels,{} ",
                                   study["cells"][2]["samples_ns"][0].get<int>())),
            std::string::npos);
  EXPECT_EQ(lines.find("\nmask,"), std::string::npos);
}

TEST(IsolateTablesScript, refuses_what_is_no_such_study_or_stands_in_two_files_and_names_the_file) {
  const auto folder = fresh_folder("isolate_tables_refused");
  Json old = study(Json::array());
  old["schema"] = "demarc.isolate";
  const std::string older = written(folder / "old.json", old);
  const std::string mask =
      written(folder / "mask.json",
              study({{{"mode", "mask"}, {"victims", {row("va", 1, nullptr, worst(1, 40), 1)}}}}));
  Json quarters = study(Json::array());
  quarters["plan"]["parts"] = 4;
  const std::string four = written(folder / "four.json", quarters);
  const std::string absent = (folder / "absent.json").string();
  for (const auto& [files, why] :
       {std::pair{std::vector{older}, older + ": the schema is not demarc.isolate/4"},
        {{mask, mask}, "va under mask is in another file already"},
        {{mask, four}, "2 and 4 parts"},
        {{absent}, absent}}) {
    const Outcome outcome = tables_of(files);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

}  // namespace
}  // namespace demarc::test
