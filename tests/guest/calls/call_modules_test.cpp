// Code that a program loads, and what it launches of it.
#include <thread>

#include "demarc/base/files.hpp"
#include "paths.hpp"
#include "program_on_share.hpp"

namespace demarc::cuda {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

class ModuleCallsOfPrograms : public test::ProgramCalls<test::ColorKind::remainders> {
 protected:
  [[nodiscard]] std::vector<std::string> recorded(Recorded what) const {
    std::vector<std::string> lines;
    for (const RecordedName& one : record->names()) {
      if (one.what == what) lines.push_back(fmt::format("{} {}", one.name, one.count));
    }
    return lines;
  }
};

TEST_F(ModuleCallsOfPrograms, variables_of_modules_lie_in_the_share) {
  const CuModule module =
      loaded(test::module_head +
             std::string(".visible .global .align 4 .u32 table[2] = {7, 9};\n"
                         ".visible .global .align 4 .u32 zeros[1024];\n"
                         ".visible .const .align 4 .u32 fixed[2] = {3, 4};\n") +
             test::kernel_of("k",
                             "ld.global.u32 %r1, [table+4];\nld.const.u32 %r2, [fixed];\n"
                             "add.u32 %r1, %r1, %r2;\nst.global.u32 [zeros+8], %r1;"));
  DevicePointer table = 0;
  DevicePointer zeros = 0;
  DevicePointer fixed = 0;
  std::size_t bytes = 0;
  ASSERT_EQ(api.cuModuleGetGlobal_v2(&table, &bytes, module, "table"), cu_success);
  ASSERT_EQ(bytes, 8U);
  ASSERT_EQ(api.cuModuleGetGlobal_v2(&zeros, nullptr, module, "zeros"), cu_success);
  ASSERT_EQ(api.cuModuleGetGlobal_v2(&fixed, nullptr, module, "fixed"), cu_success);
  EXPECT_TRUE(in_window(table) && in_window(zeros));
  EXPECT_FALSE(in_window(fixed)) << "constants are read through a memory of their own";
  EXPECT_NE(api.cuModuleGetGlobal_v2(&fixed, nullptr, module, "other"), cu_success);
  EXPECT_THAT(read<std::uint32_t>(table, 2), ElementsAre(7, 9));
  EXPECT_THAT(read<std::uint32_t>(zeros, 1024), Each(0U));
  write(table, std::vector<std::uint32_t>{1, 20});
  write(fixed, std::vector<std::uint32_t>{300, 4});
  ASSERT_EQ(launch_line(function_of(module, "k"), 1, 1, DevicePointer{}), cu_success);
  EXPECT_EQ(read<std::uint32_t>(zeros, 3)[2], 320U);
  EXPECT_NE(taken, 0U);
  ASSERT_EQ(api.cuModuleUnload(module), cu_success);
  EXPECT_EQ(taken, 0U);
}

TEST_F(ModuleCallsOfPrograms, variables_lie_where_their_alignment_wants_them) {
  const DevicePointer before = allocated(512);
  const CuModule module =
      loaded(test::module_head + std::string(".visible .global .align 1024 .b8 wide[2048];\n") +
             test::kernel_of("k", "mov.u32 %r1, 1;\nst.global.u32 [wide], %r1;"));
  DevicePointer wide = 0;
  ASSERT_EQ(api.cuModuleGetGlobal_v2(&wide, nullptr, module, "wide"), cu_success);
  EXPECT_EQ(before % 1024, 0U);
  EXPECT_EQ(wide, before + 1024);
  std::size_t free = 0;
  ASSERT_EQ(api.cuMemGetInfo_v2(&free, nullptr), cu_success);
  EXPECT_EQ(window_bytes - free, 512U + 2048U + 1024U);
  EXPECT_EQ(ask("cuModuleGetGlobal_v2", &wide, nullptr, module, nullptr), std::nullopt);
  EXPECT_EQ(ask("cuModuleGetGlobal_v2", &wide, nullptr, &wide, "wide"), std::nullopt)
      << "another module's";
  ASSERT_EQ(api.cuModuleUnload(module), cu_success);
  ASSERT_EQ(api.cuMemGetInfo_v2(&free, nullptr), cu_success);
  EXPECT_EQ(window_bytes - free, 512U);
}

TEST_F(ModuleCallsOfPrograms, libraries_are_loaded_like_modules) {
  const std::string text = test::module_head +
                           std::string(".visible .global .align 4 .u32 seen[4];\n") +
                           test::kernel_of("k", "mov.u32 %r1, %tid.x;\nst.global.u32 [seen], 5;");
  CuLibrary library = nullptr;
  ASSERT_EQ(api.cuLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            cu_success);
  CuKernel kernel = nullptr;
  ASSERT_EQ(api.cuLibraryGetKernel(&kernel, library, "k"), cu_success);
  DevicePointer seen = 0;
  ASSERT_EQ(api.cuLibraryGetGlobal(&seen, nullptr, library, "seen"), cu_success);
  EXPECT_TRUE(in_window(seen));
  ASSERT_EQ(launch_line(reinterpret_cast<CuFunction>(kernel), 1, 1, DevicePointer{}), cu_success);
  EXPECT_EQ(read<std::uint32_t>(seen, 1)[0], 5U);
  EXPECT_EQ(api.cuLibraryUnload(library), cu_success);
  EXPECT_EQ(taken, 0U);
}

TEST_F(ModuleCallsOfPrograms, the_driver_copies_rewritten_text_whatever_is_promised_of_the_code) {
  const std::string text = test::module_head + test::kernel_of("k", "mov.u32 %r1, %tid.x;");
  int options[] = {1, 0, 1};  // the code is preserved; tables of the host
  void* values[3] = {};
  for (void** given : {values, static_cast<void**>(nullptr)}) {
    CuLibrary library = nullptr;
    ASSERT_EQ(api.cuLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, options, given, 3),
              cu_success);
    EXPECT_EQ(test::fake_symbol<std::uint64_t()>("fake_library_options")(), 1U)
        << "the tables of the host alone";
    EXPECT_EQ(api.cuLibraryUnload(library), cu_success);
  }
}

