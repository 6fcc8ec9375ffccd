// A stand-in for libcuda: a shared library with the driver's symbols that behaves like a small GPU,
// down to the undocumented parts that masks use. Built as its own library; a test opens it with
// Driver::load() and sets it up through fake_configure(), a program run by a test through the
// environment variable DEMARC_FAKE_GPU: "version=14020,offset=604" (CUDA version and place of the
// stream's mask), with ",client=c3" also a card whose address hash is known, and what an MPS client
// gets of it (0: everything, not under MPS). DEMARC_FAKE_CARD=fb: another card than otherwise, all
// bytes of its UUID are 0xfb. DEMARC_FAKE_UNWATCHED=18: FakeConfig::unwatched_function.
// DEMARC_FAKE_MPS=1: FakeConfig::mps_attribute; =.mps: 1 where CUDA_MPS_PIPE_DIRECTORY ends so.
// DEMARC_FAKE_LAUNCHERS: FakeConfig::kernels_launch.
// DEMARC_FAKE_WITHOUT_STACKS: the driver says of every kernel that it takes no local memory.
// DEMARC_FAKE_AMPERE: capability 8.0 and its descriptors. DEMARC_FAKE_MACHINE_CODE=FILE: machine
// code runs as the PTX of that file.
#pragma once

#include <cstdint>

namespace demarc::fake {

inline constexpr std::uint32_t max_tpcs = 128;

// How the launch callback shows the stream of a launch.
enum class Shows : std::uint32_t {
  by_place,  // the descriptor lies in the stream's object, as seen of the real driver
  by_name,   // an element of the parameters is the stream
  nothing,
};

// What is wrong with the parameters of a callback.
enum class Params : std::uint32_t {
  whole,
  absent,  // a null pointer
  short_,  // fewer bytes than anybody knows
  hollow,  // no descriptor, no arguments
  least,   // as many as show the descriptor
};

// Plain data: crosses a library boundary.
// What the driver's linker makes of PTX.
enum class Linker : std::uint32_t {
  works,
  refuses,
  reads_otherwise,  // machine code without an S2R for %smid
};

struct FakeConfig {
  char name[32] = "Fake GPU";
  int cuda_version = 13000;
  int capability_major = 9;
  int capability_minor = 0;
  std::uint32_t tpcs = 12;
  std::uint32_t sms_per_tpc = 2;
  std::uint32_t bit[max_tpcs] = {};   // hardware bit of each logical TPC
  std::uint32_t gpc[max_tpcs] = {};   // GPC that clusters see
  std::uint32_t side[max_tpcs] = {};  // L2 side
  std::uint32_t stream_offset = 0x51c;
  bool stream_field_works = true;  // false: the field is ignored, as on a driver that moved it
  // A program that writes to these bytes of a stream's object ends with the next launch; 0, 0:
  // none.
  std::uint32_t deadly_from = 0;
  std::uint32_t deadly_until = 0;
  bool callback = true;          // the export table exists
  bool descriptors_pass = true;  // launches reach the callback
  std::uint8_t descriptor_version = 0x40;
  bool virtual_sms = false;         // %smid counts the SMs of a launch, as under MPS
  bool register_of_launch = false;  // and so does the register that else names SMs
  Linker linker = Linker::works;
  std::uint64_t client =
      0;  // bit t: launches without a mask get TPC t, as in an MPS client; 0: all
  bool client_hidden = false;  // and the driver shows the whole card all the same
  Shows streams = Shows::by_place;
  std::uint32_t stray_streams = 0;  // from this one on descriptors lie elsewhere; 0: none do
  // Lies to be found out: the hardware ignores masks; enables what they disable; looks for TPC t at
  // the bit of the TPC so many further.
  bool obey_masks = true;
  bool invert_masks = false;
  std::uint32_t shift_masks = 0;
  std::uint32_t smeared_bit = 0;     // a stream's mask disables this bit too; 0: none
  std::uint32_t stale_mask[4] = {};  // in every descriptor that no stream has a mask for (Hopper)
  bool stale_enabled = false;        // and it is switched on
  Params launch_params = Params::whole;
  Params function_params = Params::whole;
  std::int32_t functions = 806;         // that have callbacks
  std::uint32_t release_us = 0;         // that the driver takes to free a piece of memory
  bool fills_launch = false;            // fills of 32-bit words by a kernel of 4 blocks
  std::int32_t unwatched_function = 0;  // the driver refuses its callback; 0: none
  std::int32_t mps_attribute = -1;  // what the driver says of MPS: yes, no; 2: it cannot tell; -1:
                                    // as virtual_sms
  std::int32_t compute_mode = 0;    // 2: prohibited; 3: exclusive to one process
  std::uint8_t uuid = 0xfa;         // of the card, every byte of it
  std::uint8_t instance_uuid = 0;   // of the MIG instance of it that is open; 0: none
  std::uint64_t memory_bytes = 1ULL << 30U;
  std::uint64_t free_bytes = 1ULL << 30U;  // bytes of memory, whatever is taken
  std::uint32_t sync_domains = 4;  // memory synchronisation domains; 1: the attribute is unknown
  bool forgets_domains = false;    // streams keep the one they have
  // Others hold all but the first TPC of a launch that has no more blocks than that.
  std::uint32_t crowded_blocks = 0;
  bool hides_domains = false;       // descriptors show domain 0, whatever their stream has
  bool pageable = false;            // kernels reach all host memory
  bool kernels_launch = false;      // kernels contain launches of kernels
  std::uint32_t felt_paths = 0;     // bit p: launches feel traffic to path (module) p of the memory
  bool streams_feel_sides = false;  // stream n feels traffic to the L2 side n % 2
  double latency_noise = 0.1;       // cycles, standard deviation
  // From this launch on (they are counted from 1), to before that one, latencies have this noise
  // and physical pages are those of another seed; 0, 0: never.
  std::uint64_t upset_from = 0;
  std::uint64_t upset_until = 0;
  double upset_noise = 0;
  std::uint64_t upset_seed = 0;       // added to page_seed
  std::uint64_t page_seed = 1;        // of what physical pages add to the hash of their chunks
  bool holds_stray = false;           // who notes where it runs notes the SM after its own
  bool peer_access = true;            // cards reach each other's memory
  bool peer_atomics = true;           // and the link carries atomics
  bool host_atomics = true;           // the bus carries them to host memory
  std::uint32_t max_pieces = 524288;  // that the kernel module maps at a time
  int map_calls = 1;                  // of the kernel module for one mapping of the driver
  std::uint32_t misled_from = 0;      // pieces of less than a page, from this one on: see fake_uvm
  bool remainders = false;            // the memory is that of an H200, color::h200_remainders()
  // Masks over the offset in a page whose parities, with a constant of the page, select the module
  // of a 256-byte chunk; 0: none. As on an H100.
  std::uint64_t masks[5] = {0x1a8800, 0x139000, 0x18a000, 0xc4000, 0};
  std::uint32_t slices_of_module = 5;
};

// The number whose remainder is a chunk's slice in its module; the page changes the three lowest
// digits. As on an H100.
inline constexpr std::uint64_t planted_digits[] = {0x1a1100, 0x62400, 0x1a4800, 0x20000,
                                                   0x40000,  0x80000, 0x100000};

// 12 TPCs: GPCs of 4, 4 and 3 TPCs and a single one; bits 9 apart, dealt out round robin.
FakeConfig small_gpu();

}  // namespace demarc::fake

