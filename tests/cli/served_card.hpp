// A `demarc serve` on the stand-in for libcuda, and what verbs beside it find it by.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "demarc/base/files.hpp"
#include "demarc/base/process.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {

class ServedCard : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    ::setenv("DEMARC_CACHE", (folder / "cache").c_str(), 1);
    ::setenv("DEMARC_SOCKET", socket.c_str(), 1);
  }
  void TearDown() override {
    for (const char* name : {"DEMARC_LIBCUDA", "DEMARC_CACHE", "DEMARC_SOCKET"}) ::unsetenv(name);
  }
  [[nodiscard]] std::string config(const std::string& text) const {
    const auto path = folder / "f.toml";
    EXPECT_TRUE(write_file(path, text));
    return path;
  }
  [[nodiscard]] std::string two_tenants() const {
    return config(R"(description = "h100-sxm"
memory = "64 MiB"
mps = "off"
[tenants.a]
sms = "50 %"
colors = "1/2"
[tenants.b]
tpcs = "6-11"
colors = "2/2"
bytes = "16 MiB"
)");
  }
  // That listens.
  [[nodiscard]] static Process serving(const std::string& config) {
    ProcessOptions options;
    options.output = ChildStream::null;
    options.error = ChildStream::kept;
    options.death_signal = SIGKILL;
    auto server =
        Process::spawn({(build_dir() / "demarc").string(), "serve", "--config", config}, options)
            .value();
    while (server.running() && server.kept().find("bytes in the colours") == std::string::npos) {
      ::usleep(10000);
    }
    return server;
  }

  // Of this test alone: the server of the one before may still be leaving its own.
  static std::string next_name() {
    static int tests = 0;
    return "served" + std::to_string(++tests);
  }
  std::filesystem::path folder = fresh_folder(next_name());
  std::string socket = folder / "socket";
};

}  // namespace demarc::test
