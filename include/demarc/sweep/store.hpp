// The results of a sweep, in a file of SQLite: a row per point, written as points end. Whatever
// ends the writer, what was written stays.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/sweep/plan.hpp"

namespace demarc::sweep {

// How a point ended, and what is kept of it.
struct Outcome {
  bool done = false;  // false: `error` says why
  std::string error;
  int exit_code = 0;  // 128 + signal if a signal ended it
  double seconds = 0;
  std::uint32_t rank = 0;
  std::vector<std::optional<Value>> kept;  // per measure; nothing where it is null
};

struct Row {
  std::string key;
  Outcome outcome;
  std::string revision;
  std::string seed, input;  // as Point
};

class Store {
 public:
  // Opens a file to write, and makes it if there is none. It refuses a file of another kind, a
  // sweep with other axes or measures, points of another revision unless `any_revision`, and a file
  // that another process writes.
  [[nodiscard]] static Result<Store> open(const std::filesystem::path& path, const Plan& plan,
                                          bool any_revision);
  // Opens a file to read; others may write it at the same time.
  [[nodiscard]] static Result<Store> read(const std::filesystem::path& path);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // The plan whose points it holds, as of the last time that it was opened to write.
  [[nodiscard]] const Plan& plan() const;

  // Adds a row in one step, so it is there completely or not at all. It replaces an earlier row of
  // the same values.
  [[nodiscard]] Result<void> add(const Point& point, const Outcome& outcome);
  // Whether there is a row of this point, with its arguments and files as they are now: true if it
  // ended well, false if it failed; nothing: there is no row.
  [[nodiscard]] Result<std::optional<bool>> state(const Point& point);
  // The row of a point, no matter what its files contain now.
  [[nodiscard]] Result<std::optional<Row>> row(std::uint64_t index);
  struct Counts {
    std::uint64_t done = 0, failed = 0;
  };
  [[nodiscard]] Result<Counts> counts();

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace demarc::sweep
