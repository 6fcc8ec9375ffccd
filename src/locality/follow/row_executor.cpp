// Follows the address computations of a kernel for rows of threads of every block.
#include <algorithm>

#include "demarc/base/hash.hpp"
#include "follow/row_walk.hpp"
#include "maps/request_order.hpp"

namespace demarc::locality {

RowExecutor::RowExecutor(const Slice& slice, const gpu::Dim3& grid, const gpu::Dim3& block,
                         const RowLimits& limits, const Progress& progress)
    : slice_(slice),
      progress_(progress),
      grid_(grid),
      block_(block),
      limits_(limits),
      left_(limits.all),
      arithmetic_(block.x),
      closed_(slice.closable),
      failures_(slice.loop_headers.size(), 0),
      successes_(slice.loop_headers.size(), 0),
      known_trips_(slice.loop_headers.size()) {
  runs_.grid = {grid.x, grid.y, grid.z};
  runs_.block = {block.x, block.y, block.z};
  runs_.accesses = slice.accesses;
  rows_share_warps_ = block.x % 32 != 0 && std::uint64_t{block.y} * block.z > 1;
  for (const std::vector<std::uint32_t>& loops : slice.loops_of_access)
    depth_ = std::max(depth_, loops.size());
}

ClosedForm RowExecutor::run() {
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

bool RowExecutor::follow_block() {
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
    if (slice_.reducible && !number_requests(runs_, first_run, slice_, trips_, depth_)) {
      std::fill(closed_.begin(), closed_.end(), false);
      return false;
    }
    join_runs(runs_, first_run);
  }
  return true;
}

bool RowExecutor::follow_row() {
  const std::size_t first_run = runs_.runs.size();
  const std::size_t first_trip = trips_.size();
  closes_loops_ = depth_ > 0 && slice_.reducible && !limits_.a_row;
  do {
    again_ = false;
    runs_.runs.resize(first_run);
    trips_.resize(first_trip);
    arithmetic_.clear();
    row_left_ = limits_.a_row.value_or(limits_.max_of_row);
    words_left_ = limits_.max_words_of_row;
    row_thread_ = block_.x * (tid_.y + block_.y * tid_.z);
    Path start;
    start.row = {0, block_.x};
    start.values.resize(slice_.slots);
    start.requests.resize(slice_.accesses.size(), 0);
    start.trips.resize(slice_.loop_headers.size(), 0);
    paths_.clear();
    paths_.push_back(std::move(start));
    while (!paths_.empty() && !again_) {
      Path path = std::move(paths_.back());
      paths_.pop_back();
      if (!follow(path)) {
        std::fill(closed_.begin(), closed_.end(), false);
        return false;
      }
      row_turns_ = path.turns;
    }
    closes_loops_ = false;
    if (!again_) break;
    for (std::uint32_t& failures : failures_) failures += 2;
  } while (true);
  return std::find(closed_.begin(), closed_.end(), true) != closed_.end();
}

bool RowExecutor::follow(Path& path) {
  while (true) {
    const SliceBlock& block = slice_.blocks[path.block];
    for (; path.operation < block.operations.size(); ++path.operation) {
      if (!may_go_on(path)) return ended_early();
      perform(block.operations[path.operation], path);
      if (again_) return true;
    }
    path.operation = 0;
    if (!may_go_on(path)) return ended_early();
    if (block.end == SliceBlock::End::exit) return true;
    const std::uint32_t from = path.block;
    if (block.end == SliceBlock::End::jump)
      path.block = block.next;
    else
      branch(block, path);
    if (again_) return true;
    if (depth_ > 0) count_trips(from, path);
    if (closes_loops_) close_loop(from, path);
  }
}

bool RowExecutor::may_go_on(Path& path) {
  if (left_ == 0 || row_left_ == 0 || path.operations == limits_.max_of_path || words_left_ == 0)
    return false;
  ++path.operations;
  --left_;
  --row_left_;
  return true;
}

bool RowExecutor::ended_early() {
  cut_ = limits_.a_row.has_value();
  too_long_ = !cut_ && left_ != 0;
  return cut_;
}

void RowExecutor::count_trips(std::uint32_t from, Path& path) const {
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

bool RowExecutor::decide(std::uint32_t slot, bool negated, Path& path) {
  const Value& value = path.values[slot];
  const bool first = arithmetic_.at(value, path.row.begin, 1) != 0;
  std::uint32_t end = path.row.end;
  if (const auto* window = std::get_if<Window>(&value)) {
    for (const std::uint32_t edge : {window->begin, window->end})
      if (edge > path.row.begin && edge < end) end = edge;
  } else if (uniform(value) == nullptr) {
    end = path.row.begin + 1;
    while (end < path.row.end && (arithmetic_.at(value, end, 1) != 0) == first) ++end;
  }
  if (end < path.row.end) {
    if (closing_ != nullptr) {
      closing_->failed = true;
      return first != negated;
    }
    Path rest = path;
    rest.row.begin = end;
    path.row.end = end;
    paths_.push_back(std::move(rest));
    split_ = true;
  }
  return first != negated;
}

void RowExecutor::branch(const SliceBlock& block, Path& path) {
  if (block.predicate == no_slot || is<Unknown>(path.values[block.predicate])) {
    for (const std::uint32_t access : block.region_accesses) closed_[access] = false;
    for (const std::uint32_t slot : block.region_slots) path.values[slot] = Unknown{};
    path.block = block.meeting;
    return;
  }
  if (gives_up(path.values[block.predicate])) return;
  // The rest of the row decides again at the end of this block.
  const auto operations = static_cast<std::uint32_t>(block.operations.size());
  path.operation = operations;
  const bool taken = decide(block.predicate, block.predicate_negated, path);
  path.operation = 0;
  path.block = taken ? block.taken : block.next;
  path.turns = hash_of(path.turns, path.block);
}

bool RowExecutor::gives_up(const Value& value) {
  if (!changes_with_trips(value)) return false;
  (closing_ != nullptr ? closing_->failed : again_) = true;
  return true;
}

void RowExecutor::perform(const SliceOperation& operation, Path& path) {
  if (operation.predicate != no_slot) {
    if (is<Unknown>(path.values[operation.predicate])) {
      if (operation.access != ptx::no_index)
        closed_[operation.access] = false;
      else if (operation.target != no_slot)
        path.values[operation.target] = Unknown{};
      return;
    }
    if (gives_up(path.values[operation.predicate])) return;
    const bool performed = decide(operation.predicate, operation.predicate_negated, path);
    path.turns = hash_of(path.turns, performed);
    if (!performed) return;
  }
  if (operation.access != ptx::no_index) {
    touch(operation, path);
    return;
  }
  if (operation.target == no_slot) return;
  const auto source = [&](std::size_t i) {
    return operation.sources[i].kind == Source3::Kind::none ? Linear{}
                                                            : value_of(operation.sources[i], path);
  };
  Value& target = path.values[operation.target];
  target = arithmetic_.evaluate(operation.shape, source(0), source(1), source(2), path.row);
  if (is<Lanes>(target)) keep_words(block_.x);
}

Value RowExecutor::value_of(const Source3& source, const Path& path) {
  switch (source.kind) {
    case Source3::Kind::slot:
      return path.values[source.slot];
    case Source3::Kind::constant:
      return Linear{source.value};
    case Source3::Kind::special:
      return special(source, path.row);
    case Source3::Kind::none:
      break;
  }
  return Unknown{};
}

Value RowExecutor::special(const Source3& source, Row row) {
  const auto part = [&](const gpu::Dim3& dim) -> std::uint32_t {
    return source.selector == ptx::Selector::x   ? dim.x
           : source.selector == ptx::Selector::y ? dim.y
                                                 : dim.z;
  };
  const bool selected = source.selector == ptx::Selector::x ||
                        source.selector == ptx::Selector::y || source.selector == ptx::Selector::z;
  const std::uint32_t first = row_thread_;
  const auto of_the_row = [&](const gpu::Dim3& dim) {
    return selected ? Value(Linear{part(dim)}) : Unknown{};
  };
  switch (source.special) {
    case ptx::SpecialRegister::tid:
      if (source.selector == ptx::Selector::x) return Linear{.base = 0, .stride = 1};
      return of_the_row(tid_);
    case ptx::SpecialRegister::ctaid:
      return of_the_row(ctaid_);
    case ptx::SpecialRegister::ntid:
      return of_the_row(block_);
    case ptx::SpecialRegister::nctaid:
      return of_the_row(grid_);
    case ptx::SpecialRegister::laneid:
      return arithmetic_.from_lanes(
          row, 32, [first](std::uint32_t x) { return std::uint64_t{(first + x) % 32}; });
    default:
      return Unknown{};
  }
}

void RowExecutor::touch(const SliceOperation& operation, Path& path) {
  const std::uint32_t access = operation.access;
  const Value address = value_of(operation.sources[0], path);
  if (is<Unknown>(address)) {
    closed_[access] = false;
    return;
  }
  if (!closed_[access]) return;
  if (is<Varying>(address)) {
    gives_up(address);
    return;
  }
  const std::uint64_t offset =
      operation.sources[0].kind == Source3::Kind::slot ? operation.sources[0].value : 0;
  if (closing_ != nullptr) {
    closing_->touches.push_back({address, offset, access, closing_->steps++, !closing_->has_exit});
    return;
  }
  Run run;
  run.access = static_cast<std::uint16_t>(access);
  run.request = path.requests[access]++;
  run.step = path.step++;
  add_runs(run, address, offset, path);
}

void RowExecutor::add_runs(Run run, const Value& address, std::uint64_t offset, const Path& path) {
  run.block = block_index_;
  std::uint32_t x = path.row.begin;
  while (x < path.row.end) {
    run.thread = static_cast<std::uint16_t>(row_thread_ + x);
    run.address = arithmetic_.at(address, x, 64) + offset;
    run.stride = 0;
    std::uint32_t end = path.row.end;
    if (const auto* linear = std::get_if<Linear>(&address)) {
      run.stride = linear->stride;
    } else if (is<Lanes>(address)) {
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
    keep_words(sizeof run / sizeof(std::uint64_t));
    if (depth_ > 0) {
      const std::vector<std::uint32_t>& loops = slice_.loops_of_access[run.access];
      for (std::size_t level = 0; level < depth_; ++level)
        trips_.push_back(level < loops.size() ? path.trips[loops[level]] : 0);
    }
    x = end;
  }
}

ClosedForm RowExecutor::finish() {
  std::erase_if(runs_.runs, [this](const Run& run) { return !closed_[run.access]; });
  return {std::move(runs_), std::move(closed_), too_long_, cut_, limits_.all - left_};
}

ClosedForm RowExecutor::finish_cut() {
  cut_ = cut_ || block_index_ + 1 < grid_.count();
  // The block in hand may lack rows; the only one is better than none.
  if (cut_ && block_index_ > 0) {
    while (!runs_.runs.empty() && runs_.runs.back().block == block_index_) runs_.runs.pop_back();
    --block_index_;
  }
  runs_.grid = {block_index_ + 1, 1, 1};
  return finish();
}

ClosedForm follow_rows(const Slice& slice, const gpu::Dim3& grid, const gpu::Dim3& block,
                       const RowLimits& limits, const Progress& progress) {
  return RowExecutor(slice, grid, block, limits, progress).run();
}

}  // namespace demarc::locality
