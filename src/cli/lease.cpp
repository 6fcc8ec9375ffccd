// demarc lease: shows what tenants of a server have, changes their terms, writes a CDI file.
#include "demarc/lease/client.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "demarc/base/numbers.hpp"
#include "demarc/card/canary_walk.hpp"
#include "demarc/device/tpc_set.hpp"
#include "demarc/guest/control.hpp"
#include "demarc/lease/sockets.hpp"
#include "demarc/serve/containers.hpp"
#include "demarc/serve/status.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct LeaseOptions {
  std::string socket, tenant, bytes, tpcs, page, program, preload, output, json;
  std::uint64_t byte_count = 0;
  std::uint64_t misses = 1;
  std::uint64_t count = 0;
  double within = 10;
};

// What can be wrong before a server is asked.
Result<void> read_values(LeaseOptions& options) {
  if (!options.bytes.empty()) {
    DEMARC_TRY(options.byte_count, parse_bytes(options.bytes, "--bytes"));
  }
  if (options.tpcs.empty()) return {};
  DEMARC_CHECK(gpu::parse_tpc_set(options.tpcs, gpu::TpcSet::capacity, "--tpcs"));
  return {};
}

Result<lease::LeaseClient> connect(const LeaseOptions& options) {
  DEMARC_TRY(const std::string socket, lease::find_socket(options.socket));
  return lease::LeaseClient::connect(socket);
}

Result<void> list_leases(const LeaseOptions& options) {
  DEMARC_TRY(const auto client, connect(options));
  DEMARC_TRY(const auto status, client.list());
  if (!options.page.empty()) return emit(options.page, serve::status_to_html(status));
  return emit_result(
      options.json, "-", [&] { return serve::status_to_json(status); },
      [&] { return serve::status_to_text(status); });
}

Result<void> check_tenant(const LeaseOptions& options) {
  DEMARC_TRY(const auto client, connect(options));
  DEMARC_TRY(const auto status, client.list());
  return serve::check_free(status, options.tenant);
}

Result<void> prove_windows(const LeaseOptions& options) {
  constexpr double pause_seconds = 0.1;
  DEMARC_TRY(const auto client, connect(options));
  DEMARC_TRY(lease::Proving proving, client.prove(options.tenant, 0));
  for (double waited = 0; waited < options.within && proving.failure.empty();
       waited += pause_seconds) {
    if (proving.waiting.empty()) break;
    std::this_thread::sleep_for(std::chrono::duration<double>(pause_seconds));
    DEMARC_TRY(proving, client.prove(options.tenant, proving.number));
  }
  DEMARC_TRY(const std::string text,
             serve::proving_to_text(options.tenant, proving, options.within));
  return emit("", text);
}

Result<void> count_slo_misses(const LeaseOptions& options) {
  DEMARC_TRY(const auto client, connect(options));
  return client.count_slo_misses(options.tenant, options.misses);
}

// A line for each launch, once a second. What reads them may be a server, which ends or goes.
Result<void> run_canary(const LeaseOptions& options) {
  const char* tenant = std::getenv(cuda::tenant_variable);
  if (tenant == nullptr || *tenant == '\0') {
    return missing_capability(
        "a canary times the memory of a tenant, but this process has no lease: start it with "
        "demarc "
        "exec --tenant NAME -- demarc lease canary");
  }
  DEMARC_TRY(const auto driver, cuda::Driver::load());
  DEMARC_TRY(const auto gpu, cuda::Gpu::open(driver, 0));
  DEMARC_TRY(const auto canary, cuda::CanaryWalk::create(gpu));
  for (std::uint64_t i = 0; options.count == 0 || i < options.count; ++i) {
    if (i != 0) ::sleep(1);
    DEMARC_TRY(const cuda::WalkTimes times, canary.walk());
    DEMARC_CHECK(emit("", fmt::format("{:.3f}\n", times.again_cycles)));
  }
  return {};
}

Result<void> write_cdi(const LeaseOptions& options) {
  DEMARC_TRY(const std::string socket, lease::find_socket(options.socket));
  DEMARC_TRY(const auto client, lease::LeaseClient::connect(socket));
  DEMARC_TRY(const auto status, client.list());
  DEMARC_TRY(const auto places, serve::find_places({socket, options.program, options.preload}));
  DEMARC_TRY(const std::string text, serve::status_to_cdi(status, places));
  return emit(options.output, text);
}

// What a move leaves behind is said, since others may have those TPCs now.
Result<void> move_tenant(const lease::LeaseClient& client, const LeaseOptions& options) {
  DEMARC_CHECK(client.move(options.tenant, options.tpcs));
  DEMARC_TRY(const auto status, client.list());
  if (!serve::check_free(status, options.tenant)) {
    tell_of("lease")(fmt::format(
        "kernels of tenant '{}' that already run stay on the TPCs that they have until they end; "
        "its next launches go to {}",
        options.tenant, options.tpcs));
  }
  return {};
}

// What is so after a change.
Result<void> change_lease(LeaseOptions& options,
                          const std::function<Result<void>(const lease::LeaseClient&)>& change) {
  DEMARC_CHECK(read_values(options));
  DEMARC_TRY(const auto client, connect(options));
  DEMARC_CHECK(change(client));
  return list_leases(options);
}

