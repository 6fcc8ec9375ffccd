// What a server says of itself, read as people, programs and Prometheus read it.
#include "demarc/serve/status.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "demarc/base/json.hpp"
#include "server_fixture.hpp"

namespace demarc::serve {
namespace {

using testing::HasSubstr;

lease::ServerStatus two_tenants() {
  return {"GPU-1",
          std::uint64_t{3} << 30U,
          {{.name = "a<b>",
            .tpcs = "0-3,8",
            .colors = "0,1",
            .sync_domain = 2,
            .bytes = 64 << 20,
            .given_bytes = 6 << 20,
            .unclean_bytes = 2 << 20,
            .extents = 3,
            .leases = 1,
            .processes = {10, 11},
            .attached_ms = 2500,
            .at_limit_ms = 1500,
            .refused_takes = 4,
            .refused_bytes = 4096,
            .refused_calls = 8,
            .refused_kernels = 9,
            .launches_total = 4000,
            .slo_misses = 50,
            .canary_slowdown = 1.25,
            .canary_baseline_cycles = 300.5,
            .launches = {1, 20, 300, 0},
            .unconfined = {5, 0, 0, 0},
            .refused = {0, 0, 0, 7},
            .revoked = true,
            .lost_bytes = 4 << 20,
            .window_bytes = 32 << 20,
            .shown_bytes = 2 << 20},
           {.name = "second", .tpcs = "9", .colors = "2"}},
          "on"};
}

TEST(Status, is_a_line_a_tenant) {
  EXPECT_EQ(
      status_to_text(two_tenants()),
      "GPU-1: 3072 MiB of coloured memory, with MPS\n"
      "tenant          TPCs   colours  domain  may have  has    zeroed  lost   windows          "
      "processes  launches  outside\n"
      "a<b> (revoked)  0-3,8  0,1      2       64 MiB    6 MiB  2 MiB   4 MiB  2 MiB of 32 MiB  "
      "2          321       12\n"
      "second          9      2        -       0 MiB     0 MiB  0 MiB   0 MiB  -                "
      "0          0         0\n");
}

TEST(Status, says_whether_somebody_uses_a_tenant) {
  const auto refusal = [](const lease::ServerStatus& status, const std::string& tenant) {
    const auto free = check_free(status, tenant);
    return free ? Error{ErrorKind::invalid_input, "free"} : free.error();
  };
  auto status = two_tenants();
  EXPECT_EQ(refusal(status, "second").message, "free");
  EXPECT_EQ(refusal(status, "a<b>"),
            (Error{ErrorKind::check_failed,
                   "tenant 'a<b>' is in use and was revoked: leases: 1, processes: 10, 11"}));
  status.tenants[1].leases = 2;
  EXPECT_EQ(refusal(status, "second"),
            (Error{ErrorKind::check_failed,
                   "tenant 'second' is in use: leases: 2, processes: none yet"}));
  EXPECT_EQ(refusal(status, "third"),
            (Error{ErrorKind::invalid_input,
                   "there is no tenant 'third'; the tenants are: a<b>, second"}));
}

TEST(Status, is_JSON_with_every_number) {
  const std::string text = status_to_json(two_tenants());
  EXPECT_THAT(text, testing::StartsWith("{\n  \"schema\": \"demarc.lease/1\",\n"))
      << "people read it";
  const Json json = parse_json(text, "x").value();
  EXPECT_EQ(json.at("schema"), "demarc.lease/1");
  EXPECT_EQ(json.at("arena_bytes"), std::uint64_t{3} << 30U);
  EXPECT_EQ(json.at("launch_paths").size(), cuda::launch_paths);
  EXPECT_EQ(json.at("card"), "GPU-1");
  EXPECT_EQ(json.at("mps"), "on");
  EXPECT_EQ(json.at("tenants").at(0),
            parse_json(R"({"name": "a<b>", "tpcs": "0-3,8", "colors": "0,1",
"sync_domain": 2, "bytes": 67108864, "given_bytes": 6291456, "unclean_bytes": 2097152,
"lost_bytes": 4194304, "window_bytes": 33554432, "shown_bytes": 2097152, "extents": 3, "leases": 1, "processes": [10, 11], "attached_ms": 2500, "at_limit_ms": 1500,
"refused_takes": 4, "refused_bytes": 4096, "refused_calls": 8, "refused_kernels": 9,
"launches_total": 4000, "slo_misses": 50,
"canary_slowdown": 1.25, "canary_baseline_cycles": 300.5, "launches": [1, 20, 300, 0], "unconfined_launches": [5, 0, 0, 0], "refused_launches": [0, 0, 0, 7],
"revoked": true})",
                       "x")
                .value());
  EXPECT_TRUE(json.at("tenants").at(1).at("sync_domain").is_null());
  EXPECT_TRUE(json.at("tenants").at(1).at("canary_slowdown").is_null());
  EXPECT_EQ(json.at("tenants").at(1).at("revoked"), false);
}

