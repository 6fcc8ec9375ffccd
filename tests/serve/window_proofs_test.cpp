// Proofs of windows that an operator asks for, as the server counts them.
#include "demarc/serve/window_proofs.hpp"

#include "demarc/serve/status.hpp"
#include "server_fixture.hpp"

namespace demarc::serve {
namespace {

using lease::ProvedRequest;
using lease::ProveRequest;
using lease::Proving;
using testing::HasSubstr;

TEST(WindowProofs, wait_for_the_processes_that_have_windows_and_have_not_answered) {
  WindowProofs proofs;
  const auto number = proofs.begin("a");
  EXPECT_EQ(proofs.result("a", number, {7, 8}).value(), (Proving{number, {7, 8}, 0, 0, ""}));
  ASSERT_TRUE(proofs.note("a", 8, {number, 10, ""}));
  EXPECT_EQ(proofs.result("a", number, {7, 8}).value(), (Proving{number, {7}, 1, 10, ""}));
  ASSERT_TRUE(proofs.note("a", 9, {number, 0, ""})) << "one without windows answers, too";
  EXPECT_EQ(proofs.result("a", number, {8}).value(), (Proving{number, {}, 1, 10, ""}));
}

TEST(WindowProofs, keep_what_a_process_found_that_has_ended) {
  WindowProofs proofs;
  const auto number = proofs.begin("a");
  ASSERT_TRUE(proofs.note("a", 7, {number, 10, ""}));
  ASSERT_TRUE(proofs.note("a", 8, {number, 20, "page 3"}));
  ASSERT_TRUE(proofs.note("a", 9, {number, 30, "page 4"}));
  EXPECT_EQ(proofs.result("a", number, {}).value(),
            (Proving{number, {}, 3, 60, "process 8: page 3"}));
}

TEST(WindowProofs, of_other_tenants_and_earlier_ones_have_other_numbers) {
  WindowProofs proofs;
  const auto first = proofs.begin("a");
  const auto other = proofs.begin("b");
  EXPECT_NE(first, other);
  EXPECT_FALSE(proofs.result("a", other, {}));
  EXPECT_FALSE(proofs.note("a", 7, {other, 10, ""}));
  EXPECT_FALSE(proofs.result("c", first, {}));
  ASSERT_TRUE(proofs.note("a", 7, {first, 10, ""}));
  const auto second = proofs.begin("a");
  EXPECT_FALSE(proofs.note("a", 7, {first, 10, ""})) << "it was asked before";
  EXPECT_THAT(proofs.result("a", first, {}).error().message,
              HasSubstr("tenant 'a' has no proof of number 1: a later one has begun"));
  EXPECT_EQ(proofs.result("a", second, {7}).value(), (Proving{second, {7}, 0, 0, ""}));
}

TEST(WindowProofs, say_what_was_found_and_fail_where_something_was_not_proved) {
  EXPECT_EQ(proving_to_text("a", {1, {}, 1, 4096, ""}, 10).value(),
            "tenant 'a': 4096 bytes in windows of 1 process: each page leads to the tenant's "
            "memory\n");
  EXPECT_EQ(proving_to_text("a", {1, {}, 2, 8192, ""}, 10).value(),
            "tenant 'a': 8192 bytes in windows of 2 processes: each page leads to the tenant's "
            "memory\n");
  EXPECT_EQ(proving_to_text("a", {1, {}, 0, 0, ""}, 10).value(),
            "tenant 'a': no process has memory in windows\n");
  const auto late = proving_to_text("a", {1, {7, 8}, 1, 4096, ""}, 2.5);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::check_failed);
  EXPECT_EQ(late.error().message,
            "tenant 'a': within 2.5 s no call of the driver came from process 7, 8, so its windows "
            "were not proved");
  const auto wrong = proving_to_text("a", {1, {7}, 1, 4096, "process 8: page 3"}, 10);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::check_failed);
  EXPECT_EQ(wrong.error().message, "tenant 'a': process 8: page 3");
}

class ProvingWindows : public ServerTest {
 protected:
  void SetUp() override { start(); }
  [[nodiscard]] Proving prove_again(const lease::PacketSocket& client, std::uint64_t number,
                                    const std::string& tenant = "a") const {
    return ask<Proving>(client, ProveRequest{tenant, number}).value();
  }
  cuda::Control control = cuda::Control::create().value();
  cuda::Control late = cuda::Control::create().value();
};

TEST_F(ProvingWindows, asks_the_programs_of_the_tenant_and_waits_for_those_that_show_memory) {
  const auto rule = connect();
  const auto owner = connect();
  const auto process = connect();
  const std::string token = open(owner, "a", control.value()).token;
  static_cast<void>(attach(process, token));
  static_cast<void>(take(process, step));
  EXPECT_EQ(prove_again(rule, 0).waiting, std::vector<std::int64_t>());
  EXPECT_EQ(refusal(process, lease::ShowRequest{}), "done");
  const Proving begun = prove_again(rule, 0);
  EXPECT_EQ(begun.waiting, std::vector<std::int64_t>{::getpid()});
  EXPECT_EQ(control.block().proof, begun.number);
  EXPECT_EQ(prove_again(rule, 0, "b").waiting, std::vector<std::int64_t>());
  EXPECT_EQ(control.block().proof, begun.number) << "the other tenant's programs are asked";
  const auto later = connect();
  static_cast<void>(open(later, "a", late.value()));
  EXPECT_EQ(late.block().proof, 0U);
  EXPECT_EQ(prove_again(rule, begun.number), begun) << "no further proof begins";
  EXPECT_EQ(late.block().proof, begun.number) << "a program that came meanwhile is asked, too";
  EXPECT_EQ(refusal(process, ProvedRequest{begun.number, step, "page 3"}), "done");
  EXPECT_EQ(prove_again(rule, begun.number),
            (Proving{begun.number, {}, 1, step, fmt::format("process {}: page 3", ::getpid())}));
}

TEST_F(ProvingWindows, is_refused_to_what_is_no_operator_and_no_process_of_a_tenant) {
  const auto client = connect();
  EXPECT_THAT(refusal(client, ProvedRequest{1, 0, ""}), HasSubstr("attach to a lease before"));
  EXPECT_THAT(refusal(client, ProveRequest{"c", 0}), HasSubstr("'c'"));
  EXPECT_THAT(refusal(client, ProveRequest{"a", 9}), HasSubstr("no proof of number 9"));
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner).token));
  EXPECT_THAT(refusal(process, ProvedRequest{9, 0, ""}), HasSubstr("no proof of number 9"));
  EXPECT_EQ(prove_again(client, 0).processes, 0U) << "this lease has no block to be asked by";
}

}  // namespace
}  // namespace demarc::serve
