// Proofs of windows that an operator asks for, as the server counts them.
#include "demarc/serve/window_proofs.hpp"

#include "demarc/serve/status.hpp"
#include "server_fixture.hpp"

namespace demarc::serve {
namespace {

using lease::ProvedRequest;
using lease::ProveRequest;
using testing::HasSubstr;

constexpr std::uint64_t shown_each = 4096;

TEST(WindowProofs, wait_for_the_processes_that_have_windows_and_have_not_answered) {
  WindowProofs proofs;
  const std::vector<WindowProofs::Process> all{
      {1, 7, shown_each}, {2, 8, 2 * shown_each}, {3, 9, 0}};
  const auto number = proofs.begin("a", all);
  EXPECT_EQ(proofs.result("a", number, all).value(), (lease::Proving{number, {7, 8}, 0, 0, ""}));
  proofs.note("a", all[1], {number, 2 * shown_each, ""});
  EXPECT_EQ(proofs.result("a", number, all).value(),
            (lease::Proving{number, {7}, 1, 2 * shown_each, ""}));
  proofs.note("a", all[2], {number, 0, ""});
  proofs.note("a", all[0], {number, shown_each, ""});
  EXPECT_EQ(proofs.result("a", number, all).value(),
            (lease::Proving{number, {}, 2, 3 * shown_each, ""}));
  // One that came later, and has the number of one that has answered and ended.
  EXPECT_EQ(proofs.result("a", number, {{4, 7, shown_each}}).value(),
            (lease::Proving{number, {7}, 2, 3 * shown_each, ""}));
}

TEST(WindowProofs, fail_for_a_process_that_ended_without_an_answer_and_keep_what_one_found) {
  WindowProofs proofs;
  const std::vector<WindowProofs::Process> all{
      {1, 7, shown_each}, {2, 8, shown_each}, {3, 9, shown_each}};
  const auto number = proofs.begin("a", all);
  EXPECT_EQ(proofs.result("a", number, {all[1], all[2]}).value().failure,
            "process 7 ended before it had proved its windows");
  EXPECT_EQ(proofs.result("a", number, {{1, 7, 0}, all[1], all[2]}).value().failure, "")
      << "it lives, and has no windows any more";
  proofs.note("a", all[1], {number, shown_each, "page 3"});
  proofs.note("a", all[2], {number, shown_each, "page 4"});
  EXPECT_EQ(proofs.result("a", number, {}).value(),
            (lease::Proving{number, {}, 2, 2 * shown_each, "process 8: page 3"}));
}

TEST(WindowProofs, are_about_all_that_a_process_shows) {
  WindowProofs proofs;
  const WindowProofs::Process process{1, 7, 2 * shown_each};
  proofs.note("a", process, {1, shown_each, ""});  // no proof has begun: nothing is noted
  EXPECT_FALSE(proofs.result("a", 1, {}));
  const auto number = proofs.begin("a", {process});
  EXPECT_EQ(proofs.result("a", number, {process}).value().failure, "");
  proofs.note("a", process, {number, shown_each, ""});
  EXPECT_EQ(proofs.result("a", number, {process}).value().failure,
            "process 7: of 8192 bytes of its windows 4096 were proved");
}

TEST(WindowProofs, of_other_tenants_and_earlier_ones_have_other_numbers) {
  WindowProofs proofs;
  const std::vector<WindowProofs::Process> all{{1, 7, shown_each}};
  const auto first = proofs.begin("a", all);
  EXPECT_NE(first, proofs.begin("b", {}));
  const auto second = proofs.begin("a", all);
  const auto gone = proofs.result("a", first, all);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(gone.error().message, HasSubstr("another proof of the windows of tenant 'a'"));
  proofs.note("a", all[0], {first, shown_each, ""});
  EXPECT_EQ(proofs.result("a", second, all).value(), (lease::Proving{second, {7}, 0, 0, ""}))
      << "it was asked before";
  EXPECT_FALSE(proofs.result("c", first, {}));
}

// A process that has found a wrong page ends, and cannot be asked again.
TEST(WindowProofs, begin_with_a_failure_that_no_operator_has_been_told) {
  WindowProofs proofs;
  const std::vector<WindowProofs::Process> all{{1, 7, shown_each}};
  const auto first = proofs.begin("a", all);
  proofs.note("a", all[0], {first, shown_each, "page 3"});
  const auto second = proofs.begin("a", {});
  EXPECT_EQ(proofs.result("a", second, {}).value().failure, "process 7: page 3");
  const auto third = proofs.begin("a", {});
  EXPECT_EQ(proofs.result("a", third, {}).value().failure, "");
  proofs.note("a", all[0], {first, shown_each, "page 4"});
  EXPECT_EQ(proofs.result("a", third, {}).value().failure, "process 7: page 4")
      << "it comes late and counts";
}

TEST(WindowProofs, fail_for_a_process_that_got_windows_meanwhile_and_ended) {
  WindowProofs proofs;
  const auto number = proofs.begin("a", {});
  EXPECT_EQ(proofs.result("a", number, {{1, 7, shown_each}}).value().waiting,
            std::vector<std::int64_t>{7});
  EXPECT_EQ(proofs.result("a", number, {}).value().failure,
            "process 7 ended before it had proved its windows");
}

TEST(WindowProofs, say_what_was_found_and_fail_where_something_was_not_proved) {
  EXPECT_EQ(proving_to_text("a", {1, {}, 1, 4096, ""}, 10).value(),
            "tenant 'a': 4096 bytes in windows of 1 process: each page has the same content both "
            "ways\n");
  EXPECT_EQ(proving_to_text("a", {1, {}, 2, 8192, ""}, 10).value(),
            "tenant 'a': 8192 bytes in windows of 2 processes: each page has the same content both "
            "ways\n");
  EXPECT_EQ(proving_to_text("a", {1, {}, 0, 0, ""}, 10).value(),
            "tenant 'a': no process has memory in windows\n");
  const auto late = proving_to_text("a", {1, {7, 8}, 1, 4096, ""}, 2.5);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::check_failed);
  EXPECT_EQ(
      late.error().message,
      "tenant 'a': process 7, 8 has not answered within 2.5 s, so its windows were not proved");
  const auto wrong = proving_to_text("a", {1, {7}, 1, 4096, "process 8: page 3"}, 10);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::check_failed);
  EXPECT_EQ(wrong.error().message, "tenant 'a': process 8: page 3");
}

