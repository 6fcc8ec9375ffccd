// Whole programs of tenants on the stand-in driver, each started as `demarc exec` starts it.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "confine_fixture.hpp"
#include "demarc/base/files.hpp"
#include "demarc/lease/client.hpp"
#include "paths.hpp"
#include "serving_process.hpp"

namespace demarc::serve {

class TenantPrograms : public cuda::Confine {
 protected:
  cuda::ConfinePlan plan_of(const std::string& tenant, const std::vector<std::string>& steps) {
    auto plan = cuda::plan_for(program, steps);
    plan.choice = {};
    plan.sync_domain.kind = cuda::DomainChoice::Kind::none;
    plan.tenant = tenant;
    plan.socket = socket;
    plan.audit = true;
    return plan;
  }
  // A process that kills the server when the program has counted, and then does this. Its exit code
  // is that of `work`.
  pid_t once_the_server_is_killed(const ServingProcess& server, const std::function<int()>& work) {
    const pid_t watcher = ::fork();
    if (watcher != 0) return watcher;
    while (program.log().find("count right") == std::string::npos) ::usleep(1000);
    ::kill(server.process(), SIGKILL);
    while (lease::LeaseClient::connect(socket)) ::usleep(1000);
    std::_Exit(work());
  }
  std::string socket = (test::fresh_folder("tenants") / "demarc.sock").string();
};

}  // namespace demarc::serve
