// The way of a translated line: L1 caches, L2 and DRAM of the GPUs, and lines of other GPUs.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "links.hpp"
#include "lru_sets.hpp"
#include "page_table.hpp"

namespace demarc::sim::translation {

// A memory instruction in flight.
struct Access {
  WaveSlot wave;
  CuIndex cu;
  std::uint32_t next = 0;     // line that the TLB looks at next
  std::uint32_t pending = 0;  // lines whose completion time is not known yet
  Cycles start;               // the first cu_lines lines reach the TLB, the next a cycle later
  Cycles done;
  std::optional<LineNumber> sent;  // the last line that went over a link
  MemoryInstruction instruction;
};
struct LineWaiter {
  AccessSlot access;
  LineNumber line;
  Sectors sectors;
};

class DataPath : public Part {
 public:
  // `wide_lines` lines under one tag.
  using WideLine = Index<struct WideLineTag>;
  struct L1Line {
    Sectors valid = 0;
    std::array<Cycles, 4> ready{};  // per sector, when the data is there
  };
  // Those of a line of another GPU that are on their way, and who waits for which.
  struct RemoteLines {
    Sectors asked = 0;
    std::vector<LineWaiter> waiting;
  };
  struct Cu {
    Cu(const Settings& settings, GpuIndex gpu_index);
    GpuIndex gpu;
    LruSets<WideLine> l1;
    PerIndex<LruSlot, L1Line> l1_lines;
    std::vector<Cycles> l1_misses;      // per miss register: when it is free; a heap, soonest first
    std::deque<LineWaiter> l1_waiting;  // they wait for a free one
    std::unordered_map<LineNumber, RemoteLines> remote_waiting;  // under remote_in_l1
    bool l1_scheduled = false;
  };
  struct Gpu {
    explicit Gpu(const Settings& settings) : memory(settings) {}
    GpuMemory memory;
    bool rdma_held = false;  // new remote accesses wait for the end of a migration
    bool drain_asked = false;
    std::uint32_t remote_in_flight = 0;
    std::vector<MessageSlot> held;  // while rdma_held
  };
  struct State {
    PerIndex<CuIndex, Cu> cus;
    PerIndex<GpuIndex, Gpu> gpus;
    SlotPool<AccessSlot, Access> accesses;
    std::uint64_t remote_lines = 0;
  };

  DataPath(Common& common, Links& links, const PageTable& table);

  State state;

  void access_line(const LineWaiter& wanted, Cycles when);
  // A message of a line is there.
  void receive(const Message& message);
  // Event.
  void run_l1_misses(CuIndex cu);
  void forget_l1s();

  // For a migration: the caches of a GPU forget what they hold; its new remote accesses are held
  // back (says whether none is under way; else a message will say so), and go on.
  void flush(GpuIndex gpu);
  [[nodiscard]] bool hold_lines(GpuIndex gpu);
  void release_lines(GpuIndex gpu);

 private:
  [[nodiscard]] WideLine wide(LineNumber line) const {
    return WideLine(line.raw() >> (settings_.wide_lines - 1));
  }
  // Bits of a line's sectors under its tag.
  [[nodiscard]] Sectors under_tag(LineNumber line, Sectors sectors) const {
    return sectors << (2 * (line.raw() & (settings_.wide_lines - 1)));
  }
  [[nodiscard]] std::optional<Cycles> find_in_l1(Cu& cu, LineNumber line, Sectors sectors) const;
  void put_into_l1(Cu& cu, LineNumber line, Sectors sectors, Cycles ready) const;
  [[nodiscard]] std::uint32_t line_flits(std::uint32_t header, const Message& message,
                                         bool with_data) const;
  void miss_l1(Cu& cu, const LineWaiter& miss, Cycles when);
  void start_l1_miss(Cu& cu, const LineWaiter& miss, Cycles when);
  void wait_for_l1_register(Cu& cu);
  void complete_line(AccessSlot access, Cycles when);
  void send_line(const Message& message, Cycles when);
  void bring_into_l1(const Message& message);
  void line_returned(GpuIndex gpu);

  Links& links_;
  const PageTable& table_;
};

}  // namespace demarc::sim::translation
