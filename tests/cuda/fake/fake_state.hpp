// What the stand-in knows: contexts, streams, modules, memory, graphs. One lock guards it all.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "demarc/driver/driver_types.hpp"
#include "demarc/emulate/card.hpp"
#include "fake_gpu.hpp"

namespace demarc::fake {

using cuda::CuContext;
using cuda::CuResult;
using cuda::CuStream;
using cuda::DevicePointer;

using Callback = void (*)(void* user, int domain, int id, const void* params);
using Descriptor = std::array<unsigned char, 384>;
using MaskWords = std::array<std::uint32_t, 4>;  // a set bit disables

inline constexpr std::uint64_t fake_page = 2 << 20;

inline constexpr int max_shared_bytes = 232448;  // per block
inline constexpr int own_shared_bytes = 64;      // bytes of a probe kernel

inline constexpr CuResult error_invalid = 1;
inline constexpr CuResult error_no_context = 201;
inline constexpr CuResult error_invalid_ptx = 218;
inline constexpr CuResult error_handle = 400;
inline constexpr CuResult error_not_found = 500;
inline constexpr CuResult error_illegal_address = 700;
inline constexpr CuResult error_timeout = 702;
inline constexpr CuResult error_assertion = 710;
inline constexpr CuResult error_misaligned_address = 716;
inline constexpr CuResult error_launch_failed = 719;
inline constexpr CuResult error_capture_unsupported = 900;
inline constexpr CuResult error_capture_merge = 902;
inline constexpr CuResult error_capture_unmatched = 903;
inline constexpr CuResult error_capture_unjoined = 904;
inline constexpr CuResult error_capture_isolation = 905;
inline constexpr CuResult error_captured_event = 907;

// Recursive, and first come, first served: a thread that launches without end, and holds the lock
// while its kernels run, keeps no other out.
class FairLock {
 public:
  void lock();
  void unlock();

