// The stream of what Demarc copies for itself and waits for, whatever streams of the program are
// being captured: the calling thread's default one, or one for this purpose alone while that is.
#pragma once

#include "calls/stream_capture.hpp"

namespace demarc::cuda {

class OwnStream {
 public:
  explicit OwnStream(const DriverApi& api) : api_(api) {
    StreamCapture capture;
    error_ = StreamCapture::find(api, stream_, capture);
    if (error_ != cu_success || capture.state == StreamCapture::State::none) return;
    error_ = api.cuStreamCreateWithPriority(&made_, cu_stream_non_blocking, 0);
    stream_ = made_;
  }
  ~OwnStream() {
    if (made_ != nullptr) api_.cuStreamDestroy_v2(made_);
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  // For an error nothing may be given to it.
  [[nodiscard]] CuResult error() const { return error_; }
  [[nodiscard]] CuStream get() const { return stream_; }

 private:
  static CuStream of_the_thread() {
    constexpr std::uintptr_t number = 2;        // CU_STREAM_PER_THREAD
    return reinterpret_cast<CuStream>(number);  // NOLINT: the driver's own number
  }
  const DriverApi& api_;
  CuStream stream_ = of_the_thread();
  CuStream made_ = nullptr;
  CuResult error_ = cu_success;
};

}  // namespace demarc::cuda
