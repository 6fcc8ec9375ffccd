// Two programs of a tenant that share memory by CUDA IPC, under `demarc exec --tenant`, on the
// stand-in driver.
#include <gmock/gmock.h>

#include "tenant_programs.hpp"

namespace demarc::serve {
namespace {

using cuda::complain;
using test::Supervised;

class SharingPrograms : public TenantPrograms {
 protected:
  using Steps = std::vector<std::string>;
  // A program that runs while the test goes on.
  pid_t begin(const Supervised& which, const std::string& tenant, const Steps& steps) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    constexpr unsigned patience_s = 25;
    ::alarm(patience_s);
    auto plan = plan_of(tenant, {});
    plan.command = which.subject(steps);
    const auto outcome = run_confined(plan);
    std::_Exit(outcome && outcome->holds() ? 0 : complain(outcome ? "" : outcome.error().message));
  }
  static int end_of(pid_t child) {
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
  }
  // What the server knows once so many processes of tenant a are left.
  lease::TenantStatus status_with(std::size_t processes) const {
    for (;;) {
      const auto listed = lease::LeaseClient::connect(socket)->list().value();
      if (listed.tenants[0].processes.size() == processes) return listed.tenants[0];
      ::usleep(1000);
    }
  }
  static void wait_for(const std::string& file) {
    while (::access(file.c_str(), F_OK) != 0) ::usleep(1000);
  }
  Supervised borrower{"borrowing_program"};
  std::string handle = socket + ".handle";
};

TEST_F(SharingPrograms, read_and_change_one_copy) {
  for (const bool remainders : {false, true}) {
    ServingProcess server(socket, remainders);
    ASSERT_TRUE(server.ready());
    for (const char* mark : {"", ".added", ".second", ".done"})
      std::filesystem::remove(handle + mark);
    const pid_t lends =
        begin(program, "a",
              {"context", "share=" + handle, "wait-for=" + handle + ".added", "read-shared=5",
               "count-on-shared", "read-shared=10", "touch=" + handle + ".second",
               "wait-for=" + handle + ".done", "read-shared=10", "free-shared"});
    const pid_t borrows =
        begin(borrower, "a",
              {"context", "wait-for=" + handle, "borrow=" + handle, "borrow=" + handle,
               "read-shared=0", "count-on-shared", "read-shared=5", "touch=" + handle + ".added",
               "wait-for=" + handle + ".second", "read-shared=10", "free-shared",
               "give-shared-back", "read-shared=10", "give-shared-back", "read-shared=10",
               "give-shared-back", "touch=" + handle + ".done"});
    EXPECT_EQ(end_of(borrows), 0);
    EXPECT_EQ(end_of(lends), 0);
    EXPECT_TRUE(
        program.log().ends_with("share 0\nshared right\ncount on shared 0\nshared right\n"
                                "shared right\nfree 0\n"))
        << program.log();
    EXPECT_TRUE(borrower.log().ends_with(
        "borrow 0\nborrow 0\nshared right\ncount on shared 0\nshared right\nshared right\nfree 1\n"
        "give back 0\nshared right\ngive back 0\nshared download 1\ngive back 1\n"))
        << borrower.log();
    EXPECT_EQ(server.end(), 0);
  }
}

TEST_F(SharingPrograms, keep_what_they_share_when_the_other_ends_in_whatever_way) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  for (const bool lender_ends : {true, false}) {
    for (const std::string end : {"exit=0", "die=9"}) {
      for (const char* mark : {"", ".open", ".end", ".go"}) std::filesystem::remove(handle + mark);
      Steps lender{"context", "share=" + handle};
      Steps taker{"context",         "wait-for=" + handle, "borrow=" + handle,
                  "count-on-shared", "read-shared=5",      "touch=" + handle + ".open"};
      Steps& first = lender_ends ? lender : taker;
      Steps& last = lender_ends ? taker : lender;
      first.insert(first.end(), {"wait-for=" + handle + ".end", end});
      last.insert(last.end(), {"wait-for=" + handle + ".go", "count-on-shared", "read-shared=10"});
      const pid_t lends = begin(program, "a", lender);
      const pid_t borrows = begin(borrower, "a", taker);
      wait_for(handle + ".open");
      const std::uint64_t given = status_with(2).given_bytes;
      static_cast<void>(write_file(handle + ".end", ""));
      static_cast<void>(end_of(lender_ends ? lends : borrows));
      const lease::TenantStatus left = status_with(1);
      EXPECT_LE(left.given_bytes, given);
      EXPECT_GT(left.given_bytes, 0U);
      static_cast<void>(write_file(handle + ".go", ""));
      static_cast<void>(end_of(lender_ends ? borrows : lends));
      const std::string log = lender_ends ? borrower.log() : program.log();
      EXPECT_TRUE(log.ends_with("count on shared 0\nshared right\n")) << log;
      EXPECT_EQ(status_with(0).given_bytes, 0U);
    }
  }
  EXPECT_EQ(server.end(), 0) << "what the last one left is filled with zeros";
}

TEST_F(SharingPrograms, get_nothing_by_a_handle_that_is_not_of_their_tenant) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  const pid_t lends =
      begin(program, "a",
            {"context", "share=" + handle, "borrow=" + handle, "wait-for=" + handle + ".end"});
  wait_for(handle);
  ASSERT_TRUE(write_file(handle + ".wrong", std::string(64, 'x')));
  EXPECT_EQ(end_of(begin(borrower, "b",
                         {"context", "borrow=" + handle, "give-shared-back",
                          "borrow=" + handle + ".wrong"})),
            0);
  EXPECT_TRUE(borrower.log().ends_with("borrow 400\ngive back 1\nborrow 400\n")) << borrower.log();
  ASSERT_TRUE(write_file(handle + ".end", ""));
  EXPECT_EQ(end_of(lends), 0);
  EXPECT_TRUE(program.log().ends_with("share 0\nborrow 201\n")) << program.log();
  EXPECT_EQ(status_with(0).given_bytes, 0U);
  EXPECT_EQ(end_of(begin(borrower, "a", {"context", "borrow=" + handle})), 0);
  EXPECT_TRUE(borrower.log().ends_with("borrow 400\n")) << "it is gone";
  EXPECT_EQ(server.end(), 0);
}

// The bytes are still those of the process that freed the allocation.
TEST_F(SharingPrograms, get_nothing_by_a_handle_of_memory_that_was_freed) {
  ServingProcess server(socket, false);
  ASSERT_TRUE(server.ready());
  const pid_t lends = begin(program, "a",
                            {"context", "count", "share=" + handle, "free-shared",
                             "touch=" + handle + ".freed", "wait-for=" + handle + ".end"});
  wait_for(handle + ".freed");
  EXPECT_EQ(end_of(begin(borrower, "a", {"context", "borrow=" + handle})), 0);
  EXPECT_TRUE(borrower.log().ends_with("borrow 400\n")) << borrower.log();
  ASSERT_TRUE(write_file(handle + ".end", ""));
  EXPECT_EQ(end_of(lends), 0);
  EXPECT_TRUE(program.log().ends_with("share 0\nfree 0\n")) << program.log();
  EXPECT_EQ(server.end(), 0);
}

}  // namespace
}  // namespace demarc::serve