TEST_F(ModuleCallsOfPrograms, nobody_else_finds_where_the_colours_are_written) {
  const CuModule module =
      loaded(test::module_head +
             test::kernel_of("k", "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 7;"));
  DevicePointer address = 0;
  EXPECT_EQ(api.cuModuleGetGlobal_v2(&address, nullptr, module, ptx::colored_constants_name),
            cu_error_not_found);
  EXPECT_EQ(address, 0U);
  EXPECT_EQ(api.cuModuleUnload(module), cu_success);
}

// What is waited for may be a function of the host that waits for another thread's launch.
TEST_F(ModuleCallsOfPrograms, other_threads_launch_while_a_module_waits_to_be_unloaded) {
  const std::string text =
      test::module_head + std::string(".visible .global .align 4 .u32 seen[4];\n") +
      test::kernel_of("k", "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 7;");
  static ProgramOnShare* program = nullptr;
  static CuFunction function = nullptr;
  static bool refused = true;
  program = this;
  const CuModule module = loaded(text);
  function = function_of(module, "k");
  const CuModule other = loaded(text);
  own.cuCtxSynchronize = []() -> CuResult {
    std::thread([] {
      refused = program->ask("cuLaunchKernel", function, 1U, 1U, 1U, 1U, 1U, 1U, 0U, nullptr,
                             nullptr, nullptr) != std::nullopt;
    }).join();
    return cu_success;
  };
  EXPECT_EQ(ask("cuModuleUnload", other), std::nullopt) << "the driver unloads it";
  EXPECT_FALSE(refused);
  own.cuCtxSynchronize = []() -> CuResult { return 900; };
  EXPECT_EQ(ask("cuModuleUnload", module), std::nullopt);
  EXPECT_NE(taken, 0U) << "a kernel may still use the variables";
  serve(false);
  api.cuModuleUnload(other);
  api.cuModuleUnload(module);
}

