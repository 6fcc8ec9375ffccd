// Objects of the driver: given back once, moved whole, and never touched on a card that is stuck.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "demarc/card/colored_memory.hpp"
#include "demarc/card/page_arena.hpp"
#include "demarc/driver/launch.hpp"
#include "demarc/driver/memory.hpp"
#include "pools.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

constexpr std::size_t page_of_two_mib = 2 << 20;
constexpr const char* idle_module = ".entry demarc_idle(";

std::int64_t alive() {
  return test::fake_symbol<std::int64_t()>("fake_live_objects")();
}

TEST(Objects, of_a_card_a_pool_and_a_buffer_are_all_given_back) {
  test::configure(fake::small_gpu());
  const std::int64_t before = alive();
  {
    const auto card = test::fake_card().value();
    const auto scheme = color::scheme_of_masks(test::half_mask).value();
    const auto pool =
        ColoredPool::create(card, scheme, 8 * page_of_two_mib, test::both_halves).value();
    const auto buffer = pool->allocate(0, 1000).value();
    const Event event = Event::create(card->gpu()).value();
    EXPECT_GT(alive(), before);
  }
  EXPECT_EQ(alive(), before);
}

template <class T>
T made(const GpuPointer& gpu);
template <>
DeviceBuffer made(const GpuPointer& gpu) {
  return DeviceBuffer::allocate(gpu, 4096).value();
}
template <>
HostBuffer made(const GpuPointer& gpu) {
  return HostBuffer::allocate(gpu, 4096).value();
}
template <>
PhysicalMemory made(const GpuPointer& gpu) {
  return PhysicalMemory::create(gpu, page_of_two_mib).value();
}
template <>
AddressRange made(const GpuPointer& gpu) {
  auto range = AddressRange::reserve(gpu, 2 * page_of_two_mib, page_of_two_mib).value();
  const auto memory = made<PhysicalMemory>(gpu);
  EXPECT_TRUE(range.map(page_of_two_mib, memory));
  return range;
}
template <>
Module made(const GpuPointer& gpu) {
  return Module::load(gpu, idle_module, "idle.ptx").value();
}
template <>
Stream made(const GpuPointer& gpu) {
  return Stream::create(gpu).value();
}
template <>
Event made(const GpuPointer& gpu) {
  return Event::create(gpu).value();
}

template <class T>
class MovedObjects : public testing::Test {};
using Kinds =
    testing::Types<DeviceBuffer, HostBuffer, PhysicalMemory, AddressRange, Module, Stream, Event>;
TYPED_TEST_SUITE(MovedObjects, Kinds);

TYPED_TEST(MovedObjects, is_one_object_wherever_it_is_and_the_one_in_its_place_goes) {
  const GpuPointer gpu = test::fake_gpu();
  const std::int64_t before = alive();
  {
    TypeParam one = made<TypeParam>(gpu);
    const std::int64_t with_one = alive();
    TypeParam other(std::move(one));
    EXPECT_EQ(alive(), with_one);
    one = made<TypeParam>(gpu);  // into what was moved from
    {
      TypeParam third = made<TypeParam>(gpu);
      third = std::move(other);
    }
  }
  EXPECT_EQ(alive(), before);
}

// A call on it might never return.
TYPED_TEST(MovedObjects, on_a_stuck_card_is_left_alone) {
  const GpuPointer gpu = test::fake_gpu();
  std::int64_t with_it = 0;
  {
    const TypeParam one = made<TypeParam>(gpu);
    with_it = alive();
    gpu->set_stuck();
  }
  EXPECT_EQ(alive(), with_it);
}

// Ranges with pages mapped at different places, and with none.
TEST(MovedObjects, unmaps_what_is_mapped_in_the_range_that_it_was_moved_to) {
  const GpuPointer gpu = test::fake_gpu();
  const std::int64_t before = alive();
  {
    const auto memory = made<PhysicalMemory>(gpu);
    AddressRange empty = AddressRange::reserve(gpu, page_of_two_mib, page_of_two_mib).value();
    {
      AddressRange mapped = made<AddressRange>(gpu);
      AddressRange target = AddressRange::reserve(gpu, page_of_two_mib, page_of_two_mib).value();
      ASSERT_TRUE(target.map(0, memory));
      target = std::move(mapped);
      EXPECT_TRUE(target.unmap(page_of_two_mib, page_of_two_mib));
      empty = made<AddressRange>(gpu);
    }
  }
  EXPECT_EQ(alive(), before);
}

