// Copies between host and card by the copy engines.
#include "gpu/copy_work.hpp"

#include "demarc/driver/memory.hpp"

namespace demarc::study {
namespace {

class CopyWork : public LaneWork {
 public:
  CopyWork(cuda::HostBuffer host, cuda::DeviceBuffer card, CopyDirection direction,
           std::size_t copies)
      : host_(std::move(host)), card_(std::move(card)), direction_(direction), copies_(copies) {}

  Result<void> enqueue(const cuda::Stream& stream) const override {
    const cuda::Gpu& gpu = *stream.gpu();
    for (std::size_t i = 0; i < copies_; ++i) {
      const cuda::CuResult copied =
          direction_ == CopyDirection::to_card
              ? gpu.api().cuMemcpyHtoDAsync_v2(card_.address(), host_.bytes().data(), card_.bytes(),
                                               stream.handle())
              : gpu.api().cuMemcpyDtoHAsync_v2(host_.bytes().data(), card_.address(), card_.bytes(),
                                               stream.handle());
      DEMARC_CHECK(gpu.check(copied, "cannot copy between host and card"));
    }
    return {};
  }

 private:
  cuda::HostBuffer host_;
  cuda::DeviceBuffer card_;
  CopyDirection direction_;
  std::size_t copies_;
};

}  // namespace

Result<std::unique_ptr<LaneWork>> make_copy_work(const cuda::GpuPointer& gpu,
                                                 const LoadedLaunch& loaded) {
  if (loaded.launch.buffers.empty()) {
    return invalid_input("launch '{}': it needs a buffer to copy", loaded.launch.name);
  }
  const std::uint64_t bytes = loaded.launch.buffers.front().bytes;
  DEMARC_TRY(auto host, cuda::HostBuffer::allocate(gpu, bytes));
  DEMARC_TRY(auto card, cuda::DeviceBuffer::allocate(gpu, bytes));
  return std::make_unique<CopyWork>(std::move(host), std::move(card), loaded.copies,
                                    loaded.launch.kernels.size());
}

}  // namespace demarc::study
