// Every verb with --json writes a document whose schema and members docs/command-line.md lists.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "help_pages.hpp"
#include "schedule_verb.hpp"
#include "served_card.hpp"

namespace demarc::test {
namespace {

using testing::HasSubstr;

// The rows of docs/command-line.md by their schema.
const std::map<std::string, std::string>& documented_rows() {
  static const std::map<std::string, std::string> rows = [] {
    std::map<std::string, std::string> found;
    std::istringstream lines(read_file(source_dir() / "docs" / "command-line.md").value());
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("| `demarc.")) continue;
      const std::string schema = line.substr(3, line.find('`', 3) - 3);
      EXPECT_TRUE(found.emplace(schema, line).second) << schema << " has two rows";
    }
    return found;
  }();
  return rows;
}

// What --help calls the documents of --json, by the verb.
std::map<std::string, std::set<std::string>> schemas_in_help() {
  static const std::regex schema(R"(demarc\.[a-z.]+/[0-9]+)");
  std::map<std::string, std::set<std::string>> found;
  for (const HelpPage& page : help_pages()) {
    for (const HelpOption& option : page.options) {
      if (option.names != "--json") continue;
      EXPECT_TRUE(option.values.starts_with("[=FILE]")) << page.name() << ": " << option.values;
      auto& ids = found[page.name()];
      const std::string& text = option.description;
      for (std::sregex_iterator one(text.begin(), text.end(), schema), end; one != end; ++one)
        ids.insert(one->str());
      EXPECT_FALSE(ids.empty()) << page.name() << ": " << text;
    }
  }
  return found;
}

TEST(Json, what_help_calls_a_document_is_a_row_of_the_page) {
  const auto found = schemas_in_help();
  EXPECT_GE(found.size(), 20U);
  for (const auto& [verb, ids] : found) {
    for (const std::string& id : ids)
      EXPECT_TRUE(documented_rows().contains(id)) << verb << ": " << id;
  }
}

TEST(Json, a_file_without_an_equals_sign_is_answered_with_one) {
  const Outcome outcome = run_demarc({"isolate", "--json", "x.json"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err,
            "demarc isolate: unexpected argument 'x.json'; to name a file for the JSON write "
            "--json=x.json\n"
            "Usage: demarc isolate [OPTIONS]; demarc isolate --help shows the options\n");
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"isolate", "x.json"}, {"isolate", "x.json", "--json=y.json"}}) {
    EXPECT_EQ(run_demarc(line).err,
              "demarc isolate: unexpected argument 'x.json'\n"
              "Usage: demarc isolate [OPTIONS]; demarc isolate --help shows the options\n");
  }
}

struct JsonOf {
  std::string verb;
  std::vector<std::string> arguments;
  std::string schema;
};