TEST_F(ModuleCallsOfPrograms, code_without_ptx_and_files_that_are_none_are_refused_by_name) {
  CuModule module = nullptr;
  const std::vector<char> elf = [] {
    std::vector<char> bytes(64, 0);
    std::copy_n(
        "\x7f"
        "ELF\x02\x01\x01",
        7, bytes.begin());
    bytes[18] = static_cast<char>(190);  // EM_CUDA
    return bytes;
  }();
  EXPECT_EQ(api.cuModuleLoadData(&module, elf.data()), cu_error_no_binary);
  EXPECT_EQ(api.cuModuleLoadData(&module, "no code"), cu_error_no_binary);
  EXPECT_EQ(ask("cuModuleLoad", &module, "/nowhere/k.cubin"), cu_error_no_binary);
  EXPECT_EQ(ask("cuModuleLoadFatBinary", &module, nullptr), cu_error_invalid_value);
  EXPECT_EQ(told.size(), 3U);
  EXPECT_THAT(last_told(), HasSubstr("/nowhere/k.cubin"));
  EXPECT_EQ(module, nullptr);
  EXPECT_THAT(recorded(Recorded::refused_code),
              UnorderedElementsAre("a module of the program 2", "/nowhere/k.cubin 1"));
}

TEST_F(ModuleCallsOfPrograms, kernels_of_machine_code_are_refused_by_name) {
  CuModule module = nullptr;
  const std::string code =
      read_file(test::source_dir() / "tests/fatbin/files/counted_90.cubin").value();
  EXPECT_EQ(api.cuModuleLoadData(&module, code.data()), cu_error_no_binary);
  EXPECT_EQ(api.cuModuleLoadData(&module, code.data()), cu_error_no_binary);
  EXPECT_THAT(told, Each(EndsWith("there is machine code for sm_90; kernels: _Z7countedPi")));
  EXPECT_THAT(recorded(Recorded::refused_kernel), ElementsAre("_Z7countedPi 2"));
  EXPECT_THAT(recorded(Recorded::refused_code), IsEmpty());
  EXPECT_EQ(counters.left_out, 2U);
}

// Beside machine code for a card, whose kernels are not what is wrong.
TEST_F(ModuleCallsOfPrograms, code_whose_ptx_is_malformed_is_refused_as_a_whole) {
  CuModule module = nullptr;
  const auto of_file = [](const char* name) {
    return read_file(test::source_dir() / "tests/fatbin/files" / name).value();
  };
  // The entries of both, behind one header, which ends with how many bytes they have.
  std::string code = of_file("none.fatbin") + of_file("elf_only.fatbin").substr(16);
  const std::uint64_t bytes = code.size() - 16;
  std::memcpy(&code[8], &bytes, sizeof bytes);
  EXPECT_EQ(api.cuModuleLoadData(&module, code.data()), cu_success);
  EXPECT_EQ(api.cuModuleUnload(module), cu_success);
  EXPECT_THAT(told, IsEmpty());
  const std::string right = ".visible .entry";
  code.replace(code.find(right), right.size(), ".visible .enter");
  EXPECT_EQ(api.cuModuleLoadData(&module, code.data()), cu_error_no_binary);
  EXPECT_THAT(recorded(Recorded::refused_code), ElementsAre("a module of the program 1"));
  EXPECT_THAT(recorded(Recorded::refused_kernel), IsEmpty());
  EXPECT_EQ(counters.left_out, 0U);
  EXPECT_THAT(told, ElementsAre(Not(HasSubstr("; kernels: "))));
}

TEST_F(ModuleCallsOfPrograms, launches_are_counted_by_kernel) {
  const CuModule module = loaded(test::module_head + test::kernel_of("often", "mov.u32 %r1, 1;") +
                                 test::kernel_of("never", "mov.u32 %r1, 1;") +
                                 test::kernel_of("kept", test::with_locals));
  const CuFunction often = function_of(module, "often");
  const DevicePointer out = allocated(4 * 64);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(launch_line(often, 1, 1, DevicePointer{}), cu_success);
  ASSERT_EQ(launch_line(function_of(module, "kept"), 1, 64, out), cu_success);
  EXPECT_EQ(launch_line(function_of(module, "kept"), 1 << 20U, 64, out), cu_error_out_of_memory);
  EXPECT_THAT(recorded(Recorded::kernel), ElementsAre("often 3", "kept 1"));
}

