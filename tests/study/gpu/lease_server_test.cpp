// What a study makes of the answers of its server of leases.
#include "gpu/lease_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "demarc/base/files.hpp"
#include "paths.hpp"

namespace demarc::study {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// `demarc lease list` prints the file `list`, and ends with the number in the file `code`.
class LeaseServerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder = test::fresh_folder("lease_server");
    ::setenv("TMPDIR", folder.c_str(), 1);
    program = folder / "program";
    ASSERT_TRUE(write_file(
        program.string(),
        fmt::format("#!/bin/sh\ncat {0}/list\nexit $(cat {0}/code)\n", folder.string())));
    fs::permissions(program, fs::perms::owner_all);
    ASSERT_TRUE(write_file((folder / "code").string(), "0"));
    of_study = StudyFolder::make().value();
  }
  void TearDown() override { ::unsetenv("TMPDIR"); }

  std::string account(const std::string& list) {
    EXPECT_TRUE(write_file((folder / "list").string(), list));
    auto server = LeaseServer::prepare(of_study, {program.string(), 0, ""});
    if (!server) return server.error().message;
    EXPECT_TRUE(write_file((of_study->lease_folder() / "server.sock").string(), ""));
    const auto words = (*server)->account();
    if (!words) {
      kind = words.error().kind;
      return words.error().message;
    }
    return *words;
  }
  static std::string with_tenant(const std::string& tenant) {
    return R"({"mps": "on", "tenants": [)" + tenant + "]}";
  }

  fs::path folder;
  fs::path program;
  std::shared_ptr<StudyFolder> of_study;
  ErrorKind kind{};
};

constexpr const char* good_tenant =
    R"({"name": "a", "tpcs": "0-5", "colors": "0", "sync_domain": 2, "bytes": 3145728})";

TEST_F(LeaseServerTest, what_the_parts_have_is_said_in_words) {
  EXPECT_EQ(account(with_tenant(good_tenant)),
            "1 lease of demarc exec --part, which run at the same time by MPS; a: TPCs 0-5, "
            "colours 0, 3 MiB, memory synchronisation domain 2");
}

TEST_F(LeaseServerTest, a_list_that_cannot_be_read_is_an_error_that_names_the_place) {
  const std::string tenants = "demarc lease list --json: tenants";
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = good_tenant;
    text.replace(text.find(from), from.size(), to);
    return with_tenant(text);
  };
  EXPECT_THAT(account("{"), HasSubstr("demarc lease list --json"));
  EXPECT_THAT(account(R"({"tenants": []})"), HasSubstr("'mps' is missing"));
  EXPECT_THAT(account(R"({"mps": "on"})"), HasSubstr("'tenants' is missing"));
  EXPECT_THAT(account(with_tenant("3")), HasSubstr(tenants));
  for (const char* key : {"name", "tpcs", "colors", "sync_domain", "bytes"}) {
    EXPECT_THAT(account(changed(fmt::format("\"{}\"", key), "\"x\"")),
                HasSubstr(fmt::format("{}: the key '{}' is missing", tenants, key)));
  }
  EXPECT_THAT(account(changed("3145728", "-1")), HasSubstr(tenants + ".bytes"));
  EXPECT_THAT(account(changed("\"sync_domain\": 2", "\"sync_domain\": \"2\"")),
              HasSubstr(tenants + ".sync_domain"));
  EXPECT_THAT(account(changed("\"sync_domain\": 2", "\"sync_domain\": -1")),
              HasSubstr(tenants + ".sync_domain"));
}

TEST_F(LeaseServerTest, a_list_is_not_believed_if_its_program_failed) {
  ASSERT_TRUE(write_file((folder / "code").string(), "3"));
  EXPECT_EQ(account(with_tenant(good_tenant)),
            "demarc lease list, which says what the parts have, ended with exit code 3");
  EXPECT_EQ(kind, ErrorKind::check_failed);
}

TEST_F(LeaseServerTest, a_folder_that_cannot_be_made_is_an_error) {
  ASSERT_TRUE(write_file(of_study->lease_folder().string(), "a file"));
  const auto server = LeaseServer::prepare(of_study, {program.string(), 0, ""});
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(server.error().message,
              HasSubstr("tenant: cannot make " + of_study->lease_folder().string()));
}

TEST_F(LeaseServerTest, programs_in_a_part_have_the_runtime_folder_of_the_caller) {
  ::setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  EXPECT_THAT(LeaseServer::restoring_words(),
              testing::ElementsAre("env", "XDG_RUNTIME_DIR=/run/user/7"));
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_THAT(LeaseServer::restoring_words(), testing::ElementsAre("env", "-u", "XDG_RUNTIME_DIR"));
}

TEST_F(LeaseServerTest, without_a_socket_there_is_no_server_to_ask) {
  const auto server = LeaseServer::prepare(of_study, {program.string(), 0, ""}).value();
  const auto words = server->account();
  ASSERT_FALSE(words);
  EXPECT_EQ(words.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(words.error().message, HasSubstr("demarc exec --part has left no socket in "));
}

TEST_F(LeaseServerTest, memory_and_description_are_options_of_exec_if_they_were_chosen) {
  const auto words = [&](LeaseServerOptions options) {
    return LeaseServer::prepare(of_study, std::move(options)).value()->exec_options("1/2");
  };
  EXPECT_THAT(words({"p", 0, ""}), testing::ElementsAre("--part", "1/2"));
  EXPECT_THAT(words({"p", 64, "h200"}),
              testing::ElementsAre("--part", "1/2", "--memory", "64MiB", "--description", "h200"));
}

}  // namespace
}  // namespace demarc::study
