// Simulates launches from streams through hardware queues and task slots to the SMs.
#include "demarc/sim/pipeline/pipeline.hpp"

#include <deque>
#include <map>
#include <queue>
#include <set>

#include "pipeline/sm_room.hpp"

namespace demarc::sim {
namespace {

// Blocks launched at one time on one SM; those of a task complete in the order of their launch.
struct Flight {
  Nanoseconds end;
  SmIndex sm;
  std::uint32_t blocks;
};

enum class Place { host, tmu, wdu, done };

struct Task {
  BlockNeed need;
  std::uint64_t to_launch = 0, running = 0;
  std::uint64_t sequence = 0;  // order of arrival in the WDU
  Place place = Place::host;
  std::vector<Flight> flights;
  std::size_t first_flight = 0;
  bool started = false;
};

class Pipeline {
 public:
  Pipeline(const PipelineSpec& spec, const PipelineKernels& kernels, bool record)
      : spec_(spec),
        kernels_(kernels),
        record_(record),
        room_(spec),
        tasks_(kernels.size()),
        queues_(spec.hardware_queues) {
    run_.kernels.resize(kernels.size());
    for (std::uint32_t t = 0; t < room_.tpcs(); ++t) all_.set(t);
  }

  Result<PipelineRun> run() {
    DEMARC_CHECK(prepare());
    while (true) {
      feed_tmu();
      fill_slots();
      launch();
      if (!next_event()) break;
    }
    run_.end = now_;
    return std::move(run_);
  }

 private:
  struct Completion {
    Nanoseconds end;
    KernelIndex kernel;
    friend bool operator<(const Completion& a, const Completion& b) {
      return a.end != b.end ? a.end > b.end : a.kernel > b.kernel;
    }
  };
  // Order of the sorted task table.
  struct TableOrder {
    const Pipeline* pipeline;
    bool operator()(KernelIndex a, KernelIndex b) const {
      const int pa = pipeline->kernels_[a].priority;
      const int pb = pipeline->kernels_[b].priority;
      return pa != pb ? pa > pb : pipeline->tasks_[a].sequence < pipeline->tasks_[b].sequence;
    }
  };

  Result<void> prepare() {
    if (spec_.task_slots == 0 || spec_.hardware_queues == 0) {
      return invalid_input("task_slots and hardware_queues must be above 0");
    }
    if (room_.tpcs() > max_tpcs) {
      return invalid_input("{} TPCs: at most {}", room_.tpcs(), max_tpcs);
    }
    std::map<std::uint32_t, Nanoseconds> last_arrival;
    for (const KernelIndex k : kernels_.keys()) {
      const PipelineKernel& kernel = kernels_[k];
      DEMARC_CHECK(check(kernel));
      Nanoseconds& last = last_arrival[kernel.stream];
      if (kernel.arrival < last) {
        return invalid_input(
            "kernel '{}': arrives before the one ahead of it in its stream; put the kernels of a "
            "stream in order of arrival",
            kernel.name);
      }
      last = kernel.arrival;
      tasks_[k].need = block_need(kernel, spec_.sm);
      tasks_[k].to_launch = kernel.blocks;
      order_.push_back(k);
    }
    // The host hands launches over in the order of their arrival.
    std::stable_sort(order_.begin(), order_.end(), [&](KernelIndex a, KernelIndex b) {
      return kernels_[a].arrival < kernels_[b].arrival;
    });
    return {};
  }

  [[nodiscard]] Result<void> check(const PipelineKernel& kernel) const {
    const BlockNeed need = block_need(kernel, spec_.sm);
    if (kernel.blocks == 0 || kernel.block_time == 0_ns) {
      return invalid_input("kernel '{}': blocks and the duration of a block must be above 0",
                           kernel.name);
    }
    if (kernel.threads == 0 || kernel.threads > spec_.sm.threads_per_block) {
      return invalid_input("kernel '{}': {} threads per block; the device allows 1 to {}",
                           kernel.name, kernel.threads, spec_.sm.threads_per_block);
    }
    if (need.threads > spec_.sm.threads || need.registers > spec_.sm.registers ||
        need.shared > spec_.sm.shared_bytes) {
      return invalid_input(
          "kernel '{}': a block takes {} threads, {} registers and {} bytes of shared memory; an "
          "SM of the device has {}, {} and {}",
          kernel.name, need.threads, need.registers, need.shared, spec_.sm.threads,
          spec_.sm.registers, spec_.sm.shared_bytes);
    }
    if ((kernel.tpcs & all_).none()) {
      return invalid_input(
          "kernel '{}': its mask enables none of the {} TPCs: the launch would hang for ever",
          kernel.name, room_.tpcs());
    }
    return {};
  }

