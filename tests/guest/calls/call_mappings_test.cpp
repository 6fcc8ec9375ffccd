// Memory that a program reserves, creates and maps.
#include "lent_pools.hpp"
#include "program_on_share.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t granule = std::size_t{2} << 20U;

struct LargerPool {
  std::shared_ptr<ColoredPool> pool = test::lent_parities(std::vector<std::uint32_t>(16));
};

// Of half of 32 MiB.
class MappingsOfPrograms : public testing::Test, LargerPool, public test::ProgramOnShare {
 protected:
  MappingsOfPrograms() : ProgramOnShare(*pool) {}
  void TearDown() override { serve(false); }
  using Handle = unsigned long long;
  CuAllocationProperties pinned{
      CuAllocationProperties::pinned, 0, {CuMemoryLocation::device, 0}, nullptr, {}};
  CuAccess read_write{{CuMemoryLocation::device, 0}, CuAccess::read_write};

  std::optional<CuResult> reserve(DevicePointer* address, std::size_t bytes,
                                  std::size_t alignment = 0, unsigned long long flags = 0) {
    return ask("cuMemAddressReserve", address, bytes, alignment, DevicePointer{0}, flags);
  }
  DevicePointer reserved(std::size_t bytes) {
    DevicePointer address = 0;
    EXPECT_EQ(reserve(&address, bytes), cu_success);
    EXPECT_TRUE(in_window(address) && in_window(address + bytes - 1));
    EXPECT_EQ(address % granule, 0U);
    return address;
  }
  std::optional<CuResult> create(Handle* handle, std::size_t bytes) {
    return ask("cuMemCreate", handle, bytes, &pinned, 0ULL);
  }
  Handle created(std::size_t bytes) {
    Handle handle = 0;
    EXPECT_EQ(create(&handle, bytes), cu_success);
    return handle;
  }
  std::optional<CuResult> map(DevicePointer address, std::size_t bytes, Handle handle,
                              std::size_t offset = 0) {
    return ask("cuMemMap", address, bytes, offset, handle, 0ULL);
  }
  std::optional<CuResult> unmap(DevicePointer address, std::size_t bytes) {
    return ask("cuMemUnmap", address, bytes);
  }
  std::optional<CuResult> give_back(DevicePointer address, std::size_t bytes) {
    return ask("cuMemAddressFree", address, bytes);
  }
  std::optional<CuResult> allow(DevicePointer address, std::size_t bytes) {
    return ask("cuMemSetAccess", address, bytes, &read_write, std::size_t{1});
  }
};

