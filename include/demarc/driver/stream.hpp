// Streams and events. Every wait for them has a limit.
#pragma once

#include "demarc/driver/gpu.hpp"

namespace demarc::cuda {

// A driver takes the highest priority that the card has for one that is higher.
inline constexpr int highest_stream_priority = -5;

class Stream {
 public:
  // A stream that does not wait for the default stream. Lower numbers are higher priorities.
  static Result<Stream> create(GpuPointer gpu, int priority = 0);
  // Takes ownership of a stream made elsewhere (a green context's).
  static Stream adopt(GpuPointer gpu, CuStream handle);
  ~Stream();
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;

  [[nodiscard]] CuStream handle() const { return handle_; }
  [[nodiscard]] const GpuPointer& gpu() const { return gpu_; }
  // What the driver gives it; a number outside of the card's range was brought into it.
  [[nodiscard]] Result<int> priority() const;
  // True if all work is done, false if it still runs, an error if it failed.
  [[nodiscard]] Result<bool> done() const;
  // If the work is not done within `limit`, this is check_failed, and the Gpu is marked as stuck.
  [[nodiscard]] Result<void> wait(std::chrono::milliseconds limit = default_timeout) const;

 private:
  Stream(GpuPointer gpu, CuStream handle) : gpu_(std::move(gpu)), handle_(handle) {}
  GpuPointer gpu_;
  CuStream handle_ = nullptr;
};

// The same for the default stream of the current context.
[[nodiscard]] Result<void> wait_for_default_stream(
    const GpuPointer& gpu, std::chrono::milliseconds limit = default_timeout);

class Event {
 public:
  static Result<Event> create(GpuPointer gpu);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  [[nodiscard]] CuEvent handle() const { return handle_; }
  [[nodiscard]] Result<void> record(const Stream& stream) const;
  // Milliseconds from `begin` to this event; both must have happened.
  [[nodiscard]] Result<double> milliseconds_since(const Event& begin) const;

 private:
  Event(GpuPointer gpu, CuEvent handle) : gpu_(std::move(gpu)), handle_(handle) {}
  GpuPointer gpu_;
  CuEvent handle_ = nullptr;
};

}  // namespace demarc::cuda