extern "C" {
void fake_configure(const demarc::fake::FakeConfig* config);  // also forgets all state
std::uint64_t fake_launch_count();
std::uint64_t fake_async_copies(int to_card);  // one-dimensional ones of that direction
std::uint64_t fake_allocated_bytes();          // host memory too
int fake_early_launches();  // that may begin before those in front of them have ended
std::uint64_t fake_hanging_launches();
int fake_launch_priority();            // of the stream of the last launch
std::uint64_t fake_copy_count();       // two-dimensional ones
void fake_fail_next_launch(int code);  // the next launch returns this error
// Contexts, modules, streams, events, graphs, memory and addresses that were not given back.
std::int64_t fake_live_objects();
// Runs of the kernel are counted from now on. Pairs of them of which nothing made the later one
// wait for the earlier one.
void fake_watch_kernel(const char* name);
std::uint64_t fake_watched_runs();
std::uint64_t fake_unordered_runs();
// cuCtxSynchronize() makes PATH.held, waits for a file PATH, makes PATH.seen, and returns.
void fake_hold_synchronize(const char* path);
void fake_describe_as(int version);  // descriptors have this version from now on
std::uint32_t fake_last_domain();    // of memory synchronisation, of the last launch that ran
// The planted truth of a mapped address: its module of the memory, its L2 side (of remainders).
std::uint64_t fake_module_of(std::uint64_t address);
std::uint64_t fake_side_of(std::uint64_t address);
}