TEST_F(MappingsOfPrograms, hold_what_kernels_write) {
  const DevicePointer a = reserved(2 * granule);
  const Handle first = created(granule);
  const Handle second = created(granule);
  EXPECT_NE(first, second);
  EXPECT_EQ(map(a, granule, first), cu_success);
  EXPECT_EQ(map(a + granule, granule, second), cu_success);
  EXPECT_EQ(allow(a, 2 * granule), cu_success);
  unsigned long long flags = 0;
  EXPECT_EQ(ask("cuMemGetAccess", &flags, &read_write.location, a + granule + 7), cu_success);
  EXPECT_EQ(flags, 3U);
  const CuModule module =
      loaded(test::module_head +
             test::kernel_of("k", "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 7;"));
  ASSERT_EQ(launch_line(function_of(module, "k"), 1, 1, a + granule), cu_success);
  EXPECT_EQ(read<std::uint32_t>(a + granule, 1)[0], 7U);
  EXPECT_EQ(ask("cuMemRelease", first), cu_success);
  EXPECT_EQ(ask("cuMemRelease", second), cu_success);
  EXPECT_EQ(ask("cuMemRelease", second), cu_error_invalid_value);
  EXPECT_EQ(read<std::uint32_t>(a + granule, 1)[0], 7U) << "it lives as long as it is mapped";
  EXPECT_EQ(unmap(a, 2 * granule), cu_success);
  EXPECT_EQ(allow(a, granule), cu_error_invalid_value);
  EXPECT_EQ(give_back(a, 2 * granule), cu_success);
  EXPECT_EQ(api.cuModuleUnload(module), cu_success);
  EXPECT_EQ(taken, 0U);
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(MappingsOfPrograms, take_their_bytes_with_the_range) {
  DevicePointer address = 0;
  const std::size_t all = window_bytes / granule * granule;
  EXPECT_EQ(reserve(&address, all + granule), cu_error_out_of_memory);
  EXPECT_EQ(reserve(&address, ~std::size_t{0} / granule * granule), cu_error_out_of_memory);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_THAT(told[0], HasSubstr("a reserved range takes its bytes at once"));
  const DevicePointer a = reserved(granule);
  std::size_t free = 0;
  ASSERT_EQ(api.cuMemGetInfo_v2(&free, nullptr), cu_success);
  EXPECT_LE(free, window_bytes - granule);
  EXPECT_EQ(give_back(a, 2 * granule), cu_error_invalid_value);
  EXPECT_EQ(give_back(a + granule, granule), cu_error_invalid_value);
  EXPECT_EQ(map(a, granule, created(granule)), cu_success);
  EXPECT_EQ(give_back(a, granule), cu_error_invalid_value) << "something is mapped there";
  EXPECT_EQ(unmap(a, granule), cu_success);
  own.cuCtxSynchronize = []() -> CuResult { return 700; };
  EXPECT_EQ(give_back(a, granule), 700);
  own.cuCtxSynchronize = api.cuCtxSynchronize;
  EXPECT_EQ(give_back(a, granule), cu_success);
  EXPECT_EQ(give_back(a, granule), cu_error_invalid_value);
  EXPECT_EQ(taken, 0U);
}

TEST_F(MappingsOfPrograms, have_one_place) {
  const DevicePointer a = reserved(granule);
  const DevicePointer b = reserved(2 * granule);
  const Handle handle = created(granule);
  EXPECT_EQ(map(b, granule, created(2 * granule)), cu_error_not_supported);
  EXPECT_THAT(last_told(), HasSubstr("a part of an allocation"));
  EXPECT_EQ(map(a, granule, handle, granule), cu_error_not_supported);
  EXPECT_EQ(map(a, granule, handle), cu_success);
  EXPECT_EQ(map(b, granule, handle), cu_error_not_supported);
  EXPECT_THAT(last_told(), HasSubstr("cannot be mapped at a second one"));
  EXPECT_EQ(unmap(a, granule), cu_success);
  EXPECT_EQ(map(b, granule, handle), cu_error_not_supported) << "its bytes lie at the first one";
  EXPECT_EQ(map(a, granule, handle), cu_success);
  EXPECT_EQ(unmap(a, granule), cu_success);
  EXPECT_EQ(give_back(a, granule), cu_success);
  const DevicePointer again = reserved(granule);
  EXPECT_EQ(again, a) << "where the next case can be seen";
  EXPECT_EQ(map(again, granule, handle), cu_error_not_supported) << "its bytes are gone";
  EXPECT_EQ(ask("cuMemRelease", handle), cu_success);
  EXPECT_EQ(map(again, granule, handle), cu_error_invalid_value);
}

TEST_F(MappingsOfPrograms, that_cannot_be_are_errors) {
  DevicePointer address = 0;
  Handle handle = 0;
  EXPECT_EQ(reserve(nullptr, granule), cu_error_invalid_value);
  EXPECT_EQ(reserve(&address, 0), cu_error_invalid_value);
  EXPECT_EQ(reserve(&address, granule + 512), cu_error_invalid_value);
  EXPECT_EQ(reserve(&address, granule, 3 * granule), cu_error_invalid_value);
  EXPECT_EQ(reserve(&address, granule, 0, 1), cu_error_invalid_value);
  EXPECT_EQ(reserve(&address, granule, 4 * granule), cu_success);
  EXPECT_EQ(address % (4 * granule), 0U);
  EXPECT_EQ(create(nullptr, granule), cu_error_invalid_value);
  EXPECT_EQ(create(&handle, 100), cu_error_invalid_value);
  EXPECT_EQ(ask("cuMemCreate", &handle, granule, nullptr, 0ULL), cu_error_invalid_value);
  pinned.handle_types = CuAllocationProperties::file_descriptor;
  EXPECT_EQ(create(&handle, granule), cu_error_not_supported);
  EXPECT_THAT(last_told(), HasSubstr("only by cuIpcGetMemHandle"));
  pinned.handle_types = 0;
  pinned.location.type = 2;
  EXPECT_EQ(create(&handle, granule), cu_error_not_supported);
  pinned.location.type = CuMemoryLocation::device;
  pinned.type = 2;
  EXPECT_EQ(create(&handle, granule), cu_error_not_supported);
  EXPECT_THAT(last_told(), HasSubstr("has a colour"));
  pinned.type = CuAllocationProperties::pinned;
  const Handle good = created(granule);
  EXPECT_EQ(map(address, granule, good + 1), cu_error_invalid_value);
  EXPECT_EQ(map(address + granule, granule, good), cu_error_invalid_value) << "not reserved";
  EXPECT_EQ(map(address - granule, granule, good), cu_error_invalid_value);
  EXPECT_EQ(map(address + 512, granule, good), cu_error_invalid_value);
  EXPECT_EQ(map(address, 0, good), cu_error_invalid_value);
  EXPECT_EQ(map(address, 2 * granule, good), cu_error_invalid_value);
  EXPECT_EQ(unmap(address, granule), cu_error_invalid_value);
  EXPECT_EQ(map(address, granule, good), cu_success);
  EXPECT_EQ(map(address, granule, created(granule)), cu_error_invalid_value) << "taken";
  EXPECT_EQ(unmap(address, granule / 2), cu_error_invalid_value);
  EXPECT_EQ(unmap(address, 0), cu_error_invalid_value);
  EXPECT_EQ(unmap(address, 2 * granule), cu_error_invalid_value);
  EXPECT_EQ(allow(address, 2 * granule), cu_error_invalid_value);
  EXPECT_EQ(allow(address, 0), cu_error_invalid_value);
  EXPECT_EQ(ask("cuMemSetAccess", address, granule, nullptr, std::size_t{1}),
            cu_error_invalid_value);
  read_write.flags = 1;
  EXPECT_EQ(allow(address, granule), cu_error_not_supported);
  read_write.flags = CuAccess::read_write;
  read_write.location.type = 2;
  EXPECT_EQ(allow(address, granule), cu_error_not_supported);
  EXPECT_THAT(last_told(), HasSubstr("only its own card can read and write coloured memory"));
  const CuAccess both[] = {{{CuMemoryLocation::device, 0}, CuAccess::read_write}, read_write};
  const CuAccess reversed[] = {both[1], both[0]};
  for (const CuAccess* two : {both, reversed}) {
    EXPECT_EQ(ask("cuMemSetAccess", address, granule, two, std::size_t{2}), cu_error_not_supported);
  }
  EXPECT_EQ(ask("cuMemSetAccess", address, granule, both, std::size_t{1}), cu_success);
  unsigned long long flags = 0;
  EXPECT_EQ(ask("cuMemGetAccess", &flags, nullptr, address + granule), cu_error_invalid_value);
  EXPECT_EQ(ask("cuMemGetAccess", nullptr, nullptr, address), cu_error_invalid_value);
  EXPECT_EQ(ask("cuMemRelease", Handle{99}), cu_error_invalid_value);
}

TEST_F(MappingsOfPrograms, are_unmapped_only_where_they_lie_and_not_behind_the_last_address) {
  const DevicePointer a = reserved(2 * granule);
  for (const DevicePointer place : {a, a + granule}) {
    EXPECT_EQ(map(place, granule, created(granule)), cu_success);
  }
  for (const DevicePointer end : {DevicePointer{0}, DevicePointer{1}, a, a + granule}) {
    EXPECT_EQ(allow(a + granule, end - (a + granule)), cu_error_invalid_value) << end;
    EXPECT_EQ(unmap(a + granule, end - (a + granule)), cu_error_invalid_value) << end;
  }
  EXPECT_EQ(unmap(a + 512, granule), cu_error_invalid_value) << "it would be the second one";
  unsigned long long flags = 0;
  EXPECT_EQ(ask("cuMemGetAccess", &flags, nullptr, ~DevicePointer{0}), cu_error_invalid_value);
  EXPECT_EQ(allow(a, 2 * granule), cu_success) << "all of it is still mapped";
}

TEST_F(MappingsOfPrograms, lie_beside_each_other_and_not_on_each_other) {
  const DevicePointer a = reserved(4 * granule);
  EXPECT_EQ(map(a + 2 * granule, granule, created(granule)), cu_success);
  const Handle two = created(2 * granule);
  EXPECT_EQ(map(a + granule, 2 * granule, two), cu_error_invalid_value) << "its end is taken";
  EXPECT_EQ(map(a + 2 * granule, 2 * granule, two), cu_error_invalid_value) << "its begin is taken";
  EXPECT_EQ(map(a, 4 * granule, created(4 * granule)), cu_error_invalid_value) << "it lies within";
  EXPECT_EQ(map(a, 2 * granule, two), cu_success) << "before it";
  EXPECT_EQ(map(a + granule, granule, created(granule)), cu_error_invalid_value);
  EXPECT_EQ(map(a + 3 * granule, granule, created(granule)), cu_success) << "behind it";
  EXPECT_EQ(map(a + 3 * granule, 2 * granule, created(2 * granule)), cu_error_invalid_value)
      << "its end is not reserved";
  EXPECT_EQ(give_back(a, 4 * granule), cu_error_invalid_value);
  EXPECT_EQ(unmap(a, 4 * granule), cu_success);
  EXPECT_EQ(give_back(a, 4 * granule), cu_success);
  EXPECT_EQ(taken, 0U);
}

TEST_F(MappingsOfPrograms, with_a_hole_between_them_are_not_one) {
  const DevicePointer a = reserved(3 * granule);
  EXPECT_EQ(map(a, granule, created(granule)), cu_success);
  EXPECT_EQ(map(a + 2 * granule, granule, created(granule)), cu_success);
  EXPECT_EQ(allow(a, 3 * granule), cu_error_invalid_value);
  EXPECT_EQ(allow(a + granule, 2 * granule), cu_error_invalid_value);
  EXPECT_EQ(allow(a, granule), cu_success);
  EXPECT_EQ(allow(a + 2 * granule, granule), cu_success);
}

TEST_F(MappingsOfPrograms, are_released_once) {
  const DevicePointer a = reserved(granule);
  for (const bool is_mapped : {false, true}) {
    const Handle one = created(granule);
    EXPECT_TRUE(!is_mapped || map(a, granule, one) == cu_success);
    EXPECT_EQ(ask("cuMemRelease", one), cu_success);
    EXPECT_EQ(ask("cuMemRelease", one), cu_error_invalid_value);
  }
}

TEST_F(MappingsOfPrograms, keep_their_place_when_another_range_is_given_back) {
  const DevicePointer a = reserved(granule);
  const DevicePointer b = reserved(granule);
  const DevicePointer c = reserved(granule);
  const Handle of_a = created(granule);
  const Handle of_c = created(granule);
  for (const auto& [place, handle] : {std::pair{a, of_a}, std::pair{c, of_c}}) {
    EXPECT_EQ(map(place, granule, handle), cu_success);
    EXPECT_EQ(unmap(place, granule), cu_success);
  }
  EXPECT_EQ(give_back(b, granule), cu_success);
  EXPECT_EQ(map(a, granule, of_a), cu_success);
  EXPECT_EQ(map(c, granule, of_c), cu_success);
}

}  // namespace
}  // namespace demarc::cuda
