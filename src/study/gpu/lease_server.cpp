// Tells programs of a study where its server of leases is, asks that server what parts have, and
// ends it.
#include "gpu/lease_server.hpp"

#include <cstdlib>
#include <filesystem>

#include "demarc/base/json.hpp"
#include "demarc/base/text.hpp"

namespace demarc::study {
namespace {

namespace fs = std::filesystem;

// `demarc exec --part` puts its server there.
constexpr const char* runtime_variable = "XDG_RUNTIME_DIR";
constexpr double list_seconds = 20;
constexpr std::size_t list_bytes = 1U << 20U;

// "; part-1-of-2: TPCs 0-32, colours 0, 31.0 GiB, memory synchronisation domain 1"
Result<std::string> words_of_tenant(const Json& value, const std::string& where) {
  DEMARC_TRY(JsonObject tenant, JsonObject::of(value, where));
  DEMARC_TRY(const std::string name, tenant.string("name"));
  DEMARC_TRY(const std::string tpcs, tenant.string("tpcs"));
  DEMARC_TRY(const std::string colors, tenant.string("colors"));
  DEMARC_TRY(const std::int64_t bytes, tenant.integer("bytes", 0, INT64_MAX));
  DEMARC_TRY(const Json* const domain, tenant.any("sync_domain"));
  std::string words_of_domain = "no memory synchronisation domain of its own";
  if (!domain->is_null()) {
    DEMARC_TRY(const std::int64_t number, tenant.integer("sync_domain", 0, INT64_MAX));
    words_of_domain = fmt::format("memory synchronisation domain {}", number);
  }
  return fmt::format("; {}: TPCs {}, colours {}, {} MiB, {}", name, tpcs, colors, bytes >> 20U,
                     words_of_domain);
}

Result<std::string> words_of_list(const std::string& text) {
  const std::string where = "demarc lease list --json";
  DEMARC_TRY(const Json list, parse_json(text, where));
  DEMARC_TRY(JsonObject status, JsonObject::of(list, where));
  DEMARC_TRY(const std::string mps, status.string("mps"));
  DEMARC_TRY(const Json* const tenants, status.array("tenants"));
  std::string words = fmt::format(
      "{} lease{} of demarc exec --part, {}", tenants->size(), tenants->size() == 1 ? "" : "s",
      mps == "on" ? "which run at the same time by MPS" : "without MPS, so they take turns");
  for (const Json& tenant : *tenants) {
    DEMARC_TRY(const std::string more, words_of_tenant(tenant, where + ": tenants"));
    words += more;
  }
  return words;
}

}  // namespace

Result<std::shared_ptr<LeaseServer>> LeaseServer::prepare(
    const std::shared_ptr<StudyFolder>& folder, LeaseServerOptions options) {
  std::error_code failed;
  fs::create_directory(folder->lease_folder(), failed);
  if (failed) {
    return missing_capability("tenant: cannot make {}: {}", folder->lease_folder().string(),
                              failed.message());
  }
  // The server's working directory is this one.
  if (fs::exists(options.description, failed)) {
    options.description = fs::absolute(options.description).string();
  }
  return std::shared_ptr<LeaseServer>(new LeaseServer(folder, std::move(options)));
}

LeaseServer::~LeaseServer() {
  folder_->end_leases();
}

Environment LeaseServer::environment() const {
  Environment out = folder_->lease_environment();
  out.emplace_back(runtime_variable, folder_->lease_folder().string());
  return out;
}

std::vector<std::string> LeaseServer::exec_options(const std::string& part) const {
  std::vector<std::string> out{"--part", part};
  if (options_.mebibytes != 0) {
    out.insert(out.end(), {"--memory", fmt::format("{}MiB", options_.mebibytes)});
  }
  if (!options_.description.empty()) {
    out.insert(out.end(), {"--description", options_.description});
  }
  return out;
}

std::vector<std::string> LeaseServer::restoring_words() {
  const char* const before = std::getenv(runtime_variable);
  if (before == nullptr) return {"env", "-u", runtime_variable};
  return {"env", fmt::format("{}={}", runtime_variable, before)};
}

Result<std::string> LeaseServer::socket() const {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder_->lease_folder(), failed)) {
    if (entry.path().extension() == ".sock") return entry.path().string();
  }
  return check_failed("demarc exec --part has left no socket in {}",
                      folder_->lease_folder().string());
}

Result<std::string> LeaseServer::account() const {
  DEMARC_TRY(const std::string path, socket());
  ProcessOptions how;
  how.output = ChildStream::kept;
  how.kept_bytes = list_bytes;
  DEMARC_TRY(Process list,
             Process::spawn({options_.program, "lease", "list", "--socket", path, "--json"}, how));
  const auto ended = list.wait(list_seconds);
  if (!ended || ended->exit_code != 0) {
    return check_failed("demarc lease list, which says what the parts have, {}",
                        ended ? "ended with " + ended->words()
                              : fmt::format("gave no answer within {} s", list_seconds));
  }
  return words_of_list(list.kept());
}

}  // namespace demarc::study
