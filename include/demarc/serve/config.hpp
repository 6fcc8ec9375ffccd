// The configuration of `demarc serve`: a card, how it is divided, where the server listens. It is a
// file of TOML. Errors name file, line and column.
//
//   card = 0
//   [tenants.detector]
//   tpcs = "1/2"
//   colors = "1/2"
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/exec/confine.hpp"
#include "demarc/partition/part.hpp"
#include "demarc/partition/partition.hpp"
#include "demarc/serve/ledger.hpp"

namespace demarc::serve {

// A place in the file: "serve.toml:12:3".
using FilePlace = std::string;

enum class MpsUse { on, off, automatic };
[[nodiscard]] Result<MpsUse> parse_mps_use(std::string_view text);

struct TenantConfig {
  std::string name;
  FilePlace place;
  partition::TpcChoice choice;  // empty if `tpc_part` says it
  std::optional<partition::Part> tpc_part;
  partition::SplitStrategy split = partition::SplitStrategy::gpc_aligned;  // that has `tpc_part`
  FilePlace choice_place;
  FilePlace split_place;
  color::ColorSet colors;  // counted in Config::colors
  FilePlace colors_place;
  std::optional<std::uint64_t> bytes;  // the most bytes that it may have; none: what its colours
                                       // hold
  FilePlace bytes_place;
  std::optional<std::uint64_t> windows;  // bytes that the page table may show; none: a fair part
  FilePlace windows_place;
  std::optional<std::uint32_t> sync_domain;  // from 1 on; none: one that is free, unless it
  bool no_domain = false;                    // wants none of its own
  FilePlace domain_place;
  bool canary = false;                             // interference is measured
  std::optional<double> canary_baseline_cycles{};  // per read; none: it is measured, too
};

struct Config {
  std::string source;  // the file's name
  std::uint32_t card = 0;
  std::string description;               // of the card's memory, as gpu::describe_card() takes it
  std::uint32_t colors = 2;              // number of colours into which the memory is divided
  std::optional<std::uint64_t> memory;   // bytes of the card's memory that are taken
  std::uint64_t reserve = 0;             // bytes that are left free if `memory` says nothing
  std::string socket;                    // empty: lease::default_socket()
  std::optional<gid_t> group;            // whose members may have leases
  std::optional<std::uint16_t> metrics;  // port of 127.0.0.1
  MpsUse mps = MpsUse::automatic;
  std::vector<TenantConfig> tenants;  // by name
};

[[nodiscard]] Result<Config> parse_config(std::string_view text, const std::string& source);
[[nodiscard]] Result<Config> read_config(const std::string& path);

// The folder in which the server at this socket keeps what clients of MPS need, if it has started
// MPS.
[[nodiscard]] std::string mps_folder(const std::string& socket);

// What the configuration means on a card.
struct CardNumbers {
  gpu::Topology topology;
  std::uint32_t sync_domains = 1;
  // The number of linear bytes that a set of colours holds.
  std::function<Result<std::uint64_t>(const color::ColorSet& colors)> share_bytes;
  std::uint64_t domains_beside = 0;  // bit d: a program beside the server has domain d
  // Linear bytes that page tables can show at a time, of all tenants; 0: those of this card show
  // none.
  std::uint64_t window_bytes = 0;
  std::string no_windows = {};  // why they show none, and what to do instead
};
// Refuses TPCs, colours and domains that two tenants have, bytes beyond the share, and what the
// card does not have. Errors name the place in the file. Tenants with the names of `kept` have
// these terms, whatever the configuration says of them.
[[nodiscard]] Result<std::vector<Terms>> terms_of(const Config& config, const CardNumbers& card,
                                                  const std::vector<Terms>& kept = {});

// Refuses what two tenants have in common and what does not fit, as far as it is known without a
// card. Errors name the place in the file.
[[nodiscard]] Result<void> check_without_card(const Config& config);
// Who is to have what: a line per tenant, below a line of headings.
[[nodiscard]] std::string config_to_text(const Config& config);

// The configuration that a running server reads again, in the colours of the one it has. Refuses it
// with the names of the keys that cannot change while the server runs.
[[nodiscard]] Result<Config> read_again(const Config& now, Config next);
// Whether both say the same of a tenant.
[[nodiscard]] bool same_wishes(const TenantConfig& a, const TenantConfig& b);

}  // namespace demarc::serve
