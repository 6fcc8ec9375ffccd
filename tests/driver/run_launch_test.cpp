// A whole launch on the stand-in for libcuda, which carries out the probe kernels alone.
#include "demarc/driver/run_launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "demarc/driver/launch.hpp"
#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

// demarc_self_lines(lines, bytes a line, count) writes its own address into every line.
gpu::Launch self_lines(const char* kernel) {
  return gpu::parse_launch({.ptx = "lines.ptx",
                            .kernel = kernel,
                            .grid = "2",
                            .block = "32",
                            .arguments = "buf:512:iota,u64:128,u32:3"})
      .value();
}
const char* const lines_ptx = ".visible .entry demarc_self_lines(.param .u64 p0) { ret; }";

TEST(RunLaunch, fills_the_buffers_runs_the_kernels_and_reads_back) {
  const auto run =
      run_launch(test::fake_gpu(), self_lines("demarc_self_lines"), lines_ptx, "lines.ptx");
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_EQ(run->buffers.size(), 1U);
  std::uint64_t words[64];
  ASSERT_EQ(run->buffers[0].size(), sizeof words);
  std::memcpy(words, run->buffers[0].data(), sizeof words);
  for (std::uint64_t line = 0; line < 3; ++line)
    EXPECT_EQ(words[16 * line], run->addresses[0] + 128 * line);
  // What no kernel wrote holds the first content: 32-bit words that count up.
  EXPECT_EQ(words[48], 0x6100000060U);
  ASSERT_EQ(run->kernels.size(), 1U);
  EXPECT_EQ(run->kernels[0].kernel, "demarc_self_lines");
  EXPECT_EQ(run->kernels[0].milliseconds, 1);
}

// A card without room for the buffer: only host memory can hold it.
TEST(RunLaunch, buffers_of_the_host_take_no_memory_of_the_card) {
  fake::FakeConfig full = fake::small_gpu();
  full.memory_bytes = 256;
  gpu::Launch launch = self_lines("demarc_self_lines");
  EXPECT_FALSE(run_launch(test::fake_gpu(full), launch, lines_ptx, "lines.ptx"));
  launch.buffers[0].host = true;
  const auto run = run_launch(test::fake_gpu(full), launch, lines_ptx, "lines.ptx");
  ASSERT_TRUE(run) << run.error().message;
  std::uint64_t words[64];
  std::memcpy(words, run->buffers[0].data(), sizeof words);
  EXPECT_EQ(words[16], run->addresses[0] + 128);
  EXPECT_EQ(words[48], 0x6100000060U);
}

TEST(RunLaunch, asks_for_shared_memory_beyond_what_every_kernel_has) {
  for (const char* bytes : {"1024", "49152", "49153", "200000"}) {
    gpu::Launch launch = self_lines("demarc_self_lines");
    launch.kernels[0].dynamic_shared_bytes = static_cast<std::uint32_t>(std::atoi(bytes));
    const auto run = run_launch(test::fake_gpu(), launch, lines_ptx, "lines.ptx");
    EXPECT_TRUE(run) << bytes << ": " << run.error().message;
  }
  gpu::Launch launch = self_lines("demarc_self_lines");
  launch.kernels[0].dynamic_shared_bytes = 400000;
  const auto refused = run_launch(test::fake_gpu(), launch, lines_ptx, "lines.ptx");
  EXPECT_THAT(refused.error().message,
              HasSubstr("cannot set an attribute of kernel 'demarc_self_lines'"));
}

// What the driver is asked for, past all that the stand-in would notice.
struct Asked {
  std::uint32_t grid[3], block[3], shared, attributes;
  CuLaunchAttribute attribute[2];
};
Asked asked;  // by the last launch

GpuPointer listening_gpu() {
  DriverApi api = test::fake_driver()->api();
  api.cuLaunchKernel = [](CuFunction, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, CuStream, void**, void**) {
    asked = {{gx, gy, gz}, {bx, by, bz}, shared, 0, {}};
    return cu_success;
  };
  api.cuLaunchKernelEx = [](const CuLaunchConfig* config, CuFunction, void**, void**) {
    asked = {{config->grid[0], config->grid[1], config->grid[2]},
             {config->block[0], config->block[1], config->block[2]},
             config->shared_bytes,
             config->attribute_count,
             {}};
    for (unsigned i = 0; i < config->attribute_count; ++i) {
      asked.attribute[i] = config->attributes[i];
    }
    return cu_success;
  };
  return Gpu::open(Driver::from_table(api, "listening").value(), 0).value();
}

