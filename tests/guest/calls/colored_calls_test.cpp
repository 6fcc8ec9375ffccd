// A program that knows nothing of colours calls the driver; its memory and kernels lie in a share.
#include "program_on_share.hpp"
#include "small_kernels.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ProgramsInRemainders : public test::ProgramCalls<test::ColorKind::remainders> {};
class ProgramsInParities : public test::ProgramCalls<test::ColorKind::parities> {};

void scale_works(test::ProgramOnShare& program) {
  constexpr std::uint32_t count = 20000;
  const DevicePointer a = program.allocated(4 * count);
  const DevicePointer b = program.allocated(4 * count);
  std::vector<std::uint32_t> values(count);
  for (std::uint32_t i = 0; i < count; ++i) values[i] = i * 77;
  program.write(a, values);
  const CuModule module = program.loaded(std::string(test::module_head) + test::scale_entry);
  ASSERT_EQ(
      program.launch_line(program.function_of(module, "scale"), count / 128 + 1, 128, a, b, count),
      cu_success);
  ASSERT_EQ(program.api.cuCtxSynchronize(), cu_success);
  for (std::uint32_t i = 0; i < count; ++i) values[i] = 3 * values[i] + i;
  EXPECT_EQ(program.read<std::uint32_t>(b, count), values);
  EXPECT_EQ(program.api.cuModuleUnload(module), cu_success);
  EXPECT_EQ(program.api.cuMemFree_v2(a), cu_success);
  EXPECT_EQ(program.api.cuMemFree_v2(b), cu_success);
  EXPECT_EQ(program.api.cuMemFree_v2(b), cu_error_invalid_value);
  EXPECT_EQ(program.taken, 0U) << "all of the share is given back";
  EXPECT_THAT(program.told, IsEmpty());
}

TEST_F(ProgramsInRemainders, kernels_work_as_they_do_without_colours) {
  scale_works(*this);
}

TEST_F(ProgramsInParities, kernels_work_as_they_do_without_colours) {
  scale_works(*this);
}

TEST(ProgramsBeyondTheirShare, end_with_an_illegal_address) {
  const test::ForeignHalf half(test::ColorKind::remainders);
  test::ProgramOnShare program(*half.pool());
  const DevicePointer a = program.allocated(4096);
  const CuModule module =
      program.loaded(test::module_head +
                     test::kernel_of("k", "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 7;"));
  const CuFunction k = program.function_of(module, "k");
  ASSERT_EQ(program.launch_line(k, 1, 1, a), cu_success);
  EXPECT_EQ(program.read<std::uint32_t>(a, 1)[0], 7U);
  static_cast<void>(program.launch_line(k, 1, 1, program.window + 4 * program.window_bytes));
  EXPECT_NE(program.api.cuCtxSynchronize(), cu_success);
  program.serve(false);
  test::configure(fake::small_gpu());  // the context is broken
}

TEST_F(ProgramsInRemainders, functions_that_cannot_keep_to_the_share_are_refused_by_name) {
  for (const auto& [name, why] :
       {std::pair{"cuMemAllocManaged", "managed memory"},
        std::pair{"cuArrayCreate_v2", "textures and arrays"},
        std::pair{"cuMemExportToShareableHandle", "only by cuIpcGetMemHandle"},
        std::pair{"cuMulticastCreate", "mapping memory"},
        std::pair{"cuTexObjectCreate", "textures and arrays"},
        std::pair{"cuGraphAddMemAllocNode", "that a graph allocates"},
        std::pair{"cuMemAlloc", "its version, is not known"},
        std::pair{"cuSomethingNew_v3", "is not known"}}) {
    told.clear();
    EXPECT_EQ(ask(name, nullptr, nullptr, nullptr), cu_error_not_supported) << name;
    ASSERT_EQ(told.size(), 1U) << name;
    EXPECT_THAT(told[0], testing::StartsWith(std::string(name) + " was refused: "));
    EXPECT_THAT(told[0], HasSubstr(why));
  }
  EXPECT_EQ(counters.refused, 8U);
  const auto names = record->names();
  ASSERT_EQ(names.size(), 8U);
  for (const RecordedName& one : names) {
    EXPECT_EQ(one.what, Recorded::refused_call);
    EXPECT_EQ(one.count, 1U) << one.name;
    EXPECT_NE(one.why, "") << one.name;
  }
  told.clear();
  EXPECT_EQ(ask("cuCtxSynchronize"), std::nullopt);
  EXPECT_EQ(ask("cuStreamCreate"), std::nullopt);
  EXPECT_THAT(told, IsEmpty());
  EXPECT_EQ(counters.answered, 0U);
  EXPECT_EQ(api.cuMemFree_v2(allocated(4)), cu_success);
  EXPECT_EQ(counters.answered, 2U);
  EXPECT_EQ(counters.refused, 8U);
}

}  // namespace
}  // namespace demarc::cuda