TEST_F(ModuleCallsOfPrograms, kernels_that_cannot_be_coloured_are_left_out_and_told) {
  const CuModule module = loaded(
      test::module_head +
      test::kernel_of("printed",
                      ".param .b32 out;\nmov.u64 %rd1, 0;\ntrap;\n"
                      "tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd1;") +
      test::kernel_of("plain", "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 7;") +
      ".visible .entry spilling(.param .u64 p)\n{\n.reg .b64 %stack;\nret;\n}\n" +
      ".visible .entry limited(.param .u64 p)\n.maxntid 64\n.minnctapersm 8\n{\n.reg .b64 "
      "%spills;\nret;\n}\n");
  CuFunction function = nullptr;
  EXPECT_EQ(api.cuModuleGetFunction(&function, module, "printed"), 500);
  EXPECT_EQ(api.cuModuleGetFunction(&function, module, "spilling"), 500);
  EXPECT_EQ(api.cuModuleGetFunction(&function, module, "limited"), cu_success)
      << "with more registers it keeps nothing there";
  const DevicePointer a = allocated(4);
  ASSERT_EQ(launch_line(function_of(module, "plain"), 1, 1, a), cu_success);
  EXPECT_EQ(read<std::uint32_t>(a, 1)[0], 7U);
  EXPECT_THAT(
      told,
      ElementsAre(AllOf(
          HasSubstr("kernel 'printed'"),
          EndsWith(
              "; 1 more kernel of this module not loaded either (--report says which and why)"))));
  EXPECT_EQ(counters.left_out, 2U);
  EXPECT_THAT(recorded(Recorded::refused_kernel), UnorderedElementsAre("printed 1", "spilling 1"));
}

TEST_F(ModuleCallsOfPrograms, addresses_of_the_host_are_no_arguments_of_kernels) {
  const CuModule module =
      loaded(std::string(test::module_head) +
             ".visible .entry two(.param .u64 p, .param .align 8 .b8 q[16])\n{\nret;\n}\n");
  CuFunction function = function_of(module, "two");
  void* pinned = nullptr;
  ASSERT_EQ(own.cuMemHostAlloc(&pinned, 64, 0), cu_success);
  const auto host = reinterpret_cast<DevicePointer>(pinned);
  struct Pair {
    std::uint64_t first, second;
  };
  const DevicePointer a = allocated(64);
  const auto launch = [&](DevicePointer p, Pair q) { return launch_line(function, 1, 1, p, q); };
  EXPECT_EQ(launch(host, {}), cu_success) << "nobody looks before host memory is pinned";
  host_memory = true;
  static std::vector<DevicePointer> looked_at;
  looked_at.clear();
  own.cuPointerGetAttribute = [](void* value, int attribute, DevicePointer address) {
    looked_at.push_back(address);
    return test::fake_symbol<CuResult(void*, int, DevicePointer)>("cuPointerGetAttribute")(
        value, attribute, address);
  };
  const Pair numbers{~std::uint64_t{0}, (std::uint64_t{3} << 32U) | 7U};
  EXPECT_EQ(launch(a, numbers), cu_success);
  EXPECT_EQ(launch(7, {0xffffffff, 0}), cu_success);
  EXPECT_THAT(looked_at, UnorderedElementsAre(numbers.first, numbers.second))
      << "what is in the window, and what no address is, needs no look";
  EXPECT_EQ(launch(a + 8, {a, 64}), cu_success);
  EXPECT_THAT(told, IsEmpty());
  for (const auto& [p, q] :
       {std::pair{host, Pair{}}, {host + 63, Pair{}}, {a, Pair{host, 0}}, {a, Pair{1, host + 8}}}) {
    told.clear();
    EXPECT_EQ(launch(p, q), cu_error_not_supported);
    EXPECT_THAT(told, ElementsAre(HasSubstr("kernel 'two' would get an address of host memory")));
  }
  struct {
    DevicePointer p;
    Pair q;
  } buffer{a, {0, host}};
  std::size_t bytes = sizeof buffer;
  const auto named = [](std::uintptr_t number) {
    return reinterpret_cast<void*>(number);  // NOLINT: CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE
  };
  void* extra[] = {named(2), &bytes, named(1), &buffer, nullptr};
  const auto launch_buffer = [&] {
    return ask("cuLaunchKernel", function, 1U, 1U, 1U, 1U, 1U, 1U, 0U, nullptr, nullptr, &extra[0]);
  };
  EXPECT_EQ(launch_buffer(), cu_error_not_supported);
  bytes = 16;  // without the last word
  EXPECT_EQ(launch_buffer(), std::nullopt);
  bytes = 0;
  EXPECT_EQ(launch_buffer(), std::nullopt);
  DevicePointer to = host;
  Pair pair{};
  void* arguments[] = {&to, &pair};
  CuKernelNode node{{function, {1, 1, 1}, {1, 1, 1}, 0, arguments, nullptr}, nullptr, nullptr};
  const auto add = [&] {
    return ask("cuGraphAddKernelNode_v2", nullptr, nullptr, nullptr, std::size_t{0}, &node);
  };
  EXPECT_EQ(add(), cu_error_not_supported);
  to = a;
  EXPECT_EQ(add(), std::nullopt);
  bytes = sizeof buffer;
  EXPECT_EQ(ask("cuLaunchCooperativeKernel", function, 1U, 1U, 1U, 1U, 1U, 1U, 0U, nullptr,
                &arguments[0], &extra[0]),
            std::nullopt)
      << "what lies behind its parameters is not read";
  node.arguments = nullptr;
  node.extra = extra;
  EXPECT_EQ(add(), cu_error_not_supported);
  EXPECT_EQ(own.cuMemFreeHost(pinned), cu_success);
}

