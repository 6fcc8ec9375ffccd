// Whether a stream is being captured, and into which graph.
#pragma once

#include "demarc/driver/driver_api.hpp"

namespace demarc::cuda {

struct StreamCapture {
  enum class State {
    none,
    active,
    broken,    // nothing that is given to the stream becomes a node any more
    nameless,  // the driver does not tell captures apart
  };
  State state = State::none;
  std::uint64_t id = 0;  // of an active one; no other has it, as long as the process lives

  // The error is the driver's, such as of the legacy stream while others are captured.
  static CuResult find(const DriverApi& api, CuStream stream, StreamCapture& capture) {
    capture = {};
    int status = 0;
    unsigned long long id = 0;
    CuResult code = cu_success;
    if (api.cuStreamGetCaptureInfo != nullptr) {
      code = api.cuStreamGetCaptureInfo(stream, &status, &id);
      if (status != 0) capture.state = status == 1 ? State::active : State::broken;
      capture.id = id;
    } else if (api.cuStreamIsCapturing != nullptr) {
      code = api.cuStreamIsCapturing(stream, &status);
      if (status != 0) capture.state = State::nameless;
    }
    return code;
  }
};

}  // namespace demarc::cuda
