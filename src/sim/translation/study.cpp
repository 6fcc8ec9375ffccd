// Repeats the published figures under each setting that the paper may have used.
#include "demarc/sim/translation/study.hpp"

#include <algorithm>

#include "demarc/base/json.hpp"

namespace demarc::sim::translation {

std::span<const StudyVariant> study_variants() {
  static const std::vector<StudyVariant> variants = {
      {"defaults",
       "work-groups dealt out in turn, first touch for free, 1024-entry L2 TLB (fitted)"},
      {"native",
       "a split for each application, fitted: six contiguous, three in turn",
       {"split=native"}},
      {"contiguous", "equal runs of work-groups, in every application", {"split=contiguous"}},
      {"dim0", "split along the first dimension of the grid", {"split=dim0"}},
      {"l2-tlb-512", "L2 TLB of 32 sets and 16 ways", {"l2_tlb_sets=32"}},
      {"l2-tlb-4096", "L2 TLB of 64 sets and 64 ways", {"l2_tlb_ways=64"}},
      {"l1-tlb-64", "L1 TLBs of 64 entries", {"l1_tlb_ways=64"}},
      {"first-touch-copy", "the page crosses the links at first touch", {"first_touch=copy"}},
      {"first-touch-protocol",
       "4800 cycles per page at first touch, one page at a time",
       {"first_touch=protocol"}},
      {"first-walk", "a page goes to the GPU whose walk ends first", {"placement=first-walk"}},
      {"interleaved", "page i lies on GPU i mod 4 from the start", {"placement=interleaved"}},
      {"eager", "a GMMU knows its pages as soon as they are placed", {"gmmu_fill=eager"}},
      {"any", "a GMMU keeps every translation that comes back", {"gmmu_fill=any"}},
      {"any-native",
       "the same, and the split for each application (fitted)",
       {"gmmu_fill=any", "split=native"}},
      {"any-contiguous",
       "the same, and equal runs of work-groups",
       {"gmmu_fill=any", "split=contiguous"}},
      {"any-dim0",
       "the same, and split along the first dimension of the grid",
       {"gmmu_fill=any", "split=dim0"}},
      {"chain", "the second switch hangs on the first", {"topology=chain"}},
      {"l1-fill",
       "a line that an L1 missed takes as long as a hit to leave it",
       {"l1_fill_latency=60"}},
      {"remote-in-l1", "lines of other GPUs are kept in the L1", {"remote_in_l1=1"}},
      {"mp-roundrobin",
       "as native, but MP's work-groups dealt out in turn",
       {"split=native", "mp_split=roundrobin"}},
      {"pr-4-iterations", "four iterations of PR, not one", {"pr_iterations=4"}},
      {"sizes-unrounded",
       "sides of MP, MT and ST as close to the data size as their tiles allow",
       {"mp_multiple=1", "mt_multiple=64", "st_multiple=64"}},
      {"dynamic-lds", "dynamic LDS limits the waves of a CU", {"dynamic_lds=1"}},
      {"bypass-epoch", "bypass by the hit share of the last epoch", {"bypass_policy=epoch"}, true},
      {"bypass-oracle", "bypass by exact knowledge", {"bypass_policy=oracle"}, true},
  };
  return variants;
}

std::vector<std::string> reading_variants() {
  return {"contiguous", "dim0", "native", "any", "any-contiguous", "any-dim0", "any-native"};
}

Result<Study> reproduce_paper(const StudyOptions& options, const Progress& progress) {
  std::vector<std::string> apps = options.apps;
  if (apps.empty()) {
    for (const ApplicationInfo& info : application_table()) apps.emplace_back(info.name);
  }
  for (const std::string& name : options.variants) {
    const auto known = study_variants();
    if (std::none_of(known.begin(), known.end(),
                     [&](const StudyVariant& variant) { return variant.name == name; })) {
      std::string names;
      for (const StudyVariant& variant : known) names += " " + variant.name;
      return invalid_input("there is no variant '{}'; there are{}", name, names);
    }
  }
  std::vector<ComparisonRequest> requests;
  Study study;
  for (const StudyVariant& variant : study_variants()) {
    const bool first = study.runs.empty();
    if (!first && !options.variants.empty() &&
        std::find(options.variants.begin(), options.variants.end(), variant.name) ==
            options.variants.end()) {
      continue;
    }
    ComparisonRequest request{options.base, apps, {}};
    for (const std::string& assignment : variant.assignments)
      DEMARC_CHECK(apply_setting(request.settings, assignment));
    if (!variant.bypass_only)
      request.architectures = {Architecture::centralised, Architecture::distributed};
    if ((first && options.bypass) || variant.bypass_only)
      request.architectures.push_back(Architecture::bypass);
    requests.push_back(std::move(request));
    study.runs.push_back({variant, {}});
  }
  DEMARC_TRY(auto comparisons, compare_all(requests, options.threads, progress));
  for (std::size_t i = 0; i < comparisons.size(); ++i)
    study.runs[i].comparison = std::move(comparisons[i]);
  return study;
}

std::string study_json(const Study& study) {
  Json variants = Json::array();
  for (const StudyRun& run : study.runs) {
    Json claims = Json::array();
    for (const Claim& claim : claims_of(run.comparison)) {
      claims.push_back({{"claim", claim.name},
                        {"published", claim.paper != nullptr ? claim.paper->words : ""},
                        {"place", claim.paper != nullptr ? claim.paper->place : ""},
                        {"elsewhere", claim.elsewhere},
                        {"fitted", claim.fitted},
                        {"ours", claim.ours},
                        {"low", claim.low},
                        {"high", claim.high},
                        {"holds", claim.holds()}});
    }
    variants.push_back({{"name", run.variant.name},
                        {"meaning", run.variant.meaning},
                        {"claims", std::move(claims)},
                        {"result", own_json(to_json(run.comparison))}});
  }
  const Json document{{"schema", "demarc.translate.study/1"}, {"variants", std::move(variants)}};
  return json_text(document, 2) + "\n";
}

namespace {

std::string claim_line(const Claim& claim, std::string_view said, std::string_view place) {
  std::string line =
      fmt::format("  {:<59} {:<15} {:<21} {:>7}  {:<14} {:<10}  {}", claim.name, said, place,
                  claim.shown(), claim.range(), claim.holds() ? "yes" : "no", claim.fitted);
  while (line.back() == ' ') line.pop_back();
  return line + "\n";
}

std::string claims_text(const std::vector<Claim>& claims) {
  std::string text = fmt::format("  {:<59} {:<15} {:<21} {:>7}  {:<14} {:<10}  {}\n", "figure",
                                 "paper", "place", "ours", "within", "reproduced", "fitted");
  for (const Claim& claim : claims) {
    if (claim.paper != nullptr) text += claim_line(claim, claim.paper->words, claim.paper->place);
  }
  text += fmt::format("  reproduced: {}\n  not in the paper, and what is expected:\n",
                      reproduced_text(claims));
  for (const Claim& claim : claims) {
    if (claim.paper != nullptr) continue;
    text += fmt::format("  {:<97} {:>7}  {:<14} {}\n",
                        fmt::format("{}: {}", claim.name, claim.elsewhere), claim.shown(),
                        claim.range(), claim.holds() ? "yes" : "no");
  }
  return text;
}

}  // namespace

std::string study_text(const Study& study, TextParts parts) {
  std::string text = fmt::format(
      "A number of the paper is reproduced if ours lies within {:.0f} % of it. The limits of "
      "statements without a number are ours.\n",
      100 * reproduced_within);
  for (const StudyRun& run : study.runs) {
    text += fmt::format("{}: {}\n", run.variant.name, run.variant.meaning);
    for (const std::string& assignment : run.variant.assignments)
      text += fmt::format("  {}\n", assignment);
    text += claims_text(claims_of(run.comparison));
    text += fitted_text(run.comparison);
  }
  if (!study.runs.empty() && parts == TextParts::all) {
    text += "settings of " + study.runs.front().variant.name + "\n" +
            settings_text(study.runs.front().comparison.settings);
  }
  return text;
}

}  // namespace demarc::sim::translation
