// What the launch hook knows of streams: how a launch shows its own, and the masks by stream that
// follow from it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "demarc/base/result.hpp"
#include "demarc/driver/driver_types.hpp"
#include "demarc/driver/stream_table.hpp"

namespace demarc::cuda {

// How a launch shows its stream: by an 8-byte element of the callback's parameters that is the
// stream's handle, or by the descriptor, which lies in the driver's stream object, so and so many
// bytes from its start (seen: 1728, for kernels of all kinds, fills and copies).
struct alignas(8) StreamPlace {  // atomic without locks
  enum class Kind : std::uint32_t { unknown, element, in_object };
  Kind kind = Kind::unknown;
  std::uint32_t value = 0;  // number of the element, or bytes
  friend bool operator==(const StreamPlace&, const StreamPlace&) = default;
};

// 0, 1 and 2 stand for the default streams.
[[nodiscard]] bool is_default_stream(CuStream stream);

class LaunchStreams {
 public:
  // Looks for `stream` in this thread's next launch, which goes into it.
  void begin_learning(CuStream stream);
  [[nodiscard]] StreamPlace end_learning();
  // Masks are found by what the place shows: while streams have masks, another place is refused.
  Result<void> use_place(StreamPlace place);
  [[nodiscard]] StreamPlace place() const { return place_.load(); }
  [[nodiscard]] bool known() const { return place().kind != StreamPlace::Kind::unknown; }
  // Whether launches of this stream show it at the place in use: not all do (seen on an H200: 12
  // of 120 elsewhere in the object, 12 not in it). Nothing: not looked at since it was created.
  [[nodiscard]] std::optional<bool> shows(CuStream stream) const;
  void remember_shows(CuStream stream, bool shows);

  // Applies to launches into the stream, and to graphs first launched into it. Needs known(), and
  // launches that show the stream, see shows(). Forgotten when the stream is destroyed, by
  // whatever call.
  Result<void> set_mask(CuStream stream, const HardwareMask& mask);
  void clear_mask(CuStream stream);
  [[nodiscard]] std::optional<HardwareMask> mask(CuStream stream) const;
  // Called when a stream is about to be destroyed.
  void set_gone_handler(void (*handler)(CuStream stream)) { gone_.store(handler); }

  // For the hook, inside its callbacks. `params` and `descriptor` are those of a launch. The key of
  // a stream is what masks are found by; nullptr: how launches show their streams is not known.
  void look(const void* params, const char* descriptor) const;
  // False when the parameters end before the stream.
  [[nodiscard]] bool key_of_launch(const void* params, const char* descriptor,
                                   const void*& key) const;
  [[nodiscard]] const void* key_of(CuStream stream) const;
  [[nodiscard]] bool find(const void* key, HardwareMask& mask) const {
    return masks_.find(key, mask);
  }
  [[nodiscard]] bool any() const { return masks_.size() != 0; }
  void forget(CuStream stream);

 private:
  StreamTable masks_;
  std::atomic<StreamPlace> place_{};
  mutable std::mutex shown_mutex_;
  std::unordered_map<CuStream, bool> shown_;
  std::atomic<void (*)(CuStream)> gone_{nullptr};
};

}  // namespace demarc::cuda