TEST(MovedObjects, leaves_no_size_behind) {
  const GpuPointer gpu = test::fake_gpu();
  AddressRange range = made<AddressRange>(gpu);
  const AddressRange taken(std::move(range));
  EXPECT_EQ(range.bytes(), 0U);  // NOLINT(bugprone-use-after-move)
  PhysicalMemory memory = made<PhysicalMemory>(gpu);
  const PhysicalMemory held(std::move(memory));
  EXPECT_EQ(memory.bytes(), 0U);  // NOLINT(bugprone-use-after-move)
}

TEST(MovedObjects, names_the_module_that_it_was) {
  const GpuPointer gpu = test::fake_gpu();
  Module one = made<Module>(gpu);
  Module other = Module::load(gpu, idle_module, "other.ptx").value();
  one = std::move(other);
  EXPECT_THAT(one.function("none").error().message, HasSubstr("other.ptx: no kernel"));
}

TEST(MovedObjects, keeps_sizes_with_the_memory_that_they_are_of) {
  const GpuPointer gpu = test::fake_gpu();
  DeviceBuffer small = DeviceBuffer::allocate(gpu, 100).value();
  DeviceBuffer large = DeviceBuffer::allocate(gpu, 5000).value();
  const DevicePointer of_large = large.address();
  small = std::move(large);
  EXPECT_EQ(small.bytes(), 5000U);
  EXPECT_EQ(small.address(), of_large);
  DeviceBuffer third(std::move(small));
  EXPECT_EQ(third.bytes(), 5000U);
  EXPECT_EQ(small.bytes(), 0U);  // NOLINT(bugprone-use-after-move): what is left has no bytes
  HostBuffer of_host = HostBuffer::allocate(gpu, 5000).value();
  const DevicePointer shown_at = of_host.address();
  HostBuffer of_other = HostBuffer::allocate(gpu, 100).value();
  of_other = std::move(of_host);
  EXPECT_EQ(of_other.bytes().size(), 5000U);
  EXPECT_EQ(of_other.address(), shown_at);
  AddressRange wide = AddressRange::reserve(gpu, 2 * page_of_two_mib, page_of_two_mib).value();
  const DevicePointer of_wide = wide.address();
  AddressRange narrow = AddressRange::reserve(gpu, page_of_two_mib, page_of_two_mib).value();
  narrow = std::move(wide);
  EXPECT_EQ(narrow.bytes(), 2 * page_of_two_mib);
  EXPECT_EQ(narrow.address(), of_wide);
  PhysicalMemory two = PhysicalMemory::create(gpu, 2 * page_of_two_mib).value();
  PhysicalMemory one = PhysicalMemory::create(gpu, page_of_two_mib).value();
  const AllocationHandle of_two = two.handle();
  one = std::move(two);
  EXPECT_EQ(one.bytes(), 2 * page_of_two_mib);
  EXPECT_EQ(one.handle(), of_two);
}

TEST(Buffers, take_and_give_bytes_at_an_offset_and_none_beyond_their_end) {
  const DeviceBuffer buffer = DeviceBuffer::allocate(test::fake_gpu(), 16).value();
  ASSERT_TRUE(buffer.fill(7));
  const std::array<unsigned char, 4> four{1, 2, 3, 4};
  ASSERT_TRUE(buffer.upload(four.data(), 4, 12));
  const auto read = buffer.read<unsigned char>(6, 10).value();
  EXPECT_EQ(read, (std::vector<unsigned char>{7, 7, 1, 2, 3, 4}));
  for (const auto& [bytes, offset] :
       {std::pair<std::size_t, std::size_t>{4, 13}, {0, 17}, {17, 0}}) {
    std::array<unsigned char, 20> room{};
    EXPECT_THAT(buffer.upload(room.data(), bytes, offset).error().message,
                HasSubstr("do not fit into a buffer of 16"));
    EXPECT_THAT(buffer.download(room.data(), bytes, offset).error().message,
                HasSubstr("are beyond a buffer of 16"));
  }
  EXPECT_TRUE(buffer.upload(four.data(), 0, 16));
  std::array<unsigned char, 1> none{};
  EXPECT_TRUE(buffer.download(none.data(), 0, 16));
}

TEST(Buffers, of_the_host_that_the_card_cannot_see_are_given_back) {
  DriverApi api = test::fake_driver()->api();
  api.cuMemHostGetDevicePointer_v2 = [](DevicePointer*, void*, unsigned) -> CuResult { return 2; };
  const GpuPointer gpu = Gpu::open(Driver::from_table(api, "planted").value(), 0).value();
  const std::int64_t before = alive();
  EXPECT_THAT(HostBuffer::allocate(gpu, 4096).error().message, HasSubstr("cannot map host memory"));
  EXPECT_EQ(alive(), before);
}

