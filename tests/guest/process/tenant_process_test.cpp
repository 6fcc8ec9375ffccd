// A process of a tenant's program: what it asks of its server, and when its calls are answered.
#include "process/tenant_process.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "calls/own_calls.hpp"
#include "confine_fixture.hpp"
#include "demarc/base/files.hpp"
#include "lease_stand_in.hpp"
#include "planted_call.hpp"

namespace demarc::cuda {
namespace {

using lease::AttachRequest;
using lease::GiveRequest;
using lease::Request;
using lease::ShowRequest;
using lease::TakeRequest;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

constexpr std::uint64_t one_extent = lease::extent_step;
constexpr CuResult tenant_out_of_memory = 2;
constexpr CuResult not_initialized_in_child = 3;

class ProcessesOfTenants : public Confine {
 protected:
  void SetUp() override {
    Confine::SetUp();
    server.emplace();
    block.capability = {9, 0};
  }
  // The server has one connection at a time.
  void attach() {
    process.reset();
    static_cast<void>(server->asked());
    const std::string socket = server->socket();
    std::copy(socket.begin(), socket.end(), block.lease_socket);
    std::copy_n(test::LeaseStandIn::token, 4, block.lease_token);
    process = TenantProcess::attach(block, [this](const std::string& line) {
                told.push_back(line);
              }).value();
    EXPECT_THAT(server->asked(), ElementsAre(Request(AttachRequest{test::LeaseStandIn::token})));
  }
  // What the program gets of its call; nothing: it passes.
  template <class... Arguments>
  std::optional<CuResult> call(const char* name, Arguments... arguments) {
    const test::PlantedCall planted(name, arguments...);
    const auto served = process->serve(planted.read());
    EXPECT_TRUE(served) << name << ": " << served.error().message;
    return planted.answer();
  }
  template <class... Arguments>
  std::string refusal(const char* name, Arguments... arguments) {
    const test::PlantedCall planted(name, arguments...);
    const auto served = process->serve(planted.read());
    EXPECT_FALSE(planted.answer()) << name;
    return served ? "it may run" : served.error().message;
  }
  DevicePointer allocated(std::size_t bytes) {
    DevicePointer address = 0;
    EXPECT_THAT(call("cuMemAlloc_v2", &address, bytes), Optional(cu_success));
    return address;
  }
  // What was asked for at an allocation: a stretch for several, or what is left.
  static auto one_allocation() { return Contains(Request(TakeRequest{one_extent})).Times(1); }

