// Serves the modes that set nothing on the card: none, timeslice, preempt, whose streams have
// priorities, and mps, whose limit the process got before it started.
#include <cstdlib>

#include "backends/backends.hpp"

namespace demarc::cuda {
namespace {

constexpr const char* mps_pipe_variable = "CUDA_MPS_PIPE_DIRECTORY";

// A stream of its own, on whatever the process may use.
class PlainPartitionStream : public PartitionStream {
 public:
  PlainPartitionStream(CardPointer card, Stream stream)
      : PartitionStream(std::move(card)), stream_(std::move(stream)) {}
  const Stream& stream() const override { return stream_; }
  gpu::TpcSet tpcs() const override { return gpu::all_tpcs(card_->topology()); }
  Result<Placement> probe(std::uint32_t blocks, std::uint64_t spin_cycles) const override {
    return probe_placement(stream_, card_->kernels(), LaunchShape::line(blocks, 64), spin_cycles);
  }

 private:
  Stream stream_;
};

class PlainBackend : public Backend {
 public:
  PlainBackend(CardPointer card, Mode mode) : card_(std::move(card)), mode_(mode) {}
  Mode mode() const override { return mode_; }

 protected:
  const Card& card() const override { return *card_; }
  Result<std::unique_ptr<PartitionStream>> make_stream(const partition::Partition& /*partition*/,
                                                       int stream_priority) override {
    DEMARC_TRY(Stream stream, Stream::create(card_->gpu(), stream_priority));
    return std::unique_ptr<PartitionStream>(
        std::make_unique<PlainPartitionStream>(card_, std::move(stream)));
  }

 private:
  CardPointer card_;
  Mode mode_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_none_backend(const CardPointer& card) {
  return std::unique_ptr<Backend>(std::make_unique<PlainBackend>(card, Mode::none));
}

Result<std::unique_ptr<Backend>> make_timeslice_backend(const CardPointer& card) {
  return std::unique_ptr<Backend>(std::make_unique<PlainBackend>(card, Mode::timeslice));
}

Result<std::unique_ptr<Backend>> make_preempt_backend(const CardPointer& card) {
  return std::unique_ptr<Backend>(std::make_unique<PlainBackend>(card, Mode::preempt));
}

Result<std::unique_ptr<Backend>> make_tenant_backend(const CardPointer& /*card*/) {
  return missing_capability(
      "mode tenant: its parts are leases, which demarc exec --part gives to whole programs and not "
      "to streams");
}

Result<std::unique_ptr<Backend>> make_mps_backend(const CardPointer& card) {
  if (std::getenv(mps_share_variable) == nullptr && std::getenv(mps_pipe_variable) == nullptr) {
    return missing_capability(
        "mode mps: this process is not a client of MPS; start nvidia-cuda-mps-control -d and set "
        "{} before the program starts",
        mps_share_variable);
  }
  return std::unique_ptr<Backend>(std::make_unique<PlainBackend>(card, Mode::mps));
}

}  // namespace demarc::cuda