TEST(Status, says_how_programs_share_the_card_in_time) {
  auto status = two_tenants();
  for (const auto& [mps, words, number] :
       {std::tuple("on", ", with MPS\n", 1),
        std::tuple("off", ", without MPS: programs take turns\n", 0),
        std::tuple("ended", "; the daemon of MPS has ended: start demarc serve again\n", 0)}) {
    status.mps = mps;
    EXPECT_THAT(status_to_text(status), HasSubstr(words));
    EXPECT_THAT(status_to_metrics(status).value(),
                HasSubstr(fmt::format("demarc_mps{{card=\"GPU-1\"}} {}\n", number)));
  }
}

TEST(Status, is_a_page_in_which_names_are_text) {
  auto status = two_tenants();
  status.tenants[1].name = "c&d";
  const std::string page = status_to_html(status);
  EXPECT_THAT(page, HasSubstr("<th>outside</th></tr>\n<tr><td>a&lt;b>"));
  EXPECT_THAT(page, HasSubstr("</td></tr>\n<tr><td>c&amp;d</td><td>9</td><td>2</td><td>-</td>"));
  EXPECT_THAT(page, testing::EndsWith("<a href=\"/metrics\">metrics</a></p></body></html>\n"));
  EXPECT_THAT(page, HasSubstr("<td>a&lt;b> (revoked)</td><td>0-3,8</td>"));
  EXPECT_THAT(page, HasSubstr("width=device-width"));
}

