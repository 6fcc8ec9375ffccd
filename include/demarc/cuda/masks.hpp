// Masks at three levels, the finer overriding the coarser, each taken back when its object goes:
// process, stream, next launch. All are full width and name any set of TPCs.
#pragma once

#include <optional>

#include "demarc/cuda/card.hpp"

namespace demarc::cuda {

// Every launch of the process whose stream has no mask of its own, whoever makes it; a graph keeps
// the mask of its first launch. One at a time: a second one replaces the first until it goes.
class ProcessMask {
 public:
  static Result<ProcessMask> set(const CardPointer& card, const partition::TpcSet& enabled);
  ~ProcessMask();
  ProcessMask(ProcessMask&& other) noexcept;
  ProcessMask& operator=(ProcessMask&&) = delete;
  [[nodiscard]] Result<void> change(const partition::TpcSet& enabled);

 private:
  ProcessMask(CardPointer card, std::optional<HardwareMask> before)
      : card_(std::move(card)), before_(before) {}
  CardPointer card_;
  std::optional<HardwareMask> before_;
};

// Every later launch into `stream`. The stream must outlive the object. A graph captured from the
// stream keeps the mask its launches were captured under.
class StreamMask {
 public:
  static Result<StreamMask> set(const CardPointer& card, CuStream stream,
                                const partition::TpcSet& enabled);
  ~StreamMask();
  StreamMask(StreamMask&& other) noexcept;
  StreamMask& operator=(StreamMask&&) = delete;
  [[nodiscard]] Result<void> change(const partition::TpcSet& enabled);

 private:
  StreamMask(CardPointer card, CuStream stream, std::optional<partition::TpcSet> before)
      : card_(std::move(card)), stream_(stream), before_(before) {}
  CardPointer card_;
  CuStream stream_;
  std::optional<partition::TpcSet> before_;
};

// The next launch of the calling thread only, whatever its stream says; a graph counts as one
// launch. Taken back by the destructor when no launch came.
class NextMask {
 public:
  static Result<NextMask> set(const CardPointer& card, const partition::TpcSet& enabled);
  ~NextMask();
  NextMask(NextMask&& other) noexcept;
  NextMask& operator=(NextMask&&) = delete;

 private:
  explicit NextMask(CardPointer card) : card_(std::move(card)) {}
  CardPointer card_;
};

}  // namespace demarc::cuda
