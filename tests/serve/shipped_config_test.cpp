// The configuration that packages install for the unit of systemd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/serve/config.hpp"
#include "paths.hpp"

namespace demarc::serve {
namespace {

const std::string& shipped() {
  static const std::string text =
      read_file(test::source_dir() / "packaging" / "demarc.toml").value();
  return text;
}

TEST(ShippedConfiguration, gives_each_of_two_tenants_a_half) {
  const auto config = parse_config(shipped(), "demarc.toml");
  ASSERT_TRUE(config) << config.error().message;
  const auto checked = check_without_card(*config);
  ASSERT_TRUE(checked) << checked.error().message;
  ASSERT_EQ(config->tenants.size(), 2U);
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(config->tenants[i].name, i == 0 ? "a" : "b");
    ASSERT_TRUE(config->tenants[i].tpc_part);
    EXPECT_EQ(config->tenants[i].tpc_part->of, 2U);
    EXPECT_EQ(config->tenants[i].tpc_part->index, i);
  }
  EXPECT_EQ(config->colors, 2U);
}

// The unit says where the server listens, and a group exists only on some machines.
TEST(ShippedConfiguration, leaves_the_socket_and_the_group_to_the_machine) {
  const auto config = parse_config(shipped(), "demarc.toml").value();
  EXPECT_EQ(config.socket, "");
  EXPECT_FALSE(config.group);
}

TEST(ShippedConfiguration, has_only_keys_in_its_comments_that_the_server_takes) {
  int keys = 0;
  for (std::size_t at = 0; (at = shipped().find("\n# ", at)) != std::string::npos; ++at) {
    const std::size_t end = shipped().find('\n', at + 1);
    const std::string line = shipped().substr(at + 3, end - at - 3);
    const std::size_t key = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
    if (key == 0 || line.compare(key, 3, " = ") != 0) continue;
    ++keys;
    std::string text = shipped();
    text.erase(at + 1, 2);
    const auto config = parse_config(text, "demarc.toml");
    const bool no_group =
        !config && config.error().message.find("has no group") != std::string::npos;
    EXPECT_TRUE(config || no_group) << line << ": " << config.error().message;
  }
  EXPECT_EQ(keys, 12);
}

}  // namespace
}  // namespace demarc::serve