TEST(Status, is_numbers_for_Prometheus) {
  const std::string text = status_to_metrics(two_tenants()).value();
  for (const char* line :
       {"# TYPE demarc_tenant_tpcs gauge\n",
        "demarc_arena_bytes{card=\"GPU-1\"} 3221225472\n",
        "demarc_tenant_tpcs{tenant=\"a<b>\"} 5\n",
        "demarc_tenant_colors{tenant=\"a<b>\"} 2\n",
        "demarc_tenant_bytes{tenant=\"a<b>\"} 67108864\n",
        "demarc_tenant_given_bytes{tenant=\"a<b>\"} 6291456\n",
        "demarc_tenant_unclean_bytes{tenant=\"a<b>\"} 2097152\n",
        "demarc_tenant_lost_bytes{tenant=\"a<b>\"} 4194304\n",
        "demarc_tenant_window_bytes{tenant=\"a<b>\"} 33554432\n",
        "demarc_tenant_shown_bytes{tenant=\"a<b>\"} 2097152\n",
        "demarc_tenant_extents{tenant=\"a<b>\"} 3\n",
        "demarc_tenant_leases{tenant=\"a<b>\"} 1\n",
        "demarc_tenant_processes{tenant=\"a<b>\"} 2\n",
        "# TYPE demarc_tenant_refused_takes_total counter\n",
        "demarc_tenant_refused_takes_total{tenant=\"a<b>\"} 4\n",
        "# TYPE demarc_tenant_attached_seconds_total counter\n",
        "demarc_tenant_attached_seconds_total{tenant=\"a<b>\"} 2.5\n",
        "# TYPE demarc_tenant_limit_seconds_total counter\n",
        "demarc_tenant_limit_seconds_total{tenant=\"a<b>\"} 1.5\n",
        "# TYPE demarc_tenant_launches_total counter\n",
        "demarc_tenant_launches_total{tenant=\"a<b>\"} 4000\n",
        "# TYPE demarc_tenant_slo_misses_total counter\n",
        "demarc_tenant_slo_misses_total{tenant=\"a<b>\"} 50\n",
        "# TYPE demarc_tenant_canary_slowdown "
        "gauge\ndemarc_tenant_canary_slowdown{tenant=\"a<b>\"} "
        "1.25\n# HELP",
        "demarc_tenant_canary_baseline_cycles{tenant=\"a<b>\"} 300.5\n",
        "demarc_lease_refused_bytes{tenant=\"a<b>\"} 4096\n",
        "demarc_lease_refused_calls{tenant=\"a<b>\"} 8\n",
        "demarc_lease_refused_kernels{tenant=\"a<b>\"} 9\n",
        "demarc_lease_launches{tenant=\"a<b>\",path=\"graph\"} 300\n",
        "demarc_lease_unconfined_launches{tenant=\"a<b>\",path=\"default stream\"} 5\n",
        "demarc_lease_refused_launches{tenant=\"a<b>\",path=\"unknown\"} 7\n",
        "demarc_tenant_processes{tenant=\"second\"} 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  auto without = two_tenants();
  without.tenants[0].canary_slowdown.reset();
  EXPECT_THAT(status_to_metrics(without).value(),
              testing::Not(HasSubstr("demarc_tenant_canary_slowdown")))
      << "what is not known of any tenant is absent";
  without.tenants[0].tpcs = "-";
  EXPECT_THAT(status_to_metrics(without).value(),
              HasSubstr("demarc_tenant_tpcs{tenant=\"a<b>\"} 0\n"))
      << "what is no list has none";
}

// A port of this machine without a listener, just now.
std::uint16_t free_port(OwnedFile* keep = nullptr) {
  OwnedFile file(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT_EQ(::bind(file.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(::getsockname(file.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  if (keep != nullptr) {
    EXPECT_EQ(::listen(file.get(), 1), 0);
    *keep = std::move(file);
  }
  return ntohs(address.sin_port);
}

OwnedFile connected_to(std::uint16_t port) {
  OwnedFile file(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(file.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
  return file;
}

std::string fetch(std::uint16_t port, const std::string& path) {
  const OwnedFile file = connected_to(port);
  if (file.get() < 0) return "";
  const std::string ask = "GET " + path + " HTTP/1.0\r\n\r\n";
  EXPECT_EQ(::write(file.get(), ask.data(), ask.size()), static_cast<ssize_t>(ask.size()));
  std::string answer;
  char bytes[4096];
  for (ssize_t count = 0; (count = ::read(file.get(), bytes, sizeof bytes)) > 0;) {
    answer.append(bytes, static_cast<std::size_t>(count));
  }
  return answer;
}

class Pages : public ServerTest {
 protected:
  // While the server takes its turns.
  [[nodiscard]] std::string fetch_from(std::uint16_t port, const std::string& path) const {
    std::atomic<bool> done{false};
    std::string answer;
    std::thread reader([&] {
      answer = fetch(port, path);
      done = true;
    });
    turn_until([&] { return done.load(); });
    reader.join();
    return answer;
  }
};

// One test, for the port's threads take two seconds to end.
TEST_F(Pages, show_what_the_server_says_then_and_say_where_there_is_none) {
  const std::uint16_t port = free_port();
  auto pages = StatusPages::start(port, options.socket).value();
  const std::string none = fetch(port, "/metrics");
  EXPECT_THAT(none, HasSubstr("503"));
  EXPECT_THAT(none, HasSubstr("demarc serve does not run there"));
  start();
  EXPECT_THAT(fetch_from(port, "/metrics"), HasSubstr("demarc_tenant_leases{tenant=\"a\"} 0\n"));
  const auto owner = connect();
  static_cast<void>(open(owner));
  const std::string metrics = fetch_from(port, "/metrics");
  EXPECT_THAT(metrics, HasSubstr("200 OK"));
  EXPECT_THAT(metrics, HasSubstr("demarc_tenant_leases{tenant=\"a\"} 1\n"));
  EXPECT_THAT(fetch_from(port, "/"), HasSubstr("<td>a</td>"));
  EXPECT_THAT(fetch_from(port, "/other"), HasSubstr("404"));
  pages.reset();
  EXPECT_LT(connected_to(port).get(), 0) << "nobody listens there any more";
}

TEST_F(Pages, are_shown_beside_readers_that_ask_nothing) {
  const std::uint16_t port = free_port();
  const auto pages = StatusPages::start(port, options.socket, {4, 600'000}).value();
  std::vector<OwnedFile> silent;
  for (int i = 0; i < 3; ++i) {
    silent.push_back(connected_to(port));
    if (i != 0) {
      EXPECT_EQ(::write(silent.back().get(), "GET /met", 8), 8);
    }
  }
  EXPECT_THAT(fetch(port, "/metrics"), HasSubstr("503")) << "there is no server to ask";
  for (const OwnedFile& file : silent) EXPECT_FALSE(readable(file.get())) << "it was not ended";
}

TEST_F(Pages, are_shown_once_readers_that_ask_nothing_had_their_time) {
  const std::uint16_t port = free_port();
  const auto pages = StatusPages::start(port, options.socket, {1, 50}).value();
  std::vector<OwnedFile> silent;
  for (int i = 0; i < 6; ++i) silent.push_back(connected_to(port));
  EXPECT_EQ(::write(silent.front().get(), "GET /met", 8), 8);
  EXPECT_THAT(fetch(port, "/metrics"), HasSubstr("503"));
  EXPECT_TRUE(readable(silent.front().get())) << "it was ended";
}

TEST_F(Pages, at_a_port_that_is_taken_are_refused) {
  OwnedFile other;
  const std::uint16_t port = free_port(&other);
  EXPECT_THAT(StatusPages::start(port, options.socket).error().message,
              HasSubstr("cannot listen at port"));
}

}  // namespace
}  // namespace demarc::serve
