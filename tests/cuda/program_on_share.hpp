// A program on the stand-in driver that knows nothing of colours and whose calls are answered so
// that its memory and kernels lie in share 1 of a pool; share 0 is another program's.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calls/colored_calls.hpp"
#include "demarc/card/code_of_pool.hpp"
#include "demarc/card/colored_memory.hpp"
#include "demarc/driver/launch_hook.hpp"
#include "planted_call.hpp"
#include "pools.hpp"

namespace demarc::test {

inline constexpr const char* module_head = ".version 8.0\n.target sm_90\n.address_size 64\n";

inline std::string kernel_of(const std::string& name, const std::string& body) {
  return ".visible .entry " + name + "(.param .u64 p)\n{\n.reg .b64 %rd<4>; .reg .b32 %r<4>;\n" +
         body + "\nret;\n}\n";
}

// Thread i writes i to its local memory, and after a barrier from there to p[i].
inline constexpr const char* with_locals =
    "ld.param.u64 %rd1, [p];\n.local .align 4 .b8 own[8];\nmov.u32 %r1, %tid.x;\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmad.lo.u32 %r1, %r2, %r3, %r1;\n"
    "st.local.u32 [own+4], %r1;\nbar.sync 0;\nld.local.u32 %r2, [own+4];\n"
    "mul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1], %r2;";

enum class ColorKind { parities, remainders };

// Two halves of a pool; the first is full of a pattern that must stay.
class ForeignHalf {
 public:
  explicit ForeignHalf(ColorKind kind) {
    constexpr std::uint64_t bytes = std::uint64_t{8} << 20U;
    fake::FakeConfig config = fake::small_gpu();
    config.remainders = kind == ColorKind::remainders;
    if (config.remainders) {
      const auto scheme = color::color_scheme(gpu::find_device("h200").value(), 2).value();
      pool_ =
          cuda::ColoredPool::create(fake_card(config).value(), scheme, bytes, both_halves).value();
    } else {
      pool_ = parity_pool(bytes).value();
    }
    foreign_.emplace(pool_->allocate(0, pool_->usage(0).largest_free_bytes).value());
    pattern_.resize(foreign_->bytes());
    for (std::size_t i = 0; i < pattern_.size(); ++i) {
      pattern_[i] = static_cast<char>(i * 31 + i / 7);
    }
    EXPECT_TRUE(foreign_->upload(pattern_.data(), pattern_.size()));
  }
  [[nodiscard]] const std::shared_ptr<cuda::ColoredPool>& pool() const { return pool_; }
  [[nodiscard]] bool untouched() const {
    std::vector<char> seen(pattern_.size());
    EXPECT_TRUE(foreign_->download(seen.data(), seen.size()));
    return seen == pattern_;
  }

 private:
  std::shared_ptr<cuda::ColoredPool> pool_;
  std::optional<cuda::ColoredBuffer> foreign_;
  std::vector<char> pattern_;
};

class ProgramOnShare {
 public:
  explicit ProgramOnShare(const cuda::ColoredPool& pool, std::uint32_t allowed_spills = 0,
                          bool overlap = false) {
    const cuda::ColoredCode code = cuda::code_of_pool(pool, 1).value();
    window = code.pointer({}).raw();
    window_bytes = pool.usage(1).capacity_bytes / 4096 * 4096;
    const auto gpu = pool.arena().gpu();
    api = gpu->api();
    own = gpu->api();
    calls = cuda::ColoredCalls::create({own,
                                        code,
                                        window_bytes,
                                        {[this](std::uint64_t wanted) { return take(wanted); },
                                         [this](const color::Extent&) { taken = 0; }},
                                        gpu->compute_capability(),
                                        counters,
                                        *record,
                                        [this](const std::string& line) { told.push_back(line); },
                                        {.overlapped = overlap},
                                        allowed_spills,
                                        &host_memory,
                                        {{reinterpret_cast<cuda::DevicePointer>(&kept[16]), 32}}})
                .value();
    hook = cuda::LaunchHook::install(gpu->driver()).value();
    EXPECT_TRUE(hook->watch_calls([](const cuda::DriverCall& call) {
      if (serving_ != nullptr && !call.leaving()) serving_->serve(call);
    }));
    serve(true);
  }
  ~ProgramOnShare() { serve(false); }
  ProgramOnShare(const ProgramOnShare&) = delete;
  ProgramOnShare& operator=(const ProgramOnShare&) = delete;

