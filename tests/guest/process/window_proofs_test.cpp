// Windows of a tenant's program that are proved again while it runs.
#include <atomic>
#include <thread>

#include "windows_fixture.hpp"

namespace demarc::cuda {
namespace {

using lease::ProvedRequest;
using lease::Request;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ProofsOfWindows : public WindowsOfTenants {
 protected:
  // A program whose machine code reaches two stretches.
  std::pair<DevicePointer, DevicePointer> two_windows() {
    block.windows = WindowUse::automatic;
    attach();
    const DevicePointer first = allocated(one_extent);
    const DevicePointer second = allocated(one_extent);
    EXPECT_NE(loaded(machine_code().data()), nullptr);
    for (const DevicePointer address : {first, second}) fill_with_numbers(address, one_extent);
    return {first, second};
  }
};

// Once for each time that the server asks, at the program's next call.
TEST_F(ProofsOfWindows, are_made_once_when_the_server_asks) {
  block.windows = WindowUse::automatic;
  attach();
  const DevicePointer first = allocated(one_extent);
  block.proof = 4;
  EXPECT_EQ(free_bytes(), cu_success);
  EXPECT_THAT(proofs(), ElementsAre(ProvedRequest{4, 0, ""})) << "nothing is shown yet";
  EXPECT_NE(loaded(machine_code().data()), nullptr);
  const DevicePointer second = allocated(one_extent);
  for (const DevicePointer address : {first, second}) fill_with_numbers(address, one_extent);
  EXPECT_THAT(proofs(), IsEmpty());
  block.proof = 5;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(free_bytes(), cu_success);
  EXPECT_THAT(proofs(), ElementsAre(ProvedRequest{5, 2 * one_extent, ""}));
}

// The later of two stretches is sound, and does not make up for the earlier one.
TEST_F(ProofsOfWindows, do_not_hold_where_only_a_later_stretch_is_right) {
  const auto [first, second] = two_windows();
  ASSERT_TRUE(lead_elsewhere(first));
  block.proof = 3;
  std::size_t free = 0;
  EXPECT_THAT(refusal("cuMemGetInfo_v2", &free, static_cast<std::size_t*>(nullptr)),
              HasSubstr("elsewhere than arithmetic does"));
}

// The program goes on, because its windows do not need the server.
TEST_F(ProofsOfWindows, are_made_though_the_server_has_gone) {
  block.windows = WindowUse::automatic;
  attach();
  fill_with_numbers(allocated(one_extent), one_extent);
  EXPECT_NE(loaded(machine_code().data()), nullptr);
  server->hangs_up = true;
  block.proof = 3;
  EXPECT_EQ(free_bytes(), cu_success);
  EXPECT_THAT(told, Contains(HasSubstr("demarc serve has ended")));
}

// Nothing is known to lead elsewhere, so the program goes on, and who asked is told.
TEST_F(ProofsOfWindows, that_cannot_be_made_fail_and_the_program_goes_on) {
  block.windows = WindowUse::always;
  attach();
  fill_with_numbers(allocated(one_extent), one_extent);
  static_cast<void>(server->asked());
  server->lends_no_page = true;
  block.proof = 3;
  EXPECT_EQ(free_bytes(), cu_success);
  const auto found = proofs();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].failure, testing::Not(IsEmpty()));
}

TEST_F(ProofsOfWindows, are_made_while_a_stream_is_captured) {
  block.windows = WindowUse::automatic;
  attach();
  fill_with_numbers(allocated(one_extent), one_extent);
  EXPECT_NE(loaded(machine_code().data()), nullptr);
  CuStream stream = nullptr;
  CuGraph graph = nullptr;
  ASSERT_EQ(api().cuStreamCreateWithPriority(&stream, cu_stream_non_blocking, 0), cu_success);
  ASSERT_EQ(api().cuStreamBeginCapture_v2(stream, cu_capture_thread_local), cu_success);
  static_cast<void>(server->asked());
  block.proof = 3;
  EXPECT_EQ(free_bytes(), cu_success);
  EXPECT_THAT(proofs(), ElementsAre(ProvedRequest{3, one_extent, ""}));
  EXPECT_EQ(api().cuStreamEndCapture(stream, &graph), cu_success) << "the capture is not broken";
  EXPECT_EQ(api().cuGraphDestroy(graph), cu_success);
  EXPECT_EQ(api().cuStreamDestroy_v2(stream), cu_success);
}

// The first page of a stretch, the last one, and one in between.
TEST_F(ProofsOfWindows, end_the_program_if_a_page_leads_elsewhere_by_now) {
  block.windows = WindowUse::automatic;
  for (const std::uint64_t at : {std::uint64_t{0}, one_extent - page, one_extent + page}) {
    server.emplace();
    block.proof = 0;
    attach();
    const DevicePointer address = allocated(2 * one_extent);
    EXPECT_NE(loaded(machine_code().data()), nullptr);
    fill_with_numbers(address, 2 * one_extent);
    ASSERT_TRUE(lead_elsewhere(address + at));
    EXPECT_EQ(free_bytes(), cu_success) << "it is not looked at before it is asked for";
    block.proof = 6;
    std::size_t free = 0;
    const std::string why = refusal("cuMemGetInfo_v2", &free, static_cast<std::size_t*>(nullptr));
    EXPECT_THAT(why, HasSubstr("elsewhere than arithmetic does"));
    const auto found = proofs();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].number, 6U);
    EXPECT_EQ(found[0].failure, why);
  }
}

