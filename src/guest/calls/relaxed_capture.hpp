// While one of these lives, a capture that this thread began does not forbid what Demarc's own work
// needs of the driver.
#pragma once

#include "demarc/driver/driver_api.hpp"

namespace demarc::cuda {

class RelaxedStreamCapture {
 public:
  explicit RelaxedStreamCapture(const DriverApi& api) : api_(api) { exchange(); }
  ~RelaxedStreamCapture() { exchange(); }
  RelaxedStreamCapture(const RelaxedStreamCapture&) = delete;
  RelaxedStreamCapture& operator=(const RelaxedStreamCapture&) = delete;

 private:
  void exchange() {
    if (api_.cuThreadExchangeStreamCaptureMode != nullptr) {
      api_.cuThreadExchangeStreamCaptureMode(&mode_);
    }
  }
  const DriverApi& api_;
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
};

}  // namespace demarc::cuda