TEST(Streams, are_done_when_their_work_is) {
  static CuResult answer = cu_success;
  DriverApi api = test::fake_driver()->api();
  api.cuStreamQuery = [](CuStream) { return answer; };
  const GpuPointer gpu = Gpu::open(Driver::from_table(api, "planted").value(), 0).value();
  const Stream stream = Stream::create(gpu).value();
  answer = cu_success;
  EXPECT_TRUE(stream.done().value());
  answer = cu_error_not_ready;
  EXPECT_FALSE(stream.done().value());
  answer = 719;
  EXPECT_EQ(stream.done().error().kind, ErrorKind::check_failed);
}

TEST(Streams, are_waited_for_within_the_limit_and_no_longer) {
  static int queries_left = 0;
  DriverApi api = test::fake_driver()->api();
  api.cuStreamQuery = [](CuStream) -> CuResult {
    return queries_left-- == 0 ? cu_success : cu_error_not_ready;
  };
  const GpuPointer gpu = Gpu::open(Driver::from_table(api, "planted").value(), 0).value();
  const Stream stream = Stream::create(gpu).value();
  queries_left = 3;
  EXPECT_TRUE(stream.wait(std::chrono::minutes(1)));
  EXPECT_FALSE(gpu->stuck());
  queries_left = -1;  // never
  EXPECT_THAT(stream.wait(std::chrono::milliseconds(0)).error().message,
              HasSubstr("work did not finish within 0 ms"));
  EXPECT_TRUE(gpu->stuck());
}

TEST(AddressRanges, are_mapped_inside_only_and_unmapped_where_they_are_mapped) {
  const GpuPointer gpu = test::fake_gpu();
  AddressRange range = AddressRange::reserve(gpu, 2 * page_of_two_mib, page_of_two_mib).value();
  const PhysicalMemory memory = PhysicalMemory::create(gpu, page_of_two_mib).value();
  EXPECT_THAT(range.map(page_of_two_mib + 1, memory).error().message,
              HasSubstr("do not fit into a range"));
  EXPECT_THAT(range.map(3 * page_of_two_mib, memory).error().message,
              HasSubstr("do not fit into a range"));
  const PhysicalMemory three = PhysicalMemory::create(gpu, 3 * page_of_two_mib).value();
  EXPECT_FALSE(range.map(0, three));
  ASSERT_TRUE(range.map(page_of_two_mib, memory));
  EXPECT_TRUE(range.allow(page_of_two_mib, page_of_two_mib));
  EXPECT_THAT(range.unmap(0, page_of_two_mib).error().message,
              HasSubstr("no mapping of 2097152 bytes"));
  EXPECT_FALSE(range.unmap(page_of_two_mib, 2 * page_of_two_mib));
  const std::int64_t mapped = alive();
  EXPECT_TRUE(range.unmap(page_of_two_mib, page_of_two_mib));
  EXPECT_EQ(alive(), mapped - 1);
  EXPECT_FALSE(range.unmap(page_of_two_mib, page_of_two_mib)) << "it is gone";
}

TEST(VirtualMemory, of_a_driver_that_lacks_any_part_of_it_is_refused) {
  using Lose = void (*)(DriverApi&);
  for (const Lose lose :
       {Lose{[](DriverApi& api) { api.cuMemCreate = nullptr; }},
        Lose{[](DriverApi& api) { api.cuMemMap = nullptr; }},
        Lose{[](DriverApi& api) { api.cuMemAddressReserve = nullptr; }},
        Lose{[](DriverApi& api) { api.cuMemSetAccess = nullptr; }},
        Lose{[](DriverApi& api) { api.cuMemGetAllocationGranularity = nullptr; }}}) {
    DriverApi api = test::fake_driver()->api();
    lose(api);
    const GpuPointer gpu = Gpu::open(Driver::from_table(api, "planted").value(), 0).value();
    EXPECT_THAT(PhysicalMemory::granularity(*gpu).error().message,
                HasSubstr("no virtual memory management"));
    EXPECT_EQ(PhysicalMemory::create(gpu, page_of_two_mib).error().kind,
              ErrorKind::missing_capability);
    EXPECT_FALSE(AddressRange::reserve(gpu, page_of_two_mib));
  }
}

