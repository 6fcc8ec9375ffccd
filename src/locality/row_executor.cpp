#include "row_executor.hpp"

#include <algorithm>

#include "demarc/base/hash.hpp"

namespace demarc::locality {
namespace {

struct Path {
  std::uint32_t block = 0;
  std::uint32_t operation = 0;
  std::uint32_t step = 0;
  Row row;
  std::vector<Value> values;
  std::vector<std::uint32_t> requests;  // by access: executions so far
  std::vector<std::uint32_t> trips;     // by loop: of the current entry
  std::uint64_t turns = 0;              // hash of the branches taken
};

class RowExecutor {
 public:
  RowExecutor(const Slice& slice, const gpu::Dim3& grid, const gpu::Dim3& block,
              const RowLimits& limits, const Progress& progress)
      : slice_(slice),
        progress_(progress),
        grid_(grid),
        block_(block),
        limits_(limits),
        left_(limits.all),
        arithmetic_(block.x),
        closed_(slice.closable) {
    runs_.grid = {grid.x, grid.y, grid.z};
    runs_.block = {block.x, block.y, block.z};
    runs_.accesses = slice.accesses;
    rows_share_warps_ = block.x % 32 != 0 && std::uint64_t{block.y} * block.z > 1;
    for (const std::vector<std::uint32_t>& loops : slice.loops_of_access)
      depth_ = std::max(depth_, loops.size());
  }

  ClosedForm run() {
    for (ctaid_.z = 0; ctaid_.z < grid_.z; ++ctaid_.z)
      for (ctaid_.y = 0; ctaid_.y < grid_.y; ++ctaid_.y)
        for (ctaid_.x = 0; ctaid_.x < grid_.x; ++ctaid_.x) {
          block_index_ = ctaid_.x + grid_.x * (ctaid_.y + grid_.y * ctaid_.z);
          if (block_index_ % blocks_a_report == 0)
            report_progress(progress_, 0.7 * block_index_ / static_cast<double>(grid_.count()),
                            "following addresses");
          if (!follow_block()) return finish();
          if (limits_.a_row && left_ == 0) return finish_cut();
        }
    return finish();
  }

 private:
  bool follow_block() {
    const std::size_t first_run = runs_.runs.size();
    trips_.clear();
    split_ = false;
    bool first_row = true;
    std::uint64_t turns = 0;
    for (tid_.z = 0; tid_.z < block_.z; ++tid_.z)
      for (tid_.y = 0; tid_.y < block_.y; ++tid_.y) {
        if (!follow_row()) return false;
        // Rows of one warp that go different ways are parts of a warp that does.
        if (rows_share_warps_ && !first_row && turns != row_turns_) split_ = true;
        turns = row_turns_;
        first_row = false;
      }
    if (split_) {
      if (slice_.reducible) number_requests(first_run);
      join(first_run);
    }
    return true;
  }

  bool follow_row() {
    arithmetic_.clear();
    row_left_ = limits_.a_row.value_or(left_ + 1);
    row_thread_ = block_.x * (tid_.y + block_.y * tid_.z);
    Path start;
    start.row = {0, block_.x};
    start.values.resize(slice_.slots);
    start.requests.resize(slice_.accesses.size(), 0);
    start.trips.resize(slice_.loop_headers.size(), 0);
    paths_.clear();
    paths_.push_back(std::move(start));
    while (!paths_.empty()) {
      Path path = std::move(paths_.back());
      paths_.pop_back();
      if (!follow(path)) {
        std::fill(closed_.begin(), closed_.end(), false);
        return false;
      }
      row_turns_ = path.turns;
    }
    return std::find(closed_.begin(), closed_.end(), true) != closed_.end();
  }

