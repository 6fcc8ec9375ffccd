// Which SMs a process has, on the stand-in: as it is, and as a client of MPS.
#include "demarc/card/identify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "demarc/base/json.hpp"
#include "demarc/card/verify.hpp"
#include "fake_card.hpp"
#include "sms.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

fake::FakeConfig known_card(std::uint64_t client = 0) {
  fake::FakeConfig config = fake::small_gpu();
  std::snprintf(config.name, sizeof config.name, "NVIDIA H100 80GB HBM3");
  config.client = client;
  config.virtual_sms = client != 0;
  config.page_seed = 1 + client;  // another process has other pages
  return config;
}

// What topo remembers of the whole card.
CardFacts whole_card() {
  return test::fake_card(known_card()).value()->facts();
}

TEST(Identify, numbers_that_name_the_sms_are_confirmed) {
  const auto found = identify_sms(test::fake_gpu(known_card()), whole_card(), 1);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->sms, 24U);
  EXPECT_EQ(found->in_doubt, 0U);
  EXPECT_TRUE(found->as_numbered());
  EXPECT_EQ(found->tpcs.size(), 12U);
}

TEST(Identify, a_client_of_mps_is_found_on_its_tpcs_though_its_numbers_start_at_zero) {
  const CardFacts known = whole_card();
  const auto found = identify_sms(test::fake_gpu(known_card(0xca2)), known, 2);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->tpcs, (gpu::TpcSet{1, 5, 7, 10, 11}));
  EXPECT_EQ(found->in_doubt, 0U);
  EXPECT_FALSE(found->as_numbered());
  EXPECT_EQ(found->launches.size(), 2U);
  const std::string text = identification_to_text(known.device.topology, *found, true);
  EXPECT_THAT(text, HasSubstr("launch 1: 10 SMs, by latency TPCs 1,5,7,10-11 (GPCs 1,2,3)"));
  EXPECT_THAT(text, HasSubstr("TPC   5 of GPC  2 (SM 10, 11): here number 2, 3"));
  EXPECT_LT(text.rfind("here number"), text.find("launch 2: ")) << "of the first launch alone";
  EXPECT_THAT(text, HasSubstr("belong to a launch (MPS): 20 do not name their SM"));
}

TEST(Identify, a_busy_card_is_not_guessed_at) {
  const CardFacts known = whole_card();
  fake::FakeConfig config = known_card(0xca2);
  config.latency_noise = 40;
  const auto found = identify_sms(test::fake_gpu(config), known, 1);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(found.error().message, HasSubstr("another program uses the card"));
}

TEST(Identify, a_doubtful_sm_is_counted_and_names_no_tpc) {
  SmIdentity sure;
  sure.sm = gpu::SmIndex(2);
  sure.tpc = gpu::TpcIndex(1);
  sure.certain = true;
  SmIdentity guess;
  guess.sm = gpu::SmIndex(0);
  guess.tpc = gpu::TpcIndex(3);
  const auto found = identification_of(gpu::regular_topology(2, 2, 2), {{sure, guess}});
  EXPECT_EQ(found.tpcs, gpu::TpcSet{1});
  EXPECT_EQ(found.sms, 2U);
  EXPECT_EQ(found.in_doubt, 1U);
  EXPECT_EQ(found.misnumbered, 0U);
}

SmIdentity one_of(const gpu::TpcSet& candidates) {
  SmIdentity sm;
  sm.candidates = candidates;
  return sm;
}

TEST(Identify, an_sm_is_inside_where_all_that_it_may_be_is_inside) {
  const gpu::Topology topology = gpu::regular_topology(2, 2, 2);
  const auto seen = [&](const std::vector<SmIdentity>& launch) {
    return confinement_of(identification_of(topology, {launch}), {0, 1});
  };
  EXPECT_EQ(seen({one_of({0}), one_of({0, 1})}).in_doubt, 0U);
  EXPECT_TRUE(seen({one_of({0}), one_of({0, 1})}).outside.empty());
  EXPECT_EQ(seen({one_of({1, 2})}).in_doubt, 1U);
  EXPECT_TRUE(seen({one_of({1, 2})}).outside.empty());
  EXPECT_EQ(seen({one_of({2, 3}), one_of({3})}).outside, (gpu::TpcSet{2, 3}));
  EXPECT_EQ(seen({one_of({2, 3})}).in_doubt, 0U);
  EXPECT_EQ(seen({one_of({}), one_of({0})}).in_doubt, 1U) << "it may be any";
}

