// Follows the slice of a kernel row by row. Loops whose body is linear in the number of the trip
// are followed once for all their trips (row_loops.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "follow/row_executor.hpp"

namespace demarc::locality {

struct Path {
  std::uint32_t block = 0;
  std::uint32_t operation = 0;
  std::uint32_t step = 0;
  Row row;
  std::vector<Value> values;
  std::vector<std::uint32_t> requests;  // by access: executions so far
  std::vector<std::uint32_t> trips;     // by loop: of the current entry
  std::uint64_t turns = 0;              // hash of the branches taken
  std::uint64_t operations = 0;         // that were followed one by one
};

// The trips of one loop, followed as one.
struct Closing {
  struct Touch {
    Value address;
    std::uint64_t offset = 0;
    std::uint32_t access = 0;
    std::uint32_t step = 0;    // in the trip
    bool before_exit = false;  // executed in the last trip too
  };
  std::uint32_t loop = 0;
  bool failed = false;
  std::vector<Touch> touches;
  std::uint32_t steps = 0;
  bool has_exit = false;
  std::uint64_t last_trip = 0;
  std::uint32_t exit_block = 0;  // where the loop is left
  std::uint32_t exit_steps = 0;  // steps of the last trip
  std::uint32_t behind = 0;      // and where it leads
  std::vector<Value> at_exit;
};

class RowExecutor {
 public:
  RowExecutor(const Slice& slice, const gpu::Dim3& grid, const gpu::Dim3& block,
              const RowLimits& limits, const Progress& progress);
  ClosedForm run();

 private:
  bool follow_block();
  bool follow_row();
  // To the end of the kernel; parts of the row that go elsewhere become paths of their own.
  bool follow(Path& path);
  bool may_go_on(Path& path);
  // Words that are kept to the end of the row.
  void keep_words(std::uint64_t words) { words_left_ -= std::min(words, words_left_); }
  // True: what there is of the row counts.
  bool ended_early();
  // From block `from` to path.block: a loop entered anew starts at 0, one whose header comes round
  // again makes another trip.
  void count_trips(std::uint32_t from, Path& path) const;
  // The part of the row for which the predicate is the same as for its first thread; the rest
  // becomes another path that starts at the same operation.
  bool decide(std::uint32_t slot, bool negated, Path& path);
  void branch(const SliceBlock& block, Path& path);
  void perform(const SliceOperation& operation, Path& path);
  // Is the value one that following the loop once cannot give? Then the row is followed anew.
  bool gives_up(const Value& value);
  Value value_of(const Source3& source, const Path& path);
  Value special(const Source3& source, Row row);
  void touch(const SliceOperation& operation, Path& path);
  // The runs of one execution by the path's row; access, request, step and loop are filled in.
  void add_runs(Run run, const Value& address, std::uint64_t offset, const Path& path);
  ClosedForm finish();
  ClosedForm finish_cut();

  // Of the loop whose header path.block is and that was entered from block `from`: all of its trips
  // at once, where that can be. The path then stands behind the loop.
  void close_loop(std::uint32_t from, Path& path);
  bool within(std::uint32_t block, std::uint32_t loop) const;
  // One trip with these values at the header; false: it ends elsewhere than at the header.
  bool symbolic_trip(Path& path);
  bool branch_over_trips(const SliceBlock& block, const Trips& predicate, Path& path);
  bool find_linear_values(Path& path);
  void commit(Closing& closing, Path& path);

  static constexpr std::uint32_t blocks_a_report = 1024;

  const Slice& slice_;
  const Progress& progress_;
  gpu::Dim3 grid_;
  gpu::Dim3 block_;
  RowLimits limits_;
  std::uint64_t left_;
  std::uint64_t row_left_ = 0;
  std::uint64_t words_left_ = 0;
  bool too_long_ = false;
  bool cut_ = false;
  RowArithmetic arithmetic_;
  std::vector<bool> closed_;
  AccessRuns runs_;
  gpu::Dim3 ctaid_;
  gpu::Dim3 tid_;
  std::uint32_t block_index_ = 0;
  std::uint32_t row_thread_ = 0;
  std::vector<Path> paths_;
  bool split_ = false;  // in the block that is followed, threads of a warp part
  bool rows_share_warps_ = false;
  std::uint64_t row_turns_ = 0;       // of the last path of the row
  std::size_t depth_ = 0;             // depth of the loops around an access
  std::vector<std::uint32_t> trips_;  // by run of the block and level, of the loops around it
  Closing* closing_ = nullptr;        // the loop in hand
  bool closes_loops_ = false;         // in the row that is followed
  bool again_ = false;                // the row has to be followed trip by trip
  // By loop: attempts that failed and those that did not, and the values of the last that did not.
  std::vector<std::uint32_t> failures_;
  std::vector<std::uint32_t> successes_;
  std::vector<std::vector<Value>> known_trips_;
};

}  // namespace demarc::locality