  // To the end of the kernel; parts of the row that go elsewhere become paths of their own.
  bool follow(Path& path) {
    while (true) {
      const SliceBlock& block = slice_.blocks[path.block];
      for (; path.operation < block.operations.size(); ++path.operation) {
        if (!may_go_on()) return ended_early();
        perform(block.operations[path.operation], path);
      }
      path.operation = 0;
      if (!may_go_on()) return ended_early();
      if (block.end == SliceBlock::End::exit) return true;
      const std::uint32_t from = path.block;
      if (block.end == SliceBlock::End::jump)
        path.block = block.next;
      else
        branch(block, path);
      if (depth_ > 0) count_trips(from, path);
    }
  }

  bool may_go_on() {
    if (left_ == 0 || row_left_ == 0) return false;
    --left_;
    --row_left_;
    return true;
  }
  // True: what there is of the row counts.
  bool ended_early() {
    cut_ = limits_.a_row.has_value();
    return cut_;
  }

  // From block `from` to path.block: a loop entered anew starts at 0, one whose header comes round
  // again makes another trip.
  void count_trips(std::uint32_t from, Path& path) const {
    const std::vector<std::uint32_t>& before = slice_.loops_of_block[from];
    const std::vector<std::uint32_t>& now = slice_.loops_of_block[path.block];
    for (std::size_t level = 0; level < now.size(); ++level) {
      const std::uint32_t loop = now[level];
      if (level >= before.size() || before[level] != loop)
        path.trips[loop] = 0;
      else if (path.block == slice_.loop_headers[loop])
        ++path.trips[loop];
    }
  }

  // The part of the row for which the predicate is the same as for its first thread; the rest
  // becomes another path that starts at the same operation.
  bool decide(std::uint32_t slot, bool negated, Path& path) {
    const Value& value = path.values[slot];
    const bool first = arithmetic_.at(value, path.row.begin, 1) != 0;
    std::uint32_t end = path.row.end;
    if (value.kind == Value::Kind::window) {
      for (const std::uint64_t edge : {value.base, std::uint64_t{value.window_end()}})
        if (edge > path.row.begin && edge < end) end = static_cast<std::uint32_t>(edge);
    } else if (value.kind != Value::Kind::uniform) {
      end = path.row.begin + 1;
      while (end < path.row.end && (arithmetic_.at(value, end, 1) != 0) == first) ++end;
    }
    if (end < path.row.end) {
      Path rest = path;
      rest.row.begin = end;
      path.row.end = end;
      paths_.push_back(std::move(rest));
      split_ = true;
    }
    return first != negated;
  }

  void branch(const SliceBlock& block, Path& path) {
    if (block.predicate == no_slot || path.values[block.predicate].kind == Value::Kind::unknown) {
      for (const std::uint32_t access : block.region_accesses) closed_[access] = false;
      for (const std::uint32_t slot : block.region_slots) path.values[slot] = unknown_value();
      path.block = block.meeting;
      return;
    }
    // The rest of the row decides again at the end of this block.
    const auto operations = static_cast<std::uint32_t>(block.operations.size());
    path.operation = operations;
    const bool taken = decide(block.predicate, block.predicate_negated, path);
    path.operation = 0;
    path.block = taken ? block.taken : block.next;
    path.turns = hash_of(path.turns, path.block);
  }

  void perform(const SliceOperation& operation, Path& path) {
    if (operation.predicate != no_slot) {
      if (path.values[operation.predicate].kind == Value::Kind::unknown) {
        if (operation.access != ptx::no_index)
          closed_[operation.access] = false;
        else if (operation.target != no_slot)
          path.values[operation.target] = unknown_value();
        return;
      }
      const bool performed = decide(operation.predicate, operation.predicate_negated, path);
      path.turns = hash_of(path.turns, performed);
      if (!performed) return;
    }
    if (operation.access != ptx::no_index) {
      touch(operation, path);
      return;
    }
    if (operation.target == no_slot) return;
    const Value nothing = uniform_value(0);
    const auto source = [&](std::size_t i) {
      return operation.sources[i].kind == Source3::Kind::none
                 ? nothing
                 : value_of(operation.sources[i], path);
    };
    path.values[operation.target] =
        arithmetic_.evaluate(operation.shape, source(0), source(1), source(2), path.row);
  }