TEST(Identify, a_neighbour_that_is_busy_for_a_moment_is_waited_for) {
  const CardFacts known = whole_card();
  fake::FakeConfig config = known_card(0xca2);
  config.upset_from = 1;
  config.upset_until = 4;  // three launches are disturbed
  config.upset_noise = 40;
  const auto found = identify_sms(test::fake_gpu(config), known, 1);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->tpcs, (gpu::TpcSet{1, 5, 7, 10, 11}));
  config.upset_until = 5;
  EXPECT_FALSE(identify_sms(test::fake_gpu(config), known, 1));
}

TEST(Identify, without_remembered_fingerprints_it_says_how_to_take_them) {
  CardFacts known = whole_card();
  known.fingerprints.reset();
  const auto found = identify_sms(test::fake_gpu(known_card(1)), known, 1);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(found.error().message, HasSubstr("run demarc topo --refresh once, outside MPS"));
}

SmIdentity doubtful(std::uint32_t number) {
  SmIdentity sm;
  sm.sm = gpu::SmIndex(number);
  sm.tpc = gpu::TpcIndex(1);
  sm.distance = 1.5;
  sm.other_tpc = gpu::TpcIndex(2);
  sm.other_distance = 1.75;
  return sm;
}

TEST(Identify, eight_doubts_are_named_and_the_rest_is_counted) {
  const gpu::Topology topology = gpu::regular_topology(2, 4, 2);
  const auto text_of = [&](std::uint32_t doubts) {
    std::vector<SmIdentity> launch;
    for (std::uint32_t sm = 0; sm < doubts; ++sm) launch.push_back(doubtful(sm));
    return identification_to_text(topology, identification_of(topology, {launch}), false);
  };
  const std::string eight = text_of(8);
  EXPECT_THAT(eight, HasSubstr("launch 1: 8 SMs, by latency TPCs "));
  EXPECT_THAT(eight, HasSubstr("  SM number 0 is IN DOUBT: TPC 1 is 1.50 cycles away, TPC 2 1.75 "
                               "cycles\n"));
  EXPECT_THAT(eight, HasSubstr("SM number 7 is IN DOUBT"));
  EXPECT_THAT(eight, testing::Not(HasSubstr("more SMs")));
  EXPECT_THAT(eight, HasSubstr("0 of 8 SMs identified; SM numbers could not be compared\n"));
  const std::string ten = text_of(10);
  EXPECT_THAT(ten, testing::Not(HasSubstr("SM number 8 is")));
  EXPECT_THAT(ten, HasSubstr("  and 2 more SMs are IN DOUBT\n"));
}

TEST(Identify, the_json_tells_of_every_launch_and_sm) {
  const gpu::Topology topology = gpu::regular_topology(2, 2, 2);
  SmIdentity sure = doubtful(2);
  sure.certain = true;
  const auto found = identification_of(topology, {{sure, doubtful(0)}, {sure}});
  const Json json = Json::parse(identification_to_json(topology, found));
  EXPECT_EQ(json["schema"], "demarc.topo.identity/1");
  EXPECT_EQ(json["tpcs"], "1");
  EXPECT_EQ(json["sms"], 3);
  EXPECT_EQ(json["in_doubt"], 1);
  EXPECT_EQ(json["misnumbered"], 0);
  ASSERT_EQ(json["launches"].size(), 2U);
  const Json& first = json["launches"][0];
  EXPECT_EQ(first["tpcs"], "1");
  EXPECT_EQ(first["sms"][0]["number"], 2);
  EXPECT_EQ(first["sms"][0]["certain"], true);
  EXPECT_EQ(first["sms"][1]["certain"], false);
  EXPECT_EQ(first["sms"][1]["gpc"], 0);
  EXPECT_EQ(first["sms"][1]["other_tpc"], 2);
  EXPECT_EQ(first["sms"][1]["distance_cycles"], 1.5);
  EXPECT_EQ(first["sms"][1]["other_distance_cycles"], 1.75);
}