// There arithmetic reaches nothing but while it is compared.
TEST_F(ProofsOfWindows, of_all_code_are_made_by_mappings_that_go_after_them) {
  block.windows = WindowUse::always;
  attach();
  const DevicePointer target = allocated(one_extent);
  fill_with_numbers(target, one_extent);
  static_cast<void>(server->asked());
  for (std::uint64_t proof = 1; proof <= 2; ++proof) {
    block.proof = proof;
    EXPECT_EQ(free_bytes(), cu_success);
    const auto asked = server->asked();
    EXPECT_THAT(asked, Contains(Request(ProvedRequest{proof, one_extent, ""})));
    EXPECT_TRUE(std::any_of(asked.begin(), asked.end(), [](const Request& request) {
      return std::holds_alternative<lease::PagesRequest>(request);
    })) << "they were not mapped before";
  }
  EXPECT_EQ(launch(loaded(text), target), std::nullopt);
  EXPECT_EQ(words_at(target), counted);
}

// Kernels run in contexts, and a thread of the program may have none.
TEST_F(ProofsOfWindows, are_made_once_a_thread_with_a_context_calls) {
  block.windows = WindowUse::always;
  attach();
  fill_with_numbers(allocated(one_extent), one_extent);
  block.proof = 2;
  CuContext context = nullptr;
  ASSERT_EQ(api().cuCtxGetCurrent(&context), cu_success);
  ASSERT_EQ(api().cuCtxSetCurrent(nullptr), cu_success);
  EXPECT_EQ(free_bytes(), cu_success);
  EXPECT_THAT(proofs(), IsEmpty());
  ASSERT_EQ(api().cuCtxSetCurrent(context), cu_success);
  EXPECT_EQ(free_bytes(), cu_success);
  EXPECT_THAT(proofs(), ElementsAre(ProvedRequest{2, one_extent, ""}));
}

// Whatever other threads ask for then.
TEST_F(ProofsOfWindows, let_nothing_run_any_more_once_a_page_leads_elsewhere) {
  block.windows = WindowUse::automatic;
  attach();
  const DevicePointer address = allocated(one_extent);
  EXPECT_NE(loaded(machine_code().data()), nullptr);
  fill_with_numbers(address, one_extent);
  ASSERT_TRUE(lead_elsewhere(address));
  block.proof = 6;
  std::size_t free = 0;
  const auto refused = [&] {
    return refusal("cuMemGetInfo_v2", &free, static_cast<std::size_t*>(nullptr));
  };
  const std::string why = refused();
  EXPECT_THAT(why, HasSubstr("elsewhere"));
  EXPECT_EQ(refused(), why);
  EXPECT_EQ(proofs().size(), 1U);
}

// A page of the first stretch changes all the time; a page of the second leads elsewhere, or not.
TEST_F(ProofsOfWindows, find_a_wrong_page_behind_one_that_cannot_be_compared) {
  const auto [first, second] = two_windows();
  ASSERT_TRUE(lead_elsewhere(first));
  auto* const numbers = reinterpret_cast<std::uint64_t*>(first);  // NOLINT
  std::iota(numbers, numbers + page / sizeof(std::uint64_t), 1U);
  auto* const word = reinterpret_cast<std::atomic<std::uint64_t>*>(first);  // NOLINT
  std::atomic<bool> ends{false};
  std::thread writer([&] {
    while (!ends) word->fetch_add(1);
  });
  while (word->load() < one_extent)
    std::this_thread::yield();  // beyond what the bytes are filled with
  block.proof = 6;
  EXPECT_EQ(free_bytes(), cu_success);
  const auto found = proofs();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].failure, HasSubstr("changes all the time"));
  ASSERT_TRUE(lead_elsewhere(second));
  block.proof = 7;
  std::size_t free = 0;
  EXPECT_THAT(refusal("cuMemGetInfo_v2", &free, static_cast<std::size_t*>(nullptr)),
              HasSubstr("elsewhere"));
  ends = true;
  writer.join();
}

// A number of 0: no proof is under way.
TEST_F(ProofsOfWindows, are_not_made_once_no_operator_waits_for_them) {
  block.windows = WindowUse::always;
  attach();
  fill_with_numbers(allocated(one_extent), one_extent);
  block.proof = 3;
  EXPECT_EQ(free_bytes(), cu_success);
  block.proof = 0;
  EXPECT_EQ(free_bytes(), cu_success);
  EXPECT_EQ(proofs().size(), 1U);
}

}  // namespace
}  // namespace demarc::cuda