using Declared = std::shared_ptr<std::function<Result<void>()>>;

// A subcommand that changes one tenant.
CLI::App* add_change(CLI::App& app, const std::string& name, const std::string& help,
                     const std::shared_ptr<LeaseOptions>& options, const Declared& chosen,
                     std::function<Result<void>(const lease::LeaseClient&)> change) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->add_option("tenant", options->tenant, "name of the tenant")->required();
  sub->callback([options, chosen, change = std::move(change)] {
    *chosen = [options, change] { return change_lease(*options, change); };
  });
  return sub;
}

const RegisterVerb registered_lease({
    2,
    "lease",
    "show what the tenants of demarc serve have, and change their terms",
    "demarc lease list --json",
    [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<LeaseOptions>();
      auto chosen = std::make_shared<std::function<Result<void>()>>();
      app.require_subcommand(1);
      app.add_option(
          "--socket", options->socket,
          "socket of the server (default: DEMARC_SOCKET, else the user's, the unit's or root's: "
          "docs/serve.md)");
      add_json(app, options->json, "the tenants", {"demarc.lease/1"});
      app.fallthrough();
      CLI::App* list =
          app.add_subcommand("list", "show the tenants, their memory, processes and launches");
      add_output(*list, "--html", options->page, "write a page with the tenants to this file");
      list->callback([options, chosen] { *chosen = [options] { return list_leases(*options); }; });
      CLI::App* check = app.add_subcommand("check",
                                           "end with exit code 3 while a program uses the tenant, "
                                           "and with 1 if there is no such tenant");
      check->footer("Example: demarc lease check detector");
      check->add_option("tenant", options->tenant, "name of the tenant")->required();
      check->callback(
          [options, chosen] { *chosen = [options] { return check_tenant(*options); }; });
      CLI::App* prove = app.add_subcommand(
          "prove",
          "have the tenant's processes prove again that their windows show the tenant's memory "
          "alone; exit code 3 if not");
      prove->footer("Example: demarc lease prove detector");
      prove->add_option("tenant", options->tenant, "name of the tenant")->required();
      prove
          ->add_option("--within", options->within,
                       "seconds to wait for the answers of the processes")
          ->check(CLI::Range(0.0, 3600.0));
      prove->callback(
          [options, chosen] { *chosen = [options] { return prove_windows(*options); }; });
      CLI::App* slo =
          app.add_subcommand("slo",
                             "count for a tenant that its program has missed its service-level "
                             "objective (SLO), such as an answer that came too late");
      slo->footer("Example: demarc lease slo detector");
      slo->add_option("tenant", options->tenant, "name of the tenant")->required();
      slo->add_option("--misses", options->misses, "how many misses")
          ->check(CLI::Range(std::uint64_t{1}, lease::max_slo_misses));
      slo->callback(
          [options, chosen] { *chosen = [options] { return count_slo_misses(*options); }; });
      CLI::App* canary = app.add_subcommand(
          "canary",
          "inside a tenant: time reads of its memory once a second, and print the cycles per read");
      canary->footer("Example: demarc exec --tenant detector -- demarc lease canary");
      canary->add_option("--count", options->count, "end after so many launches (default: never)")
          ->default_str("");
      canary->callback([options, chosen] { *chosen = [options] { return run_canary(*options); }; });
      CLI::App* cdi = app.add_subcommand(
          "cdi",
          "write the file of the Container Device Interface that containers of the tenants need");
      cdi->footer("Example: demarc lease cdi -o /etc/cdi/demarc.json");
      add_output(*cdi, "-o,--output", options->output, "write to this file");
      cdi->add_option("--program", options->program,
                      "path of demarc (default: the one next to this program)");
      cdi->add_option("--preload", options->preload,
                      "path of libdemarc_preload.so (default: the one next to this program)");
      cdi->callback([options, chosen] { *chosen = [options] { return write_cdi(*options); }; });
      CLI::App* grow =
          add_change(app, "grow", "change the bytes that a tenant may have", options, chosen,
                     [options](const lease::LeaseClient& client) -> Result<void> {
                       return client.grow(options->tenant, options->byte_count);
                     });
      grow->footer("Example: demarc lease grow detector --bytes 24GiB");
      grow->add_option("--bytes", options->bytes, "bytes that the tenant may have, such as 16GiB")
          ->required();
      CLI::App* move = add_change(
          app, "move", "move the programs of a tenant to other TPCs while they run", options,
          chosen,
          [options](const lease::LeaseClient& client) { return move_tenant(client, *options); });
      move->footer("Example: demarc lease move detector --tpcs 0-31");
      move->add_option("--tpcs", options->tpcs, "TPCs, such as 0-15,20")->required();
      CLI::App* revoke = add_change(
          app, "revoke", "end the programs of a tenant and take its memory back", options, chosen,
          [options](const lease::LeaseClient& client) { return client.revoke(options->tenant); });
      revoke->footer("Example: demarc lease revoke trainer");
      return [chosen] { return (*chosen)(); };
    },
});

}  // namespace
}  // namespace demarc::cli