TEST(LaunchShapes, reach_the_driver_as_they_are) {
  const GpuPointer gpu = listening_gpu();
  const Module module = Module::load(gpu, lines_ptx, "lines.ptx").value();
  const Function function = module.function("demarc_self_lines").value();
  const Stream stream = Stream::create(gpu).value();
  LaunchShape shape{{2, 3, 4}, {5, 6, 7}, 89, {0, 1, 1}, false};
  const auto as_it_is = [&] {
    ASSERT_TRUE(launch(stream, function, shape));
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(asked.grid[i], shape.grid[i]);
      EXPECT_EQ(asked.block[i], shape.block[i]);
    }
    EXPECT_EQ(asked.shared, 89U);
  };
  as_it_is();
  EXPECT_EQ(asked.attributes, 0U);
  shape.cluster[0] = 2;
  as_it_is();
  ASSERT_EQ(asked.attributes, 1U);
  EXPECT_EQ(asked.attribute[0].id, CuLaunchAttribute::cluster_dimension);
  EXPECT_EQ(asked.attribute[0].value.cluster[0], 2U);
  EXPECT_EQ(asked.attribute[0].value.cluster[1], 1U);
  EXPECT_EQ(asked.attribute[0].value.cluster[2], 1U);
  shape.overlapped = true;
  as_it_is();
  ASSERT_EQ(asked.attributes, 2U);
  EXPECT_EQ(asked.attribute[1].id, CuLaunchAttribute::programmatic_serialization);
  EXPECT_EQ(asked.attribute[1].value.flag, 1);
  shape.cluster[0] = 0;
  as_it_is();
  ASSERT_EQ(asked.attributes, 1U);
  EXPECT_EQ(asked.attribute[0].id, CuLaunchAttribute::programmatic_serialization);
}

TEST(RunLaunch, gives_the_driver_every_dimension) {
  gpu::Launch launch = gpu::parse_launch({.ptx = "lines.ptx",
                                          .kernel = "demarc_self_lines",
                                          .grid = "2,3,4",
                                          .block = "5,6,7",
                                          .arguments = "buf:512:iota,u64:128,u32:3"})
                           .value();
  launch.kernels[0].dynamic_shared_bytes = 91;
  ASSERT_TRUE(run_launch(listening_gpu(), launch, lines_ptx, "lines.ptx"));
  EXPECT_THAT(asked.grid, testing::ElementsAre(2, 3, 4));
  EXPECT_THAT(asked.block, testing::ElementsAre(5, 6, 7));
  EXPECT_EQ(asked.shared, 91U);
  EXPECT_EQ(asked.attributes, 0U);
  launch.kernels[0].cluster = gpu::Dim3{2, 1, 4};
  ASSERT_TRUE(run_launch(listening_gpu(), launch, lines_ptx, "lines.ptx"));
  ASSERT_EQ(asked.attributes, 1U);
  EXPECT_EQ(asked.attribute[0].id, CuLaunchAttribute::cluster_dimension);
  EXPECT_EQ(asked.attribute[0].value.cluster[0], 2U);
  EXPECT_EQ(asked.attribute[0].value.cluster[1], 1U);
  EXPECT_EQ(asked.attribute[0].value.cluster[2], 4U);
}

TEST(LaunchShapes, with_attributes_are_refused_by_a_driver_that_has_none) {
  DriverApi api = test::fake_driver()->api();
  api.cuLaunchKernelEx = nullptr;
  const GpuPointer gpu = Gpu::open(Driver::from_table(api, "old").value(), 0).value();
  const Module module = Module::load(gpu, lines_ptx, "lines.ptx").value();
  const Function function = module.function("demarc_self_lines").value();
  const Stream stream = Stream::create(gpu).value();
  LaunchShape shape = LaunchShape::line(2, 32);
  const DeviceBuffer buffer = DeviceBuffer::allocate(gpu, 128).value();
  EXPECT_TRUE(launch(stream, function, shape, buffer.address(), std::uint64_t{128}, 1U));
  for (const std::uint32_t cluster : {1U, 2U}) {
    shape.cluster[0] = cluster;
    EXPECT_THAT(launch(stream, function, shape).error().message,
                HasSubstr("no launches with attributes"));
  }
}

struct AskedMap {
  int type, swizzle, fill, interleave;
  unsigned dimensions;
  DevicePointer address;
  std::vector<std::uint64_t> dims, strides;
  std::vector<std::uint32_t> box, element_strides;
  std::vector<std::byte> argument;  // of the kernel
};
AskedMap asked_map;

gpu::Launch launch_with_map() {
  gpu::Launch launch = gpu::parse_launch({.ptx = "lines.ptx",
                                          .kernel = "demarc_self_lines",
                                          .grid = "1",
                                          .block = "32",
                                          .arguments = "buf:512:iota,u64:128,u32:3"})
                           .value();
  gpu::TensorMap map;
  map.offset = 64;
  map.type = gpu::TensorType::bf16;
  map.dims = {32, 4};
  map.strides = {64};
  map.box = {16, 2};
  map.element_strides = {1, 2};
  map.swizzled_bytes = 32;
  map.fill_nan = true;
  launch.kernels[0].arguments[0] = map;
  return launch;
}

