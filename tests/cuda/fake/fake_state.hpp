// What the stand-in knows: contexts, streams, modules, graphs. One lock guards it all.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "demarc/cuda/driver_types.hpp"
#include "fake_gpu.hpp"

namespace demarc::fake {

using cuda::CuContext;
using cuda::CuResult;
using cuda::CuStream;
using cuda::DevicePointer;

using Callback = void (*)(void* user, int domain, int id, const void* params);
using Descriptor = std::array<unsigned char, 384>;
using MaskWords = std::array<std::uint32_t, 4>;  // a set bit disables

struct FakeGreen {
  std::vector<std::uint32_t> tpcs;
};

struct FakeStream {
  char* object = nullptr;  // first member: the driver reads *(char**)stream
  std::vector<char> storage;
  bool hangs = false;
  bool capturing = false;
  std::uint32_t number = 0;  // in the order of their creation
  std::array<unsigned char, 2> domains{0, 1};
  FakeGreen* green = nullptr;
  std::vector<struct FakeLaunch> captured;
  FakeStream();
};

struct FakeFunction {
  std::string name;
  int dynamic_shared = 0;
};

struct FakeModule {
  std::map<std::string, std::unique_ptr<FakeFunction>> functions;
};

// A launch with its arguments copied.
struct FakeLaunch {
  FakeFunction* function = nullptr;
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared = 0;
  std::uint32_t cluster = 0;
  std::vector<std::uint64_t> arguments;
  MaskWords stream_mask{};  // hardware bits, as the stream's field said when it was captured
  bool stream_masked = false;
};

struct FakeGraph {
  std::vector<FakeLaunch> nodes;
};

struct FakeGraphExec {
  std::vector<FakeLaunch> nodes;
  std::vector<Descriptor> descriptors;  // kept between launches and shown again
  std::vector<Descriptor> uploaded;     // what the hardware uses: later edits come too late
};

struct FakeGpu {
  std::recursive_mutex mutex;
  FakeConfig config = small_gpu();
  bool initialised = false;
  int contexts = 0;  // how often the only one is held
  CuContext current = nullptr;
  FakeStream default_stream;
  std::map<cuda::CuModule, std::unique_ptr<FakeModule>> modules;
  std::set<FakeStream*> streams;
  std::vector<FakeStream*> destroyed;  // given out again with what was written into them
  Callback callback = nullptr;
  void* callback_user = nullptr;
  std::set<std::pair<int, int>> enabled;
  std::uint32_t streams_made = 0;
  std::uint64_t launches = 0;
  std::uint64_t copies = 0;  // two-dimensional ones
  std::uint64_t hanging = 0;
  CuResult fail_next = 0;
  std::mt19937_64 random{1};
  std::map<DevicePointer, std::uint64_t> mapped;  // page -> physical page

  FakeGpu() = default;
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;
  // A program may leave streams and modules behind, as it must when a stream hangs.
  ~FakeGpu() {
    for (FakeStream* stream : streams) delete stream;
    for (FakeStream* stream : destroyed) delete stream;
  }
  static FakeGpu& get();
  [[nodiscard]] std::uint32_t sms() const { return config.tpcs * config.sms_per_tpc; }
  void call_back(int domain, int id, const void* params);
};

FakeStream* stream_of(CuStream stream);
// All cards have the same state, and a UUID each.
cuda::CuUuid card_uuid(int device);
// The cards that the process sees, in order (fake_devices.cpp).
const std::vector<int>& visible_devices();
// Asks the kernel for a context on the card, as the driver does. Not permitted where it refuses.
CuResult register_context(const cuda::CuUuid& card);
// Tells of entry to or exit from one of the driver's functions.
void function_callback(FakeGpu& gpu, int id, const void* arguments, bool leaving);
// Builds the descriptor of a launch, shows it to the callback, runs the kernel on the SMs the
// descriptor leaves. Returns a CUresult.
CuResult launch_now(FakeStream* stream, CuStream handle, const FakeLaunch& launch, int function_id);
CuResult launch_graph(FakeStream* stream, FakeGraphExec& graph);
void take_stream_mask(FakeStream* stream, FakeLaunch& launch);
std::vector<std::uint64_t> copy_arguments(const FakeFunction& function, void** arguments);

}  // namespace demarc::fake