// Numbers of 32 bits, two of which look like one address.
TEST_F(ModuleCallsOfPrograms, arguments_that_lie_as_no_address_does_are_none) {
  const CuModule module = loaded(std::string(test::module_head) +
                                 ".visible .entry three(.param .u32 n, .param .u64 p, .param "
                                 ".align 4 .b8 q[12])\n{\nret;\n}\n");
  const CuFunction function = function_of(module, "three");
  void* pinned = nullptr;
  ASSERT_EQ(own.cuMemHostAlloc(&pinned, 64, 0), cu_success);
  host_memory = true;
  struct Three {
    std::uint32_t n;
    std::uint32_t unused;
    DevicePointer p;
    std::uint32_t q[3];
  };
  const auto host = reinterpret_cast<DevicePointer>(pinned);
  Three numbers{static_cast<std::uint32_t>(host), static_cast<std::uint32_t>(host >> 32U), 0, {}};
  std::memcpy(&numbers.q[0], &host, sizeof host);
  Three address{0, 0, host, {}};
  for (const bool refused : {false, true}) {
    Three& given = refused ? address : numbers;
    void* each[] = {&given.n, &given.p, &given.q};
    std::size_t bytes = sizeof given;
    void* extra[] = {reinterpret_cast<void*>(2), &bytes,            // NOLINT
                     reinterpret_cast<void*>(1), &given, nullptr};  // NOLINT
    for (const auto& [arguments, buffer] :
         {std::pair<void**, void**>{each, nullptr}, {nullptr, extra}}) {
      EXPECT_EQ(
          ask("cuLaunchKernel", function, 1U, 1U, 1U, 1U, 1U, 1U, 0U, nullptr, arguments, buffer),
          refused ? std::optional(cu_error_not_supported) : std::nullopt);
    }
  }
  EXPECT_EQ(own.cuMemFreeHost(pinned), cu_success);
}