TEST(RunLaunch, refuses_textures_by_name_before_any_kernel_runs) {
  gpu::Launch launch = self_lines("demarc_self_lines");
  launch.kernels.push_back(launch.kernels[0]);
  gpu::Image texture;
  texture.size = {4, 4, 1};
  texture.pitch = 16;
  texture.sampling.emplace();
  launch.images.push_back(texture);
  launch.kernels[1].arguments[0] = gpu::ImageUse{0};
  asked = {};
  const auto run = run_launch(listening_gpu(), launch, lines_ptx, "lines.ptx");
  ASSERT_FALSE(run);
  EXPECT_EQ(asked.grid[0], 0U) << "the first kernel, which takes none, was launched";
  EXPECT_EQ(run.error().kind, ErrorKind::invalid_input);
  EXPECT_EQ(run.error().message,
            "kernel 'demarc_self_lines': the launch gives it a texture or a surface, which `demarc "
            "run` does not take");
}

TEST(RunLaunch, asks_the_driver_for_tensor_maps) {
  DriverApi api = test::fake_driver()->api();
  api.cuTensorMapEncodeTiled = [](void* map, int type, unsigned dimensions, DevicePointer address,
                                  const std::uint64_t* dims, const std::uint64_t* strides,
                                  const std::uint32_t* box, const std::uint32_t* element_strides,
                                  int interleave, int swizzle, int, int fill) -> CuResult {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(map) % 64, 0U);
    std::memset(map, 0x5a, gpu::tensor_map_bytes);
    asked_map = {type,
                 swizzle,
                 fill,
                 interleave,
                 dimensions,
                 address,
                 {dims, dims + dimensions},
                 {strides, strides + dimensions - 1},
                 {box, box + dimensions},
                 {element_strides, element_strides + dimensions},
                 {}};
    return cu_success;
  };
  api.cuLaunchKernel = [](CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, CuStream, void** arguments, void**) -> CuResult {
    const auto* bytes = static_cast<const std::byte*>(arguments[0]);
    asked_map.argument.assign(bytes, bytes + gpu::tensor_map_bytes);
    return cu_success;
  };
  const GpuPointer gpu = Gpu::open(Driver::from_table(api, "mapping").value(), 0).value();
  const auto run = run_launch(gpu, launch_with_map(), lines_ptx, "lines.ptx");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(asked_map.type, 9);
  EXPECT_EQ(asked_map.swizzle, 1);
  EXPECT_EQ(asked_map.fill, 1);
  EXPECT_EQ(asked_map.interleave, 0);
  EXPECT_EQ(asked_map.address, run->addresses[0] + 64);
  EXPECT_THAT(asked_map.dims, testing::ElementsAre(32, 4));
  EXPECT_THAT(asked_map.strides, testing::ElementsAre(64));
  EXPECT_THAT(asked_map.box, testing::ElementsAre(16, 2));
  EXPECT_THAT(asked_map.element_strides, testing::ElementsAre(1, 2));
  EXPECT_EQ(asked_map.argument, std::vector<std::byte>(gpu::tensor_map_bytes, std::byte{0x5a}));
  api.cuTensorMapEncodeTiled = nullptr;
  const GpuPointer old = Gpu::open(Driver::from_table(api, "old").value(), 0).value();
  EXPECT_THAT(run_launch(old, launch_with_map(), lines_ptx, "lines.ptx").error().message,
              HasSubstr("the driver has no tensor maps"));
}

int large_clusters_asked = 0;

TEST(RunLaunch, asks_for_clusters_only_beyond_8_blocks) {
  DriverApi api = test::fake_driver()->api();
  api.cuFuncSetAttribute = [](CuFunction, int attribute, int value) -> CuResult {
    if (attribute == function_non_portable_cluster) large_clusters_asked += value;
    return cu_success;
  };
  const GpuPointer gpu = Gpu::open(Driver::from_table(api, "counting").value(), 0).value();
  for (const auto& [blocks, asked_for] : {std::pair{8U, 0}, std::pair{9U, 1}}) {
    gpu::Launch launch = self_lines("demarc_self_lines");
    launch.kernels[0].grid = {2 * blocks, 1, 1};
    launch.kernels[0].cluster = gpu::Dim3{blocks, 1, 1};
    large_clusters_asked = 0;
    [[maybe_unused]] const auto run = run_launch(gpu, launch, lines_ptx, "lines.ptx");
    EXPECT_EQ(large_clusters_asked, asked_for) << blocks;
  }
}

int shared_asked = 0;  // how often a kernel was given more shared memory than every one has

