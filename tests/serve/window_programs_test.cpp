// Whole programs of tenants whose code runs as it is, on memory of cards other than an H100.
#include "demarc/device/pages.hpp"
#include "tenant_programs.hpp"

namespace demarc::serve {
namespace {

using cuda::complain;
using test::Supervised;

// Colours of the tables that Fractional GPUs published, which change every 4 KiB.
TEST_F(TenantPrograms, run_as_they_are_in_windows_of_a_gtx_1080_and_of_a_v100) {
  for (const char* card : {"gtx1080", "v100"}) {
    ServingProcess server(socket, card);
    ASSERT_TRUE(server.ready()) << card;
    EXPECT_EQ(Supervised::apart([&] {
                for (const char* tenant : {"a", "b"}) {
                  auto plan = plan_of(tenant, {"context", "count", "count"});
                  plan.windows = cuda::WindowUse::always;
                  const auto outcome = run_confined(plan);
                  if (!outcome) return complain(outcome.error().message);
                  REQUIRE_IN_CHILD(outcome->holds());
                  REQUIRE_IN_CHILD(program.log().ends_with("count right\ncount right\n"));
                  const auto& report = *outcome->report;
                  REQUIRE_IN_CHILD(report.names[0].what == cuda::Recorded::window_kernel);
                  REQUIRE_IN_CHILD(report.max_window_bytes != 0);
                  // Nearly each page of another constant than the one that lies under it.
                  const auto most = report.max_window_bytes / gpu::smallest_page_bytes;
                  REQUIRE_IN_CHILD(report.max_window_mappings <= most);
                  REQUIRE_IN_CHILD(report.max_window_mappings > most / 4);
                }
                return 0;
              }),
              0)
        << card << "\n"
        << program.log();
    EXPECT_EQ(server.end(), 0) << "what they left is filled with zeros";
  }
}

}  // namespace
}  // namespace demarc::serve