TEST_F(ModuleCallsOfPrograms, a_module_of_which_no_kernel_is_left_is_empty) {
  const auto alive = test::fake_symbol<std::int64_t()>("fake_live_objects");
  const std::int64_t before = alive();
  const CuModule module =
      loaded(std::string(test::module_head) + ".visible .global .align 4 .u32 seen[4] = {1};\n" +
             ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %stack;\nret;\n}\n");
  EXPECT_EQ(alive(), before + 1) << "what was loaded first is unloaded";
  EXPECT_EQ(taken, 0U) << "there is nobody to use the variable";
  CuFunction function = nullptr;
  EXPECT_EQ(api.cuModuleGetFunction(&function, module, "k"), 500);
  EXPECT_THAT(told, ElementsAre(HasSubstr("kernel 'k': ptxas keeps 8 bytes")));
  EXPECT_EQ(api.cuModuleUnload(module), cu_success);
}

TEST_F(ModuleCallsOfPrograms, local_variables_lie_in_the_share_however_many_threads_there_are) {
  const CuModule module = loaded(test::module_head + test::kernel_of("k", test::with_locals));
  const CuFunction k = function_of(module, "k");
  const DevicePointer out = allocated(4 * 512);
  CuStream stream = nullptr;
  ASSERT_EQ(api.cuStreamCreateWithPriority(&stream, cu_stream_non_blocking, 0), cu_success);
  for (const unsigned blocks : {1U, 4U, 8U, 2U}) {
    DevicePointer to = out;
    void* arguments[] = {&to};
    ASSERT_EQ(api.cuLaunchKernel(k, blocks, 1, 1, 64, 1, 1, 0, blocks == 4 ? stream : nullptr,
                                 arguments, nullptr),
              cu_success);
    const auto seen = read<std::uint32_t>(out, blocks * 64);
    for (std::uint32_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], i) << blocks;
  }
  DevicePointer to = out;
  void* arguments[] = {&to};
  CuLaunchConfig config{{1, 1, 1}, {64, 1, 1}, 0, stream, nullptr, 0};
  EXPECT_EQ(api.cuLaunchKernelEx(&config, k, arguments, nullptr), cu_success);
  EXPECT_THAT(told, IsEmpty());
  EXPECT_EQ(api.cuLaunchKernel(k, 1 << 20U, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr),
            cu_error_out_of_memory);
  EXPECT_THAT(told, ElementsAre(HasSubstr("local variables of 67108864 threads, 16 bytes each")));
  // What they had is free, and another's by now.
  std::vector<DevicePointer> rest(1);
  for (std::uint64_t bytes = window_bytes; bytes >= 512;) {
    if (api.cuMemAlloc_v2(&rest.back(), bytes) == cu_success) {
      rest.push_back(0);
    } else {
      bytes /= 2;
    }
  }
  rest.pop_back();
  EXPECT_EQ(launch_line(k, 1, 64, out), cu_error_out_of_memory);
  EXPECT_EQ(launch_line(k, 1, 1, out), cu_error_out_of_memory);
  for (const DevicePointer one : rest) EXPECT_EQ(api.cuMemFree_v2(one), cu_success);
  EXPECT_EQ(launch_line(k, 1, 64, out), cu_success);
  EXPECT_EQ(api.cuStreamDestroy_v2(stream), cu_success);
  EXPECT_EQ(api.cuMemFree_v2(out), cu_success);
  EXPECT_EQ(api.cuModuleUnload(module), cu_success);
  EXPECT_EQ(taken, 0U);
}

TEST_F(ModuleCallsOfPrograms, captured_kernels_keep_to_the_share) {
  const CuModule module =
      loaded(test::module_head +
             test::kernel_of("k", "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 7;"));
  const CuFunction k = function_of(module, "k");
  const DevicePointer a = allocated(4);
  write(a, std::vector<std::uint32_t>{0});
  CuStream stream = nullptr;
  CuGraph graph = nullptr;
  CuGraphExec executable = nullptr;
  ASSERT_EQ(api.cuStreamCreateWithPriority(&stream, cu_stream_non_blocking, 0), cu_success);
  ASSERT_EQ(api.cuStreamBeginCapture_v2(stream, cu_capture_thread_local), cu_success);
  DevicePointer to = a;
  void* arguments[] = {&to};
  ASSERT_EQ(api.cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), cu_success);
  ASSERT_EQ(api.cuStreamEndCapture(stream, &graph), cu_success);
  ASSERT_EQ(api.cuGraphInstantiateWithFlags(&executable, graph, 0), cu_success);
  EXPECT_EQ(read<std::uint32_t>(a, 1)[0], 0U);
  ASSERT_EQ(api.cuGraphLaunch(executable, stream), cu_success);
  ASSERT_EQ(api.cuStreamSynchronize(stream), cu_success);
  EXPECT_EQ(read<std::uint32_t>(a, 1)[0], 7U);
  api.cuGraphExecDestroy(executable);
  api.cuGraphDestroy(graph);
  api.cuStreamDestroy_v2(stream);
}

