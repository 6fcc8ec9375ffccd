// What a sweep runs (docs/sweep.md): a command of this program over the values of some axes. It
// also says what is kept of each result and how results are aggregated.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::sweep {

using Value = std::variant<double, std::int64_t, bool, std::string>;
// The value as it stands on a command line and in a table. Numbers have their shortest form.
[[nodiscard]] std::string to_text(const Value& value);

// Names whose values change together: one, or those of a zip.
class Axis {
 public:
  Axis(std::vector<std::string> names, std::vector<std::vector<Value>> values)  // [position][name]
      : names_(std::move(names)), values_(std::move(values)), size_(values_.size()) {}
  // The values from, from + step, ... They take no memory each.
  Axis(std::string name, double from, double step, std::size_t size)
      : names_{std::move(name)}, from_(from), step_(step), size_(size) {}

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] Value value(std::size_t position, std::size_t name = 0) const;
  [[nodiscard]] bool is_range() const { return values_.empty(); }
  [[nodiscard]] double from() const { return from_; }
  [[nodiscard]] double step() const { return step_; }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<Value>> values_;
  double from_ = 0, step_ = 0;
  std::size_t size_ = 0;
};

// What is kept of a result, as a JSON pointer. A part `name=value`, or `name=value&other=value`,
// means the first element of an array whose members have these values. {axis} stands for the value
// of an axis.
struct Measure {
  std::string name;
  std::string pointer;
};

// For each group of points that differ only in `axis`: the value of `axis` with the best mean of
// `measure`.
struct Best {
  std::string axis;
  std::string measure;
  bool least = true;
};

struct Aggregate {
  std::vector<std::string> over;        // axes over which points are aggregated
  std::vector<std::string> statistics;  // mean, interval, min, max, p1 to p99
  std::optional<Best> best;
};

struct Point {
  std::uint64_t index = 0;  // in the plan
  std::vector<std::string> arguments;
  std::vector<std::string> pointers;  // pointers of the measures
  std::string seed;                   // the value of --seed; empty: there is none
  std::string input;  // digest of the files among the arguments; empty: there is none
  std::string key;    // digest of the arguments, the pointers and those files
};

class Plan {
 public:
  // invalid_input names `source` and the key. Files of axes are looked for from `folder` on.
  [[nodiscard]] static Result<Plan> parse(std::string_view text, const std::string& source,
                                          const std::filesystem::path& folder);

  // A plan without axes and points, to be assigned to.
  [[nodiscard]] static Plan none() { return {}; }

  [[nodiscard]] const std::string& source() const { return source_; }
  // A sweep file with the same points, whose axes are lists.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::string& verb() const { return command_.front(); }
  [[nodiscard]] const std::vector<Axis>& axes() const { return axes_; }
  [[nodiscard]] std::vector<std::string> axis_names() const;
  [[nodiscard]] const std::vector<Measure>& measures() const { return measures_; }
  [[nodiscard]] const Aggregate& aggregate() const { return aggregate_; }
  [[nodiscard]] double time_limit_s() const { return time_limit_s_; }  // 0: none

  // Number of points; the first axis changes slowest. Points take no memory each.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Position on each axis.
  [[nodiscard]] std::vector<std::size_t> positions(std::uint64_t index) const;
  // One for each of axis_names().
  [[nodiscard]] std::vector<Value> values(std::uint64_t index) const;
  // invalid_input when a file among the arguments cannot be read.
  [[nodiscard]] Result<Point> point(std::uint64_t index) const;

 private:
  Plan() = default;

  std::string source_, text_;
  std::vector<std::string> command_;
  std::vector<Axis> axes_;
  std::vector<Measure> measures_;
  Aggregate aggregate_;
  double time_limit_s_ = 0;
  std::uint64_t size_ = 1;
};

}  // namespace demarc::sweep