TEST(PageArenas, are_arranged_only_in_pages_that_they_have_and_each_once) {
  const GpuPointer gpu = test::fake_gpu();
  EXPECT_EQ(PageArena::create(gpu, 0).error().kind, ErrorKind::invalid_input);
  PageArena arena = PageArena::create(gpu, 3).value();
  std::vector<unsigned char> last(1, 1);
  ASSERT_EQ(gpu->api().cuMemcpyDtoH_v2(last.data(), arena.address() + 3 * page_of_two_mib - 1, 1),
            0);
  EXPECT_EQ(last[0], 0U) << "it is cleared to its end";
  EXPECT_THAT(arena.arrange(std::array<std::uint32_t, 2>{0, 3}).error().message,
              HasSubstr("page 3 is not there"));
  EXPECT_THAT(arena.arrange(std::array<std::uint32_t, 2>{1, 1}).error().message,
              HasSubstr("page 1 is named twice"));
  EXPECT_EQ(arena.pages(), 3U) << "a refusal changes nothing";
  const std::int64_t whole = alive();
  ASSERT_TRUE(arena.arrange(std::array<std::uint32_t, 2>{2, 0}));
  EXPECT_EQ(arena.pages(), 2U);
  EXPECT_EQ(alive(), whole - 2) << "one page less, and its mapping";
}

TEST(PageArenas, keep_a_page_aside_that_nobody_writes_but_them) {
  const GpuPointer gpu = test::fake_gpu();
  PageArena arena = PageArena::create(gpu, 3).value();
  const std::array<std::byte, 2> bytes{std::byte{7}, std::byte{8}};
  EXPECT_EQ(arena.aside(), 0U);
  EXPECT_THAT(arena.fill_aside(0, bytes).error().message, HasSubstr("keeps aside: it has 0"));
  const std::array<std::uint32_t, 2> order{2, 0};
  EXPECT_THAT(arena.arrange(order, {}, 3).error().message, HasSubstr("page 3 is not there"));
  EXPECT_THAT(arena.arrange(order, {}, 2).error().message, HasSubstr("page 2 is named twice"));
  EXPECT_EQ(arena.aside(), 0U) << "a refusal changes nothing";
  ASSERT_TRUE(arena.arrange(order, {}, 1));
  ASSERT_TRUE(arena.fill_aside(page_of_two_mib - 2, bytes));
  for (const std::uint64_t at : {page_of_two_mib - 1, page_of_two_mib + 1}) {
    EXPECT_THAT(arena.fill_aside(at, bytes).error().message, HasSubstr("it has 2097152")) << at;
  }
  std::array<std::byte, 2> found{};
  const DevicePointer last = arena.aside() + page_of_two_mib - 2;
  ASSERT_EQ(gpu->api().cuMemcpyDtoH_v2(found.data(), last, 2), cu_success);
  EXPECT_EQ(found, bytes);
  EXPECT_NE(gpu->api().cuMemcpyHtoD_v2(last, found.data(), 2), cu_success);
}

TEST(PageArenas, let_nobody_else_have_their_guard_pages) {
  const GpuPointer gpu = test::fake_gpu();
  PageArena arena = PageArena::create(gpu, 2).value();
  ASSERT_TRUE(arena.arrange(std::array<std::uint32_t, 2>{1, 0}, {.in_front = 3, .behind = 1}));
  const auto is_free = [&](DevicePointer at) {
    return AddressRange::reserve(gpu, page_of_two_mib, page_of_two_mib, at)->address() == at;
  };
  for (const int place : {-3, -1, 2}) {
    EXPECT_FALSE(is_free(arena.address() + static_cast<std::uint64_t>(place) * page_of_two_mib));
  }
  const std::array<unsigned char, 1> byte{1};
  const DevicePointer last = arena.address() + 2 * page_of_two_mib - 1;
  EXPECT_EQ(gpu->api().cuMemcpyHtoD_v2(last, byte.data(), 1), cu_success);
}

TEST(Modules, name_what_they_lack_and_give_nothing_for_it) {
  const GpuPointer gpu = test::fake_gpu();
  const Module module = Module::load(gpu, idle_module, "idle.ptx").value();
  EXPECT_TRUE(module.function("demarc_idle"));
  EXPECT_THAT(module.function("other").error().message, HasSubstr("idle.ptx: no kernel 'other'"));
  EXPECT_THAT(module.global("table").error().message, HasSubstr("idle.ptx: no variable 'table'"));
}

}  // namespace
}  // namespace demarc::cuda