// verify() of a client of MPS, the whole card being remembered.
Result<VerifyReport> verify_as(const fake::FakeConfig& config, const std::string& tpcs,
                               std::uint32_t launches = 3) {
  ::setenv("DEMARC_LIBCUDA", test::fake_driver()->origin().c_str(), 1);
  ::setenv("DEMARC_CACHE", test::fresh_folder("client").c_str(), 1);
  test::configure(known_card());
  EXPECT_TRUE(open_card(0));
  test::configure(config);
  VerifyPlan plan;
  plan.choice.tpcs = tpcs;
  EXPECT_EQ(plan.identified_launches, 3U);
  plan.identified_launches = launches;
  auto report = verify(plan);
  ::unsetenv("DEMARC_LIBCUDA");
  ::unsetenv("DEMARC_CACHE");
  return report;
}

Result<VerifyReport> verify_client(const std::string& tpcs, double noise,
                                   std::uint64_t client = 0xca2, std::int32_t mps = -1) {
  fake::FakeConfig config = known_card(client);
  config.latency_noise = noise;
  config.mps_attribute = mps;
  config.client_hidden = mps == 0;
  return verify_as(config, tpcs);
}

TEST(VerifyOfAClient, holds_when_its_latencies_are_those_of_the_listed_tpcs) {
  const auto report = verify_client("1,5,7,10-11", 0.1);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->relative);
  EXPECT_TRUE(report->holds);
  const std::string text = report_to_text(*report);
  EXPECT_THAT(text, HasSubstr("launch 3: 10 SMs, by latency TPCs 1,5,7,10-11"));
  EXPECT_THAT(text, testing::Not(HasSubstr("outside")));
  EXPECT_THAT(text, testing::Not(HasSubstr("are not expected")));
  EXPECT_THAT(text, testing::Not(HasSubstr("here number")));
  EXPECT_THAT(text, testing::Not(HasSubstr("their count was checked")));
  const Json json = Json::parse(report_to_json(*report));
  EXPECT_EQ(json["identified"]["tpcs"], "1,5,7,10-11");
  EXPECT_EQ(json["identified"]["launches"].size(), 3U);
  EXPECT_TRUE(json["relative_sm_numbers"]);
  EXPECT_FALSE(json["paths"][0].contains("outside")) << "numbers name no SM";
}

TEST(VerifyOfAClient, identifies_as_many_launches_as_asked) {
  EXPECT_EQ(verify_as(known_card(0xca2), "1,5,7,10-11", 1)->identified->launches.size(), 1U);
  const auto none = verify_as(known_card(0xca2), "1,5,7,10-11", 0);
  ASSERT_FALSE(none) << "numbers alone prove nothing there";
  EXPECT_EQ(none.error().kind, ErrorKind::missing_capability);
}

TEST(VerifyOfAClient, does_not_hold_on_other_tpcs_though_their_number_is_right) {
  const auto report = verify_client("0-4", 0.1);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->holds);
  EXPECT_TRUE(report->proved);
  EXPECT_THAT(report_to_text(*report), HasSubstr("TPCs 5,7,10-11 were used unexpectedly"));
}

TEST(VerifyOfAClient, does_not_believe_numbers_that_happen_to_be_right) {
  const auto report = verify_client("0", 0.1, 1);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->identified->as_numbered());
  EXPECT_TRUE(report->relative);
  EXPECT_TRUE(report->holds);
}

// Five TPCs whose SMs a launch calls 0 to 9, and a driver that tells of no MPS.
TEST(VerifyOfAClient, does_not_believe_numbers_that_only_latencies_give_away) {
  const auto report = verify_client("0-4", 0.1, 0xca2, 0);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->relative);
  EXPECT_FALSE(report->holds);
}

