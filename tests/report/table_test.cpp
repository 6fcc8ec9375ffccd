// Tests how tables pad columns, escape bars and group digits.
#include "demarc/report/table.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace demarc::report {
namespace {

TEST(Table, pads_columns_to_their_widest_cell_counting_code_points) {
  const Table table{"Indices",
                    {{"kernel"}, {"Σ", Align::right}},
                    {{"bfs", count_cell(473344)}, {"größe", "–"}, {"x"}}};
  EXPECT_EQ(plain_text(table),
            "Indices\n"
            "kernel        Σ\n"
            "------  -------\n"
            "bfs     473 344\n"
            "größe         –\n"
            "x\n");
}

TEST(Table, markdown_escapes_bars) {
  const Table table{"", {{"a|b"}, {"n", Align::right}}, {{"x|y", number_cell(1.25, 1)}}};
  EXPECT_EQ(markdown(table), "| a\\|b | n |\n|---|---:|\n| x\\|y | 1.2 |\n");
}

TEST(Table, groups_digits_by_three) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(-1234567), "-1 234 567");
  EXPECT_EQ(grouped(100000), "100 000");
}

TEST(Table, measured_numbers_have_three_digits_or_all_of_their_whole_part) {
  EXPECT_EQ(three_digits(0), "0.00");
  EXPECT_EQ(three_digits(1), "1.00");
  EXPECT_EQ(three_digits(0.12345), "0.123");
  EXPECT_EQ(three_digits(0.0012345), "0.00123");
  EXPECT_EQ(three_digits(0.00001), "1.00e-05");
  EXPECT_EQ(three_digits(-12.34), "-12.3");
  EXPECT_EQ(three_digits(123.4), "123");
  EXPECT_EQ(three_digits(12345.6), "12 346");
  EXPECT_EQ(three_digits(9.996), "10.0");
  EXPECT_EQ(three_digits(99.97), "100");
  EXPECT_EQ(three_digits(0.9996), "1.00");
  EXPECT_EQ(three_digits(1e15), "1.00e+15");
  EXPECT_EQ(three_digits(std::numeric_limits<double>::quiet_NaN()), "–");
  EXPECT_EQ(times_text(2), "2.00x");
  EXPECT_EQ(digits_cell(0.12345, Tone::bad).number, 0.12345);
  EXPECT_EQ(digits_cell(0.12345, Tone::bad).tone, Tone::bad);
}

TEST(Table, percent_cells_sort_by_their_share) {
  const Cell cell = percent_cell(0.1234);
  EXPECT_EQ(cell.text, "12.3 %");
  EXPECT_EQ(cell.number, 0.1234);
}

}  // namespace
}  // namespace demarc::report