TEST_F(ModuleCallsOfPrograms, kernels_that_came_another_way_are_refused) {
  serve(false);
  const CuModule plain = loaded(test::module_head + test::kernel_of("k", "mov.u32 %r1, 1;"));
  const CuFunction k = function_of(plain, "k");
  serve(true);
  EXPECT_EQ(launch_line(k, 1, 1, DevicePointer{}), cu_error_not_supported);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0], HasSubstr("was not loaded through Demarc"));
  CuKernelNode node{};
  node.kernel = reinterpret_cast<CuKernel>(k);
  EXPECT_EQ(ask("cuGraphAddKernelNode_v2", nullptr, nullptr, nullptr, std::size_t{0}, &node),
            cu_error_not_supported);
  EXPECT_EQ(ask("cuGraphKernelNodeSetParams_v2", nullptr, &node), cu_error_not_supported);
  EXPECT_EQ(ask("cuGraphExecKernelNodeSetParams", nullptr, nullptr, &node), cu_error_not_supported);
  EXPECT_EQ(told.size(), 4U);
  const CuModule module = loaded(test::module_head + test::kernel_of("k", "mov.u32 %r1, 1;") +
                                 test::kernel_of("locals", test::with_locals));
  CuKernelNode without_locals{};
  without_locals.function = function_of(module, "k");
  EXPECT_EQ(ask("cuGraphKernelNodeSetParams", nullptr, &without_locals), cu_error_not_supported)
      << "another kernel of the module has local variables";
  EXPECT_THAT(last_told(), HasSubstr("local variables cannot be added to a graph by hand"));
  const CuModule free_of_locals =
      loaded(test::module_head + test::kernel_of("k", "mov.u32 %r1, 1;"));
  const CuFunction known = function_of(free_of_locals, "k");
  CuKernelNode by_kernel{};
  by_kernel.kernel = reinterpret_cast<CuKernel>(known);
  CuKernelNode by_function{};
  by_function.function = known;
  by_function.kernel = reinterpret_cast<CuKernel>(k);
  const auto add = [&](const char* name, const void* params) {
    return ask(name, nullptr, nullptr, nullptr, std::size_t{0}, params);
  };
  const auto set = [&](const char* name, const void* params) { return ask(name, nullptr, params); };
  const auto exec = [&](const char* name, const void* params) {
    return ask(name, nullptr, nullptr, params);
  };
  const auto all_of = [&](const void* params, const char* version) {
    const std::string end = version;
    return std::vector<std::optional<CuResult>>{
        add(("cuGraphAddKernelNode" + end).c_str(), params),
        set(("cuGraphKernelNodeSetParams" + end).c_str(), params),
        exec(("cuGraphExecKernelNodeSetParams" + end).c_str(), params)};
  };
  EXPECT_THAT(all_of(&by_kernel, "_v2"), Each(std::nullopt));
  EXPECT_THAT(all_of(&by_function, "_v2"), Each(std::nullopt));
  EXPECT_THAT(all_of(&by_function, ""), Each(std::nullopt));
  EXPECT_THAT(recorded(Recorded::kernel), Contains("k 9")) << "nodes count as launches";
  EXPECT_THAT(all_of(&by_kernel, ""), Each(cu_error_not_supported)) << "it has no kernels yet";
  EXPECT_THAT(all_of(nullptr, "_v2"), Each(std::nullopt)) << "the driver refuses it";
  serve(false);
  api.cuModuleUnload(plain);
}

}  // namespace
}  // namespace demarc::cuda
