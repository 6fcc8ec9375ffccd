// Creates streams and events, and waits for them no longer than a limit.
#include "demarc/driver/stream.hpp"

#include <thread>
#include <utility>

namespace demarc::cuda {
namespace {

Result<bool> stream_done(const Gpu& gpu, CuStream handle) {
  const CuResult code = gpu.api().cuStreamQuery(handle);
  if (code == cu_error_not_ready) return false;
  DEMARC_CHECK(gpu.check(code, "work on the GPU failed"));
  return true;
}

Result<void> wait_for(const Gpu& gpu, CuStream handle, std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  while (true) {
    DEMARC_TRY(const bool finished, stream_done(gpu, handle));
    if (finished) return {};
    const auto waited = Clock::now() - begin;
    if (waited > limit) {
      gpu.set_stuck();
      return check_failed("{}: work did not finish within {} ms", gpu.name(), limit.count());
    }
    // Short work is polled for, long work is slept for.
    if (waited > std::chrono::milliseconds(2)) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

}  // namespace

Result<Stream> Stream::create(GpuPointer gpu, int priority) {
  DEMARC_TRY(CuStream handle,
             gpu->ask("cannot create a stream", gpu->api().cuStreamCreateWithPriority,
                      cu_stream_non_blocking, priority));
  return Stream(std::move(gpu), handle);
}

Stream Stream::adopt(GpuPointer gpu, CuStream handle) {
  return Stream(std::move(gpu), handle);
}

Result<int> Stream::priority() const {
  int found = 0;
  DEMARC_CHECK(gpu_->check(gpu_->api().cuStreamGetPriority(handle_, &found),
                           "cannot read the priority of a stream"));
  return found;
}

Stream::~Stream() {
  if (handle_ != nullptr && !gpu_->stuck()) gpu_->api().cuStreamDestroy_v2(handle_);
}

Stream::Stream(Stream&& other) noexcept
    : gpu_(std::move(other.gpu_)), handle_(std::exchange(other.handle_, nullptr)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(handle_, other.handle_);
  return *this;
}

Result<bool> Stream::done() const {
  return stream_done(*gpu_, handle_);
}

Result<void> Stream::wait(std::chrono::milliseconds limit) const {
  return wait_for(*gpu_, handle_, limit);
}

Result<void> wait_for_default_stream(const GpuPointer& gpu, std::chrono::milliseconds limit) {
  return wait_for(*gpu, nullptr, limit);
}

Result<Event> Event::create(GpuPointer gpu) {
  DEMARC_TRY(CuEvent handle, gpu->ask("cannot create an event", gpu->api().cuEventCreate, 0));
  return Event(std::move(gpu), handle);
}

Event::~Event() {
  if (handle_ != nullptr && !gpu_->stuck()) gpu_->api().cuEventDestroy_v2(handle_);
}

Event::Event(Event&& other) noexcept
    : gpu_(std::move(other.gpu_)), handle_(std::exchange(other.handle_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(handle_, other.handle_);
  return *this;
}

Result<void> Event::record(const Stream& stream) const {
  return gpu_->check(gpu_->api().cuEventRecord(handle_, stream.handle()), "cannot record an event");
}

Result<double> Event::milliseconds_since(const Event& begin) const {
  DEMARC_TRY(const float milliseconds,
             gpu_->ask("cannot read the time between two events", gpu_->api().cuEventElapsedTime,
                       begin.handle_, handle_));
  return static_cast<double>(milliseconds);
}

}  // namespace demarc::cuda
