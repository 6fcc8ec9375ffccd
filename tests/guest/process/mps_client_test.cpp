// Whether this process is a client of MPS, by what the driver says of it.
#include "demarc/guest/mps_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

Result<void> client_where_the_driver_says(std::int32_t attribute) {
  fake::FakeConfig config = fake::small_gpu();
  config.mps_attribute = attribute;
  const GpuPointer gpu = test::fake_gpu(config);
  return check_mps_client(gpu->api(), gpu->handle(), "/run/mps");
}

TEST(MpsClients, are_those_of_which_the_driver_says_so) {
  EXPECT_TRUE(client_where_the_driver_says(1));
  const auto other = client_where_the_driver_says(0);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(other.error().message,
              HasSubstr("this process is not a client of the MPS whose folder is /run/mps"));
}

TEST(MpsClients, are_refused_where_the_driver_does_not_tell) {
  const auto unknown = client_where_the_driver_says(2);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(unknown.error().message,
              HasSubstr("does not tell whether this process is a client of MPS, whose folder is "
                        "/run/mps"));
}

}  // namespace
}  // namespace demarc::cuda