TEST(VerifyOfAClient, with_doubts_is_not_called_proved) {
  fake::FakeConfig config = known_card(0xca2);
  config.latency_offset = 30;  // no SM looks like any remembered one
  const auto report = verify_as(config, "1,5,7,10-11");
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_TRUE(report->identified);
  EXPECT_EQ(report->identified->in_doubt, 30U);
  EXPECT_FALSE(report->proved);
  EXPECT_FALSE(report->holds);
}

TEST(VerifyOfAClient, that_is_shown_fewer_sms_though_nobody_tells_of_mps_is_another_card) {
  fake::FakeConfig config = known_card(0x3);
  config.mps_attribute = 2;
  config.virtual_sms = false;
  ::setenv("CUDA_MPS_PIPE_DIRECTORY", test::fresh_folder("no_daemon").c_str(), 1);
  const auto report = verify_as(config, "0-1");
  ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("the number of SMs is 24 there and 4 now"));
}

TEST(VerifyOfAClient, on_a_busy_card_is_not_called_proved) {
  const auto report = verify_client("0-11", 40);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->holds);
  EXPECT_FALSE(report->proved);
  EXPECT_THAT(report_to_text(*report), HasSubstr("the partition COULD NOT BE PROVED"));
}

// Numbers that name the SMs say themselves what is outside.
TEST(Verify, tpcs_by_latency_are_only_held_against_a_list_where_numbers_name_no_sm) {
  const auto named = verify_as(known_card(), "0-5");
  ASSERT_TRUE(named) << named.error().message;
  ASSERT_TRUE(named->identified);
  EXPECT_FALSE(named->relative);
  EXPECT_FALSE(named->holds);
  EXPECT_THAT(report_to_text(*named), testing::Not(HasSubstr("are not expected")));
  VerifyReport counted = *named;
  counted.relative = true;
  EXPECT_THAT(report_to_text(counted), HasSubstr("TPCs 6-11 were used unexpectedly"));
  counted.named = false;
  EXPECT_THAT(report_to_text(counted), testing::Not(HasSubstr("are not expected")));
}

TEST(Verify, a_process_is_unconfined_only_where_every_path_reaches_every_sm) {
  VerifyReport report;
  report.sms = 2;
  report.expected_sms = 1;
  VerifyPath everywhere{"stream", {}};
  everywhere.placement.blocks = {1, 1};
  VerifyPath inside{"graph", {}};
  inside.placement.blocks = {1, 0};
  report.paths = {everywhere};
  EXPECT_TRUE(report.unconfined());
  report.paths = {everywhere, inside};
  EXPECT_FALSE(report.unconfined());
}

// verify() as the process is, without fingerprints, on a card that need not be as it says.
Result<VerifyReport> verify_plain(const partition::TpcChoice& choice,
                                  const fake::FakeConfig& config) {
  ::setenv("DEMARC_LIBCUDA", test::fake_driver()->origin().c_str(), 1);
  ::setenv("DEMARC_CACHE", test::fresh_folder("plain").c_str(), 1);
  test::configure(config);
  VerifyPlan plan;
  plan.choice = choice;
  auto report = verify(plan);
  ::unsetenv("DEMARC_LIBCUDA");
  ::unsetenv("DEMARC_CACHE");
  return report;
}

// As of a process that was put onto the wrong TPCs, of which the first has number 0.
TEST(Verify, a_run_of_sms_from_zero_on_is_not_excused_as_relative) {
  fake::FakeConfig config = fake::small_gpu();
  config.client = 0x3;  // launches without a mask get TPCs 0 and 1
  config.client_hidden = true;
  const auto wrong = verify_plain({"4-5", "", 0, 0}, config);
  ASSERT_TRUE(wrong) << wrong.error().message;
  EXPECT_FALSE(wrong->relative);
  EXPECT_FALSE(wrong->holds);
  EXPECT_TRUE(wrong->proved);
  EXPECT_FALSE(wrong->unconfined());
  EXPECT_THAT(report_to_text(*wrong), HasSubstr("the partition DOES NOT HOLD\n"));
  const auto right = verify_plain({"0-1", "", 0, 0}, config);
  ASSERT_TRUE(right) << right.error().message;
  EXPECT_TRUE(right->holds);
}

