// Memory that processes of tenants reach by their page tables, as the server counts it.
#include "server_fixture.hpp"

namespace demarc::serve {
namespace {

using color::LinearByte;
using testing::HasSubstr;

class ShowingMemory : public ServerTest {
 protected:
  void SetUp() override { start(); }
};

TEST_F(ShowingMemory, lets_no_more_be_shown_than_a_tenant_may) {
  const auto owner = connect();
  const auto process = connect();
  EXPECT_EQ(attach(process, open(owner).token).lease.window_bytes, 3 * step);
  EXPECT_EQ(status("a").window_bytes, 3 * step);
  EXPECT_EQ(take(process, 2 * step).first, LinearByte());
  EXPECT_EQ(take(process, 2 * step).first, LinearByte(2 * step));
  EXPECT_EQ(refusal(process, lease::ShowRequest{}), "done");
  EXPECT_EQ(status("a").shown_bytes, 2 * step);
  EXPECT_THAT(refusal(process, lease::ShowRequest{LinearByte(2 * step)}),
              HasSubstr("4194304 of 6291456 are in use"));
  EXPECT_EQ(refusal(process, lease::GiveRequest{}), "done");
  EXPECT_EQ(refusal(process, lease::ShowRequest{LinearByte(2 * step)}), "done");
  EXPECT_EQ(status("b").shown_bytes, 0U);
}

}  // namespace
}  // namespace demarc::serve
