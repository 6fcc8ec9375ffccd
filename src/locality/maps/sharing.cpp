// Sweeps over the places that blocks touch and finds the set of blocks at each.
#include "maps/sharing.hpp"

#include <tuple>

#include "maps/box_sweep.hpp"

namespace demarc::locality {
namespace {

// Rows of threads that walk the same places are one box, and so are boxes without weight that
// overlap or touch in the lowest level.
void merge_boxes(std::vector<Box>& boxes) {
  const auto above = [](const Box& box) {
    return std::tie(box.access, box.lo[2], box.hi[2], box.lo[1], box.hi[1]);
  };
  std::sort(boxes.begin(), boxes.end(), [&above](const Box& a, const Box& b) {
    const auto x = above(a);
    const auto y = above(b);
    return x != y ? x < y : std::tie(a.lo[0], a.hi[0]) < std::tie(b.lo[0], b.hi[0]);
  });
  std::size_t out = 0;
  for (const Box& box : boxes) {
    Box* const before = out > 0 ? &boxes[out - 1] : nullptr;
    const bool aligned = before != nullptr && above(*before) == above(box);
    if (aligned && before->lo[0] == box.lo[0] && before->hi[0] == box.hi[0])
      before->weight += box.weight;
    else if (aligned && before->weight == 0 && before->hi[0] >= box.lo[0])
      before->hi[0] = std::max(before->hi[0], box.hi[0]);
    else
      boxes[out++] = box;
  }
  boxes.resize(out);
}

// What a sweep over a grid of one level needs of a box.
struct FlatBox {
  explicit FlatBox(const Box& box)
      : lo{box.lo[0]}, hi{box.hi[0]}, weight(box.weight), owner(box.owner), access(box.access) {}
  std::array<std::uint64_t, 1> lo;
  std::array<std::uint64_t, 1> hi;
  std::uint64_t weight;
  std::uint32_t owner;
  std::uint16_t access;
};

// The boxes of one cluster.
template <class B>
std::vector<B> boxes_of(const AccessRuns& runs, BoxMaker& maker, std::size_t cluster,
                        const std::vector<bool>& weightless) {
  std::vector<B> boxes;
  std::vector<Box> of_block;
  const bool has_loops = runs.loops.size() > 1;
  for (std::size_t r = 0; r < runs.runs.size(); ++r) {
    const Run& run = runs.runs[r];
    if (maker.cluster_of(run.access) == cluster) {
      const std::size_t before = of_block.size();
      maker.make(run, of_block);
      if (weightless[run.access])
        for (std::size_t i = before; i < of_block.size(); ++i) of_block[i].weight = 0;
    }
    if (r + 1 < runs.runs.size() && runs.runs[r + 1].block == run.block) continue;
    if (has_loops) merge_boxes(of_block);
    for (const Box& box : of_block) boxes.emplace_back(box);
    of_block.clear();
  }
  return boxes;
}

}  // namespace

Sharing::Sharing(const AccessRuns& runs, BoxMaker& maker, bool keep_cells)
    : touched(runs.accesses.size(), 0),
      reached(runs.accesses.size(), 0),
      last_owner_(runs.accesses.size(), nobody),
      runs_(runs),
      maker_(maker),
      keep_cells_(keep_cells) {}

void Sharing::add_all(const std::vector<bool>& weightless) {
  for (std::size_t cluster = 0; cluster < maker_.clusters(); ++cluster) {
    const std::size_t top = maker_.levels(cluster) - 1;
    SharedCells::Entry range;
    range.inside = size_of(top);
    if (top == 0)
      add_cluster<FlatBox>(cluster, weightless);
    else
      add_cluster<Box>(cluster, weightless);
    range.inside_end = size_of(top);
    clusters_.push_back(range);
  }
}

template <class B>
void Sharing::add_cluster(std::size_t cluster, const std::vector<bool>& weightless) {
  const std::vector<B> boxes = boxes_of<B>(runs_, maker_, cluster, weightless);
  BoxSweep<Sharing, B>(*this).run(boxes, maker_.levels(cluster));
}

void Sharing::enter(std::size_t level, std::uint64_t lo, std::uint64_t end) {
  open_[level] = {lo, end, size_of(level - 1), 0};
}

void Sharing::leave(std::size_t level, std::uint64_t, std::uint64_t) {
  SharedCells::Entry entry = open_[level];
  entry.inside_end = size_of(level - 1);
  if (entry.inside < entry.inside_end) cells_.levels[level].push_back(entry);
}

template <class B>
void Sharing::cell(std::uint64_t lo, std::uint64_t end, std::uint64_t count,
                   const std::vector<const B*>& boxes) {
  places += count;
  list_.clear();
  for (const B* box : boxes) {
    if (list_.empty() || list_.back().block != box->owner)
      list_.push_back({box->owner, box->weight});
    else
      list_.back().weight += box->weight;
  }
  const auto size = static_cast<double>(count);
  for (const B* box : boxes) {
    std::uint32_t& last = last_owner_[box->access];
    if (last == box->owner) continue;
    last = box->owner;
    touched[box->access] += size;
    reached[box->access] += size * static_cast<double>(list_.size());
  }
  for (const B* box : boxes) last_owner_[box->access] = nobody;
  if (list_.size() == 1) return;
  shared_places += count;
  const std::uint32_t set = sets.intern(list_);
  sets.add_places(set, count);
  if (keep_cells_) cells_.levels[0].push_back({lo, end, set, 0});
}

}  // namespace demarc::locality