class JsonOfVerbs : public ServedCard {
 protected:
  void SetUp() override {
    ServedCard::SetUp();
    ::setenv("DEMARC_FAKE_GPU", "version=13000,offset=1308,client=0", 1);
  }
  void TearDown() override {
    ::unsetenv("DEMARC_FAKE_GPU");
    ServedCard::TearDown();
  }
  void expect_documented(const JsonOf& one, const std::string& text) {
    const auto json = parse_json(text, one.verb);
    ASSERT_TRUE(json) << one.verb << ": " << json.error().message;
    EXPECT_EQ((*json)["schema"], one.schema) << one.verb;
    ASSERT_TRUE(documented_rows().contains(one.schema)) << one.verb;
    const std::string& row = documented_rows().at(one.schema);
    if (one.schema != "demarc.device/1") {
      for (const auto& [member, value] : json->items()) {
        if (member == "schema") continue;
        EXPECT_THAT(row, HasSubstr("`" + member + "`")) << one.schema << " has this member";
      }
    }
    written_[one.verb].insert(one.schema);
  }
  // The JSON on standard output, and in a file beside the text.
  void expect_json(const JsonOf& one) {
    std::vector<std::string> arguments = one.arguments;
    arguments.emplace_back("--json");
    const Outcome alone = run_demarc(arguments);
    ASSERT_THAT(alone.exit_code, testing::AnyOf(0, 3)) << one.verb << ": " << alone.err;
    expect_documented(one, alone.out);
    const std::filesystem::path file = folder / "x.json";
    arguments.back() = "--json=" + file.string();
    const Outcome beside = run_demarc(arguments);
    EXPECT_EQ(beside.exit_code, alone.exit_code) << one.verb << ": " << beside.err;
    EXPECT_FALSE(beside.out.empty() || beside.out.starts_with("{")) << one.verb << beside.out;
    expect_documented(one, read_file(file).value_or(""));
    std::filesystem::remove(file);
  }
  // What the fit begins with is what was measured, so that it ends soon.
  void expect_calibration() {
    Json card = read_json(source_dir() / "devices" / "gtx1080.json").value();
    card["sm"]["threads"] = 512;
    card["l2"]["size_bytes"] = 1 << 18;
    card["address_map"]["set_masks"] = Json::array();
    card["topology"]["tpcs"] = Json::array();
    for (unsigned sm = 0; sm < 4; ++sm) {
      card["topology"]["tpcs"].push_back({{"gpc", sm / 2}, {"sms", Json::array({sm})}});
    }
    const std::string device = folder / "small.json";
    ASSERT_TRUE(write_file(device, json_text(card)));
    const std::string figures = folder / "figures.json";
    ASSERT_EQ(run_demarc({"calibrate", "--device", "sim:" + device, "--measure-only",
                          "--save-figures", figures})
                  .exit_code,
              0);
    const JsonOf fit{"demarc calibrate",
                     {"calibrate", "--figures", figures, "--description", device},
                     "demarc.calibrate/1"};
    expect_json(fit);
    EXPECT_EQ(read_json(figures).value()["schema"], "demarc.calibrate.figures/1");
  }
  // Standard output is the program's.
  void expect_exec() {
    const JsonOf audit{"demarc exec", {}, "demarc.exec/2"};
    const std::filesystem::path file = folder / "audit.json";
    for (const std::string& json : {std::string("--json"), "--json=" + file.string()}) {
      const Outcome outcome = run_demarc({"exec", "--tpcs", "1,3", "--audit", json, "--",
                                          build_dir() / "demarc_exec_subject", test::fake_libcuda(),
                                          "/dev/null", "context", "launch"});
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
      expect_documented(audit, json == "--json" ? outcome.err : read_file(file).value_or(""));
    }
    const Outcome nothing = run_demarc({"exec", "--tpcs", "1", "--json", "--", "true"});
    EXPECT_EQ(nothing.exit_code, 1);
    EXPECT_THAT(nothing.err, HasSubstr("--json gives what --audit and --report say"));
  }
  // So it is here.
  void expect_capture() {
    const JsonOf taken{"demarc capture", {}, "demarc.capture/1"};
    const std::filesystem::path file = folder / "capture.json";
    for (const std::string& json : {std::string("--json"), "--json=" + file.string()}) {
      const Outcome outcome =
          run_demarc({"capture", "-o", folder / ("taken" + std::to_string(json.size())), json, "--",
                      build_dir() / "demarc_exec_subject", test::fake_libcuda(), "/dev/null",
                      "context", "count"});
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
      expect_documented(taken, json == "--json" ? outcome.err : read_file(file).value_or(""));
    }
  }
  void expect_leases() {
    const Process server = serving(two_tenants());
    expect_json({"demarc lease", {"lease", "list"}, "demarc.lease/1"});
  }
  // Nothing is left out: a verb that has --json stands in this test.
  void expect_all_written() const {
    for (const auto& [verb, ids] : schemas_in_help()) {
      // It takes half a minute: tests/report/demo_test.cpp reads its document.
      if (verb == "demarc demo") continue;
      const auto found = written_.find(verb);
      ASSERT_NE(found, written_.end()) << verb << " has --json and is not tried here";
      EXPECT_EQ(found->second, ids) << verb;
    }
  }

 private:
  std::map<std::string, std::set<std::string>> written_;
};

