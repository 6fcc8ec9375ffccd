// A process of a tenant's program: what it asks of its server, and when its calls are answered.
#include "process/tenant_process.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "calls/own_calls.hpp"
#include "tenant_fixture.hpp"

namespace demarc::cuda {
namespace {

using lease::AttachRequest;
using lease::GiveRequest;
using lease::Request;
using lease::TakeRequest;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

constexpr CuResult not_initialized_in_child = 3;

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
              HasSubstr("with 1 descriptors"));
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
  EXPECT_THAT(told, Contains(HasSubstr("would get an address of host memory")));
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

// CUdevice_attribute: whether functions may be called that a tenant is refused, and others.
constexpr int missing_features[] = {19,  83,  88,  89,  91,  92,  93,  94,  96,  98,
                                    100, 101, 102, 103, 108, 110, 112, 114, 116, 119,
                                    121, 122, 123, 124, 127, 128, 132, 136, 137};
constexpr int kept_features[] = {1, 16, 75, 82, 84, 90, 95, 97, 115, 120, 125, 126, 131, 133};

TEST_F(ProcessesOfTenants, are_told_that_the_card_lacks_what_a_tenant_is_refused) {
  attach();
  for (const int attribute : missing_features) {
    int value = 7;
    EXPECT_THAT(call("cuDeviceGetAttribute", &value, attribute, CuDevice{}), Optional(cu_success))
        << attribute;
    EXPECT_EQ(value, 0) << attribute;
  }
  for (const int attribute : kept_features) {
    int value = 7;
    EXPECT_EQ(call("cuDeviceGetAttribute", &value, attribute, CuDevice{}), std::nullopt)
        << attribute;
    EXPECT_EQ(value, 7) << attribute;
  }
  EXPECT_EQ(call("cuDeviceGetAttribute", nullptr, 102, CuDevice{}), std::nullopt)
      << "the driver says what is wrong";
  EXPECT_THAT(server->asked(), IsEmpty()) << "no memory is needed to tell";
}

TEST_F(ProcessesOfTenants, are_told_of_features_that_code_as_it_is_has_where_it_is_admitted) {
  constexpr int host_memory[] = {19, 88, 91, 100};
  constexpr int tensor_map = 127;
  attach();
  const auto is_told_missing = [&](int attribute) {
    int value = 7;
    return call("cuDeviceGetAttribute", &value, attribute, CuDevice{}) == cu_success && value == 0;
  };
  for (const WindowUse use : {WindowUse::automatic, WindowUse::always}) {
    block.windows = use;
    for (const int attribute : missing_features) {
      const bool has = std::ranges::count(host_memory, attribute) != 0 || attribute == tensor_map;
      EXPECT_EQ(is_told_missing(attribute), !has) << attribute;
    }
  }
  server->lease.window_bytes = 0;
  attach();
  EXPECT_TRUE(is_told_missing(tensor_map)) << "the server gives no windows";
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
  int value = 7;
  EXPECT_EQ(call("cuDeviceGetAttribute", &value, 102, CuDevice{}), std::nullopt);
  EXPECT_EQ(block.counters.colored.plain, 1U);
  EXPECT_EQ(block.record.plain_bytes(), one_extent);
  EXPECT_THAT(told, ElementsAre(testing::AllOf(HasSubstr("libdemarc_machine_code.so"),
                                               HasSubstr("it runs on memory without a colour"))));
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

}  // namespace
}  // namespace demarc::cuda