class ProvingWindows : public ServerTest {
 protected:
  void SetUp() override { start(); }
  [[nodiscard]] lease::Proving prove_again(const lease::PacketSocket& client, std::uint64_t number,
                                           const std::string& tenant = "a") const {
    return ask<lease::Proving>(client, ProveRequest{tenant, number}).value();
  }
  cuda::Control control = cuda::Control::create().value();
  cuda::Control late = cuda::Control::create().value();
};

TEST_F(ProvingWindows, asks_the_programs_of_the_tenant_and_waits_for_those_that_show_memory) {
  const auto rule = connect();
  const auto owner = connect();
  const auto process = connect();
  const std::vector<std::int64_t> nothing;
  const std::string token = open(owner, "a", control.value()).token;
  static_cast<void>(attach(process, token));
  static_cast<void>(take(process, step));
  EXPECT_EQ(prove_again(rule, 0).waiting, nothing);
  EXPECT_EQ(control.block().proof, 0U) << "nothing is to be proved";
  EXPECT_EQ(refusal(process, lease::ShowRequest{}), "done");
  const lease::Proving begun = prove_again(rule, 0);
  EXPECT_EQ(begun.waiting, std::vector<std::int64_t>{::getpid()});
  EXPECT_EQ(control.block().proof, begun.number);
  EXPECT_EQ(prove_again(rule, 0, "b").waiting, nothing);
  EXPECT_EQ(control.block().proof, begun.number) << "the other tenant's programs are asked";
  const auto later = connect();
  static_cast<void>(open(later, "a", late.value()));
  EXPECT_EQ(late.block().proof, 0U);
  EXPECT_EQ(prove_again(rule, begun.number), begun) << "no further proof begins";
  EXPECT_EQ(late.block().proof, begun.number) << "a program that came meanwhile is asked, too";
  EXPECT_EQ(refusal(process, ProvedRequest{begun.number, step, ""}), "done");
  EXPECT_EQ(prove_again(rule, begun.number), (lease::Proving{begun.number, {}, 1, step, ""}));
  EXPECT_EQ(control.block().proof, 0U) << "it has ended";
}

TEST_F(ProvingWindows, fail_with_a_process_that_ends_before_it_answers) {
  const auto rule = connect();
  const auto owner = connect();
  const std::string token = open(owner, "a", control.value()).token;
  const pid_t process = in_process([&] {
    auto client = lease::LeaseClient::connect(options.socket).value();
    static_cast<void>(client.attach(token).value());
    if (!client.show(client.take(step).value().first)) return 1;
    while (true) ::pause();
  });
  turn_until([&] { return status("a").shown_bytes == step; });
  const lease::Proving begun = prove_again(rule, 0);
  EXPECT_EQ(begun.waiting, std::vector<std::int64_t>{process});
  ::kill(process, SIGKILL);
  EXPECT_EQ(end_of(process), SIGKILL);
  turn_until([&] { return status("a").processes.empty(); });
  EXPECT_EQ(prove_again(rule, begun.number).failure,
            fmt::format("process {} ended before it had proved its windows", process));
}

TEST_F(ProvingWindows, is_refused_to_what_is_no_operator_and_no_process_of_a_tenant) {
  const auto client = connect();
  EXPECT_THAT(refusal(client, ProvedRequest{1, 0, ""}), HasSubstr("attach to a lease before"));
  EXPECT_THAT(refusal(client, ProveRequest{"c", 0}), HasSubstr("'c'"));
  EXPECT_THAT(refusal(client, ProveRequest{"a", 9}),
              HasSubstr("no proof of the windows of tenant 'a' has begun"));
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner).token));
  static_cast<void>(take(process, step));
  EXPECT_EQ(refusal(process, lease::ShowRequest{}), "done");
  EXPECT_EQ(prove_again(client, 0).waiting.size(), 1U) << "this lease has no block to be asked by";
}

}  // namespace
}  // namespace demarc::serve