TEST_F(JsonOfVerbs, have_the_members_that_the_page_names) {
  const std::string ptx = (source_dir() / "kernels" / "ptx" / "vecadd.ptx").string();
  const std::string victim =
      schedule_file("victim.txt", "kernel threads=32\nblock\nwarp\nload 0x80/15 0x100/15\n");
  const std::vector<std::string> small{"--set", "megabytes=1", "--set", "cus=4"};
  const auto translate = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "translate");
    words.insert(words.end(), small.begin(), small.end());
    return words;
  };
  const std::string plan = schedule_file("plan.json", R"({"schema": "demarc.sweep/1",
    "command": ["topo", "--device", "{device}", "--json"], "axes": {"device": ["sim:gtx1080"]},
    "keep": {"name": "/name"}, "aggregate": {"over": [], "statistics": []}})");
  const std::string database = (folder / "plan.db").string();
  ASSERT_EQ(run_demarc({"sweep", "run", plan, "--db", database}).exit_code, 0);
  const std::vector<JsonOf> all = {
      {"demarc attack",
       {"attack", "--device", "sim:gtx1080", "--victims", "stream:" + victim, "--candidates", "22",
        "--keep", "1", "--mode", "mask"},
       "demarc.attack/2"},
      {"demarc blocks", {"blocks", "--experiments", "figure-4"}, "demarc.blocks/2"},
      {"demarc emulate", {"emulate", "bundled:vecadd"}, "demarc.emulate/1"},
      {"demarc isolate",
       {"isolate", "--device", "planted:h100", "--victims", "va", "--aggressors", "mm", "--modes",
        "mask", "--samples", "2", "--max-samples", "2"},
       "demarc.isolate/4"},
      {"demarc locality", {"locality", "bundled:relu"}, "demarc.locality/1"},
      {"demarc probe memory",
       {"probe", "memory", "--device", "sim:gtx1080"},
       "demarc.probe.memory/1"},
      {"demarc probe translation",
       {"probe", "translation", "--device", "planted:h200"},
       "demarc.probe.translation/1"},
      {"demarc ptx", {"ptx", ptx}, "demarc.ptx.check/1"},
      {"demarc ptx", {"ptx", ptx, "--stats"}, "demarc.ptx.stats/1"},
      {"demarc ptx", {"ptx", ptx, "--cfg", "vecadd"}, "demarc.ptx.cfg/1"},
      {"demarc ptx",
       {"ptx", (source_dir() / "tests" / "fatbin" / "files" / "zstd.fatbin").string(), "--list"},
       "demarc.ptx.images/1"},
      {"demarc list", {"list", "modes"}, "demarc.list/1"},
      {"demarc run", {"run", "bundled:vecadd"}, "demarc.run/1"},
      {"demarc schedule", {"schedule", config_file(), "-v"}, "demarc.schedule/1"},
      {"demarc schedule",
       {"schedule", example("fig12_slots_full.json")},
       "demarc.schedule.hardware/1"},
      {"demarc schedule study",
       {"schedule", "study", config_file(), "--seeds", "1"},
       "demarc.schedule.study/1"},
      {"demarc schedule compare",
       {"schedule", "compare", config_file(), "--seeds", "1"},
       "demarc.schedule.study/1"},
      {"demarc schedule plan",
       {"schedule", "plan", example("tasks.json")},
       "demarc.schedule.plan/1"},
      {"demarc sweep show", {"sweep", "show", database}, "demarc.sweep.export/1"},
      {"demarc sweep export", {"sweep", "export", database}, "demarc.sweep.export/1"},
      {"demarc topo", {"topo"}, "demarc.topo/2"},
      {"demarc topo", {"topo", "--identify"}, "demarc.topo.identity/2"},
      {"demarc topo", {"topo", "--device", "sim:gtx1080"}, "demarc.device/1"},
      {"demarc translate", translate({"--app", "RL"}), "demarc.translate/1"},
      {"demarc translate", translate({"--app", "RL", "--splits"}), "demarc.translate.splits/1"},
      {"demarc translate",
       {"translate", "--launch", "bundled:relu", "--gpus", "1", "--split", "contiguous", "--set",
        "page_bytes=2097152", "--measure", "cuda:0"},
       "demarc.translate.measured/1"},
      {"demarc translate study", translate({"study", "--app", "RL", "--variants", "chain"}),
       "demarc.translate.study/1"},
      {"demarc doctor", {"doctor"}, "demarc.doctor/1"},
      {"demarc doctor",
       {"doctor", "--device", "h200", "--pid", std::to_string(::getpid())},
       "demarc.doctor.program/1"},
      {"demarc verify", {"verify", "--gpcs", "3", "--mode", "mask"}, "demarc.verify/2"},
      {"demarc verify",
       {"verify", "--colors", "1", "--description", "h100-sxm"},
       "demarc.verify.colors/2"}};
  ASSERT_EQ(run_demarc({"topo", "--refresh"}).exit_code, 0);
  for (const JsonOf& one : all) expect_json(one);
  expect_calibration();
  expect_exec();
  expect_capture();
  expect_leases();
  expect_all_written();
}

}  // namespace
}  // namespace demarc::test
