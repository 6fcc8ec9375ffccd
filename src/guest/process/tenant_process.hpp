// A process of a program that has a tenant's lease: everything that it allocates, loads and
// launches lies in the tenant's colours.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "calls/colored_calls.hpp"
#include "calls/plain_calls.hpp"
#include "demarc/guest/control.hpp"
#include "demarc/guest/lent_share.hpp"
#include "demarc/lease/client.hpp"

namespace demarc::cuda {

class TenantProcess {
 public:
  using Tell = std::function<void(const std::string& line)>;

  // Attaches to the lease that the block names; memory is mapped as it is allocated. Where the
  // block allows it a process that holds machine code alone has plain memory. The block outlives
  // the object.
  static Result<std::unique_ptr<TenantProcess>> attach(ControlBlock& block, Tell tell);

  // At the entry of each of the program's calls. Error: the memory could not be mapped, and nothing
  // of the program may run.
  [[nodiscard]] Result<void> serve(const DriverCall& call);
  // Once a call has its result: an error that has ended the context stands in the program's record,
  // and is told once, because programs that look at no error would end as if all was well.
  void note_result(const DriverCall& call);

 private:
  TenantProcess(lease::LeaseClient client, lease::Attachment attachment, ControlBlock& block,
                Tell tell)
      : client_(std::move(client)),
        attachment_(std::move(attachment)),
        block_(block),
        tell_(std::move(tell)) {}
  void allow_plain();
  [[nodiscard]] Result<void> check_mps();
  [[nodiscard]] Result<void> open();
  [[nodiscard]] Result<lease::Extent> take(std::uint64_t bytes);
  void give(const lease::Extent& stretch);
  // For memory of another process of the tenant, which this process uses, too.
  [[nodiscard]] Result<std::string> lend(color::LinearByte first, std::uint64_t place);
  void withdraw(color::LinearByte first, std::uint64_t place);
  [[nodiscard]] Result<lease::Extent> borrow(const std::string& key);
  void give_borrowed(color::LinearByte first);
  void give_back(color::LinearByte first);
  // Machine code reaches all that was taken and all that will be.
  [[nodiscard]] Result<void> show_window();
  enum class Content { program, nothing };  // what a stretch has
  [[nodiscard]] Result<void> show(const lease::Extent& stretch, Content content);
  [[nodiscard]] Result<void> map_taken(const lease::Extent& stretch);
  // Proves the windows once more if the server has asked for it, and tells it what was found.
  // Error: code would leave the tenant's colours. If they cannot be read, the program goes on.
  [[nodiscard]] Result<void> prove_again();
  [[nodiscard]] Result<void> compare(const lease::Extent& stretch);

  lease::LeaseClient client_;
  lease::Attachment attachment_;
  ControlBlock& block_;
  Tell tell_;
  std::atomic<std::uint64_t> bytes_{0};  // taken and not given back
  std::mutex opening_;
  GpuPointer gpu_;
  std::optional<BorrowedShare> share_;
  std::mutex lent_;  // of the client's calls, the share and what is below
  std::map<color::LinearByte, lease::Extent> taken_;
  std::set<color::LinearByte> borrowed_;          // ranges of other processes
  std::set<color::LinearByte> others_may_write_;  // own ranges that were lent
  std::set<color::LinearByte> in_window_;         // own ranges that the page table shows
  std::string why_not_shown_;                     // empty: the window can be filled
  bool shown_ = false;
  std::unique_ptr<ColoredCalls> calls_;
  std::optional<PlainCalls> plain_;
  std::atomic<bool> host_memory_{false};  // the program has pinned some
  std::atomic<bool> mps_checked_{false};
  std::atomic<std::uint64_t> proved_{0};    // the number of the last proof that was asked for
  std::string why_it_leaves_;               // set before the next one
  std::atomic<bool> leaves_colors_{false};  // a window leads elsewhere, so nothing may run
  std::atomic<bool> end_told_{false};       // a context has ended, and the program knows
  std::atomic<ColoredCalls*> opened_{nullptr};
};

}  // namespace demarc::cuda
