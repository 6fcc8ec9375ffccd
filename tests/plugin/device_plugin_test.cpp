// demarc-device-plugin as a kubelet meets it: three processes, two protocols, no card.
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "cli/served_card.hpp"
#include "demarc/base/owned_file.hpp"
#include "demarc/lease/messages.hpp"
#include "demarc/lease/packet.hpp"
#include "fake_kubelet.hpp"

namespace demarc {
namespace {

using test::FakeKubelet;
using test::Watch;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class DevicePlugin : public test::ServedCard {
 protected:
  void SetUp() override {
    ServedCard::SetUp();
    std::filesystem::create_directory(kubelet_folder);
  }
  [[nodiscard]] std::vector<std::string> command(std::vector<std::string> more = {}) const {
    std::vector<std::string> all{(test::build_dir() / "demarc-device-plugin").string(), "--kubelet",
                                 kubelet_folder.string()};
    if (std::find(more.begin(), more.end(), "--every") == more.end()) {
      more.insert(more.end(), {"--every", "0.02"});
    }
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] Process plugin(std::vector<std::string> more = {}) const {
    ProcessOptions options;
    options.error = ChildStream::kept;
    options.death_signal = SIGKILL;
    return Process::spawn(command(std::move(more)), options).value();
  }
  // Until it has said this, or has ended.
  static bool said(Process& process, const std::string& words) {
    for (int i = 0; i < 3000 && process.kept().find(words) == std::string::npos; ++i) {
      if (!process.running()) break;
      ::usleep(10000);
    }
    return process.kept().find(words) != std::string::npos;
  }
  static int count(Process& process, const std::string& words) {
    const std::string all = process.kept();
    int found = 0;
    for (std::size_t at = 0; (at = all.find(words, at)) != std::string::npos; ++at) ++found;
    return found;
  }
  // Bound, but nothing listens.
  void make_dead_kubelet() const {
    std::filesystem::remove(kubelet_folder / "kubelet.sock");
    const OwnedFile gone(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = kubelet_folder / "kubelet.sock";
    ASSERT_LT(path.size(), sizeof address.sun_path);
    path.copy(address.sun_path, path.size());
    ASSERT_EQ(::bind(gone.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  // One that has the tenant c; the two are gone.
  [[nodiscard]] std::string other_tenant() const {
    return config(R"(description = "h100-sxm"
memory = "64 MiB"
mps = "off"
[tenants."no name"]
sms = "50 %"
colors = "1/2"
[tenants.c]
tpcs = "6-7"
colors = "2/2"
)");
  }
  // Makes the plugin take another turn: what it did in the last one is done then.
  static bool takes_another_turn(Process& server, Process& process) {
    server.signal(SIGHUP);
    return said(process, "demarc.dev/c is healthy");
  }
  static std::string words_of(const grpc::Status& status) {
    return std::to_string(status.error_code()) + " " + status.error_message();
  }
  struct Allocated {
    grpc::Status status;
    v1beta1::AllocateResponse response;
  };
  static Allocated allocate(FakeKubelet& kubelet, const std::string& resource,
                            const std::vector<std::vector<std::string>>& containers) {
    v1beta1::AllocateRequest request;
    for (const auto& ids : containers) {
      auto* container = request.add_container_requests();
      for (const auto& id : ids) container->add_devices_ids(id);
    }
    Allocated allocated;
    grpc::ClientContext context;
    allocated.status = kubelet.plugin(resource)->Allocate(&context, request, &allocated.response);
    return allocated;
  }
  static constexpr const char* a = "demarc.dev/a";
  static constexpr const char* b = "demarc.dev/b";

  std::filesystem::path kubelet_folder = folder / "kubelet";
};

TEST_F(DevicePlugin, registers_each_tenant_and_gives_its_containers_what_they_need) {
  const auto server = serving(two_tenants());
  FakeKubelet kubelet(kubelet_folder);
  auto process = plugin({"--cdi", "nvidia.com/gpu=0", "--cdi", "x.y/z=1"});
  ASSERT_TRUE(kubelet.wait_for(a)) << process.kept();
  ASSERT_TRUE(kubelet.wait_for(b)) << process.kept();
  EXPECT_THAT(kubelet.registered(), ElementsAre(Pair(a, 1), Pair(b, 1)));
  EXPECT_EQ(Watch(kubelet.plugin(a)).next(), "a Healthy");
  EXPECT_EQ(Watch(kubelet.plugin(b)).next(), "b Healthy");

  const auto [status, response] = allocate(kubelet, a, {{"a"}, {"a"}});
  ASSERT_TRUE(status.ok()) << words_of(status);
  ASSERT_EQ(response.container_responses_size(), 2);
  const auto& container = response.container_responses(1);
  EXPECT_EQ(container.envs().size(), 2U);
  EXPECT_EQ(container.envs().at("DEMARC_TENANT"), "a");
  EXPECT_EQ(container.envs().at("DEMARC_SOCKET"), socket + ".d/a.sock");
  ASSERT_EQ(container.mounts_size(), 5);
  EXPECT_EQ(container.mounts(0).host_path(), (test::build_dir() / "demarc").string());
  EXPECT_EQ(container.mounts(0).container_path(), "/opt/demarc/bin/demarc");
  EXPECT_EQ(container.mounts(1).host_path(), (test::build_dir() / "libdemarc_preload.so").string());
  EXPECT_EQ(container.mounts(2).container_path(), socket + ".d/a.sock");
  EXPECT_EQ(container.mounts(3).container_path(), "/opt/demarc/lib/libdemarc_compilers.so");
  EXPECT_EQ(container.mounts(4).container_path(), "/opt/demarc/lib/libdemarc_blas.so");
  for (const auto& mount : container.mounts()) EXPECT_TRUE(mount.read_only());
  ASSERT_EQ(container.cdi_devices_size(), 2);
  EXPECT_EQ(container.cdi_devices(0).name(), "nvidia.com/gpu=0");

  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{}, {"b"}, {"a", "a"}, {"a", "b"}, {""}}) {
    const auto refused = allocate(kubelet, a, {{"a"}, wrong}).status;
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(refused.error_message(), HasSubstr("'a' alone was expected"));
  }
}

TEST_F(DevicePlugin, answers_the_calls_that_a_kubelet_may_leave_out) {
  const auto server = serving(two_tenants());
  FakeKubelet kubelet(kubelet_folder);
  auto process = plugin();
  ASSERT_TRUE(kubelet.wait_for(a)) << process.kept();
  const auto stub = kubelet.plugin(a);
  grpc::ClientContext first, second, third, fourth;
  v1beta1::DevicePluginOptions options;
  ASSERT_TRUE(stub->GetDevicePluginOptions(&first, {}, &options).ok());
  EXPECT_FALSE(options.pre_start_required());
  EXPECT_FALSE(options.get_preferred_allocation_available());
  v1beta1::PreferredAllocationRequest asked;
  auto* one = asked.add_container_requests();
  one->add_available_deviceids("a");
  one->add_available_deviceids("x");
  one->set_allocation_size(1);
  v1beta1::PreferredAllocationResponse chosen;
  ASSERT_TRUE(stub->GetPreferredAllocation(&second, asked, &chosen).ok());
  ASSERT_EQ(chosen.container_responses_size(), 1);
  EXPECT_THAT(chosen.container_responses(0).deviceids(), ElementsAre("a"));
  one->add_must_include_deviceids("a");
  one->set_allocation_size(2);
  grpc::ClientContext fifth;
  ASSERT_TRUE(stub->GetPreferredAllocation(&fifth, asked, &chosen).ok());
  ASSERT_EQ(chosen.container_responses_size(), 1);
  EXPECT_THAT(chosen.container_responses(0).deviceids(), ElementsAre("a")) << "once";
  v1beta1::PreStartContainerRequest start;
  v1beta1::PreStartContainerResponse started;
  start.add_devices_ids("a");
  EXPECT_TRUE(stub->PreStartContainer(&third, start, &started).ok());
  start.set_devices_ids(0, "b");
  EXPECT_EQ(stub->PreStartContainer(&fourth, start, &started).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(DevicePlugin, registers_again_with_every_kubelet_that_comes) {
  const auto server = serving(two_tenants());
  auto process = plugin();
  ASSERT_TRUE(said(process, "demarc.dev/a is healthy")) << process.kept();
  {
    FakeKubelet first(kubelet_folder);
    ASSERT_TRUE(first.wait_for(b)) << process.kept();
    EXPECT_TRUE(said(process, "demarc.dev/b is registered")) << process.kept();
  }
  FakeKubelet second(kubelet_folder);
  ASSERT_TRUE(second.wait_for(a)) << process.kept();
  ASSERT_TRUE(second.wait_for(b)) << process.kept();
  EXPECT_EQ(Watch(second.plugin(b)).next(), "b Healthy");
  EXPECT_TRUE(allocate(second, a, {{"a"}}).status.ok());
  // A socket that another process removed is made anew, and registered.
  std::filesystem::remove(kubelet_folder / "demarc-a.sock");
  ASSERT_TRUE(second.wait_for(a, 2)) << process.kept();
  EXPECT_EQ(Watch(second.plugin(a)).next(), "a Healthy");
  // So is one in whose place there is something else.
  ASSERT_TRUE(write_file(kubelet_folder / "other", ""));
  std::filesystem::rename(kubelet_folder / "other", kubelet_folder / "demarc-a.sock");
  ASSERT_TRUE(second.wait_for(a, 3)) << process.kept();
  EXPECT_EQ(Watch(second.plugin(a)).next(), "a Healthy");
  EXPECT_EQ(second.registered()[b], 1);
  Watch watch(second.plugin(b));
  EXPECT_EQ(watch.next(), "b Healthy");
  process.signal(SIGTERM);
  EXPECT_TRUE(watch.ended());
  const auto end = process.wait(20);
  ASSERT_TRUE(end) << process.kept();
  EXPECT_EQ(end->exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(kubelet_folder / "demarc-a.sock"));
  EXPECT_FALSE(std::filesystem::exists(kubelet_folder / "demarc-b.sock"));
}

TEST_F(DevicePlugin, tenants_that_go_are_unhealthy_and_those_that_come_are_registered) {
  auto server = serving(two_tenants());
  FakeKubelet kubelet(kubelet_folder);
  auto process = plugin();
  ASSERT_TRUE(kubelet.wait_for(b)) << process.kept();
  Watch watch_a(kubelet.plugin(a));
  Watch watch_b(kubelet.plugin(b));
  EXPECT_EQ(watch_a.next(), "a Healthy");
  EXPECT_EQ(watch_b.next(), "b Healthy");
  static_cast<void>(other_tenant());
  server.signal(SIGHUP);
  EXPECT_EQ(watch_b.next(), "b Unhealthy");
  EXPECT_EQ(watch_a.next(), "a Unhealthy");
  const auto refused = allocate(kubelet, b, {{"b"}}).status;
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("the server has no tenant 'b' now"));
  EXPECT_TRUE(kubelet.wait_for("demarc.dev/c"));
  EXPECT_EQ(Watch(kubelet.plugin("demarc.dev/c")).next(), "c Healthy");
  EXPECT_TRUE(said(process, "left out: tenant 'no name': the name of a device"));
  EXPECT_FALSE(kubelet.registered().contains("demarc.dev/no name"));
  static_cast<void>(two_tenants());
  server.signal(SIGHUP);
  EXPECT_EQ(watch_b.next(), "b Healthy");
  EXPECT_TRUE(allocate(kubelet, b, {{"b"}}).status.ok());
}

TEST_F(DevicePlugin, all_are_unhealthy_while_there_is_no_server) {
  auto server = serving(two_tenants());
  FakeKubelet kubelet(kubelet_folder);
  auto process = plugin();
  ASSERT_TRUE(kubelet.wait_for(a)) << process.kept();
  Watch watch(kubelet.plugin(a));
  EXPECT_EQ(watch.next(), "a Healthy");
  server.signal(SIGTERM);
  ASSERT_EQ(server.wait(-1)->exit_code, 0);
  EXPECT_EQ(watch.next(), "a Unhealthy");
  // It may have asked while the server was ending.
  EXPECT_TRUE(said(process, "demarc.dev/a is unhealthy: ")) << process.kept();
  EXPECT_THAT(process.kept(), testing::AnyOf(HasSubstr("unhealthy: socket '" + socket),
                                             HasSubstr("unhealthy: demarc serve has ended")));
  EXPECT_EQ(allocate(kubelet, a, {{"a"}}).status.error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  server = serving(two_tenants());
  EXPECT_EQ(watch.next(), "a Healthy");
  EXPECT_TRUE(allocate(kubelet, a, {{"a"}}).status.ok());
}

TEST_F(DevicePlugin, waits_for_a_kubelet_that_does_not_answer) {
  auto server = serving(two_tenants());
  make_dead_kubelet();
  auto process = plugin();
  const std::string waits = "waits: no kubelet answers at '" + kubelet_folder.string();
  EXPECT_TRUE(said(process, "demarc.dev/b " + waits)) << process.kept();
  static_cast<void>(other_tenant());
  ASSERT_TRUE(takes_another_turn(server, process)) << process.kept();
  EXPECT_TRUE(said(process, "demarc.dev/c " + waits)) << process.kept();
  EXPECT_EQ(count(process, "demarc.dev/a " + waits), 1) << "it is told once";
  EXPECT_EQ(count(process, "is registered"), 0);
  {
    const FakeKubelet slow(kubelet_folder, {grpc::StatusCode::DEADLINE_EXCEEDED, "later"});
    for (int i = 0; i < 3000 && count(process, "demarc.dev/c " + waits) < 2; ++i) ::usleep(10000);
    EXPECT_EQ(count(process, "demarc.dev/c " + waits), 2) << "of each kubelet";
  }
  FakeKubelet kubelet(kubelet_folder);
  EXPECT_TRUE(kubelet.wait_for("demarc.dev/c")) << process.kept();
}

TEST_F(DevicePlugin, listens_only_where_there_is_a_kubelet) {
  auto server = serving(two_tenants());
  auto process = plugin();
  ASSERT_TRUE(said(process, "demarc.dev/a is healthy")) << process.kept();
  static_cast<void>(other_tenant());
  ASSERT_TRUE(takes_another_turn(server, process)) << process.kept();
  EXPECT_FALSE(std::filesystem::exists(kubelet_folder / "demarc-a.sock"));
  EXPECT_EQ(count(process, "waits"), 0);
}

TEST_F(DevicePlugin, looks_as_often_as_it_is_told) {
  auto server = serving(two_tenants());
  const auto begin = std::chrono::steady_clock::now();
  auto seldom = plugin({"--every", "3599.5"});
  auto often = plugin({"--every", "0.7"});
  ASSERT_TRUE(said(seldom, "demarc.dev/b is healthy")) << seldom.kept();
  ASSERT_TRUE(said(often, "demarc.dev/b is healthy")) << often.kept();
  server.signal(SIGTERM);
  ASSERT_EQ(server.wait(-1)->exit_code, 0);
  ASSERT_TRUE(said(often, "demarc.dev/b is unhealthy")) << often.kept();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(700));
  EXPECT_EQ(count(seldom, "unhealthy"), 0);
  for (auto* process : {&seldom, &often}) {
    process->signal(SIGTERM);
    const auto end = process->wait(20);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->exit_code, 0);
  }
}

// A server of the test's own: one that really revokes is done with it at once.
TEST_F(DevicePlugin, tenants_whose_programs_are_being_ended_are_unhealthy) {
  const auto listener = lease::PacketListener::listen(socket, std::nullopt).value();
  std::atomic<bool> revoked = false;
  std::atomic<bool> done = false;
  std::thread answering([&] {
    while (!done) {
      const auto client = listener.accept();
      if (!client || !client->wait(10) || !client->receive_text()) {
        ::usleep(1000);
        continue;
      }
      static_cast<void>(client->send(to_text(lease::ListHead{"GPU-1", 0, 2, "off"})));
      for (const bool first : {true, false}) {
        const lease::TenantStatus status{.name = first ? "a" : "b", .revoked = first && revoked};
        static_cast<void>(client->send(to_text(status)));
      }
    }
  });
  {
    FakeKubelet kubelet(kubelet_folder);
    auto process = plugin();
    EXPECT_TRUE(kubelet.wait_for(a)) << process.kept();
    EXPECT_TRUE(kubelet.wait_for(b)) << process.kept();
    Watch watch(kubelet.plugin(a));
    EXPECT_EQ(watch.next(), "a Healthy");
    revoked = true;
    EXPECT_EQ(watch.next(), "a Unhealthy");
    EXPECT_EQ(Watch(kubelet.plugin(b)).next(), "b Healthy");
    const auto refused = allocate(kubelet, a, {{"a"}}).status;
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(refused.error_message(),
              "demarc.dev/a: the server has no tenant 'a' now, or the tenant was revoked");
    revoked = false;
    EXPECT_EQ(watch.next(), "a Healthy");
  }
  done = true;
  answering.join();
}

TEST_F(DevicePlugin, ends_where_a_kubelet_refuses_it) {
  const auto server = serving(two_tenants());
  const FakeKubelet kubelet(kubelet_folder,
                            {grpc::StatusCode::INVALID_ARGUMENT, "no such version"});
  auto process = plugin();
  const auto end = process.wait(30);
  ASSERT_TRUE(end) << process.kept();
  EXPECT_EQ(end->exit_code, 2);
  EXPECT_THAT(process.kept(), HasSubstr("kubelet.sock' refuses demarc.dev/a: no such version"));
}

TEST_F(DevicePlugin, ends_where_it_cannot_listen) {
  const auto server = serving(two_tenants());
  FakeKubelet kubelet(kubelet_folder);
  std::filesystem::create_directories(kubelet_folder / "demarc-a.sock" / "full");
  auto process = plugin();
  const auto end = process.wait(30);
  ASSERT_TRUE(end) << process.kept();
  EXPECT_EQ(end->exit_code, 2);
  EXPECT_THAT(process.kept(), HasSubstr("demarc-a.sock': nothing can listen there"));
  std::filesystem::remove_all(kubelet_folder / "demarc-a.sock");
}

TEST_F(DevicePlugin, refuses_what_it_cannot_hand_on) {
  const auto refused = [&](const std::vector<std::string>& more, const std::string& words) {
    auto process = plugin(more);
    const auto end = process.wait(20);
    ASSERT_TRUE(end) << "it runs: " << words;
    EXPECT_EQ(end->exit_code, 1);
    EXPECT_THAT(process.kept(), HasSubstr(words));
  };
  refused({}, "there is no socket of this name");  // no server has been there
  const auto server = serving(two_tenants());
  refused({"--program", folder / "none"}, "there is no program of this name");
  refused({"--preload", folder / "none"}, "this library does not exist");
  refused({"--socket", folder / "none"}, "there is no socket of this name");
  refused({"--every", "0"}, "--every");
  refused({"--every", "soon"}, "--every");
  refused({"word"}, "word");
  refused({"--cdi", "x.y/z=1", "word"}, "word");
  const auto version = test::run_program(command({"--version"}));
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, HasSubstr("demarc-device-plugin "));
  const std::string help = test::run_program(command({"--help"})).out;
  EXPECT_THAT(help, HasSubstr("[0.01 - 3600]=1\n"));
}

// What the examples name is what there is.
TEST(KubernetesExamples, name_options_paths_and_resources_that_there_are) {
  const auto folder = test::source_dir() / "packaging" / "kubernetes";
  const std::string set = read_file(folder / "device-plugin.yaml").value();
  const std::string pod = read_file(folder / "pod.yaml").value();
  const auto plugin = (test::build_dir() / "demarc-device-plugin").string();
  const std::string help = test::run_program({plugin, "--help"}).out;
  const std::regex option("- (--[a-z]+)=");
  int options = 0;
  for (auto found = std::sregex_iterator(set.begin(), set.end(), option);
       found != std::sregex_iterator(); ++found, ++options) {
    EXPECT_THAT(help, HasSubstr((*found)[1].str() + " "));
  }
  EXPECT_EQ(options, 3);
  EXPECT_THAT(set, HasSubstr("path: /var/lib/kubelet/device-plugins,"));
  EXPECT_THAT(help, HasSubstr("/var/lib/kubelet/device-plugins"));
  EXPECT_THAT(read_file(test::source_dir() / "packaging" / "demarc.service.in").value(),
              HasSubstr("--socket /run/demarc/demarc.sock\n"));
  EXPECT_THAT(set, HasSubstr("--socket=/run/demarc/demarc.sock\n"));
  EXPECT_THAT(pod, HasSubstr("[/opt/demarc/bin/demarc, exec,"));
  EXPECT_THAT(pod, HasSubstr("demarc.dev/detector: 1\n"));
}

}  // namespace
}  // namespace demarc