  std::optional<test::LeaseStandIn> server;
  ControlBlock& block = program.control.block();
  std::unique_ptr<TenantProcess> process;
  std::vector<std::string> told;
};

TEST_F(ProcessesOfTenants, open_their_share_at_the_first_call_that_needs_it) {
  attach();
  EXPECT_EQ(call("cuDeviceGetCount", nullptr), std::nullopt);
  EXPECT_EQ(call("cuCtxDestroy_v2", nullptr), std::nullopt) << "it would be answered otherwise";
  EXPECT_THAT(server->asked(), IsEmpty());
  EXPECT_NE(allocated(one_extent), 0U);
  EXPECT_THAT(server->asked(), one_allocation());
  EXPECT_EQ(block.record.max_bytes(), one_extent);
  EXPECT_NE(allocated(one_extent), 0U);
  EXPECT_THAT(server->asked(), one_allocation());
  EXPECT_EQ(block.record.max_bytes(), 2 * one_extent);
  EXPECT_THAT(told, IsEmpty());
  EXPECT_EQ(block.counters.colored.plain, 0U);
}

TEST_F(ProcessesOfTenants, keep_the_context_that_the_program_has_current) {
  attach();
  const auto driver = Driver::load().value();
  ASSERT_EQ(driver->api().cuCtxSetCurrent(nullptr), cu_success);
  std::size_t free = 0;
  EXPECT_THAT(call("cuMemGetInfo_v2", &free, nullptr), Optional(cu_success));
  EXPECT_EQ(free, server->lease.bytes);
  CuContext now = nullptr;
  ASSERT_EQ(driver->api().cuCtxGetCurrent(&now), cu_success);
  EXPECT_EQ(now, nullptr);
}

TEST_F(ProcessesOfTenants, give_back_what_is_empty_and_have_it_no_more) {
  attach();
  const DevicePointer first = allocated(one_extent);
  EXPECT_THAT(call("cuMemFree_v2", first), Optional(cu_success));
  EXPECT_THAT(server->asked(), Contains(Request(GiveRequest{})));
  EXPECT_NE(allocated(one_extent), 0U);
  EXPECT_EQ(block.record.max_bytes(), one_extent) << "never two at a time";
}

TEST_F(ProcessesOfTenants, are_refused_memory_beyond_theirs_as_on_a_card_that_is_full) {
  attach();
  DevicePointer address = 0;
  for (std::uint64_t bytes = 0; bytes < server->lease.bytes; bytes += one_extent) {
    EXPECT_NE(allocated(one_extent), 0U);
  }
  EXPECT_THAT(call("cuMemAlloc_v2", &address, std::size_t{one_extent}),
              Optional(tenant_out_of_memory));
  EXPECT_THAT(told, IsEmpty()) << "the program sees why";
}

TEST_F(ProcessesOfTenants, say_why_there_is_no_memory_once_their_server_is_gone) {
  attach();
  EXPECT_NE(allocated(one_extent), 0U);
  server->hangs_up = true;
  DevicePointer address = 0;
  EXPECT_THAT(call("cuMemAlloc_v2", &address, std::size_t{one_extent}),
              Optional(tenant_out_of_memory));
  EXPECT_THAT(told, Contains(HasSubstr("demarc serve has ended")));
}

TEST_F(ProcessesOfTenants, say_that_nothing_could_be_given_back) {
  attach();
  const DevicePointer first = allocated(one_extent);
  server->hangs_up = true;
  EXPECT_THAT(call("cuMemFree_v2", first), Optional(cu_success));
  EXPECT_THAT(told, ElementsAre(HasSubstr("demarc serve has ended")));
}

TEST_F(ProcessesOfTenants, give_back_what_cannot_be_mapped) {
  attach();
  EXPECT_NE(allocated(one_extent), 0U);
  static_cast<void>(server->asked());
  server->lends_no_page = true;
  DevicePointer address = 0;
  EXPECT_THAT(call("cuMemAlloc_v2", &address, std::size_t{one_extent}),
              Optional(tenant_out_of_memory));
  EXPECT_THAT(server->asked(), Contains(Request(GiveRequest{color::LinearByte(one_extent)})));
  EXPECT_EQ(block.record.max_bytes(), one_extent) << "it never had it";
}

TEST_F(ProcessesOfTenants, run_nothing_where_their_share_cannot_be_opened) {
  server->lease.card = "GPU-of-another-machine";
  attach();
  DevicePointer address = 0;
  EXPECT_THAT(refusal("cuMemAlloc_v2", &address, std::size_t{one_extent}),
              HasSubstr("is not visible here"));
}

TEST_F(ProcessesOfTenants, run_nothing_where_the_first_bytes_of_their_share_cannot_be_mapped) {
  attach();
  server->lends_no_page = true;
  DevicePointer address = 0;
  EXPECT_THAT(refusal("cuMemAlloc_v2", &address, std::size_t{one_extent}),
              HasSubstr("with 0 descriptors"));
}

TEST_F(ProcessesOfTenants, are_none_with_another_token) {
  const std::string socket = server->socket();
  std::copy(socket.begin(), socket.end(), block.lease_socket);
  const auto refused = TenantProcess::attach(block, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "no such lease");
}

// Which colours cannot hold: it is told only where the program has pinned some.
TEST_F(ProcessesOfTenants, give_kernels_no_address_of_memory_that_they_pinned) {
  attach();
  EXPECT_NE(allocated(one_extent), 0U);
  const auto driver = Driver::load().value();
  const DriverApi& api = driver->api();
  CuModule module = nullptr;
  CuFunction function = nullptr;
  const char* text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 "
      "p)\n{\nret;\n}\n";
  EXPECT_THAT(call("cuModuleLoadData", &module, text), Optional(cu_success));
  ASSERT_EQ(api.cuModuleGetFunction(&function, module, "k"), cu_success);
  void* pinned = nullptr;
  ASSERT_EQ(api.cuMemHostAlloc(&pinned, 4096, 0), cu_success);
  void* arguments[] = {&pinned};
  const auto launch = [&] {
    return call("cuLaunchKernel", function, 1U, 1U, 1U, 1U, 1U, 1U, 0U, nullptr, &arguments[0],
                nullptr);
  };
  EXPECT_EQ(launch(), std::nullopt) << "the stand-in alone has pinned it";
  EXPECT_EQ(call("cuMemHostAlloc", &pinned, std::size_t{4096}, 0U), std::nullopt);
  EXPECT_THAT(launch(), Optional(cu_error_not_supported));
  EXPECT_THAT(told, Contains(HasSubstr("would get an address of memory of the host")));
  api.cuMemFreeHost(pinned);
}

TEST_F(ProcessesOfTenants, are_clients_of_the_mps_of_their_lease) {
  server->lease.mps = "/run/mps";
  attach();
  DevicePointer address = 0;
  for (const char* name :
       {"cuCtxCreate_v4", "cuDevicePrimaryCtxRetain", "cuCtxFromGreenCtx", "cuMemAlloc_v2"}) {
    EXPECT_THAT(refusal(name, &address, std::size_t{one_extent}),
                HasSubstr("not a client of the MPS whose folder is /run/mps"))
        << name;
  }
  EXPECT_EQ(call("cuDeviceGetCount", nullptr), std::nullopt) << "it makes no context";
  process.reset();
  fake::FakeConfig config = fake::small_gpu();
  config.mps_attribute = 1;
  server.emplace(config);
  server->lease.mps = "/run/mps";
  attach();
  EXPECT_EQ(call("cuDevicePrimaryCtxRetain", nullptr), std::nullopt);
  EXPECT_NE(allocated(one_extent), 0U);
  config.mps_attribute = 0;
  test::configure(config);
  EXPECT_EQ(call("cuDevicePrimaryCtxRetain", nullptr), std::nullopt) << "the driver is asked once";
}

TEST_F(ProcessesOfTenants, are_answered_nothing_but_that_of_their_parent_in_a_child) {
  attach();
  EXPECT_NE(allocated(one_extent), 0U);
  static_cast<void>(server->asked());
  EXPECT_EQ(server->apart([this] {
    DevicePointer address = 0;
    REQUIRE_IN_CHILD(call("cuMemAlloc_v2", &address, std::size_t{one_extent}) ==
                     not_initialized_in_child);
    REQUIRE_IN_CHILD(call("cuDeviceGetCount", nullptr) == std::nullopt);
    REQUIRE_IN_CHILD(address == 0);
    return 0;
  }),
            0);
  EXPECT_THAT(server->asked(), IsEmpty()) << "the connection is the parent's";
}

TEST_F(ProcessesOfTenants, are_left_alone_in_calls_that_are_demarcs_own) {
  attach();
  const OwnCalls own;
  DevicePointer address = 0;
  EXPECT_EQ(call("cuMemAlloc_v2", &address, std::size_t{one_extent}), std::nullopt);
  EXPECT_THAT(server->asked(), IsEmpty());
}

TEST_F(ProcessesOfTenants, have_plain_memory_where_they_hold_machine_code_alone_and_may_do_so) {
  DevicePointer address = 0;
  block.allow_plain = 1;
  attach();
  EXPECT_NE(allocated(one_extent), 0U) << "it holds none";
  void* library = ::dlopen((test::build_dir() / "libdemarc_machine_code.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr);
  block.allow_plain = 0;
  attach();
  EXPECT_NE(allocated(one_extent), 0U) << "it may not";
  EXPECT_THAT(told, IsEmpty());
  block.allow_plain = 1;
  attach();
  EXPECT_EQ(call("cuMemAlloc_v2", &address, std::size_t{one_extent}), std::nullopt);
  EXPECT_EQ(block.counters.colored.plain, 1U);
  EXPECT_EQ(block.record.plain_bytes(), one_extent);
  EXPECT_THAT(told, ElementsAre(testing::AllOf(HasSubstr("libdemarc_machine_code.so"),
                                               HasSubstr("it runs on plain memory"))));
  ::dlclose(library);
}

// A fault is seen by the next call that waits for the card, whatever that does.
TEST_F(ProcessesOfTenants, tell_once_and_count_which_error_has_ended_a_context) {
  attach();
  const auto left = [&](const char* name, CuResult result) {
    test::PlantedCall planted(name);
    process->note_result(planted.read_leaving(result));
  };
  left("cuCtxSynchronize", cu_success);
  left("cuMemAlloc_v2", tenant_out_of_memory);
  {
    const OwnCalls own;
    left("cuCtxSynchronize", 700);
  }
  EXPECT_THAT(told, IsEmpty());
  EXPECT_THAT(block.record.names(), IsEmpty());
  left("cuCtxSynchronize", 700);
  left("cuMemFree_v2", 700);
  left("cuEventQuery", 719);
  EXPECT_THAT(told,
              ElementsAre("cuCtxSynchronize returned error 700, a kernel's access to an illegal "
                          "address: this context has ended, and each further call in it fails; "
                          "under MPS the error may be another program's on this card"));
  const auto names = block.record.names();
  ASSERT_EQ(names.size(), 2U);
  EXPECT_EQ(names[0].what, Recorded::ended_context);
  EXPECT_EQ(names[0].name, "error 700");
  EXPECT_EQ(names[0].why, "a kernel's access to an illegal address");
  EXPECT_EQ(names[0].count, 2U);
  EXPECT_EQ(names[1].name, "error 719");
}

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
      EXPECT_EQ(api().cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, &arguments[0],
                                     nullptr),
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
      "mul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1], %r1;\nret;\n}\n";
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

TEST_F(WindowsOfTenants, let_machine_code_reach_what_was_allocated_before_and_after_it_came) {
  block.windows = WindowUse::automatic;
  attach();
  const DevicePointer before = allocated(one_extent);
  EXPECT_THAT(server->asked(), testing::Not(Contains(Request(ShowRequest{}))))
      << "nothing is shown before it is needed";
  const CuFunction function = loaded(machine_code().data());
  EXPECT_THAT(server->asked(), ElementsAre(Request(ShowRequest{}), testing::_));
  EXPECT_EQ(launch(function, before), std::nullopt);
  EXPECT_EQ(words_at(before), counted);
  const DevicePointer after = allocated(one_extent);
  EXPECT_THAT(server->asked(), Contains(Request(ShowRequest{color::LinearByte(one_extent)})));
  EXPECT_EQ(launch(function, after), std::nullopt);
  EXPECT_EQ(words_at(after), counted);
  const auto names = recorded(Recorded::window_kernel);
  ASSERT_EQ(names.size(), 1U);
  EXPECT_EQ(names[0].name, "fills");
  EXPECT_EQ(names[0].count, 2U);
  EXPECT_THAT(told, ElementsAre(HasSubstr("it runs as it is, at addresses that the page table")));
}

TEST_F(WindowsOfTenants, are_for_what_has_no_ptx_and_arithmetic_is_for_the_rest) {
  block.windows = WindowUse::automatic;
  attach();
  const DevicePointer target = allocated(one_extent);
  const CuFunction rewritten = loaded(text);
  EXPECT_THAT(server->asked(), testing::Not(Contains(Request(ShowRequest{}))));
  EXPECT_EQ(launch(rewritten, target), std::nullopt);
  EXPECT_EQ(words_at(target), counted);
  EXPECT_EQ(recorded(Recorded::kernel).size(), 1U);
  EXPECT_EQ(recorded(Recorded::window_kernel).size(), 0U);
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(WindowsOfTenants, are_for_all_of_it_where_this_is_asked_for) {
  block.windows = WindowUse::always;
  attach();
  const DevicePointer target = allocated(one_extent);
  EXPECT_EQ(launch(loaded(text), target), std::nullopt);
  EXPECT_EQ(words_at(target), counted);
  EXPECT_EQ(recorded(Recorded::kernel).size(), 0U);
  EXPECT_EQ(recorded(Recorded::window_kernel).size(), 1U);
  EXPECT_EQ(call("cuMemsetD8_v2", target, 1, std::size_t{4}), std::nullopt) << "the driver fills";
  EXPECT_THAT(call("cuMemsetD8_v2", target, 1, std::size_t{one_extent + 1}),
              Optional(cu_error_invalid_value))
      << "beyond the allocation lies what another one may have";
}

TEST_F(WindowsOfTenants, are_gone_with_what_was_allocated) {
  block.windows = WindowUse::always;
  attach();
  const DevicePointer target = allocated(one_extent);
  EXPECT_EQ(launch(loaded(text), target), std::nullopt);
  EXPECT_THAT(call("cuMemFree_v2", target), Optional(cu_success));
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(::write(ends[1], reinterpret_cast<const void*>(target), 1), -1);  // NOLINT
  for (const int end : ends) ::close(end);
}

// Each by its reason, and nothing of the code is loaded.
TEST_F(WindowsOfTenants, that_there_cannot_be_leave_machine_code_refused) {
  CuModule module = nullptr;
  const std::string code = machine_code();
  const auto refused = [&](const char* why, void (*change)(test::LeaseStandIn&)) {
    process.reset();
    server.emplace();
    change(*server);
    attach();
    EXPECT_NE(allocated(one_extent), 0U);
    told.clear();
    EXPECT_THAT(call("cuModuleLoadData", &module, code.data()), Optional(cu_error_no_binary));
    EXPECT_THAT(told, Contains(HasSubstr(why)));
    EXPECT_EQ(launch(CuFunction{}, 0), cu_error_not_supported);
  };
  refused("no PTX", [](test::LeaseStandIn&) {});
  block.windows = WindowUse::automatic;
  refused("4 of 4 bytes are in use", [](test::LeaseStandIn& one) { one.shows_nothing = true; });
  refused("the server gives tenant 'a' no windows",
          [](test::LeaseStandIn& one) { one.lease.window_bytes = 0; });
  EXPECT_EQ(recorded(Recorded::window_kernel).size(), 0U);
}

TEST_F(WindowsOfTenants, that_were_asked_for_and_cannot_be_end_the_process) {
  block.windows = WindowUse::always;
  server->lease.window_bytes = 0;
  attach();
  DevicePointer address = 0;
  EXPECT_THAT(refusal("cuMemAlloc_v2", &address, std::size_t{one_extent}),
              HasSubstr("the server gives tenant 'a' no windows"));
}

TEST_F(WindowsOfTenants, that_are_used_up_leave_memory_refused) {
  block.windows = WindowUse::always;
  attach();
  EXPECT_EQ(launch(loaded(text), allocated(one_extent)), std::nullopt);
  server->shows_nothing = true;
  DevicePointer address = 0;
  EXPECT_THAT(call("cuMemAlloc_v2", &address, std::size_t{one_extent}),
              Optional(tenant_out_of_memory));
  EXPECT_THAT(told, Contains(HasSubstr("4 of 4 bytes are in use")));
  EXPECT_THAT(server->asked(), Contains(Request(GiveRequest{color::LinearByte(one_extent)})));
}

}  // namespace
}  // namespace demarc::cuda
