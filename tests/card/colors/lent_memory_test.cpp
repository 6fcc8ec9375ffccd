// Physical memory that is lent by file descriptors: who may borrow it, and what is none.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/card/page_arena.hpp"
#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

constexpr std::size_t lent_page_bytes = 2 << 20;

std::int64_t alive_objects() {
  return test::fake_symbol<std::int64_t()>("fake_live_objects")();
}

// A card of a driver that is the stand-in but for what `change` does to it.
GpuPointer changed_driver(const std::function<void(DriverApi&)>& change) {
  test::configure(fake::small_gpu());
  DriverApi api = test::fake_driver()->api();
  change(api);
  return Gpu::open(Driver::from_table(api, "changed").value(), 0).value();
}

AddressRange mapped_at_any_place(const GpuPointer& gpu, const PhysicalMemory& memory) {
  AddressRange range = AddressRange::reserve(gpu, memory.bytes(), lent_page_bytes).value();
  EXPECT_TRUE(range.map(0, memory));
  EXPECT_TRUE(range.allow(0, memory.bytes()));
  return range;
}

TEST(LentMemory, has_the_same_bytes_and_the_same_slices_at_both_places) {
  const GpuPointer gpu = test::fake_gpu();
  const std::int64_t before = alive_objects();
  {
    const auto other = PhysicalMemory::create(gpu, lent_page_bytes).value();
    auto own = PhysicalMemory::create(gpu, lent_page_bytes, Lending::by_descriptor).value();
    const AddressRange first = mapped_at_any_place(gpu, own);
    auto borrowed = PhysicalMemory::borrow(gpu, own.lend().value(), lent_page_bytes).value();
    const AddressRange second = mapped_at_any_place(gpu, borrowed);
    const AddressRange third = mapped_at_any_place(gpu, other);
    ASSERT_NE(first.address(), second.address());
    std::uint32_t word = 77;
    ASSERT_EQ(gpu->api().cuMemcpyHtoD_v2(first.address() + 4096, &word, 4), 0);
    word = 0;
    ASSERT_EQ(gpu->api().cuMemcpyDtoH_v2(&word, second.address() + 4096, 4), 0);
    EXPECT_EQ(word, 77U);
    auto* true_module = test::fake_symbol<std::uint64_t(std::uint64_t)>("fake_module_of");
    bool differs = false;
    for (std::uint64_t at = 0; at < lent_page_bytes; at += 4096) {
      EXPECT_EQ(true_module(first.address() + at), true_module(second.address() + at));
      differs |= true_module(first.address() + at) != true_module(third.address() + at);
    }
    EXPECT_TRUE(differs) << "another page has slices of its own";
  }
  EXPECT_EQ(alive_objects(), before);
}

TEST(LentMemory, stays_with_its_borrower_when_the_owner_gives_it_back) {
  const GpuPointer gpu = test::fake_gpu();
  OwnedFile lent;
  {
    const auto own = PhysicalMemory::create(gpu, lent_page_bytes, Lending::by_descriptor).value();
    const AddressRange range = mapped_at_any_place(gpu, own);
    ASSERT_EQ(gpu->api().cuMemsetD8_v2(range.address(), 7, lent_page_bytes), 0);
    lent = own.lend().value();
  }
  const AddressRange range =
      mapped_at_any_place(gpu, PhysicalMemory::borrow(gpu, lent, lent_page_bytes).value());
  unsigned char last = 0;
  ASSERT_EQ(gpu->api().cuMemcpyDtoH_v2(&last, range.address() + lent_page_bytes - 1, 1), 0);
  EXPECT_EQ(last, 7U);
}

TEST(LentMemory, has_descriptors_that_no_program_inherits) {
  const GpuPointer gpu = test::fake_gpu();
  const auto own = PhysicalMemory::create(gpu, lent_page_bytes, Lending::by_descriptor).value();
  const OwnedFile lent = own.lend().value();
  EXPECT_EQ(::fcntl(lent.get(), F_GETFD), FD_CLOEXEC);
}

TEST(LentMemory, is_refused_where_it_was_not_made_to_be_lent) {
  const GpuPointer gpu = test::fake_gpu();
  EXPECT_THAT(PhysicalMemory::create(gpu, lent_page_bytes)->lend().error().message,
              HasSubstr("cannot lend memory: CUDA_ERROR"));
  EXPECT_THAT(PageArena::create(gpu, 2)->lend_page(color::ArenaPage(0)).error().message,
              HasSubstr("the pages of this arena cannot be lent"));
  const PageArena arena = PageArena::create(gpu, 2, Lending::by_descriptor).value();
  EXPECT_TRUE(arena.lend_page(color::ArenaPage(1)));
  EXPECT_THAT(arena.lend_page(color::ArenaPage(2)).error().message,
              HasSubstr("lending page 2 of an arena: it has 2"));
}

