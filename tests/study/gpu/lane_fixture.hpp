// Launches and lanes on the stand-in for libcuda, without an executor: a driver that notes what is
// launched, and a memory that does what a test wants.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "demarc/base/hash.hpp"
#include "fake_card.hpp"
#include "gpu/gpu_lane.hpp"
#include "small_kernels.hpp"

namespace demarc::study {

// What the driver was asked to launch.
struct SeenLaunch {
  std::string kernel;
  std::array<unsigned, 3> grid;
  std::array<unsigned, 3> block;
  unsigned shared_bytes = 0;
  bool overlapped = false;
  friend bool operator==(const SeenLaunch&, const SeenLaunch&) = default;
};

struct SeenDriver {
  std::map<cuda::CuFunction, std::string> names;
  std::vector<SeenLaunch> launches;
  int resident_blocks = 1;  // per SM, as the driver tells it
  cuda::DriverApi real;
};
inline SeenDriver seen_driver;

// A card whose driver notes what is launched; `change` has the last word on its functions.
template <class Change>
cuda::GpuPointer watched_gpu(const Change& change) {
  seen_driver = {};
  seen_driver.real = test::fake_driver()->api();
  cuda::DriverApi api = seen_driver.real;
  api.cuModuleGetFunction = [](cuda::CuFunction* function, cuda::CuModule module,
                               const char* name) -> cuda::CuResult {
    const auto code = seen_driver.real.cuModuleGetFunction(function, module, name);
    if (code == cuda::cu_success) seen_driver.names[*function] = name;
    return code;
  };
  api.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, cuda::CuFunction, int,
                                                       std::size_t) -> cuda::CuResult {
    *blocks = seen_driver.resident_blocks;
    return cuda::cu_success;
  };
  api.cuLaunchKernel = [](cuda::CuFunction function, unsigned grid_x, unsigned grid_y,
                          unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared, cuda::CuStream stream, void** arguments,
                          void** extra) -> cuda::CuResult {
    seen_driver.launches.push_back({seen_driver.names[function],
                                    {grid_x, grid_y, grid_z},
                                    {block_x, block_y, block_z},
                                    shared,
                                    false});
    return seen_driver.real.cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y,
                                           block_z, shared, stream, arguments, extra);
  };
  api.cuLaunchKernelEx = [](const cuda::CuLaunchConfig* config, cuda::CuFunction function,
                            void** arguments, void** extra) -> cuda::CuResult {
    bool overlapped = false;
    for (unsigned i = 0; i < config->attribute_count; ++i) {
      const cuda::CuLaunchAttribute& one = config->attributes[i];
      overlapped |=
          one.id == cuda::CuLaunchAttribute::programmatic_serialization && one.value.flag == 1;
    }
    seen_driver.launches.push_back({seen_driver.names[function],
                                    {config->grid[0], config->grid[1], config->grid[2]},
                                    {config->block[0], config->block[1], config->block[2]},
                                    config->shared_bytes,
                                    overlapped});
    return seen_driver.real.cuLaunchKernelEx(config, function, arguments, extra);
  };
  change(api);
  return cuda::Gpu::open(cuda::Driver::from_table(api, "watched").value(), 0).value();
}

// Plain memory of which a test says how much there is and what it does wrong.
class HandMadeMemory : public MemorySource {
 public:
  explicit HandMadeMemory(const cuda::GpuPointer& gpu) : plain_(make_plain_memory(gpu)) {}

  Result<std::unique_ptr<PlacedBuffer>> place(std::size_t bytes) override {
    if (*used + bytes > room) return missing_capability("no room for {} bytes", bytes);
    placed.push_back(bytes);
    DEMARC_TRY(auto real, plain_->place(bytes));
    return std::make_unique<Place>(std::move(real), bytes, used, *this,
                                   placed.size() == lost_place);
  }
  Result<std::unique_ptr<LoadedProgram>> load(const ptx::Module& module,
                                              std::span<const cuda::KernelUse> of) const override {
    uses.assign(of.begin(), of.end());
    return plain_->load(module, of);
  }
  std::string account() const override { return "made by hand"; }

  std::size_t room = std::size_t{1} << 30U;
  std::size_t wrong_upload = 0;     // the one of this number, from 1, is not what was given
  std::size_t lost_place = 0;       // the one of this number, from 1, lies nowhere
  std::vector<std::size_t> placed;  // bytes
  std::size_t uploads = 0;
  std::shared_ptr<std::size_t> used =
      std::make_shared<std::size_t>(0);       // bytes, given back left out
  mutable std::vector<cuda::KernelUse> uses;  // of the last module

 private:
  class Place : public PlacedBuffer {
   public:
    Place(std::unique_ptr<PlacedBuffer> real, std::size_t bytes, std::shared_ptr<std::size_t> used,
          HandMadeMemory& memory, bool lost)
        : real_(std::move(real)),
          bytes_(bytes),
          used_(std::move(used)),
          memory_(memory),
          lost_(lost) {
      *used_ += bytes_;
    }
    ~Place() override { *used_ -= bytes_; }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    std::uint64_t address() const override { return lost_ ? 4096 : real_->address(); }
    Result<void> upload(const void* source, std::size_t bytes) override {
      std::vector<std::byte> copy(bytes);
      std::copy_n(static_cast<const std::byte*>(source), bytes, copy.begin());
      if (++memory_.uploads == memory_.wrong_upload) copy.back() ^= std::byte{1};
      return real_->upload(copy.data(), bytes);
    }
    Result<void> download(void* target, std::size_t bytes) override {
      return real_->download(target, bytes);
    }

