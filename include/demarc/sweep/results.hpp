// The content of a store, as tables: every point, and the aggregates that the sweep file asks for.
// Nothing in them depends on who ran what and when, unless this is asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/sweep/store.hpp"

namespace demarc::sweep {

// Rows in the order of the plan.
struct ResultTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::optional<Value>>> rows;
};

// The axes, measures and `error` (empty: none) of every point that has ended; with `provenance`
// also seconds, rank, exit code, revision, seed and digest of the input.
[[nodiscard]] Result<ResultTable> all_points(Store& store, bool provenance);

// The axes that are not aggregated, the number of points, and each statistic of each measure. A
// sweep file without `aggregate` aggregates nothing. Points that failed and measures that are not
// numbers are left out.
[[nodiscard]] Result<ResultTable> summary(Store& store);

// For each group of the other axes, the value of Best::axis with the best mean, and the values
// whose mean does not differ from it significantly (the 95 % interval of their ratio includes 1;
// "unknown" if there are too few points). No columns if the sweep file asks for none.
[[nodiscard]] Result<ResultTable> best_values(Store& store);

// Measures that are 0 at every point that ended well, if there are at least two, in words.
[[nodiscard]] Result<std::vector<std::string>> zero_measures(Store& store);

[[nodiscard]] std::string to_csv(const ResultTable& table);  // RFC 4180, a header line
// The schema demarc.sweep.export/1.
[[nodiscard]] std::string to_json(const Store& store, const ResultTable& table,
                                  const std::vector<std::string>& notes);
// A table for people: the first `most` rows, and how many more there are.
[[nodiscard]] std::string to_table(const ResultTable& table, std::size_t most);

// The command that runs a point alone.
[[nodiscard]] std::string command_of(const Point& point);

}  // namespace demarc::sweep
