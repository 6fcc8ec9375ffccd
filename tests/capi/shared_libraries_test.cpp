// libdemarc.so and libsmctrl.so as a C program meets them, on the stand-in. Each test runs in a
// process of its own: the launch callback has one subscriber a process.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "demarc/base/files.hpp"
#include "demarc/card/colored.cuh"
#include "demarc/demarc.h"
#include "demarc/guest/control.hpp"
#include "fake_card.hpp"
#include "shared_library.hpp"
#include "sms.hpp"

namespace demarc::cuda {
namespace {

// They are loaded into programs on machines that need not have it.
TEST_F(SharedLibraries, need_no_formatting_library) {
  for (const char* name : {"libdemarc.so", "libsmctrl.so", "libdemarc_capture.so"}) {
    const auto bytes = read_file(test::build_dir() / name);
    ASSERT_TRUE(bytes) << bytes.error().message;
    EXPECT_EQ(bytes->find("libfmt.so"), std::string::npos) << name;
    EXPECT_NE(bytes->find("libc.so"), std::string::npos) << name;
  }
}

void coloured_memory_through_c() {
  void* lib = library("libdemarc.so");
  demarc_card* card = nullptr;
  DEMAND(SYMBOL(lib, demarc_open)(0, &card) == 0);
  const std::uint64_t masks[] = {0xc4000};
  const demarc_share shares[] = {{1, 1 << 20}, {2, 0}};
  demarc_pool* pool = nullptr;
  DEMAND(SYMBOL(lib, demarc_pool_create)(card, masks, 1, 16 << 20, shares, 2, &pool) == 0);
  demarc_buffer* buffer = nullptr;
  DEMAND(SYMBOL(lib, demarc_buffer_create)(pool, 0, 100000, &buffer) == 0);
  auto* const nowhere = reinterpret_cast<void*>(8);  // NOLINT: never followed
  auto* too_large = static_cast<demarc_buffer*>(nowhere);
  DEMAND(SYMBOL(lib, demarc_buffer_create)(pool, 0, 1 << 20, &too_large) == 2);
  DEMAND(too_large == nullptr);
  DEMAND(std::string(SYMBOL(lib, demarc_error)()).find("may use 1048576") != std::string::npos);
  std::vector<unsigned char> data(100000);
  std::iota(data.begin(), data.end(), static_cast<unsigned char>(1));
  std::vector<unsigned char> back(data.size());
  DEMAND(SYMBOL(lib, demarc_buffer_upload)(buffer, data.data(), data.size(), 0) == 0);
  DEMAND(SYMBOL(lib, demarc_buffer_download)(buffer, back.data(), back.size(), 0) == 0);
  DEMAND(data == back);
  demarc_layout layout;
  std::memset(&layout, 0xff, sizeof layout);
  DEMAND(SYMBOL(lib, demarc_buffer_layout)(buffer, &layout) == 0);
  DEMAND(layout.masks == 1 && layout.mask[0] == 0xc4000 && layout.pivot[0] == 14);
  DEMAND(layout.mask[1] == 0 && layout.pivot[1] == 0 && layout.wanted[1] == 0);
  for (std::uint64_t at = 0; at < data.size(); at += 1237) {
    std::uint64_t address = 0;
    std::uint64_t run = 0;
    DEMAND(SYMBOL(lib, demarc_buffer_address)(buffer, at, &address, &run) == 0);
    std::uint64_t v = layout.first + at;
    v += v & (~std::uint64_t{0} << layout.pivot[0]);
    const auto odd = static_cast<std::uint64_t>(__builtin_parityll(v & layout.mask[0]));
    DEMAND(address == layout.base + (v | (odd ^ layout.wanted[0]) << layout.pivot[0]));
    DEMAND(run > 0 && run <= 16384);
  }
  std::uint64_t address = 0;
  DEMAND(SYMBOL(lib, demarc_buffer_address)(buffer, 99999, &address, nullptr) == 0);
  DEMAND(SYMBOL(lib, demarc_buffer_address)(buffer, 100000, &address, nullptr) == 1);
  DEMAND(SYMBOL(lib, demarc_buffer_download)(buffer, back.data(), 2, 99999) == 1);
  demarc_remainder_layout other;
  std::memset(&other, 0xff, sizeof other);
  DEMAND(SYMBOL(lib, demarc_buffer_remainder_layout)(buffer, &other) == 2);
  const demarc_remainder_layout empty{};
  DEMAND(std::memcmp(&other, &empty, sizeof other) == 0);
  demarc_audit audit;
  DEMAND(SYMBOL(lib, demarc_buffer_audit)(buffer, &audit) == 0);
  DEMAND(audit.chunks == 7 && audit.outside == 0 && audit.unclear == 0);
  fake::FakeConfig moved = fake::small_gpu();
  moved.page_seed = 99;  // the pages lie elsewhere
  test::configure(moved);
  demarc_buffer* large = nullptr;
  DEMAND(SYMBOL(lib, demarc_buffer_create)(pool, 1, 2 << 20, &large) == 0);
  DEMAND(SYMBOL(lib, demarc_buffer_audit)(large, &audit) == 3 && audit.outside > 0);
  SYMBOL(lib, demarc_buffer_destroy)(large);
  demarc_usage usage;
  DEMAND(SYMBOL(lib, demarc_pool_usage)(pool, 0, &usage) == 0);
  DEMAND(usage.used_bytes == 100000 && usage.wasted_bytes == 96);
  DEMAND(usage.capacity_bytes == 1 << 20 && usage.largest_free_bytes == (1 << 20) - 100096);
  DEMAND(SYMBOL(lib, demarc_pool_usage)(pool, 2, &usage) == 1);
  SYMBOL(lib, demarc_pool_destroy)(pool);
  DEMAND(SYMBOL(lib, demarc_buffer_download)(buffer, back.data(), 16, 0) == 0);
  const std::uint64_t wrong[] = {0x10000};
  pool = reinterpret_cast<demarc_pool*>(8);  // NOLINT: never followed
  DEMAND(SYMBOL(lib, demarc_pool_create)(card, wrong, 1, 16 << 20, shares, 2, &pool) == 1);
  DEMAND(pool == nullptr);
  SYMBOL(lib, demarc_buffer_destroy)(buffer);
  SYMBOL(lib, demarc_close)(card);
}

// Pages of an H200; the colours come from its description.
void remainders_through_c() {
  fake::FakeConfig config = fake::small_gpu();
  config.remainders = true;
  test::configure(config);
  void* lib = library("libdemarc.so");
  demarc_card* card = nullptr;
  DEMAND(SYMBOL(lib, demarc_open)(0, &card) == 0);
  const demarc_share shares[] = {{1, 0}, {2, 0}};
  auto* pool = reinterpret_cast<demarc_pool*>(8);  // NOLINT: never followed
  const auto create = SYMBOL(lib, demarc_pool_create_described);
  DEMAND(create(card, nullptr, 2, 16 << 20, shares, 2, &pool) == 2 && pool == nullptr);
  DEMAND(std::string(SYMBOL(lib, demarc_error)()).find("no description of 'Fake GPU'") !=
         std::string::npos);
  DEMAND(create(card, "h200", 2, 16 << 20, shares, 2, &pool) == 0);
  demarc_buffer* buffer = nullptr;
  DEMAND(SYMBOL(lib, demarc_buffer_create)(pool, 1, 100000, &buffer) == 0);
  std::vector<unsigned char> data(100000);
  std::iota(data.begin(), data.end(), static_cast<unsigned char>(1));
  std::vector<unsigned char> back(data.size() - 7);
  DEMAND(SYMBOL(lib, demarc_buffer_upload)(buffer, data.data(), data.size(), 0) == 0);
  DEMAND(SYMBOL(lib, demarc_buffer_download)(buffer, back.data(), back.size(), 7) == 0);
  DEMAND(std::equal(back.begin(), back.end(), data.begin() + 7));
  demarc_layout parities;
  std::memset(&parities, 0xff, sizeof parities);
  DEMAND(SYMBOL(lib, demarc_buffer_layout)(buffer, &parities) == 2);
  DEMAND(parities.base == 0 && parities.masks == 0);
  colored_layout<remainders> layout;
  DEMAND(SYMBOL(lib, demarc_buffer_remainder_layout)(
             buffer, reinterpret_cast<demarc_remainder_layout*>(&layout)) == 0);
  for (std::uint64_t at = 0; at < data.size(); at += 1237) {
    std::uint64_t address = 0;
    std::uint64_t run = 0;
    DEMAND(SYMBOL(lib, demarc_buffer_address)(buffer, at, &address, &run) == 0);
    DEMAND(address == layout.address(at) && run > 0 && run <= 256);
  }
  demarc_audit audit;
  DEMAND(SYMBOL(lib, demarc_buffer_audit)(buffer, &audit) == 0);
  DEMAND(audit.chunks == 49 && audit.outside == 0);
  SYMBOL(lib, demarc_buffer_destroy)(buffer);
  SYMBOL(lib, demarc_pool_destroy)(pool);
  SYMBOL(lib, demarc_close)(card);
}

void observer_through_c() {
  void* lib = library("libdemarc.so");
  demarc_card* card = nullptr;
  DEMAND(SYMBOL(lib, demarc_open_observer)(0, &card) == 0);
  const demarc_tpcs some = {{0x3, 0}};
  DEMAND(SYMBOL(lib, demarc_set_process_mask)(card, &some) == 2);
  std::uint64_t outside = 0;
  DEMAND(SYMBOL(lib, demarc_count_outside)(card, nullptr, &some, &outside) == 0);
  DEMAND(outside > 0);
  // The default stream of the stand-in takes an attribute as any other does.
  const auto set_domain = SYMBOL(lib, demarc_set_stream_sync_domain);
  DEMAND(SYMBOL(lib, demarc_sync_domain_count)(card) == 4);
  DEMAND(set_domain(card, nullptr, 3) == 0);
  DEMAND(set_domain(card, nullptr, 4) == 2);
  const demarc_tpcs all = {{0xfff, 0}};
  DEMAND(SYMBOL(lib, demarc_count_outside)(card, nullptr, &all, &outside) == 0);
  DEMAND(outside == 0);
  SYMBOL(lib, demarc_close)(card);
}

void topology_through_c() {
  void* lib = library("libdemarc.so");
  const auto error = SYMBOL(lib, demarc_error);
  const auto says = [&](const char* words) {
    return std::string(error()).find(words) != std::string::npos;
  };
  auto* const nowhere = reinterpret_cast<void*>(8);  // NOLINT: never followed
  auto* card = static_cast<demarc_card*>(nowhere);
  DEMAND(SYMBOL(lib, demarc_open)(7, &card) == 2 && card == nullptr);
  card = static_cast<demarc_card*>(nowhere);
  DEMAND(SYMBOL(lib, demarc_open_observer)(7, &card) == 2 && card == nullptr);
  DEMAND(says("there is no GPU cuda:7"));
  DEMAND(SYMBOL(lib, demarc_open)(0, &card) == 0 && card != nullptr && says(""));
  DEMAND(std::string(error()).empty());
  DEMAND(SYMBOL(lib, demarc_tpc_count)(card) == 12);
  DEMAND(SYMBOL(lib, demarc_sm_count)(card) == 24);
  DEMAND(SYMBOL(lib, demarc_gpc_count)(card) == 4);
  std::uint32_t gpc = 99;
  std::int32_t side = 99;
  DEMAND(SYMBOL(lib, demarc_gpc_of_tpc)(card, 11, &gpc) == 0 && gpc == 3);
  DEMAND(SYMBOL(lib, demarc_side_of_tpc)(card, 1, &side) == 0 && side == 1);
  DEMAND(SYMBOL(lib, demarc_side_of_tpc)(card, 0, &side) == 0 && side == 0);
  DEMAND(SYMBOL(lib, demarc_gpc_of_tpc)(card, 12, &gpc) == 1);
  DEMAND(says("there is no TPC 12; the card has 12"));
  DEMAND(SYMBOL(lib, demarc_side_of_tpc)(card, 12, &side) == 1);
  std::uint32_t sms[] = {99, 99, 99};
  std::uint32_t count = 99;
  DEMAND(SYMBOL(lib, demarc_sms_of_tpc)(card, 11, sms, 3, &count) == 0 && count == 2);
  DEMAND(sms[0] == 22 && sms[1] == 23 && sms[2] == 99);
  DEMAND(SYMBOL(lib, demarc_sms_of_tpc)(card, 1, sms, 1, &count) == 0 && count == 2);
  DEMAND(sms[0] == 2 && sms[1] == 23);
  DEMAND(SYMBOL(lib, demarc_sms_of_tpc)(card, 0, nullptr, 0, &count) == 0 && count == 2);
  DEMAND(SYMBOL(lib, demarc_sms_of_tpc)(card, 12, sms, 3, &count) == 1);
  const demarc_tpcs four = {{0x249, 0}};  // a GPC
  DEMAND(SYMBOL(lib, demarc_check_cluster)(card, &four, 8, 1) == 0);
  DEMAND(SYMBOL(lib, demarc_check_cluster)(card, &four, 9, 1) == 3);
  SYMBOL(lib, demarc_close)(card);
}

// No masks, no card; an observer needs none. The numbers of a client's launches show no side.
void refusals_through_c() {
  fake::FakeConfig config = fake::small_gpu();
  config.descriptors_pass = false;
  test::configure(config);
  void* lib = library("libdemarc.so");
  const auto says = [&](const char* words) {
    return std::string(SYMBOL(lib, demarc_error)()).find(words) != std::string::npos;
  };
  demarc_card* card = nullptr;
  DEMAND(SYMBOL(lib, demarc_open)(0, &card) == 2 && card == nullptr);
  DEMAND(says("do not pass the driver's callback"));
  config.descriptors_pass = true;
  config.virtual_sms = true;
  config.uuid = 0x31;  // another card, of which nothing is remembered
  std::snprintf(config.name, sizeof config.name, "NVIDIA H100 80GB HBM3");
  test::configure(config);
  DEMAND(SYMBOL(lib, demarc_open_observer)(0, &card) == 0);
  std::int32_t side = 99;
  DEMAND(SYMBOL(lib, demarc_side_of_tpc)(card, 1, &side) == 0 && side == -1);
  // A mask of modules alone, by the description of this card.
  const std::uint64_t masks[] = {0x1a8800};
  const demarc_share shares[] = {{1, 0}, {2, 0}};
  demarc_pool* pool = nullptr;
  DEMAND(SYMBOL(lib, demarc_pool_create)(card, masks, 1, 16 << 20, shares, 2, &pool) == 3);
  DEMAND(says("does not keep reads, writes and L2 hits of two colours apart"));
  SYMBOL(lib, demarc_close)(card);
}

void masks_through_c() {
  void* lib = library("libdemarc.so");
  demarc_card* card = nullptr;
  DEMAND(SYMBOL(lib, demarc_open)(0, &card) == 0);
  const auto outside = [&](void* stream, std::uint64_t allowed) {
    const demarc_tpcs set = {{allowed, 0}};
    std::uint64_t blocks = 1234567;
    DEMAND(SYMBOL(lib, demarc_count_outside)(card, stream, &set, &blocks) == 0);
    return blocks;
  };
  const auto of_process = [&](std::uint64_t tpcs) {
    const demarc_tpcs set = {{tpcs, 0}};
    return SYMBOL(lib, demarc_set_process_mask)(card, tpcs == 0 ? nullptr : &set);
  };
  DEMAND(outside(nullptr, 0x3f) == 48);  // half of four blocks an SM
  DEMAND(of_process(0x30) == 0 && outside(nullptr, 0x30) == 0 && outside(nullptr, 0x10) == 48);
  DEMAND(of_process(0x3) == 0 && outside(nullptr, 0x3) == 0 && outside(nullptr, 0x30) == 96);
  const demarc_tpcs none = {{0, 0}};
  DEMAND(SYMBOL(lib, demarc_set_process_mask)(card, &none) == 1 && outside(nullptr, 0x3) == 0);
  DEMAND(of_process(0) == 0 && outside(nullptr, 0x3f) == 48);
  const GpuPointer gpu = Gpu::open(test::fake_driver(), 0).value();
  const Stream stream = Stream::create(gpu).value();
  const demarc_tpcs six = {{0x40, 0}};
  const demarc_tpcs nine = {{0x200, 0}};
  const auto of_stream = SYMBOL(lib, demarc_set_stream_mask);
  DEMAND(of_stream(card, stream.handle(), &six) == 0 && outside(stream.handle(), 0x40) == 0);
  const auto of_next = SYMBOL(lib, demarc_set_next_mask);
  DEMAND(of_next(card, &nine) == 0 && outside(stream.handle(), 0x200) == 0);
  DEMAND(outside(stream.handle(), 0x40) == 0);
  DEMAND(of_next(card, &nine) == 0 && of_next(card, nullptr) == 0);
  DEMAND(outside(stream.handle(), 0x40) == 0);
  DEMAND(of_next(card, &none) == 1 && of_stream(card, nullptr, &six) == 1);
  DEMAND(of_stream(card, stream.handle(), nullptr) == 0 && outside(stream.handle(), 0x40) == 88);
  DEMAND(of_process(0x3) == 0);
  SYMBOL(lib, demarc_close)(card);
  DEMAND(SYMBOL(lib, demarc_open_observer)(0, &card) == 0);
  DEMAND(outside(nullptr, 0x3f) == 48);  // the mask went with its card
  SYMBOL(lib, demarc_close)(card);
}

// TPCs that a launch into the stream uses.
gpu::TpcSet tpcs_of_launch(const GpuPointer& gpu, CuStream stream, std::uint32_t sms = 24) {
  const auto kernels = ProbeKernels::load(gpu).value();
  const auto counts = DeviceBuffer::allocate(gpu, 4 * sms).value();
  DEMAND(counts.fill(0).has_value());
  DevicePointer address = counts.address();
  DevicePointer none = 0;
  std::uint64_t spin = 0;
  void* arguments[] = {&address, &none, &spin};
  DEMAND(gpu->api().cuLaunchKernel(kernels.where().handle(), 2 * sms, 1, 1, 32, 1, 1, 0, stream,
                                   arguments, nullptr) == 0);
  DEMAND(gpu->api().cuStreamSynchronize(stream) == 0);
  Placement placement;
  placement.blocks = counts.read<std::uint32_t>(sms).value();
  return test::tpcs_of(placement.used_sms());
}

void masks_through_libsmctrl() {
  void* lib = library("libsmctrl.so");
  const auto set_global = symbol<void(std::uint64_t)>(lib, "libsmctrl_set_global_mask");
  const auto set_next = symbol<void(std::uint64_t)>(lib, "libsmctrl_set_next_mask");
  const auto set_stream = symbol<void(void*, std::uint64_t)>(lib, "libsmctrl_set_stream_mask");
  const auto gpcs =
      symbol<int(std::uint32_t*, std::uint64_t**, int)>(lib, "libsmctrl_get_gpc_info");
  std::uint32_t count = 0;
  std::uint64_t* of_gpc = nullptr;
  DEMAND(gpcs(&count, &of_gpc, 0) == 0 && count == 4);
  DEMAND(of_gpc[0] == 0x249 && of_gpc[3] == 0x800);
  for (const char* name : {"libsmctrl_get_tpc_info", "libsmctrl_get_tpc_info_cuda"}) {
    std::uint32_t tpcs = 0;
    DEMAND(symbol<int(std::uint32_t*, int)>(lib, name)(&tpcs, 0) == 0 && tpcs == 12);
  }
  const GpuPointer gpu = Gpu::open(test::fake_driver(), 0).value();
  const Stream stream = Stream::create(gpu).value();
  using gpu::TpcSet;
  set_global(~std::uint64_t{0x30});
  DEMAND(tpcs_of_launch(gpu, nullptr) == (TpcSet{4, 5}));
  set_stream(stream.handle(), ~std::uint64_t{0x6});
  DEMAND(tpcs_of_launch(gpu, stream.handle()) == (TpcSet{1, 2}));
  set_next(~std::uint64_t{0x100});
  DEMAND(tpcs_of_launch(gpu, stream.handle()) == TpcSet{8});
  DEMAND(tpcs_of_launch(gpu, stream.handle()) == (TpcSet{1, 2}));
}

// 80 TPCs, more than a mask of 64 bits names.
fake::FakeConfig ten_gpcs_of_eight() {
  fake::FakeConfig config = fake::small_gpu();
  config.tpcs = 80;
  for (std::uint32_t t = 0; t < config.tpcs; ++t) {
    config.gpc[t] = t / 8;
    config.bit[t] = 9 * (t / 8) + t % 8;
    config.side[t] = 0;
  }
  return config;
}

// Masks of 64 bits leave no TPC from 64 on; the longer ones can.
void wide_masks_through_libsmctrl() {
  test::configure(ten_gpcs_of_eight());
  void* lib = library("libsmctrl.so");
  __extension__ using Mask = unsigned __int128;
  const auto set_next = symbol<void(std::uint64_t)>(lib, "libsmctrl_set_next_mask");
  const auto set_stream = symbol<void(void*, Mask)>(lib, "libsmctrl_set_stream_mask_ext");
  const GpuPointer gpu = Gpu::open(test::fake_driver(), 0).value();
  const Stream stream = Stream::create(gpu).value();
  using gpu::TpcSet;
  set_next(~(std::uint64_t{1} << 63 | 1));
  DEMAND(tpcs_of_launch(gpu, stream.handle(), 160) == (TpcSet{0, 63}));
  set_stream(stream.handle(), ~(Mask{1} << 70 | Mask{1} << 3));
  DEMAND(tpcs_of_launch(gpu, stream.handle(), 160) == (TpcSet{3, 70}));
  std::uint32_t count = 0;
  std::uint64_t* of_gpc = nullptr;
  const auto gpcs =
      symbol<int(std::uint32_t*, std::uint64_t**, int)>(lib, "libsmctrl_get_gpc_info");
  DEMAND(gpcs(&count, &of_gpc, 0) == 0 && count == 10);
  DEMAND(of_gpc[7] == std::uint64_t{0xff} << 56 && of_gpc[8] == 0 && of_gpc[9] == 0);
}

void wide_masks_through_c() {
  test::configure(ten_gpcs_of_eight());
  void* lib = library("libdemarc.so");
  demarc_card* card = nullptr;
  DEMAND(SYMBOL(lib, demarc_open)(0, &card) == 0);
  const GpuPointer gpu = Gpu::open(test::fake_driver(), 0).value();
  const Stream stream = Stream::create(gpu).value();
  const demarc_tpcs two = {{0x8, 0x40}};
  DEMAND(SYMBOL(lib, demarc_set_stream_mask)(card, stream.handle(), &two) == 0);
  DEMAND(tpcs_of_launch(gpu, stream.handle(), 160) == (gpu::TpcSet{3, 70}));
  SYMBOL(lib, demarc_close)(card);
}

// Twice, since what is found at the first call is kept.
void misses_are_refused(const char* tenant, const char* control, int code, const char* words) {
  for (const auto& [name, value] :
       {std::pair(tenant_variable, tenant), {control_variable, control}}) {
    if (value == nullptr) {
      ::unsetenv(name);
    } else {
      ::setenv(name, value, 1);
    }
  }
  void* lib = library("libdemarc.so");
  for (int call = 0; call < 2; ++call) {
    DEMAND(SYMBOL(lib, demarc_slo_miss)() == code);
    const std::string said = SYMBOL(lib, demarc_error)();
    demand(said.find(words) != std::string::npos, said);
  }
}

void misses_are_counted() {
  const Control control = Control::create().value();
  ::setenv(tenant_variable, "a", 1);
  ::setenv(control_variable, control.value().c_str(), 1);
  void* lib = library("libdemarc.so");
  for (int call = 0; call < 3; ++call) DEMAND(SYMBOL(lib, demarc_slo_miss)() == 0);
  DEMAND(control.block().slo_misses == 3);
}

TEST_F(SharedLibraries, slo_misses_are_counted_in_the_memory_of_a_lease) {
  EXPECT_EXIT((misses_are_counted(), std::_Exit(0)), testing::ExitedWithCode(0), "");
}

TEST_F(SharedLibraries, slo_misses_outside_of_a_lease_are_refused) {
  constexpr const char* no_lease = "this process has no lease: start the program with demarc exec";
  EXPECT_EXIT((misses_are_refused(nullptr, "/proc/1/fd/2#3", 2, no_lease), std::_Exit(0)),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT((misses_are_refused("", "/proc/1/fd/2#3", 2, no_lease), std::_Exit(0)),
              testing::ExitedWithCode(0), "")
      << "a program with TPCs alone";
  EXPECT_EXIT((misses_are_refused("a", nullptr, 2, no_lease), std::_Exit(0)),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      (misses_are_refused("a", "/proc/self/fd/9999#3", 1, "cannot be opened"), std::_Exit(0)),
      testing::ExitedWithCode(0), "")
      << "its demarc exec has ended";
}

TEST_F(SharedLibraries, tpcs_beyond_the_6_4_th_are_named_through_the_c_interface) {
  EXPECT_EXIT((wide_masks_through_c(), std::_Exit(0)), testing::ExitedWithCode(0), "");
}

TEST_F(SharedLibraries, coloured_memory_works_through_the_c_interface) {
  EXPECT_EXIT((coloured_memory_through_c(), std::_Exit(0)), testing::ExitedWithCode(0), "");
}

TEST_F(SharedLibraries, colours_that_are_remainders_work_through_the_c_interface) {
  EXPECT_EXIT((remainders_through_c(), std::_Exit(0)), testing::ExitedWithCode(0), "");
}

TEST_F(SharedLibraries, an_observer_counts_blocks_and_sets_no_masks) {
  EXPECT_EXIT((observer_through_c(), std::_Exit(0)), testing::ExitedWithCode(0), "");
}

TEST_F(SharedLibraries, what_cannot_be_divided_is_refused_through_the_c_interface) {
  EXPECT_EXIT((refusals_through_c(), std::_Exit(0)), testing::ExitedWithCode(0), "");
}

TEST_F(SharedLibraries, the_topology_is_read_through_the_c_interface) {
  EXPECT_EXIT((topology_through_c(), std::_Exit(0)), testing::ExitedWithCode(0), "");
}

TEST_F(SharedLibraries, masks_are_set_changed_and_taken_back_through_the_c_interface) {
  EXPECT_EXIT((masks_through_c(), std::_Exit(0)), testing::ExitedWithCode(0), "");
}

// As there: running on unpartitioned is not an answer.
TEST_F(SharedLibraries, a_mask_that_libsmctrl_cannot_set_ends_the_program) {
  const auto set = [](const char* name, std::uint64_t mask) {
    void* lib = library("libsmctrl.so");
    symbol<void(std::uint64_t)>(lib, name)(mask);
    std::_Exit(0);
  };
  for (const char* name : {"libsmctrl_set_global_mask", "libsmctrl_set_next_mask"}) {
    EXPECT_EXIT(set(name, ~std::uint64_t{0}), testing::ExitedWithCode(1),
                std::string(name) + ": a mask without any");
  }
  const auto set_default_stream = [] {
    void* lib = library("libsmctrl.so");
    symbol<void(void*, std::uint64_t)>(lib, "libsmctrl_set_stream_mask")(nullptr, 0);
    std::_Exit(0);
  };
  EXPECT_EXIT(set_default_stream(), testing::ExitedWithCode(1),
              "libsmctrl_set_stream_mask: the default stream has no mask");
}

TEST_F(SharedLibraries, libsmctrl_masks_of_large_cards_leave_what_they_name) {
  EXPECT_EXIT((wide_masks_through_libsmctrl(), std::_Exit(0)), testing::ExitedWithCode(0), "");
}

TEST_F(SharedLibraries, libsmctrl_masks_override_each_other_and_disable) {
  EXPECT_EXIT((masks_through_libsmctrl(), std::_Exit(0)), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace demarc::cuda