  void serve(bool on) { serving_ = on ? calls.get() : nullptr; }
  [[nodiscard]] bool in_window(cuda::DevicePointer address) const {
    return address - window < window_bytes;
  }
  // What becomes of a call that the stand-in has no function for; nothing: the driver's.
  template <class... Arguments>
  std::optional<cuda::CuResult> ask(const char* name, Arguments... arguments) {
    const PlantedCall call(name, arguments...);
    calls->serve(call.read());
    return call.answer();
  }
  cuda::DevicePointer allocated(std::uint64_t bytes) {
    cuda::DevicePointer address = 0;
    EXPECT_EQ(api.cuMemAlloc_v2(&address, bytes), cuda::cu_success);
    EXPECT_TRUE(in_window(address));
    return address;
  }
  cuda::CuModule loaded(const std::string& text) {
    cuda::CuModule module = nullptr;
    EXPECT_EQ(api.cuModuleLoadData(&module, text.c_str()), cuda::cu_success);
    return module;
  }
  cuda::CuFunction function_of(cuda::CuModule module, const char* name) {
    cuda::CuFunction function = nullptr;
    EXPECT_EQ(api.cuModuleGetFunction(&function, module, name), cuda::cu_success) << name;
    return function;
  }
  template <class... Arguments>
  cuda::CuResult launch_line(cuda::CuFunction function, unsigned blocks, unsigned threads,
                             Arguments... arguments) {
    void* pointers[] = {&arguments...};
    return api.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, nullptr, pointers, nullptr);
  }
  template <class T>
  std::vector<T> read(cuda::DevicePointer address, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(api.cuMemcpyDtoH_v2(values.data(), address, count * sizeof(T)), cuda::cu_success);
    return values;
  }
  template <class T>
  void write(cuda::DevicePointer address, const std::vector<T>& values) {
    EXPECT_EQ(api.cuMemcpyHtoD_v2(address, values.data(), values.size() * sizeof(T)),
              cuda::cu_success);
  }

  [[nodiscard]] std::string last_told() const { return told.empty() ? "nothing" : told.back(); }

  cuda::DevicePointer window = 0;
  std::uint64_t window_bytes = 0;
  std::uint64_t taken = 0;
  std::vector<std::string> told;
  cuda::ColoredCounters counters;
  std::unique_ptr<cuda::ProgramRecord> record = std::make_unique<cuda::ProgramRecord>();
  std::unique_ptr<cuda::ColoredCalls> calls;
  std::atomic<bool> host_memory{false};  // the program has pinned host memory
  cuda::LaunchHook* hook = nullptr;
  cuda::DriverApi api;
  cuda::DriverApi own;                  // as Demarc calls the driver: tests put faults into it
  std::array<std::uint8_t, 64> kept{};  // the middle half of it is not a copy's of the program

 private:
  // All that is left, in one stretch.
  Result<color::Extent> take(std::uint64_t wanted) {
    if (window_bytes - taken < wanted) return missing_capability("the share is full");
    const color::Extent stretch{color::LinearByte(taken), window_bytes - taken};
    taken = window_bytes;
    return stretch;
  }
  static inline cuda::ColoredCalls* serving_ = nullptr;
};

// Tests of one suite share a pool, which takes a second to make; a program is each one's own.
template <ColorKind Kind>
class ProgramCalls : public testing::Test, public ProgramOnShare {
 protected:
  explicit ProgramCalls(std::uint32_t allowed_spills = 0, bool overlap = false)
      : ProgramOnShare(*half_->pool(), allowed_spills, overlap) {}
  static void SetUpTestSuite() { half_ = std::make_unique<ForeignHalf>(Kind); }
  static void TearDownTestSuite() { half_.reset(); }
  void TearDown() override {
    serve(false);
    EXPECT_TRUE(half_->untouched()) << "a byte of another share has changed";
  }

 private:
  static inline std::unique_ptr<ForeignHalf> half_;
};

}  // namespace demarc::test
