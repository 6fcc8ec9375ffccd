// Code of a tenant's program that runs as it is, at addresses that the page table leads to the
// tenant's bytes.
#include "calls/ipc_handle.hpp"
#include "windows_fixture.hpp"

namespace demarc::cuda {
namespace {

using lease::GiveRequest;
using lease::Request;
using lease::ShowRequest;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

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
  EXPECT_EQ(block.record.max_window_bytes(), 2 * one_extent);
  EXPECT_EQ(block.record.max_window_mappings(), 2 * 63U);
  const auto names = recorded(Recorded::window_kernel);
  ASSERT_EQ(names.size(), 1U);
  EXPECT_EQ(names[0].name, "fills");
  EXPECT_EQ(names[0].count, 2U);
  EXPECT_THAT(told, ElementsAre(HasSubstr("it runs as it is, at addresses that the page table")));
  const auto code = recorded(Recorded::window_code);
  ASSERT_EQ(code.size(), 1U);
  EXPECT_THAT(code[0].name, HasSubstr("no PTX"));
  EXPECT_EQ(code[0].count, 1U);
}

TEST_F(WindowsOfTenants, are_not_filled_with_memory_that_others_may_write_to) {
  block.windows = WindowUse::automatic;
  attach();
  const DevicePointer lent = allocated(one_extent);
  CuIpcHandle handle;
  ASSERT_THAT(call("cuIpcGetMemHandle", &handle, lent), Optional(cu_success));
  const std::string code = machine_code();
  CuModule module = nullptr;
  EXPECT_THAT(call("cuModuleLoadData", &module, code.data()), Optional(cu_error_no_binary));
  EXPECT_THAT(told.back(), HasSubstr("has lent memory to other processes (cuIpcGetMemHandle)"));
  EXPECT_THAT(call("cuMemFree_v2", lent), Optional(cu_success));
  EXPECT_NE(loaded(code.data()), nullptr);
}

// Another process may change the content at any time, so it proves nothing.
TEST_F(WindowsOfTenants, are_not_filled_while_memory_of_another_process_is_open) {
  block.windows = WindowUse::automatic;
  attach();
  server->of_others =
      lease::Extent{color::LinearByte(server->lease.bytes - one_extent), one_extent};
  EXPECT_NE(allocated(one_extent), 0U);
  DevicePointer address = 0;
  const CuIpcHandle handle = packed({server->key, 0, 8}).value();
  ASSERT_THAT(call("cuIpcOpenMemHandle_v2", &address, handle, 1U), Optional(cu_success));
  const std::string code = machine_code();
  CuModule module = nullptr;
  EXPECT_THAT(call("cuModuleLoadData", &module, code.data()), Optional(cu_error_no_binary));
  EXPECT_THAT(told.back(), HasSubstr("uses memory of other processes (cuIpcOpenMemHandle)"));
  EXPECT_THAT(call("cuIpcCloseMemHandle", address), Optional(cu_success));
  EXPECT_NE(loaded(code.data()), nullptr);
  EXPECT_THAT(call("cuIpcOpenMemHandle_v2", &address, handle, 1U),
              Optional(cu_error_not_supported));
}

TEST_F(WindowsOfTenants, are_filled_though_the_process_tried_to_open_its_own_memory) {
  block.windows = WindowUse::automatic;
  attach();
  EXPECT_NE(allocated(one_extent), 0U);
  server->of_others = lease::Extent{{}, one_extent};
  DevicePointer address = 0;
  const CuIpcHandle handle = packed({server->key, 0, 8}).value();
  EXPECT_THAT(call("cuIpcOpenMemHandle_v2", &address, handle, 1U),
              Optional(cu_error_invalid_context));
  EXPECT_NE(loaded(machine_code().data()), nullptr);
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

// A library that has both would be compiled for a minute, and its calls ask for what arithmetic
// does not serve.
TEST_F(WindowsOfTenants, once_filled_are_for_what_the_card_can_run_and_for_calls_that_need_them) {
  block.windows = WindowUse::automatic;
  attach();
  const DevicePointer target = allocated(4096);
  const auto file = [](const char* name) {
    return read_file(test::source_dir() / "tests/fatbin/files" / name).value();
  };
  const std::string both = file("zstd.fatbin");
  CuModule module = nullptr;
  EXPECT_THAT(call("cuModuleLoadData", &module, both.data()), Optional(cu_success)) << "rewritten";
  EXPECT_THAT(call("cuMemHostGetDevicePointer_v2", nullptr, nullptr, 0U),
              Optional(cu_error_not_supported));
  EXPECT_THAT(server->asked(), testing::Not(Contains(Request(ShowRequest{}))));
  EXPECT_EQ(call("cuTensorMapEncodeTiled", nullptr), std::nullopt) << "it leads to the window";
  EXPECT_THAT(server->asked(), Contains(Request(ShowRequest{})));
  EXPECT_EQ(call("cuMemHostGetDevicePointer_v2", nullptr, nullptr, 0U), std::nullopt);
  EXPECT_THAT(call("cuStreamWriteValue32_v2", nullptr, target, 0U, 0U),
              Optional(cu_error_not_supported))
      << "the driver would write wherever it leads";
  EXPECT_THAT(call("cuMemAdvise", nullptr), Optional(cu_error_not_supported)) << "it has no colour";
  EXPECT_THAT(recorded(Recorded::window_code), IsEmpty()) << "calls are no code";
  EXPECT_EQ(call("cuModuleLoadData", &module, both.data()), std::nullopt) << "as it is";
  ASSERT_EQ(recorded(Recorded::window_code).size(), 1U);
  EXPECT_EQ(recorded(Recorded::window_code)[0].name,
            "the card runs its machine code, and the window is filled");
  EXPECT_THAT(call("cuModuleLoadData", &module, text), Optional(cu_success)) << "it has PTX alone";
}

TEST_F(WindowsOfTenants, never_wanted_leave_calls_refused_that_need_them) {
  attach();
  EXPECT_NE(allocated(one_extent), 0U);
  for (const char* name : {"cuTensorMapEncodeTiled", "cuMemHostGetDevicePointer_v2"}) {
    EXPECT_THAT(call(name, nullptr, nullptr, 0U), Optional(cu_error_not_supported)) << name;
  }
}

TEST_F(WindowsOfTenants, are_for_all_of_it_where_this_is_asked_for) {
  block.windows = WindowUse::always;
  attach();
  const DevicePointer target = allocated(one_extent);
  EXPECT_EQ(launch(loaded(text), target), std::nullopt);
  EXPECT_EQ(words_at(target), counted);
  EXPECT_EQ(recorded(Recorded::kernel).size(), 0U);
  EXPECT_EQ(recorded(Recorded::window_kernel).size(), 1U);
  ASSERT_EQ(recorded(Recorded::window_code).size(), 1U);
  EXPECT_EQ(recorded(Recorded::window_code)[0].name, "--windows always");
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
  EXPECT_FALSE(is_readable(target));
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
  refused("4 of 4 bytes are in use", [](test::LeaseStandIn& one) { one.shows = 0; });
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

// The server has mappings for the first of two stretches alone.
TEST_F(WindowsOfTenants, that_are_shown_in_part_are_taken_away_with_what_was_allocated) {
  block.windows = WindowUse::automatic;
  server->shows = 1;
  attach();
  const DevicePointer first = allocated(one_extent);
  EXPECT_NE(allocated(one_extent), 0U);
  CuModule module = nullptr;
  const std::string code = machine_code();
  EXPECT_THAT(call("cuModuleLoadData", &module, code.data()), Optional(cu_error_no_binary));
  EXPECT_TRUE(is_readable(first));
  block.proof = 1;
  EXPECT_THAT(call("cuMemGetInfo_v2", nullptr, nullptr), Optional(cu_success));
  EXPECT_THAT(proofs(), ElementsAre(lease::ProvedRequest{1, one_extent, ""}))
      << "as the server counts it";
  EXPECT_THAT(call("cuMemFree_v2", first), Optional(cu_success));
  EXPECT_FALSE(is_readable(first)) << "another process may have these bytes next";
}

// The page table leads pages elsewhere: of the first stretch, or the last of the second.
TEST_F(WindowsOfTenants, that_lead_elsewhere_than_arithmetic_are_taken_away_and_refused) {
  const auto mislead_from = [&](std::uint32_t piece) {
    process.reset();
    fake::FakeConfig config = fake::small_gpu();
    config.misled_from = piece;
    server.emplace(config);
    attach();
    told.clear();
  };
  constexpr std::uint32_t pieces = 63;
  block.windows = WindowUse::always;
  for (const std::uint32_t piece : {1U, 60U, pieces}) {
    mislead_from(piece);
    DevicePointer address = 0;
    EXPECT_THAT(call("cuMemAlloc_v2", &address, std::size_t{one_extent}),
                Optional(tenant_out_of_memory));
    EXPECT_THAT(told, testing::Each(HasSubstr("elsewhere than arithmetic does")));
    EXPECT_THAT(told, testing::Not(IsEmpty()));
    EXPECT_THAT(server->asked(), Contains(Request(GiveRequest{})));
  }
  block.windows = WindowUse::automatic;
  CuModule module = nullptr;
  const std::string code = machine_code();
  for (const bool filled : {true, false}) {
    mislead_from(2 * pieces);
    EXPECT_NE(allocated(one_extent), 0U);
    const DevicePointer second = allocated(one_extent);
    // Each page has content of its own at one of the places that are compared alone.
    std::vector<std::uint64_t> words(one_extent / sizeof(std::uint64_t));
    for (std::size_t i = 448; filled && i < words.size(); i += 512) words[i] = i;
    EXPECT_THAT(call("cuMemcpyHtoD_v2", second, static_cast<const void*>(words.data()),
                     std::size_t{one_extent}),
                Optional(cu_success));
    const auto answer = call("cuModuleLoadData", &module, code.data());
    EXPECT_EQ(answer, filled ? std::optional(cu_error_no_binary) : std::nullopt)
        << "zeros are zeros everywhere";
  }
}

TEST_F(WindowsOfTenants, are_zero_after_their_proof) {
  block.windows = WindowUse::always;
  attach();
  const DevicePointer target = allocated(one_extent);
  std::vector<std::uint64_t> words(one_extent / sizeof(std::uint64_t), 1);
  EXPECT_EQ(made("cuMemcpyDtoH_v2", api().cuMemcpyDtoH_v2, static_cast<void*>(words.data()), target,
                 std::size_t{one_extent}),
            cu_success);
  EXPECT_THAT(words, testing::Each(0U));
}

TEST_F(WindowsOfTenants, that_are_used_up_leave_memory_refused) {
  block.windows = WindowUse::always;
  attach();
  EXPECT_EQ(launch(loaded(text), allocated(one_extent)), std::nullopt);
  server->shows = 0;
  DevicePointer address = 0;
  EXPECT_THAT(call("cuMemAlloc_v2", &address, std::size_t{one_extent}),
              Optional(tenant_out_of_memory));
  EXPECT_THAT(told, Contains(HasSubstr("4 of 4 bytes are in use")));
  EXPECT_THAT(server->asked(), Contains(Request(GiveRequest{color::LinearByte(one_extent)})));
}

}  // namespace
}  // namespace demarc::cuda