   private:
    std::unique_ptr<PlacedBuffer> real_;
    std::size_t bytes_;
    std::shared_ptr<std::size_t> used_;
    HandMadeMemory& memory_;
    bool lost_;
  };

  std::shared_ptr<MemorySource> plain_;
};

class LaneFixture : public testing::Test {
 protected:
  void SetUp() override {
    open(fake::small_gpu(), [](cuda::DriverApi&) {});
  }
  void TearDown() override {
    stream.reset();
    memory.reset();
    gpu.reset();
    test::configure(fake::small_gpu());
  }
  template <class Change>
  void open(const fake::FakeConfig& config, const Change& change) {
    stream.reset();
    memory.reset();
    test::configure(config);
    gpu = watched_gpu(change);
    memory = std::make_shared<HandMadeMemory>(gpu);
    stream = std::make_shared<cuda::Stream>(cuda::Stream::create(gpu).value());
  }

  cuda::GpuPointer gpu;
  std::shared_ptr<HandMadeMemory> memory;
  std::shared_ptr<cuda::Stream> stream;
};

// --- Launches

inline gpu::Buffer made_buffer(const std::string& name, std::uint64_t bytes,
                               gpu::FillKind fill = gpu::FillKind::zero, bool output = false) {
  gpu::Buffer buffer;
  buffer.name = name;
  buffer.bytes = bytes;
  buffer.fill.kind = fill;
  buffer.output = output;
  return buffer;
}

inline gpu::KernelLaunch made_kernel(const std::string& name, gpu::Dim3 grid, gpu::Dim3 block,
                                     std::vector<gpu::Argument> arguments) {
  gpu::KernelLaunch kernel;
  kernel.kernel = name;
  kernel.grid = grid;
  kernel.block = block;
  kernel.arguments = std::move(arguments);
  return kernel;
}

inline gpu::Argument made_word(std::uint32_t value) {
  return gpu::make_scalar(gpu::ScalarType::u32, std::int64_t{value});
}

// Digest of a launch whose outputs are these buffers: their index and their words.
inline std::uint64_t digest_of_outputs(
    const std::map<std::uint32_t, std::vector<std::uint32_t>>& outputs) {
  std::uint64_t all = 0;
  for (const auto& [index, words] : outputs) all = hash_of(all, digest_of(words, index));
  return all;
}

inline constexpr std::uint32_t step_elements = 1000;

// b = 3 a + i, c[i] = b[i] + b[n - 1 - i]
inline LoadedLaunch two_step_launch() {
  LoadedLaunch loaded;
  loaded.ptx = test::small_module(test::scale_entry, test::fold_entry);
  loaded.launch.name = "two steps";
  loaded.launch.ptx = "two_steps.ptx";
  constexpr std::uint64_t bytes = 4 * step_elements;
  loaded.launch.buffers = {made_buffer("a", bytes, gpu::FillKind::iota), made_buffer("b", bytes),
                           made_buffer("c", bytes, gpu::FillKind::zero, true)};
  const auto n = made_word(step_elements);
  loaded.launch.kernels = {
      made_kernel("scale", {8}, {128}, {gpu::BufferUse{0}, gpu::BufferUse{1}, n}),
      made_kernel("fold", {4}, {256}, {gpu::BufferUse{1}, gpu::BufferUse{2}, n})};
  return loaded;
}

inline std::uint64_t two_step_digest() {
  std::vector<std::uint32_t> b(step_elements);
  std::vector<std::uint32_t> c(step_elements);
  for (std::uint32_t i = 0; i < step_elements; ++i) b[i] = 4 * i;
  for (std::uint32_t i = 0; i < step_elements; ++i) c[i] = b[i] + b[step_elements - 1 - i];
  return digest_of_outputs({{1, b}, {2, c}});
}

// Adds one to out[0], which lies in memory that every run leaves as it is. `then` are PTX lines
// that come after that; %r1 holds the sum.
inline LoadedLaunch counting_launch(const std::string& name, std::uint64_t bytes,
                                    gpu::FillKind fill = gpu::FillKind::zero,
                                    const std::string& then = "") {
  LoadedLaunch loaded;
  loaded.launch.name = name;
  loaded.launch.ptx = name + ".ptx";
  loaded.ptx = test::small_module(R"(
.visible .entry count(.param .u64 out)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.global.u32 %r1, [%rd1];
  add.u32 %r1, %r1, 1;
  st.global.u32 [%rd1], %r1;
)",
                                  then, R"(
  ret;
}
)");
  loaded.launch.buffers = {made_buffer("out", bytes, fill, true)};
  loaded.launch.kernels = {made_kernel("count", {1}, {1}, {gpu::BufferUse{0}})};
  return loaded;
}

}  // namespace demarc::study