TEST(LentMemory, of_an_arena_is_the_page_that_lies_at_the_place_now) {
  const GpuPointer gpu = test::fake_gpu();
  PageArena arena = PageArena::create(gpu, 3, Lending::by_descriptor).value();
  ASSERT_EQ(gpu->api().cuMemsetD8_v2(arena.address() + 2 * lent_page_bytes, 9, lent_page_bytes), 0);
  ASSERT_TRUE(arena.arrange(std::array<std::uint32_t, 2>{2, 0}, {}, 1));
  EXPECT_TRUE(arena.lend_page(color::ArenaPage(2))) << "the page that is kept aside";
  EXPECT_FALSE(arena.lend_page(color::ArenaPage(3)));
  const AddressRange range = mapped_at_any_place(
      gpu,
      PhysicalMemory::borrow(gpu, arena.lend_page(color::ArenaPage(0)).value(), lent_page_bytes)
          .value());
  unsigned char first = 0;
  ASSERT_EQ(gpu->api().cuMemcpyDtoH_v2(&first, range.address(), 1), 0);
  EXPECT_EQ(first, 9U);
}

TEST(LentMemory, is_not_what_a_descriptor_of_anything_else_names) {
  const GpuPointer gpu = test::fake_gpu();
  const std::int64_t before = alive_objects();
  const OwnedFile none;
  EXPECT_THAT(PhysicalMemory::borrow(gpu, none, lent_page_bytes).error().message,
              HasSubstr("file descriptor -1 is not memory that can be borrowed: CUDA_ERROR"));
  const OwnedFile text(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  ASSERT_GE(text.get(), 0);
  const auto refused = PhysicalMemory::borrow(gpu, text, lent_page_bytes);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
  EXPECT_EQ(alive_objects(), before);
}

TEST(LentMemory, of_another_card_is_refused_and_given_back) {
  for (const CuMemoryLocation elsewhere : {CuMemoryLocation{CuMemoryLocation::device, 1}, {2, 0}}) {
    static CuMemoryLocation found;
    found = elsewhere;
    const GpuPointer gpu = changed_driver([](DriverApi& api) {
      api.cuMemGetAllocationPropertiesFromHandle = [](CuAllocationProperties* properties,
                                                      AllocationHandle) -> CuResult {
        properties->location = found;
        return cu_success;
      };
    });
    const auto own = PhysicalMemory::create(gpu, lent_page_bytes, Lending::by_descriptor).value();
    const std::int64_t before = alive_objects();
    EXPECT_THAT(PhysicalMemory::borrow(gpu, own.lend().value(), lent_page_bytes).error().message,
                HasSubstr("is not memory of Fake GPU"));
    EXPECT_EQ(alive_objects(), before);
  }
}

TEST(LentMemory,
     of_a_driver_that_lacks_any_part_of_it_is_refused_and_memory_of_one_process_is_not) {
  using Lose = void (*)(DriverApi&);
  for (const Lose lose :
       {Lose{[](DriverApi& api) { api.cuMemExportToShareableHandle = nullptr; }},
        Lose{[](DriverApi& api) { api.cuMemImportFromShareableHandle = nullptr; }},
        Lose{[](DriverApi& api) { api.cuMemGetAllocationPropertiesFromHandle = nullptr; }},
        Lose{[](DriverApi& api) {
          api.cuDeviceGetAttribute = [](int* value, int attribute, CuDevice) -> CuResult {
            *value = attribute == attribute_file_descriptors ? 0 : 9;
            return cu_success;
          };
        }}}) {
    const GpuPointer gpu = changed_driver(lose);
    const auto refused = PhysicalMemory::create(gpu, lent_page_bytes, Lending::by_descriptor);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message, HasSubstr("the driver lends no memory by file desc"));
    const auto memory = PhysicalMemory::create(gpu, lent_page_bytes);
    ASSERT_TRUE(memory);
    EXPECT_THAT(memory->lend().error().message, HasSubstr("lends no memory"));
    const OwnedFile none;
    EXPECT_THAT(PhysicalMemory::borrow(gpu, none, lent_page_bytes).error().message,
                HasSubstr("lends no memory"));
  }
  const GpuPointer old = changed_driver([](DriverApi& api) { api.cuMemMap = nullptr; });
  const OwnedFile none;
  EXPECT_THAT(PhysicalMemory::borrow(old, none, lent_page_bytes).error().message,
              HasSubstr("no virtual memory management"));
}

TEST(LentMemory, whose_descriptor_the_driver_does_not_open_is_refused) {
  const GpuPointer gpu = changed_driver([](DriverApi& api) {
    api.cuMemExportToShareableHandle = [](void* shareable, AllocationHandle, int,
                                          unsigned long long) -> CuResult {
      *static_cast<int*>(shareable) = -1;
      return cu_success;
    };
  });
  const auto own = PhysicalMemory::create(gpu, lent_page_bytes, Lending::by_descriptor).value();
  EXPECT_THAT(own.lend().error().message, HasSubstr("the driver lent file descriptor -1"));
}

TEST(AddressRanges, lie_where_they_are_wanted_if_that_is_free) {
  const GpuPointer gpu = test::fake_gpu();
  constexpr DevicePointer wanted = 0x4a00'0000'0000;
  {
    const auto range = AddressRange::reserve(gpu, lent_page_bytes, lent_page_bytes, wanted).value();
    EXPECT_EQ(range.address(), wanted);
    const auto second =
        AddressRange::reserve(gpu, lent_page_bytes, 8 * lent_page_bytes, wanted).value();
    EXPECT_NE(second.address(), wanted);
    EXPECT_EQ(second.address() % (8 * lent_page_bytes), 0U);
  }
  EXPECT_EQ(AddressRange::reserve(gpu, lent_page_bytes, 0, wanted)->address(), wanted);
}

}  // namespace
}  // namespace demarc::cuda
