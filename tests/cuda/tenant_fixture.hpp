// A process of a tenant's program, whose server is a stand-in.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>

#include "confine_fixture.hpp"
#include "lease_stand_in.hpp"
#include "planted_call.hpp"
#include "process/tenant_process.hpp"

namespace demarc::cuda {

inline constexpr std::uint64_t one_extent = lease::extent_step;
inline constexpr CuResult tenant_out_of_memory = 2;

class ProcessesOfTenants : public Confine {
 protected:
  void SetUp() override {
    Confine::SetUp();
    server.emplace();
    block.capability = {9, 0};
  }
  // The server has one connection at a time.
  void attach() {
    process.reset();
    static_cast<void>(server->asked());
    const std::string socket = server->socket();
    std::copy(socket.begin(), socket.end(), block.lease_socket);
    std::copy_n(test::LeaseStandIn::token, 4, block.lease_token);
    process = TenantProcess::attach(block, [this](const std::string& line) {
                told.push_back(line);
              }).value();
    EXPECT_THAT(
        server->asked(),
        testing::ElementsAre(lease::Request(lease::AttachRequest{test::LeaseStandIn::token})));
  }
  // What the program gets of its call; nothing: it passes.
  template <class... Arguments>
  std::optional<CuResult> call(const char* name, Arguments... arguments) {
    const test::PlantedCall planted(name, arguments...);
    const auto served = process->serve(planted.read());
    EXPECT_TRUE(served) << name << ": " << served.error().message;
    return planted.answer();
  }
  template <class... Arguments>
  std::string refusal(const char* name, Arguments... arguments) {
    const test::PlantedCall planted(name, arguments...);
    const auto served = process->serve(planted.read());
    EXPECT_FALSE(planted.answer()) << name;
    return served ? "it may run" : served.error().message;
  }
  DevicePointer allocated(std::size_t bytes) {
    DevicePointer address = 0;
    EXPECT_THAT(call("cuMemAlloc_v2", &address, bytes), testing::Optional(cu_success));
    return address;
  }
  // What was asked for at an allocation: a stretch for several, or what is left.
  static auto one_allocation() {
    return testing::Contains(lease::Request(lease::TakeRequest{one_extent})).Times(1);
  }

  std::optional<test::LeaseStandIn> server;
  ControlBlock& block = program.control.block();
  std::unique_ptr<TenantProcess> process;
  std::vector<std::string> told;
};

}  // namespace demarc::cuda
