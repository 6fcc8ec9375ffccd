// Masks at three levels: process, stream, next launch. The finer level overrides the coarser. Each
// mask is taken back when its object is destroyed. All have full width and name any set of TPCs.
#pragma once

#include <optional>

#include "demarc/card/card.hpp"

namespace demarc::cuda {

// A mask for every launch of the process whose stream has no mask of its own. A
// graph keeps the mask of its first launch. There is one at a time: a second one replaces the first
// until it is destroyed.
class ProcessMask {
 public:
  static Result<ProcessMask> set(const CardPointer& card, const gpu::TpcSet& enabled);
  ~ProcessMask();
  ProcessMask(ProcessMask&& other) noexcept;
  ProcessMask& operator=(ProcessMask&&) = delete;
  [[nodiscard]] Result<void> change(const gpu::TpcSet& enabled);

 private:
  ProcessMask(CardPointer card, std::optional<HardwareMask> before)
      : card_(std::move(card)), before_(before) {}
  CardPointer card_;
  std::optional<HardwareMask> before_;
};

// A mask for every later launch into `stream`. The stream must outlive the object. A graph captured
// from the stream keeps the mask its launches were captured under.
class StreamMask {
 public:
  static Result<StreamMask> set(const CardPointer& card, CuStream stream,
                                const gpu::TpcSet& enabled);
  ~StreamMask();
  StreamMask(StreamMask&& other) noexcept;
  StreamMask& operator=(StreamMask&&) = delete;
  [[nodiscard]] Result<void> change(const gpu::TpcSet& enabled);

 private:
  StreamMask(CardPointer card, CuStream stream, std::optional<gpu::TpcSet> before)
      : card_(std::move(card)), stream_(stream), before_(before) {}
  CardPointer card_;
  CuStream stream_;
  std::optional<gpu::TpcSet> before_;
};

// A mask only for the next launch of the calling thread, whatever its stream says. A graph counts
// as one launch. The destructor takes the mask back if no launch came.
class NextMask {
 public:
  static Result<NextMask> set(const CardPointer& card, const gpu::TpcSet& enabled);
  ~NextMask();
  NextMask(NextMask&& other) noexcept;
  NextMask& operator=(NextMask&&) = delete;

 private:
  explicit NextMask(CardPointer card) : card_(std::move(card)) {}
  CardPointer card_;
};

}  // namespace demarc::cuda
