// Finds the stream of a launch in what the driver's callback shows of it.
#include "demarc/driver/launch_streams.hpp"

#include <algorithm>

#include "callback_params.hpp"

namespace demarc::cuda {
namespace {

// A descriptor farther than this from the start of the stream's object is not a part of it.
constexpr std::ptrdiff_t largest_object = 16384;

// Trivial, so that reading it inside the callback costs no initialisation.
struct Learning {
  CuStream wanted = nullptr;
  StreamPlace found;
};
constinit thread_local Learning learning __attribute__((tls_model("initial-exec")));

const void* object_of(CuStream stream) {
  return *reinterpret_cast<void* const*>(stream);
}

StreamPlace find_stream(const void* params, const char* descriptor, CuStream stream) {
  using Kind = StreamPlace::Kind;
  const auto* words = static_cast<const void* const*>(params);
  const std::size_t count = std::min(params_bytes(params), max_params_bytes) / sizeof(void*);
  for (std::size_t i = 1; i < count; ++i) {
    if (i != descriptor_index && words[i] == stream) {
      return {Kind::element, static_cast<std::uint32_t>(i)};
    }
  }
  const std::ptrdiff_t distance = descriptor - static_cast<const char*>(object_of(stream));
  if (distance > 0 && distance < largest_object) {
    return {Kind::in_object, static_cast<std::uint32_t>(distance)};
  }
  return {};
}

}  // namespace

bool is_default_stream(CuStream stream) {
  return reinterpret_cast<std::uintptr_t>(stream) <= 2;
}

void LaunchStreams::begin_learning(CuStream stream) {
  learning = {stream, {}};
}

StreamPlace LaunchStreams::end_learning() {
  learning.wanted = nullptr;
  return learning.found;
}

Result<void> LaunchStreams::use_place(StreamPlace place) {
  if (place != place_.load() && any()) {
    return missing_capability(
        "launches show their streams in another way here than launches of the streams that already "
        "have masks; use --mode green");
  }
  place_.store(place);
  return {};
}

void LaunchStreams::look(const void* params, const char* descriptor) const {
  if (learning.wanted == nullptr) return;
  learning.found = find_stream(params, descriptor, learning.wanted);
  learning.wanted = nullptr;
}

bool LaunchStreams::key_of_launch(const void* params, const char* descriptor,
                                  const void*& key) const {
  const StreamPlace place = place_.load(std::memory_order_relaxed);
  key = nullptr;
  switch (place.kind) {
    case StreamPlace::Kind::in_object:
      key = descriptor - place.value;
      return true;
    case StreamPlace::Kind::element:
      if (place.value >= params_bytes(params) / sizeof(void*)) return false;
      key = static_cast<const void* const*>(params)[place.value];
      return true;
    case StreamPlace::Kind::unknown:
      break;
  }
  return true;
}

const void* LaunchStreams::key_of(CuStream stream) const {
  const bool in_object =
      place_.load(std::memory_order_relaxed).kind == StreamPlace::Kind::in_object;
  return in_object ? object_of(stream) : stream;
}

void LaunchStreams::forget(CuStream stream) {
  if (is_default_stream(stream)) return;
  masks_.erase(key_of(stream));
  {
    const std::scoped_lock lock(shown_mutex_);
    shown_.erase(stream);
  }
  if (auto* handler = gone_.load(std::memory_order_acquire)) handler(stream);
}

std::optional<bool> LaunchStreams::shows(CuStream stream) const {
  const std::scoped_lock lock(shown_mutex_);
  const auto found = shown_.find(stream);
  if (found == shown_.end()) return std::nullopt;
  return found->second;
}

void LaunchStreams::remember_shows(CuStream stream, bool shows) {
  const std::scoped_lock lock(shown_mutex_);
  shown_[stream] = shows;
}

Result<void> LaunchStreams::set_mask(CuStream stream, const HardwareMask& mask) {
  if (masks_.set(key_of(stream), mask)) return {};
  return missing_capability("{} streams have a mask already", StreamTable::max_streams);
}

void LaunchStreams::clear_mask(CuStream stream) {
  masks_.erase(key_of(stream));
}

std::optional<HardwareMask> LaunchStreams::mask(CuStream stream) const {
  HardwareMask mask;
  if (!masks_.find(key_of(stream), mask)) return std::nullopt;
  return mask;
}

}  // namespace demarc::cuda
