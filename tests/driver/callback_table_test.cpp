// The driver's table of callbacks: which layouts and answers are refused.
#include "demarc/driver/callback_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

// Tables that a driver might hand out.
std::size_t table_bytes = 96;
CuResult subscribe_answer = 0;
int refused_id = -1;
int refused_from = 100000;
int first_enabled = 0;
int last_enabled = 0;

CuResult subscribe_planted(std::uint32_t*, CallbackTable::Callback, void*) {
  return subscribe_answer;
}
CuResult enable_planted(std::uint32_t on, std::uint32_t, int, int id) {
  if (on != 1 || id == refused_id || id >= refused_from) return 1;
  if (first_enabled < 0) first_enabled = id;
  last_enabled = id;
  return 0;
}
CuResult planted_table(const void** table, const CuUuid*) {
  static const void* entries[8];
  entries[0] = reinterpret_cast<const void*>(table_bytes);  // NOLINT: a size stands there
  entries[3] = reinterpret_cast<const void*>(&subscribe_planted);
  entries[6] = reinterpret_cast<const void*>(&enable_planted);
  *table = entries;
  return 0;
}
CuResult no_table(const void**, const CuUuid*) {
  return 0;
}
CuResult refused_table(const void** table, const CuUuid* id) {
  planted_table(table, id);
  return 500;
}

class Table : public testing::Test {
 protected:
  void SetUp() override {
    table_bytes = 96;
    subscribe_answer = 0;
    refused_id = -1;
    refused_from = 100000;
  }
  static Result<void> subscribe(GetExportTable from) {
    CallbackTable table;
    return table.subscribe(
        from, "1.2", [](void*, int, int, const void*) {}, nullptr);
  }
};

TEST_F(Table, of_another_layout_is_refused) {
  EXPECT_TRUE(subscribe(&planted_table));
  for (const GetExportTable none : {GetExportTable{nullptr}, &no_table, &refused_table}) {
    const auto refused = subscribe(none);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message, HasSubstr("does not offer the launch callback"));
  }
  for (const std::size_t bytes : {55U, 4097U}) {
    table_bytes = bytes;
    EXPECT_THAT(subscribe(&planted_table).error().message, HasSubstr("not a layout known"));
  }
  for (const std::size_t bytes : {56U, 4096U}) {
    table_bytes = bytes;
    EXPECT_TRUE(subscribe(&planted_table));
  }
}

TEST_F(Table, held_by_another_tool_is_refused) {
  subscribe_answer = 210;
  EXPECT_THAT(subscribe(&planted_table).error().message, HasSubstr("error 210"));
}

TEST_F(Table, that_does_not_enable_a_callback_is_refused) {
  CallbackTable table;
  ASSERT_TRUE(table.subscribe(
      &planted_table, "1.2", [](void*, int, int, const void*) {}, nullptr));
  constexpr int ids[] = {1, 3};
  EXPECT_TRUE(table.enable(11, ids));
  refused_id = 3;
  EXPECT_THAT(table.enable(11, ids).error().message, HasSubstr("callback 3 of domain 11"));
}

TEST_F(Table, enables_the_callbacks_of_all_functions) {
  CallbackTable table;
  ASSERT_TRUE(table.subscribe(
      &planted_table, "1.2", [](void*, int, int, const void*) {}, nullptr));
  refused_id = 807;
  first_enabled = -1;
  EXPECT_TRUE(table.enable_functions());
  EXPECT_EQ(first_enabled, 1) << "there is no callback 0";
  EXPECT_EQ(last_enabled, 806);
  refused_id = 900;
  EXPECT_TRUE(table.enable_functions());
  EXPECT_EQ(last_enabled, 899) << "those of a later driver, too";
  refused_from = 1;
  EXPECT_THAT(table.enable_functions().error().message, HasSubstr("all callbacks of domain 6"));
}

// A program could call such a function, and it would not be seen.
TEST_F(Table, with_a_hole_among_the_functions_is_refused_by_the_name_of_the_function) {
  CallbackTable table;
  ASSERT_TRUE(table.subscribe(
      &planted_table, "1.2", [](void*, int, int, const void*) {}, nullptr));
  for (const auto& [id, name] :
       {std::pair{1, "cuInit"}, std::pair{18, "cuModuleLoad"}, std::pair{307, "cuLaunchKernel"},
        std::pair{598, "cuMemAllocAsync"}}) {
    refused_id = id;
    const auto refused = table.enable_functions();
    ASSERT_FALSE(refused) << id;
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message,
                HasSubstr(fmt::format("refuses callback {} of domain 6, that of {}:", id, name)));
  }
  refused_id = -1;
  refused_from = 700;
  EXPECT_TRUE(table.enable_functions()) << "an older driver has not got them";
}

}  // namespace
}  // namespace demarc::cuda