 private:
  std::mutex mutex_;
  std::condition_variable next_;
  std::uint64_t tickets_ = 0;
  std::uint64_t served_ = 0;
  std::thread::id owner_;
  std::uint32_t depth_ = 0;
};

struct FakeGreen {
  std::vector<std::uint32_t> tpcs;
};

// Numbers of runs of the kernels that are watched (fake_order.cpp).
using FakeRuns = std::set<std::uint64_t>;

struct FakeStream {
  char* object = nullptr;  // first member: the driver reads *(char**)stream
  std::vector<char> storage;
  bool hangs = false;
  std::uint32_t number = 0;  // in the order of their creation
  std::array<unsigned char, 2> domains{0, 1};
  int priority = 0;
  std::uint64_t busy_until_ns = 0;  // with launches that hold SMs, or with traffic
  FakeGreen* green = nullptr;
  std::shared_ptr<struct FakeCapture> capture;  // that it is in
  std::set<std::size_t> after;                  // nodes of it that its next one waits for
  FakeRuns done;                                // before what comes next
  [[nodiscard]] bool capturing() const { return capture != nullptr; }
  FakeStream();
};

struct FakeFunction {
  std::string name;
  struct FakeModule* module = nullptr;
  std::vector<std::size_t> argument_bytes;  // known once the function has been asked for
  int local_bytes = 0;                      // a thread; as its text has it, see make_module()
  int dynamic_shared = 48 << 10;            // bytes that a launch may ask for
};

// How the code of a module learns on which SM it runs.
struct FakeSmReading {
  bool of_card = false;  // from the register that names the SM; else %smid
  bool cut = false;      // its bits 20 to 28 alone
};

struct FakeModule {
  std::string text;
  FakeSmReading reading;
  std::map<std::string, std::unique_ptr<FakeFunction>> functions;
  std::optional<emulate::LoadedModule> loaded;  // once it is needed
};

struct FakeEvent {
  std::uint64_t ns = 0;
  FakeRuns done;                         // when it is reached
  std::shared_ptr<FakeCapture> capture;  // that it was recorded in last
  std::set<std::size_t> after;           // nodes of it
};

// A launch with its arguments copied.
struct FakeLaunch {
  FakeFunction* function = nullptr;
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared = 0;
  std::uint32_t cluster = 0;
  std::vector<std::uint64_t> arguments;  // each begins with a word of its own
  const void* handle = nullptr;          // of the function or of a library's kernel, as given
  void** given = nullptr;                // as the caller has them, as long as its call lasts
  void** extra = nullptr;                // likewise, where they lie in one buffer
  std::vector<cuda::CuLaunchAttribute> attributes = {};  // as the caller gave them
  MaskWords stream_mask{};  // hardware bits, as the stream's field said when it was captured
  bool stream_masked = false;
  std::uint32_t domain = 0;  // of memory synchronisation, as its stream said
};

struct FakeNode {
  FakeLaunch launch;
  std::set<std::size_t> after;  // those that come before it, all with smaller numbers
};

struct FakeGraph {
  std::vector<FakeNode> nodes;
  std::vector<std::unique_ptr<struct FakeNodeHandle>> handles;  // of those that were added by hand
};

struct FakeNodeHandle {
  FakeGraph* graph = nullptr;
  std::size_t index = 0;
};

struct FakeCapture {
  std::uint64_t id = 0;
  FakeStream* origin = nullptr;
  FakeGraph graph;
  bool broken = false;
  bool ended = false;
};

struct FakeGraphExec {
  std::vector<FakeNode> nodes;
  std::vector<Descriptor> descriptors;  // kept between launches and shown again
  std::vector<Descriptor> uploaded;     // what the hardware uses: later edits come too late
  std::optional<Descriptor> beginning;  // without a block, of many kernels in a row
};

// Physical memory, as its handle names it.
struct FakeMemory {
  std::uint64_t physical = 0;  // number of its first page
  std::size_t bytes = 0;
  int card = 0;
  int file = -1;          // with its contents, where it was made to be lent
  bool released = false;  // and mapped still
};

// Bytes of physical memory that are mapped by the kernel module, which knows no pages of 2 MiB.
struct FakePiece {
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  // in the physical memory
  std::uint64_t physical = 0;
  std::uint64_t alignments = 0;  // address, bytes and offset together
  std::uint64_t mapping = 0;     // which of the module's mappings it is a part of
};

// A launch of the kernel that holds its SM, not yet begun (fake_holds.cpp).
struct FakeHold {
  FakeStream* stream = nullptr;
  std::vector<std::uint32_t> sms;  // it may use
  std::uint32_t blocks = 0;
  std::uint64_t ns = 0;  // per block
  DevicePointer records = 0;
  std::uint64_t launched_ns = 0;
};

// For the calling thread.
extern thread_local CuContext current_context;

struct FakeGpu {
  FairLock mutex;
  FakeConfig config = small_gpu();
  bool initialised = false;
  int contexts = 0;  // how often the only one is held
  FakeStream default_stream;
  std::map<cuda::CuModule, std::unique_ptr<FakeModule>> modules;
  std::map<cuda::CuEvent, std::unique_ptr<FakeEvent>> events;
  std::set<FakeStream*> streams;
  std::vector<FakeStream*> destroyed;  // given out again with what was written into them
  Callback callback = nullptr;
  void* callback_user = nullptr;
  std::set<std::pair<int, int>> enabled;
  std::uint32_t streams_made = 0;
  int early_launches = 0;  // that may begin before those in front of them have ended
  std::uint64_t launches = 0;
  std::uint64_t library_options = 0;       // of the last library that was loaded
  int launch_priority = 0;                 // of the stream of the last one
  std::uint64_t copies = 0;                // two-dimensional ones
  std::uint64_t async_copies[2] = {0, 0};  // to the host, to the card
  std::uint64_t hanging = 0;
  CuResult fail_next = 0;
  std::uint32_t last_domain = 0;
  // Traffic that launches may feel: until when, whether on a felt path, on which sides (bits).
  struct Felt {
    std::uint64_t until_ns = 0;
    bool path = false;
    std::uint32_t sides = 0;
  } felt;
  CuResult broken = 0;  // what a kernel did to the context: every later call ends with it
  std::uint64_t now_ns = 1'000'000'000;  // %globaltimer; launches alone take time
  std::mt19937_64 random{1};
  std::uint64_t pages_made = 0;  // physical pages are numbered from 1
  std::uint64_t handles_made = 0;
  std::map<cuda::AllocationHandle, FakeMemory> memory;
  std::map<DevicePointer, std::uint64_t> mapped;              // page -> physical page
  std::map<DevicePointer, cuda::AllocationHandle> by_kernel;  // pages that the kernel module maps
  std::map<DevicePointer, FakePiece> pieces;  // what of them the kernel module has mapped
  std::uint64_t mappings_made = 0;
  std::uint32_t small_pieces = 0;                    // that it was asked for, less than a page
  std::map<DevicePointer, std::uint64_t> allocated;  // address -> bytes; host memory too
  std::set<DevicePointer> accessible;                // mapped pages that kernels may use
  std::set<DevicePointer> read_only;                 // of these, those that must not be written
  std::vector<FakeHold> holds;                       // in the order of their launches
  std::map<std::uint32_t, std::array<std::uint64_t, 2>> free_ns;  // SM -> when its places are free
  std::map<DevicePointer, CuStream> unfinished;  // what a probe wrote -> its stream
  std::string watched;                           // a kernel whose runs are counted
  std::vector<FakeRuns> runs;          // of it: those that had ended for sure when it began
  FakeRuns known_done;                 // on the host
  std::set<DevicePointer> of_host;     // of `allocated`, what is host memory
  std::set<DevicePointer> unreadable;  // of `allocated`, what no copy can read
  std::uint64_t captures_made = 0;
  std::set<FakeCapture*> captures;  // under way
  std::int64_t others_alive = 0;    // events, graphs, pages, address ranges, green contexts