  // Heads of hardware queues whose stream is idle go to the TMU.
  void feed_tmu() {
    while (next_arrival_ < order_.size() && kernels_[order_[next_arrival_]].arrival <= now_) {
      const KernelIndex k = order_[next_arrival_++];
      queues_[kernels_[k].stream % spec_.hardware_queues].push_back(k);
      queues_changed_ = true;
    }
    if (!queues_changed_) return;
    queues_changed_ = false;
    for (std::deque<KernelIndex>& queue : queues_) {
      while (!queue.empty() && busy_streams_.insert(kernels_[queue.front()].stream).second) {
        const KernelIndex k = queue.front();
        queue.pop_front();
        tasks_[k].place = Place::tmu;
        run_.kernels[k].queued = now_;
        tmu_[kernels_[k].priority].push_back(k);
      }
    }
  }

  // The TMU hands down the head of its highest list while the WDU has a free slot, or one held by
  // a task of lower priority, which then goes back to the head of its list.
  void fill_slots() {
    while (!tmu_.empty()) {
      auto highest = tmu_.begin();
      if (slots_.size() == spec_.task_slots) {
        const KernelIndex lowest =
            *std::max_element(slots_.begin(), slots_.end(), TableOrder{this});
        if (kernels_[lowest].priority >= highest->first) return;
        evict(lowest);
        highest = tmu_.begin();
      }
      const KernelIndex k = highest->second.front();
      highest->second.pop_front();
      if (highest->second.empty()) tmu_.erase(highest);
      tasks_[k].place = Place::wdu;
      tasks_[k].sequence = next_sequence_++;
      slots_.push_back(k);
      run_.max_slots_used =
          std::max(run_.max_slots_used, static_cast<std::uint32_t>(slots_.size()));
      if (tasks_[k].to_launch == 0) continue;
      table_.insert(std::upper_bound(table_.begin(), table_.end(), k, TableOrder{this}), k);
      fresh_ |= kernels_[k].tpcs & all_;
    }
  }

  void evict(KernelIndex k) {
    leave_slot(k);
    std::erase(table_, k);
    // A TPC that waited for this task may serve another now.
    fresh_ |= kernels_[k].tpcs & all_;
    tasks_[k].place = Place::tmu;
    ++run_.kernels[k].evictions;
    tmu_[kernels_[k].priority].push_front(k);
  }

  void leave_slot(KernelIndex k) { std::erase(slots_, k); }

  // The load balancer. Only TPCs whose room or claims changed since the last time are looked at; a
  // TPC that an earlier task of the table may use waits for that one.
  void launch() {
    TpcMask claimed;
    for (std::size_t i = 0; i < table_.size() && (fresh_ & ~claimed).any();) {
      const KernelIndex k = table_[i];
      const TpcMask mine = kernels_[k].tpcs & fresh_ & ~claimed;
      if (mine.any()) launch_blocks(k, mine);
      if (tasks_[k].to_launch == 0) {
        table_.erase(table_.begin() + static_cast<std::ptrdiff_t>(i));
        fresh_ |= kernels_[k].tpcs & all_;  // whatever waited for it
        continue;
      }
      claimed |= kernels_[k].tpcs;
      ++i;
    }
    fresh_.reset();
  }

  void launch_blocks(KernelIndex k, const TpcMask& where) {
    Task& task = tasks_[k];
    candidates_.clear();
    for (std::size_t t = where._Find_first(); t < max_tpcs; t = where._Find_next(t)) {
      const TpcIndex tpc(static_cast<std::uint32_t>(t));
      const SmIndex sm = room_.best_sm(tpc, task.need);
      if (sm != no_sm) candidates_.push_back({room_.tpc_threads(tpc), tpc, sm});
    }
    std::make_heap(candidates_.begin(), candidates_.end());
    while (task.to_launch > 0 && !candidates_.empty()) {
      std::pop_heap(candidates_.begin(), candidates_.end());
      Candidate& candidate = candidates_.back();
      start_block(k, candidate.sm);
      candidate.sm = room_.best_sm(candidate.tpc, task.need);
      candidate.threads = room_.tpc_threads(candidate.tpc);
      if (candidate.sm == no_sm) {
        candidates_.pop_back();
      } else {
        std::push_heap(candidates_.begin(), candidates_.end());
      }
    }
  }

  void start_block(KernelIndex k, SmIndex sm) {
    Task& task = tasks_[k];
    room_.take(sm, task.need);
    --task.to_launch;
    ++task.running;
    ++run_.launched_blocks;
    if (!task.started) {
      task.started = true;
      run_.kernels[k].started = now_;
    }
    const Nanoseconds end = now_ + kernels_[k].block_time;
    if (task.flights.size() > task.first_flight) {
      Flight& last = task.flights.back();
      if (last.sm == sm && last.end == end) {
        ++last.blocks;
        return;
      }
    } else {
      completions_.push({end, k});
    }
    task.flights.push_back({end, sm, 1});
  }

