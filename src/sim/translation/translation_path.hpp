// The way from a virtual page to its owner: the L1 TLB of the CU, the L2 TLB of the GPU, the GMMU,
// the IOMMU.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "bypass.hpp"
#include "data_path.hpp"
#include "tlb.hpp"
#include "walker_pool.hpp"

namespace demarc::sim::translation {

class Migration;

class TranslationPath : public Part {
 public:
  struct Cu {
    Cu(const Settings& settings, GpuIndex gpu_index);
    GpuIndex gpu;
    std::deque<AccessSlot> queue;  // before the TLB
    Tlb<LineWaiter> tlb;
    Turns tlb_turn;  // the next look-up goes then
    bool tlb_blocked = false;
    bool tlb_scheduled = false;
  };
  struct L2Request {
    CuIndex cu;
    PageNumber page;
  };
  struct Gpu {
    explicit Gpu(const Settings& settings);
    Tlb<CuIndex> tlb;
    std::deque<L2Request> queue;
    Turns tlb_turn;
    bool tlb_blocked = false;
    bool tlb_scheduled = false;
    WalkerPool gmmu;
    std::unique_ptr<BypassDecision> bypass;
  };
  struct State {
    explicit State(const Settings& settings)
        : iommu(settings.iommu_walkers, Cycles(settings.iommu_latency)) {}
    PerIndex<CuIndex, Cu> cus;
    PerIndex<GpuIndex, Gpu> gpus;
    WalkerPool iommu;
    std::unordered_map<PageNumber, std::vector<GpuIndex>> waiting_for_move;
    Cycles protocol_free;
    std::uint64_t gmmu_hits = 0;
    std::uint64_t gmmu_bypassed = 0;
    std::uint64_t iommu_accesses = 0;
    std::uint64_t first_touches = 0;
    std::uint64_t remote_owned = 0;
  };

  TranslationPath(Common& common, Links& links, PageTable& table, DataPath& data,
                  Migration& migration);

  State state;

  // The lines of an access pass the TLB of its CU from its start on.
  void look_up(AccessSlot access);
  // A message of a page is there.
  void receive(const Message& message);

  // Events.
  void run_l1_tlb(CuIndex cu);
  void fill_l1_tlb(CuIndex cu, PageNumber page);
  void arrive_at_l2(CuIndex cu, PageNumber page);
  void run_l2_tlb(GpuIndex gpu);
  void arrive_at_gmmu(GpuIndex gpu, PageNumber page);
  void gmmu_done(GpuIndex gpu, PageNumber page);
  void iommu_done(GpuIndex gpu, PageNumber page);
  // The page lies where it shall: what waited for that is looked at again, without another
  // walk. `with_data`: the GPU that got the translation together with the page.
  void page_arrived(PageNumber page, GpuIndex with_data = no_gpu);
  // The GMMU knows a page that moved here.
  void entered(GpuIndex gpu, PageNumber page);

  // For a migration: the TLBs and the GMMU of a GPU forget a page.
  void shoot_down(GpuIndex gpu, PageNumber page);
  // The answer of the IOMMU.
  [[nodiscard]] Message translated(GpuIndex gpu, PageNumber page) const;

 private:
  void fill_l2_tlb(GpuIndex gpu, PageNumber page);
  void miss_l2_tlb(GpuIndex gpu, PageNumber page, Cycles when);
  void ask_iommu(GpuIndex gpu, PageNumber page, Cycles when);
  void run_gmmu(GpuIndex gpu);
  void run_iommu();
  void learn(GpuIndex gpu, PageNumber page);
  void resolve(GpuIndex gpu, PageNumber page);
  void place(GpuIndex gpu, PageNumber page);
  void answered(const Message& message);

  Links& links_;
  PageTable& table_;
  DataPath& data_;
  Migration& migration_;
  Ports line_ports_;
  Ports l1_ports_;
  Ports l2_ports_;
};

}  // namespace demarc::sim::translation