TEST(Verify, leaves_nothing_behind) {
  const auto alive = test::fake_symbol<std::int64_t()>("fake_live_objects");
  const std::int64_t before = alive();
  ASSERT_TRUE(verify_plain({"0-11", "", 0, 0}, fake::small_gpu()));
  EXPECT_EQ(alive(), before);
}

TEST(Verify, looks_at_every_path_that_launches_take) {
  const auto whole = verify_plain({"0-11", "", 0, 0}, fake::small_gpu());
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_TRUE(whole->holds);
  EXPECT_EQ(whole->sms, 24U);
  EXPECT_EQ(whole->expected_sms, 24U);
  const VerifyPlan standard;
  const std::uint64_t blocks = std::uint64_t{standard.blocks_per_sm} * 24;
  ASSERT_EQ(whole->paths.size(), 3U);
  const std::vector<std::pair<std::string, std::uint64_t>> paths{
      {"stream", blocks}, {"default stream", blocks}, {"graph", 4 * blocks}};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    EXPECT_EQ(whole->paths[i].name, paths[i].first);
    EXPECT_EQ(whole->paths[i].placement.total(), paths[i].second);
    EXPECT_EQ(whole->paths[i].outside, 0U);
  }
  const std::string text = report_to_text(*whole);
  EXPECT_THAT(
      text,
      HasSubstr("Fake GPU: looking at this process as it is; expected TPCs 0-11 (24 of 24 SMs)\n"));
  EXPECT_THAT(text, HasSubstr(" blocks on  24 SMs, 0 outside\n"));
  EXPECT_THAT(text, HasSubstr("the partition HOLDS\n"));
  const auto part = verify_plain({"0-5", "", 0, 0}, fake::small_gpu());
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_FALSE(part->holds);
  for (const VerifyPath& path : part->paths) EXPECT_EQ(2 * path.outside, path.placement.total());
  EXPECT_THAT(report_to_text(*part),
              HasSubstr("this process is in no partition: its blocks ran on every SM of the card"));
  EXPECT_FALSE(whole->unconfined()) << "the whole card was expected";
  EXPECT_THAT(report_to_text(*verify_plain({"", "", 24, 0}, fake::small_gpu())),
              testing::Not(HasSubstr("their count was checked")));
  const Json json = Json::parse(report_to_json(*part));
  EXPECT_EQ(json["schema"], "demarc.verify/1");
  EXPECT_EQ(json["expected_tpcs"], "0-5");
  EXPECT_EQ(json["expected_sms"], 12);
  EXPECT_EQ(json["sms"], 24);
  EXPECT_EQ(json["holds"], false);
  EXPECT_EQ(json["unconfined"], true);
  EXPECT_EQ(json["paths"].size(), 3U);
  EXPECT_EQ(json["paths"][2]["path"], "graph");
  EXPECT_EQ(json["paths"][2]["outside"], 2 * blocks);
  EXPECT_EQ(json["paths"][2]["blocks_per_sm"].size(), 24U);
  EXPECT_FALSE(json.contains("identified"));
}

TEST(Verify, proves_a_mode_by_a_lane_of_it) {
  ::setenv("DEMARC_LIBCUDA", test::fake_driver()->origin().c_str(), 1);
  ::setenv("DEMARC_CACHE", test::fresh_folder("modes").c_str(), 1);
  VerifyPlan plan;
  plan.choice = {"2-3", "", 0, 0};
  plan.mode = Mode::mask;
  test::configure(fake::small_gpu());
  const auto masked = verify(plan);
  fake::FakeConfig lying = fake::small_gpu();
  lying.invert_masks = true;
  test::configure(lying);
  const auto inverted = verify(plan);
  ::unsetenv("DEMARC_LIBCUDA");
  ::unsetenv("DEMARC_CACHE");
  ASSERT_TRUE(masked) << masked.error().message;
  EXPECT_TRUE(masked->holds);
  ASSERT_EQ(masked->paths.size(), 1U);
  EXPECT_EQ(masked->paths[0].name, "mask");
  EXPECT_EQ(masked->subject(), "a partition of mode mask, made for this check");
  EXPECT_FALSE(masked->unconfined());
  EXPECT_EQ(masked->paths[0].placement.used_sms(), test::sm_list({4, 5, 6, 7}));
  EXPECT_TRUE(!inverted || !inverted->holds);
}

