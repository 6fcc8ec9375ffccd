// Rows stay, whatever process wrote them; files of something else are refused.
#include "demarc/sweep/store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "demarc/base/files.hpp"
#include "demarc/base/version.hpp"
#include "paths.hpp"
#include "plans.hpp"

namespace demarc::sweep {
namespace {

using demarc::test::fresh_folder;
using test::small_plan;
using testing::HasSubstr;

Outcome outcome_of(double sum) {
  Outcome outcome;
  outcome.done = true;
  outcome.seconds = 0.5;
  outcome.rank = 7;
  outcome.kept = {Value(sum), Value(std::string("w, \"x\"")), std::nullopt};
  return outcome;
}

TEST(SweepStore, rows_are_there_for_the_next_one_who_opens_it) {
  const auto path = fresh_folder("store") / "r.db";
  const Plan plan = small_plan();
  const Point point = plan.point(3).value();
  {
    auto store = Store::open(path, plan, false);
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ(store->state(point)->has_value(), false);
    ASSERT_TRUE(store->add(point, outcome_of(1.5)));
    Outcome failed;
    failed.error = "why";
    failed.exit_code = 3;
    ASSERT_TRUE(store->add(plan.point(0).value(), failed));
  }
  auto store = Store::open(path, plan, false);
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(store->state(point)->value(), true);
  EXPECT_EQ(store->state(plan.point(0).value())->value(), false);
  EXPECT_EQ(store->counts()->done, 1U);
  EXPECT_EQ(store->counts()->failed, 1U);
  const Row row = store->row(3)->value();
  EXPECT_EQ(row.key, point.key);
  EXPECT_EQ(row.outcome.kept, outcome_of(1.5).kept);
  EXPECT_EQ(row.outcome.seconds, 0.5);
  EXPECT_EQ(row.outcome.rank, 7U);
  EXPECT_EQ(row.revision, revision());
  const Row failed = store->row(0)->value();
  EXPECT_EQ(failed.outcome.error, "why");
  EXPECT_EQ(failed.outcome.exit_code, 3);
  EXPECT_FALSE(failed.outcome.done);
  EXPECT_FALSE(store->row(1)->has_value());
  // The same values again: the row is the later one's.
  ASSERT_TRUE(store->add(point, outcome_of(2.5)));
  EXPECT_EQ(store->row(3)->value().outcome.kept[0], Value(2.5));
  EXPECT_EQ(store->counts()->done, 1U);
}

TEST(SweepStore, a_point_whose_command_is_another_now_is_not_there) {
  const auto path = fresh_folder("store-command") / "r.db";
  {
    auto store = Store::open(path, small_plan(), false);
    ASSERT_TRUE(store->add(small_plan().point(0).value(), outcome_of(1)));
  }
  const Plan other = small_plan(4, "", "fail");
  auto store = Store::open(path, other, false);
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_FALSE(store->state(other.point(0).value())->has_value());
  EXPECT_TRUE(store->row(0)->has_value()) << "it is shown until it has run anew";
  EXPECT_EQ(store->plan().text(), other.text());
}

TEST(SweepStore, is_read_while_it_is_written_and_written_by_one) {
  const auto path = fresh_folder("store-two") / "r.db";
  const Plan plan = small_plan();
  auto store = Store::open(path, plan, false);
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->add(plan.point(0).value(), outcome_of(4)));
  auto reader = Store::read(path);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->plan().text(), plan.text());
  EXPECT_EQ(reader->row(0)->value().outcome.kept[0], Value(4.0));
  ASSERT_TRUE(store->add(plan.point(1).value(), outcome_of(5)));
  EXPECT_EQ(reader->counts()->done, 2U);
  const auto second = Store::open(path, plan, false);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("another sweep is writing to it"));
}

TEST(SweepStore, other_axes_other_revisions_and_other_files_are_refused) {
  const auto folder = fresh_folder("store-refused");
  const auto path = folder / "r.db";
  {
    auto store = Store::open(path, small_plan(), false);
    ASSERT_TRUE(store->add(small_plan().point(0).value(), outcome_of(1)));
  }
  const auto error = [](const auto& result) {
    EXPECT_FALSE(result);
    return result ? std::string() : result.error().message;
  };
  const Plan renamed = Plan::parse(
                           R"({"schema": "demarc.sweep/1", "command": ["topo", "{z}"],
                               "axes": {"z": [1]}, "keep": {"m": "/m"}})",
                           "z.json", {})
                           .value();
  EXPECT_THAT(error(Store::open(path, renamed, false)),
              HasSubstr("holds a sweep of a, b, sum, word, nothing, but this sweep is of z, m"));
  const auto change = [&](const std::string& text) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  };
  change("UPDATE points SET _revision = 'older'");
  EXPECT_THAT(error(Store::open(path, small_plan(), false)),
              HasSubstr("1 points are of revision older"));
  EXPECT_TRUE(Store::open(path, small_plan(), true));
  EXPECT_TRUE(Store::read(path));
  change("PRAGMA user_version = 9");
  EXPECT_THAT(error(Store::read(path)), HasSubstr("it has schema 9; this program reads 1"));
  change("PRAGMA application_id = 1");
  EXPECT_THAT(error(Store::open(path, small_plan(), false)),
              HasSubstr("this file does not hold a sweep"));
  ASSERT_TRUE(write_file(folder / "text", std::string(5000, 'x')));
  EXPECT_THAT(error(Store::open(folder / "text", small_plan(), false)), HasSubstr("text: "));
  EXPECT_THAT(error(Store::open(folder / "none" / "r.db", small_plan(), false)),
              HasSubstr("No such file"));
  EXPECT_THAT(error(Store::read(folder / "none.db")), HasSubstr("there is no such file"));
  EXPECT_EQ(error(Store::read(folder)),
            folder.string() + ": this is a directory; name the file with the results (.db) in it");
  ASSERT_TRUE(write_file(folder / "empty", ""));
  EXPECT_THAT(error(Store::read(folder / "empty")), HasSubstr("holds no sweep"));
}

}  // namespace
}  // namespace demarc::sweep