  Value value_of(const Source3& source, const Path& path) {
    switch (source.kind) {
      case Source3::Kind::slot:
        return path.values[source.slot];
      case Source3::Kind::constant:
        return uniform_value(source.value);
      case Source3::Kind::special:
        return special(source, path.row);
      case Source3::Kind::none:
        break;
    }
    return unknown_value();
  }

  Value special(const Source3& source, Row row) {
    const auto part = [&](const gpu::Dim3& dim) -> std::uint32_t {
      return source.selector == ptx::Selector::x   ? dim.x
             : source.selector == ptx::Selector::y ? dim.y
                                                   : dim.z;
    };
    const bool selected = source.selector == ptx::Selector::x ||
                          source.selector == ptx::Selector::y ||
                          source.selector == ptx::Selector::z;
    const std::uint32_t first = row_thread_;
    switch (source.special) {
      case ptx::SpecialRegister::tid:
        if (source.selector == ptx::Selector::x) return {Value::Kind::affine, false, 0, 1};
        return selected ? uniform_value(part(tid_)) : unknown_value();
      case ptx::SpecialRegister::ctaid:
        return selected ? uniform_value(part(ctaid_)) : unknown_value();
      case ptx::SpecialRegister::ntid:
        return selected ? uniform_value(part(block_)) : unknown_value();
      case ptx::SpecialRegister::nctaid:
        return selected ? uniform_value(part(grid_)) : unknown_value();
      case ptx::SpecialRegister::laneid:
        return arithmetic_.from_lanes(
            row, 32, [first](std::uint32_t x) { return std::uint64_t{(first + x) % 32}; });
      default:
        return unknown_value();
    }
  }

  void touch(const SliceOperation& operation, Path& path) {
    const std::uint32_t access = operation.access;
    Value address = value_of(operation.sources[0], path);
    if (address.kind == Value::Kind::unknown) {
      closed_[access] = false;
      return;
    }
    if (!closed_[access]) return;
    const std::uint64_t offset =
        operation.sources[0].kind == Source3::Kind::slot ? operation.sources[0].value : 0;
    Run run;
    run.block = block_index_;
    run.access = static_cast<std::uint16_t>(access);
    run.request = path.requests[access]++;
    run.step = path.step++;
    std::uint32_t x = path.row.begin;
    while (x < path.row.end) {
      run.thread = static_cast<std::uint16_t>(row_thread_ + x);
      run.address = arithmetic_.at(address, x, 64) + offset;
      run.stride = 0;
      std::uint32_t end = path.row.end;
      if (address.kind == Value::Kind::affine) {
        run.stride = address.stride;
      } else if (address.kind == Value::Kind::lanes) {
        end = x + 1;
        if (end < path.row.end) {
          const auto lane = [&](std::uint32_t at) { return arithmetic_.at(address, at, 64); };
          run.stride = static_cast<std::int64_t>(lane(x + 1) - lane(x));
          while (end < path.row.end &&
                 static_cast<std::int64_t>(lane(end) - lane(end - 1)) == run.stride)
            ++end;
        }
      }
      run.count = end - x;
      if (run.count == 1) run.stride = 0;
      runs_.runs.push_back(run);
      if (depth_ > 0) {
        const std::vector<std::uint32_t>& loops = slice_.loops_of_access[access];
        for (std::size_t level = 0; level < depth_; ++level)
          trips_.push_back(level < loops.size() ? path.trips[loops[level]] : 0);
      }
      x = end;
    }
  }