// 48 KiB are any kernel's, without being asked for.
TEST(RunLaunch, asks_for_shared_memory_only_beyond_48_kib) {
  DriverApi api = test::fake_driver()->api();
  api.cuFuncSetAttribute = [](CuFunction function, int attribute, int value) {
    ++shared_asked;
    return test::fake_driver()->api().cuFuncSetAttribute(function, attribute, value);
  };
  const GpuPointer gpu = Gpu::open(Driver::from_table(api, "counting").value(), 0).value();
  for (const auto& [bytes, asked_for] : {std::pair{49152U, 0}, std::pair{49153U, 1}}) {
    gpu::Launch launch = self_lines("demarc_self_lines");
    launch.kernels[0].dynamic_shared_bytes = bytes;
    shared_asked = 0;
    EXPECT_TRUE(run_launch(gpu, launch, lines_ptx, "lines.ptx"));
    EXPECT_EQ(shared_asked, asked_for) << bytes;
  }
}

std::size_t least_allocated = 0;
int threads_asked = 0;
std::size_t shared_of_blocks = 0;

TEST(RunLaunch, tells_the_registers_and_the_blocks_that_the_driver_told) {
  DriverApi api = test::fake_driver()->api();
  api.cuFuncGetAttribute = [](int* value, int attribute, CuFunction) {
    *value = attribute == function_registers ? 77 : 5;
    return cu_success;
  };
  api.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CuFunction, int threads,
                                                       std::size_t shared) {
    threads_asked = threads;
    shared_of_blocks = shared;
    *blocks = 6;
    return cu_success;
  };
  const GpuPointer gpu = Gpu::open(Driver::from_table(api, "telling").value(), 0).value();
  gpu::Launch launch = self_lines("demarc_self_lines");
  launch.kernels[0].dynamic_shared_bytes = 91;
  const auto run = run_launch(gpu, launch, lines_ptx, "lines.ptx").value();
  EXPECT_EQ(run.kernels[0].registers, 77U);
  EXPECT_EQ(run.kernels[0].blocks_per_sm, 6U);
  EXPECT_EQ(threads_asked, 32);
  EXPECT_EQ(shared_of_blocks, 91U);
}

// Kernels read words.
TEST(RunLaunch, gives_every_buffer_room_for_a_word) {
  DriverApi api = test::fake_driver()->api();
  api.cuMemAlloc_v2 = [](DevicePointer* address, std::size_t bytes) {
    least_allocated = bytes;
    return test::fake_driver()->api().cuMemAlloc_v2(address, bytes);
  };
  api.cuLaunchKernel = [](CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, CuStream, void** arguments, void**) -> CuResult {
    return arguments[3] == nullptr ? cu_success : 1;  // where the arguments end
  };
  const GpuPointer gpu = Gpu::open(Driver::from_table(api, "small").value(), 0).value();
  gpu::Launch launch = self_lines("demarc_self_lines");
  launch.buffers[0].bytes = 3;
  const auto run = run_launch(gpu, launch, lines_ptx, "lines.ptx");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(least_allocated, 4U);
  EXPECT_EQ(run->buffers[0].size(), 3U);
}

TEST(RunLaunch, names_the_module_and_the_kernel_that_it_lacks) {
  const auto run = run_launch(test::fake_gpu(), self_lines("other"), lines_ptx, "lines.ptx");
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().message, HasSubstr("lines.ptx: no kernel 'other'"));
}

TEST(RunLaunch, sets_the_variables_of_the_module_before_the_first_kernel) {
  const char* const text = R"(.version 8.0
.target sm_80
.address_size 64
.const .align 4 .u32 step;
.visible .entry k(.param .u64 out) {
.reg .u32 %r<2>; .reg .u64 %rd<2>;
ld.param.u64 %rd1, [out];
ld.const.u32 %r1, [step];
st.global.u32 [%rd1], %r1;
ret; })";
  gpu::Launch launch =
      gpu::parse_launch({.ptx = "v.ptx", .kernel = "k", .arguments = "buf:4"}).value();
  launch.variables.push_back(gpu::parse_variable("step=u32:77").value());
  const auto run = run_launch(test::fake_gpu(), launch, text, "v.ptx");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->buffers[0][0], std::byte{77});
  launch.variables[0].name = "steps";
  EXPECT_THAT(run_launch(test::fake_gpu(), launch, text, "v.ptx").error().message,
              HasSubstr("v.ptx: no variable 'steps'"));
  launch.variables[0] = gpu::parse_variable("step=u64:77").value();
  EXPECT_EQ(run_launch(test::fake_gpu(), launch, text, "v.ptx").error().message,
            "variable 'step': 8 bytes are given, 4 were expected");
}

}  // namespace
}  // namespace demarc::cuda
