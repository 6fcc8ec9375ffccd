// Memory that several processes of a tenant have, as clients ask the server for it.
#include "server_fixture.hpp"

namespace demarc::serve {
namespace {

using color::LinearByte;
using testing::HasSubstr;

class SharingMemory : public ServerTest {
 protected:
  void SetUp() override {
    options.proof = [this](const Book& book) -> Result<void> {
      if (!sound) return check_failed("not sound");
      return prove(book);
    };
    start();
  }
  bool sound = true;
  struct Program {
    lease::PacketSocket owner;
    lease::PacketSocket process;
  };
  [[nodiscard]] Program program(const std::string& tenant = "a") const {
    Program made{connect(), connect()};
    static_cast<void>(attach(made.process, open(made.owner, tenant).token));
    return made;
  }
  [[nodiscard]] std::string lent(const Program& from, LinearByte first = {},
                                 std::uint64_t place = 0) const {
    return ask<lease::Lent>(from.process, lease::LendRequest{first, place}).value().key;
  }
  [[nodiscard]] Result<lease::Extent> borrowed(const Program& by, const std::string& key) const {
    return ask<lease::Extent>(by.process, lease::BorrowRequest{key});
  }
};

TEST_F(SharingMemory, gives_two_processes_of_a_tenant_the_same_bytes) {
  const Program lender = program();
  const Program borrower = program();
  EXPECT_EQ(take(lender.process, 2 * step).first, LinearByte());
  const lease::Extent second = take(lender.process, step);
  const std::string key = lent(lender, second.first);
  EXPECT_EQ(key.size(), 32U);
  EXPECT_NE(lent(lender), key);
  EXPECT_EQ(lent(lender, second.first), key);
  EXPECT_NE(lent(lender, second.first, 512), key);
  EXPECT_EQ(borrowed(borrower, key).value(), second);
  EXPECT_EQ(status("a").given_bytes, 3 * step) << "they count once";
  EXPECT_EQ(status("a").extents, 2U);
  EXPECT_EQ(refusal(lender.process, lease::GiveRequest{second.first}), "done");
  EXPECT_EQ(status("a").given_bytes, 3 * step);
  EXPECT_EQ(refusal(borrower.process, lease::GiveRequest{second.first}), "done");
  EXPECT_EQ(status("a").given_bytes, 2 * step);
}

TEST_F(SharingMemory, leaves_the_bytes_to_the_process_that_is_left) {
  for (const bool lender_dies : {true, false}) {
    const Program stays = program();
    const auto owner = connect();
    const std::string token = open(owner).token;
    char* const memory = card.memory(1);  // the tenant's, with the key behind what is taken
    const auto key_at = [&] { return std::string(memory + 4 * step); };
    if (!lender_dies) {
      ASSERT_EQ(take(stays.process, step).first, LinearByte());
      std::strcpy(memory + 4 * step, lent(stays).c_str());
    }
    const pid_t dies = in_process([&] {
      auto client = lease::LeaseClient::connect(options.socket).value();
      static_cast<void>(client.attach(token).value());
      if (lender_dies) {
        static_cast<void>(client.take(step).value());
        std::strcpy(memory + 4 * step, client.lend({}, 0).value().c_str());
      } else {
        static_cast<void>(client.borrow(key_at()).value());
      }
      std::memset(memory, 'x', step);
      ::pause();
      return 0;
    });
    turn_until([&] { return memory[step - 1] == 'x'; });
    if (lender_dies) {
      ASSERT_EQ(borrowed(stays, key_at()).value(), (lease::Extent{{}, step}));
    }
    ::kill(dies, SIGKILL);
    static_cast<void>(end_of(dies));
    turn_until([&] { return status("a").processes.size() == 1; });
    EXPECT_EQ(status("a").given_bytes, step);
    EXPECT_EQ(status("a").unclean_bytes, 0U);
    EXPECT_EQ(memory[step - 1], 'x');
    EXPECT_EQ(refusal(stays.process, lease::GiveRequest{}), "done");
    turn_until([&] { return status("a").given_bytes + status("a").unclean_bytes == 0; });
    EXPECT_EQ(memory[0], 0);
    EXPECT_EQ(memory[step - 1], 0);
    server.reset();
    start();
  }
}

TEST_F(SharingMemory, refuses_other_tenants_and_clients_without_a_process) {
  const Program lender = program();
  const Program other = program("b");
  ASSERT_EQ(take(lender.process, step).bytes, step);
  const std::string key = lent(lender);
  EXPECT_THAT(borrowed(other, key).error().message,
              HasSubstr("no process of tenant 'b' shares memory under this key"));
  EXPECT_EQ(refusal(other.process, lease::LendRequest{}), "no bytes of this process begin at 0");
  EXPECT_EQ(refusal(other.process, lease::WithdrawRequest{}),
            "no bytes of this process begin at 0");
  EXPECT_EQ(refusal(other.owner, lease::WithdrawRequest{}),
            "attach to a lease before memory is withdrawn");
  EXPECT_EQ(refusal(other.owner, lease::LendRequest{}), "attach to a lease before memory is lent");
  EXPECT_EQ(refusal(lender.owner, lease::BorrowRequest{key}),
            "attach to a lease before memory is borrowed");
  EXPECT_EQ(status("b").given_bytes, 0U);
}

TEST_F(SharingMemory, gives_nothing_that_its_proof_does_not_show) {
  const Program lender = program();
  const Program borrower = program();
  ASSERT_EQ(take(lender.process, step).bytes, step);
  const std::string key = lent(lender);
  sound = false;
  EXPECT_EQ(borrowed(borrower, key).error().message, "not sound");
  sound = true;
  EXPECT_EQ(refusal(borrower.process, lease::GiveRequest{}), "no bytes of this process begin at 0");
  EXPECT_EQ(borrowed(borrower, key).value().bytes, step);
  EXPECT_EQ(refusal(lender.process, lease::WithdrawRequest{}), "done");
  EXPECT_THAT(borrowed(borrower, key).error().message, HasSubstr("the memory was freed"));
}

}  // namespace
}  // namespace demarc::serve