TEST(Verify, under_mps_listed_tpcs_need_fingerprints_and_counts_do_not) {
  fake::FakeConfig config = fake::small_gpu();
  config.client = 0x3;
  config.virtual_sms = true;
  const auto named = verify_plain({"0-1", "", 0, 0}, config);
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(named.error().message, HasSubstr("SM numbers are relative here (MPS)"));
  const auto counted = verify_plain({"", "", 4, 0}, config);
  ASSERT_TRUE(counted) << counted.error().message;
  EXPECT_TRUE(counted->relative);
  EXPECT_TRUE(counted->holds);
  EXPECT_THAT(report_to_text(*counted),
              HasSubstr("SM numbers are relative here (MPS): their count was checked\n"));
  const auto fewer = verify_plain({"", "", 2, 0}, config);
  ASSERT_TRUE(fewer) << fewer.error().message;
  EXPECT_FALSE(fewer->holds);
}

TEST(Identify, fingerprints_are_remembered_to_the_hundredth_of_a_cycle) {
  const CardFacts known = whole_card();
  ASSERT_TRUE(known.fingerprints);
  EXPECT_EQ(known.fingerprints->latency.size(), 24U);
  const auto read = parse_facts(facts_to_json(known), "facts");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_TRUE(read->fingerprints);
  EXPECT_EQ(read->fingerprints->modulus, 5U);
  EXPECT_EQ(read->fingerprints->sms, known.fingerprints->sms);
  for (std::size_t sm = 0; sm < 24; ++sm) {
    for (std::size_t slice = 0; slice < 80; ++slice) {
      ASSERT_NEAR(read->fingerprints->latency[sm][slice], known.fingerprints->latency[sm][slice],
                  0.006);
    }
  }
  const auto refused = [&known](const std::string& from, const std::string& to) {
    std::string text = facts_to_json(known);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto parsed = parse_facts(text, "facts");
    return parsed ? "read all the same" : parsed.error().message;
  };
  EXPECT_THAT(refused("\"modulus\": 5", "\"modulus\": 0"), HasSubstr("modulus"));
  EXPECT_THAT(refused("\"modulus\": 5", "\"modulus\": 4097"),
              testing::Not(HasSubstr("80 numbers")));
  EXPECT_THAT(refused("\"modulus\": 5", "\"modulus\": 4096"), HasSubstr("80 numbers"));
  EXPECT_EQ(refused("\"modulus\": 5", "\"modulus\": 1"), "read all the same");
  EXPECT_THAT(refused("\"latency\": [\n      [", "\"latency\": [\n      [\"x\", "),
              HasSubstr("fingerprints.latency[0]: \"x\" is not a number of cycles"));
  EXPECT_THAT(refused("],\n      [", ", 1, 2, 3, 4, 5],\n      ["),
              HasSubstr("latency[1]: 80 numbers"));
  EXPECT_THAT(refused("\"latency\": [\n", "\"latency\": [[],\n"),
              HasSubstr("latency[0]: 0 numbers"));
  EXPECT_THAT(refused("\"modulus\"", "\"more\": 1, \"modulus\""), HasSubstr("more"));
  std::string damaged = facts_to_json(known);
  damaged.replace(damaged.find("\"modulus\": 5"), 12, "\"modulus\": 7");
  EXPECT_THAT(parse_facts(damaged, "facts").error().message,
              HasSubstr("fingerprints.latency[0]: 80 numbers"));
}

TEST(Identify, a_card_whose_hash_is_not_known_has_no_fingerprints_and_says_why) {
  const auto card = test::fake_card().value();
  EXPECT_FALSE(card->facts().fingerprints);
  EXPECT_THAT(card->facts().notes.back(), HasSubstr("no fingerprints of the SMs: Fake GPU"));
}

}  // namespace
}  // namespace demarc::cuda