  // Moves to the next time at which anything happens and completes what ends then.
  bool next_event() {
    const bool arrivals = next_arrival_ < order_.size();
    if (completions_.empty() && !arrivals) return false;
    Nanoseconds next(~std::uint64_t{0});
    if (arrivals) next = kernels_[order_[next_arrival_]].arrival;
    if (!completions_.empty()) next = std::min(next, completions_.top().end);
    now_ = std::max(now_, next);
    while (!completions_.empty() && completions_.top().end == now_) {
      const KernelIndex k = completions_.top().kernel;
      completions_.pop();
      complete(k);
    }
    return true;
  }

  void complete(KernelIndex k) {
    Task& task = tasks_[k];
    while (task.first_flight < task.flights.size() && task.flights[task.first_flight].end == now_) {
      const Flight flight = task.flights[task.first_flight++];
      room_.give(flight.sm, task.need, flight.blocks);
      task.running -= flight.blocks;
      fresh_.set(room_.tpc_of(flight.sm).raw());
      if (record_) record_run(k, flight);
    }
    constexpr std::size_t worth_moving = 1024;
    if (task.first_flight == task.flights.size()) {
      task.flights.clear();
      task.first_flight = 0;
    } else {
      completions_.push({task.flights[task.first_flight].end, k});
      if (task.first_flight > worth_moving) {
        task.flights.erase(task.flights.begin(),
                           task.flights.begin() + static_cast<std::ptrdiff_t>(task.first_flight));
        task.first_flight = 0;
      }
    }
    if (task.to_launch == 0 && task.running == 0) finish(k);
  }

  void record_run(KernelIndex k, const Flight& flight) {
    for (auto run = run_.runs.rbegin();
         run != run_.runs.rend() && run->kernel == k && run->end == now_; ++run) {
      if (run->sm != flight.sm) continue;
      run->blocks += flight.blocks;
      return;
    }
    run_.runs.push_back({k, flight.sm, now_ - kernels_[k].block_time, now_, flight.blocks});
  }

  void finish(KernelIndex k) {
    run_.kernels[k].ended = now_;
    if (tasks_[k].place == Place::wdu) {
      leave_slot(k);
    } else {  // evicted with its last blocks running
      const auto list = tmu_.find(kernels_[k].priority);
      std::erase(list->second, k);
      if (list->second.empty()) tmu_.erase(list);
    }
    tasks_[k].place = Place::done;
    busy_streams_.erase(kernels_[k].stream);
    queues_changed_ = true;
  }

  struct Candidate {
    std::uint32_t threads;
    TpcIndex tpc;
    SmIndex sm;
    // Front of the heap: fewest threads in use, then lowest TPC.
    friend bool operator<(const Candidate& a, const Candidate& b) {
      return a.threads != b.threads ? a.threads > b.threads : a.tpc > b.tpc;
    }
  };

  const PipelineSpec& spec_;
  const PipelineKernels& kernels_;
  bool record_;
  SmRoom room_;
  PerIndex<KernelIndex, Task> tasks_;
  std::vector<KernelIndex> order_;  // kernels by arrival
  std::size_t next_arrival_ = 0;
  std::vector<std::deque<KernelIndex>> queues_;
  std::set<std::uint32_t> busy_streams_;
  bool queues_changed_ = false;
  std::map<int, std::deque<KernelIndex>, std::greater<>> tmu_;  // lists by priority
  std::vector<KernelIndex> slots_;                              // slots of the WDU
  std::vector<KernelIndex> table_;  // sorted: slots with blocks to launch
  std::uint64_t next_sequence_ = 0;
  TpcMask all_;
  TpcMask fresh_;  // TPCs to look at in launch()
  std::vector<Candidate> candidates_;
  std::priority_queue<Completion> completions_;  // next one of each task with blocks running
  Nanoseconds now_;
  PipelineRun run_;
};

}  // namespace

Result<PipelineRun> run_pipeline(const PipelineSpec& spec, const PipelineKernels& kernels,
                                 bool record_runs) {
  return Pipeline(spec, kernels, record_runs).run();
}

std::vector<SmIndex> sms_of_kernel(const PipelineRun& run, KernelIndex kernel) {
  std::set<SmIndex> found;
  for (const BlockRun& r : run.runs) {
    if (r.kernel == kernel) found.insert(r.sm);
  }
  return {found.begin(), found.end()};
}

}  // namespace demarc::sim
