// A process of a tenant's program whose code runs as it is, at addresses that the page table leads
// to the tenant's bytes.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <numeric>

#include "demarc/base/files.hpp"
#include "tenant_fixture.hpp"

namespace demarc::cuda {

// Kernels of a program that is to run as it is, or that is machine code.
class WindowsOfTenants : public ProcessesOfTenants {
 protected:
  void SetUp() override {
    ProcessesOfTenants::SetUp();
    ::setenv("DEMARC_FAKE_MACHINE_CODE", text_file.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("DEMARC_FAKE_MACHINE_CODE");
    ProcessesOfTenants::TearDown();
  }
  // A call of the program, carried out by the driver if nothing answers it.
  template <class Call, class... Arguments>
  CuResult made(const char* name, Call&& own, Arguments... arguments) {
    const auto answer = call(name, arguments...);
    return answer ? *answer : own(arguments...);
  }
  CuFunction loaded(const void* image) {
    CuModule module = nullptr;
    CuFunction function = nullptr;
    EXPECT_EQ(made("cuModuleLoadData", api().cuModuleLoadData, &module, image), cu_success);
    EXPECT_EQ(api().cuModuleGetFunction(&function, module, "fills"), cu_success);
    return function;
  }
  // Nothing: it passed. The stand-in then runs the kernel on the addresses that it is given.
  std::optional<CuResult> launch(CuFunction function, DevicePointer target) {
    void* arguments[] = {&target};
    const auto answer = call("cuLaunchKernel", function, 1U, 1U, 1U, 64U, 1U, 1U, 0U, nullptr,
                             &arguments[0], nullptr);
    if (!answer) {
      EXPECT_EQ(
          api().cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, &arguments[0], nullptr),
          cu_success);
      EXPECT_EQ(api().cuCtxSynchronize(), cu_success);
    }
    return answer;
  }
  std::vector<std::uint32_t> words_at(DevicePointer address) {
    std::vector<std::uint32_t> words(64);
    EXPECT_EQ(made("cuMemcpyDtoH_v2", api().cuMemcpyDtoH_v2, static_cast<void*>(words.data()),
                   address, words.size() * sizeof(words[0])),
              cu_success);
    return words;
  }
  // By what the kernel says of it: the stand-in's memory lies at addresses of this process.
  static bool is_readable(DevicePointer address) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    const bool read = ::write(ends[1], reinterpret_cast<const void*>(address), 1) == 1;  // NOLINT
    for (const int end : ends) ::close(end);
    return read;
  }
  // What the process has told the server of its proofs since the last look.
  std::vector<lease::ProvedRequest> proofs() {
    std::vector<lease::ProvedRequest> found;
    for (const lease::Request& request : server->asked()) {
      if (const auto* one = std::get_if<lease::ProvedRequest>(&request)) found.push_back(*one);
    }
    return found;
  }
  // Content that no two pages share.
  void fill_with_numbers(DevicePointer target, std::size_t bytes) {
    std::vector<std::uint64_t> words(bytes / sizeof(std::uint64_t));
    std::iota(words.begin(), words.end(), 1U);
    EXPECT_EQ(made("cuMemcpyHtoD_v2", api().cuMemcpyHtoD_v2, target,
                   static_cast<const void*>(words.data()), bytes),
              cu_success);
  }
  CuResult free_bytes() {
    std::size_t free = 0;
    return call("cuMemGetInfo_v2", &free, static_cast<std::size_t*>(nullptr)).value_or(-1);
  }
  // The stand-in's memory lies at addresses of this process.
  static bool lead_elsewhere(DevicePointer address) {
    return ::mmap(reinterpret_cast<void*>(address), page, PROT_READ | PROT_WRITE,  // NOLINT
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  static constexpr std::uint64_t page = 4096;
  static const DriverApi& api() {
    static const auto driver = Driver::load().value();
    return driver->api();
  }
  std::vector<RecordedName> recorded(Recorded what) const {
    auto names = block.record.names();
    std::erase_if(names, [&](const RecordedName& one) { return one.what != what; });
    return names;
  }
  static std::string machine_code() {
    return read_file(test::source_dir() / "tests/fatbin/files/elf_only.fatbin").value();
  }
  static constexpr const char* text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry fills(.param .u64 p)\n{\n"
      ".reg .b64 %rd<4>; .reg .b32 %r<4>;\nld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\n"
      "mul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1], "
      "%r1;\nret;\n}\n";
  const std::string text_file = [] {
    const auto path = test::fresh_folder("machine_code") / "text";
    EXPECT_TRUE(write_file(path, text));
    return path.string();
  }();
  std::vector<std::uint32_t> counted = [] {
    std::vector<std::uint32_t> numbers(64);
    std::iota(numbers.begin(), numbers.end(), 0U);
    return numbers;
  }();
};

}  // namespace demarc::cuda