  FakeGpu() = default;
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;
  // A program may leave memory, streams, events and modules behind, as it must when a stream hangs.
  ~FakeGpu() {
    for (const auto& [address, bytes] : allocated) {
      std::free(reinterpret_cast<void*>(address));  // NOLINT: device addresses are integers
    }
    for (FakeStream* stream : streams) delete stream;
    for (FakeStream* stream : destroyed) delete stream;
  }
  static FakeGpu& get();
  [[nodiscard]] std::uint32_t sms() const { return config.tpcs * config.sms_per_tpc; }
  [[nodiscard]] std::uint32_t shown_sms() const;  // as the driver tells their number
  void call_back(int domain, int id, const void* params);
  // False: begins in an allocation or in mapped pages, and goes beyond.
  [[nodiscard]] bool fits(DevicePointer address, std::size_t bytes) const;
  // Where a byte lies that the kernel module has mapped: its memory, and how far in it.
  [[nodiscard]] std::optional<FakePiece> piece_at(DevicePointer address) const;
  // Whether a launch in another stream than the reader's may still be writing there.
  [[nodiscard]] bool is_written(DevicePointer address, std::size_t bytes, CuStream reader) const;
  // Work of the stream is done: what it wrote can be read.
  void finished(CuStream stream);
};

inline std::unique_lock<FairLock> locked() {
  return std::unique_lock(FakeGpu::get().mutex);
}
// What the call does, unless a kernel has broken the context.
template <class Call>
CuResult on_card(Call&& call) {
  if (current_context == nullptr) return error_no_context;
  const auto lock = locked();
  if (const CuResult broken = FakeGpu::get().broken; broken != cuda::cu_success) return broken;
  return call(FakeGpu::get());
}
// A kernel begins behind these; then they have it among them.
void note_run(FakeGpu& gpu, const FakeLaunch& launch, FakeRuns& done);
// The host has waited until these had ended.
void note_wait(FakeGpu& gpu, const FakeRuns& done);
void note_wait_for_all(FakeGpu& gpu);
// Launches in a stream that is captured (fake_capture.cpp).
CuResult capture_launch(FakeStream& stream, const FakeLaunch& launch);
CuResult capture_graph(FakeStream& stream, const FakeGraphExec& graph);
CuResult capture_wait(FakeStream& stream, const FakeEvent& event);
void clear_stream_field(FakeStream& stream);
const void* callback_table();
// "version=14020,offset=604,client=c3" in DEMARC_FAKE_GPU.
void configure_from_environment(FakeConfig& config);

// Modules (fake_ptx.cpp). A module is read when a kernel is asked for that is not a probe; text
// that cannot be read, or not be emulated, is refused then, with the reason on standard error.
CuResult load_function(FakeModule& module, FakeFunction& function);
CuResult load_module(FakeModule& module);
// As cuFuncGetAttribute tells it; 0 where the stand-in knows nothing.
int attribute_of(const FakeFunction& function, int attribute);

FakeStream* stream_of(CuStream stream);
// All cards have the same state, and a UUID each.
cuda::CuUuid card_uuid(int device);
// The cards that the process sees, in order (fake_devices.cpp).
std::vector<int> visible_devices();
// Asks the kernel for a context on the card, as the driver does. Not permitted where it refuses.
CuResult register_context(const cuda::CuUuid& card);
// Has the kernel module map memory that can be lent, as the driver does (fake_uvm.cpp).
CuResult map_by_kernel(DevicePointer address, std::size_t bytes, cuda::AllocationHandle handle,
                       bool writes);
void unmap_pieces(FakeGpu& gpu, DevicePointer address, std::size_t bytes);
// A call of one of the driver's functions, as its callback gets it: a tool may answer it.
struct FakeCall {
  int id = 0;                       // as CUPTI numbers functions
  const char* name = "";            // name of the version that was called
  const void* arguments = nullptr;  // as the members of a struct
  CuResult result = 999;
  int answered = 0;
};
// Tells of entry to or exit from it.
void function_callback(FakeGpu& gpu, FakeCall& call, bool leaving);
// The same for a function whose answer is not looked at.
void function_callback(FakeGpu& gpu, int id, const void* arguments, bool leaving);
// Carries a call out between its callbacks, unless it was answered.
// `arguments`: null where the function takes none.
template <class Work>
CuResult called(int id, const char* name, const void* arguments, Work&& work) {
  FakeCall call{id, name, arguments};
  const auto lock = locked();
  function_callback(FakeGpu::get(), call, false);
  if (call.answered != 0) return call.result;
  call.result = work();
  function_callback(FakeGpu::get(), call, true);
  return call.result;
}
// Builds the descriptor of a launch, shows it to the callback, runs the kernel on the SMs the
// descriptor leaves. Returns a CUresult.
// In a stream that is captured it becomes a node of the graph.
CuResult submit(FakeLaunch launch, CuStream handle, int function_id);
CuResult launch_graph(FakeStream* stream, FakeGraphExec& graph);
void upload_graph(FakeStream* stream, FakeGraphExec& graph);
void launch_fill(FakeStream* stream);
// Runs what holds its SM and has been launched.
void settle_holds(FakeGpu& gpu);
std::vector<std::uint64_t> copy_arguments(const FakeFunction& function, void** arguments,
                                          void** extra = nullptr);

}  // namespace demarc::fake
