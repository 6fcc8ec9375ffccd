#include "demarc/lease/client.hpp"

#include <memory>

#include "demarc/serve/config.hpp"
#include "demarc/serve/status.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct LeaseOptions {
  std::string socket = lease::default_socket();
  std::string tenant, bytes, tpcs, page;
  bool json = false;
};

Result<void> list_leases(const LeaseOptions& options) {
  DEMARC_TRY(const auto client, lease::LeaseClient::connect(options.socket));
  DEMARC_TRY(const auto status, client.list());
  if (!options.page.empty()) return emit(options.page, serve::status_to_html(status));
  return emit("", options.json ? serve::status_to_json(status) : serve::status_to_text(status));
}

// What is so after a change.
Result<void> change_lease(const LeaseOptions& options,
                          const std::function<Result<void>(const lease::LeaseClient&)>& change) {
  DEMARC_TRY(const auto client, lease::LeaseClient::connect(options.socket));
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
    42,
    "lease",
    "what the tenants of demarc serve have, and other terms for them",
    "demarc lease list --json",
    [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<LeaseOptions>();
      auto chosen = std::make_shared<std::function<Result<void>()>>();
      app.require_subcommand(1);
      app.add_option("--socket", options->socket,
                     "path of the server's socket (default: $DEMARC_SOCKET, else demarc.sock in "
                     "$XDG_RUNTIME_DIR or /run)");
      app.add_flag("--json", options->json, "print JSON");
      app.fallthrough();
      CLI::App* list = app.add_subcommand("list", "tenants, their memory, processes and launches");
      add_output(*list, "--html", options->page, "write a page of it to this file");
      list->callback([options, chosen] { *chosen = [options] { return list_leases(*options); }; });
      CLI::App* grow =
          add_change(app, "grow", "give a tenant more memory, or less, down to what it uses",
                     options, chosen, [options](const lease::LeaseClient& client) -> Result<void> {
                       DEMARC_TRY(const auto bytes, serve::parse_bytes(options->bytes, "--bytes"));
                       return client.grow(options->tenant, bytes);
                     });
      grow->add_option("--bytes", options->bytes, "that it may have, such as 16GiB")->required();
      CLI::App* move =
          add_change(app, "move", "give the programs of a tenant other TPCs while they run",
                     options, chosen, [options](const lease::LeaseClient& client) {
                       return client.move(options->tenant, options->tpcs);
                     });
      move->add_option("--tpcs", options->tpcs, "such as 0-15,20")->required();
      add_change(
          app, "revoke", "end the programs of a tenant and take its memory back", options, chosen,
          [options](const lease::LeaseClient& client) { return client.revoke(options->tenant); });
      return [chosen] { return (*chosen)(); };
    },
});

}  // namespace
}  // namespace demarc::cli