  // Lanes of a warp that went different ways meet again where their paths do: an access in equal
  // trips of the loops around it is one request, whatever the lanes did before. Steps follow the
  // order in which a warp that waits at every meeting passes the accesses.
  void number_requests(std::size_t first) {
    std::vector<std::uint32_t> order(runs_.runs.size() - first);
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    // < 0, 0, > 0 as the run a is made before, with or after b.
    const auto compare = [&](std::uint32_t a, std::uint32_t b) {
      const std::uint16_t x = runs_.runs[first + a].access;
      const std::uint16_t y = runs_.runs[first + b].access;
      const std::vector<std::uint64_t>& p = slice_.order[x];
      const std::vector<std::uint64_t>& q = slice_.order[y];
      for (std::size_t level = 0;; ++level) {
        if (p[level] != q[level]) return p[level] < q[level] ? -1 : 1;
        // Equal places are a loop around both, or the access itself.
        if (level + 1 == p.size()) return 0;
        const std::uint32_t i = trips_[a * depth_ + level];
        const std::uint32_t j = trips_[b * depth_ + level];
        if (i != j) return i < j ? -1 : 1;
      }
    };
    std::sort(order.begin(), order.end(), [&compare](std::uint32_t a, std::uint32_t b) {
      const int way = compare(a, b);
      return way != 0 ? way < 0 : a < b;
    });
    std::vector<std::uint32_t> requests(slice_.accesses.size(), 0);
    std::uint32_t step = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      Run& run = runs_.runs[first + order[i]];
      if (i > 0 && compare(order[i - 1], order[i]) != 0) {
        ++requests[runs_.runs[first + order[i - 1]].access];
        ++step;
      }
      run.request = requests[run.access];
      run.step = step;
    }
  }

  // Runs of the block that were followed apart and continue each other become one.
  void join(std::size_t first) {
    const auto begin = runs_.runs.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(begin, runs_.runs.end(), [](const Run& a, const Run& b) {
      if (a.access != b.access) return a.access < b.access;
      return a.request != b.request ? a.request < b.request : a.thread < b.thread;
    });
    std::size_t out = first;
    for (std::size_t i = first; i < runs_.runs.size(); ++i) {
      const Run run = runs_.runs[i];
      if (out > first && continues(runs_.runs[out - 1], run)) {
        Run& before = runs_.runs[out - 1];
        before.stride = static_cast<std::int64_t>(run.address - last_address(before));
        before.count += run.count;
      } else {
        runs_.runs[out++] = run;
      }
    }
    runs_.runs.resize(out);
  }
  static std::uint64_t last_address(const Run& run) {
    return run.address + static_cast<std::uint64_t>(run.stride) * (run.count - 1);
  }
  static bool continues(const Run& a, const Run& b) {
    if (a.access != b.access || a.request != b.request || a.thread + a.count != b.thread)
      return false;
    const auto gap = static_cast<std::int64_t>(b.address - last_address(a));
    return (a.count == 1 || a.stride == gap) && (b.count == 1 || b.stride == gap);
  }

  ClosedForm finish() {
    std::erase_if(runs_.runs, [this](const Run& run) { return !closed_[run.access]; });
    return {std::move(runs_), std::move(closed_), cut_};
  }
  ClosedForm finish_cut() {
    cut_ = cut_ || block_index_ + 1 < grid_.count();
    // The block in hand may lack rows; the only one is better than none.
    if (cut_ && block_index_ > 0) {
      while (!runs_.runs.empty() && runs_.runs.back().block == block_index_) runs_.runs.pop_back();
      --block_index_;
    }
    runs_.grid = {block_index_ + 1, 1, 1};
    return finish();
  }

  static constexpr std::uint32_t blocks_a_report = 1024;

  const Slice& slice_;
  const Progress& progress_;
  gpu::Dim3 grid_;
  gpu::Dim3 block_;
  RowLimits limits_;
  std::uint64_t left_;
  std::uint64_t row_left_ = 0;
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
  std::size_t depth_ = 0;             // of the loops around an access
  std::vector<std::uint32_t> trips_;  // by run of the block and level, of the loops around it
};

}  // namespace

ClosedForm follow_rows(const Slice& slice, const gpu::Dim3& grid, const gpu::Dim3& block,
                       const RowLimits& limits, const Progress& progress) {
  return RowExecutor(slice, grid, block, limits, progress).run();
}

}  // namespace demarc::locality
