// Which SMs a process has, on the stand-in: as it is, and as a client of MPS.
#include "demarc/card/identify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "demarc/card/verify.hpp"
#include "fake_card.hpp"
#include "sms.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

// The stand-in as a client of MPS whose launches get these TPCs, one bit each.
fake::FakeConfig client_with(std::uint64_t tpcs) {
  fake::FakeConfig config = fake::small_gpu();
  config.client = tpcs;
  config.virtual_sms = true;
  return config;
}

// The card as it is opened in such a client, its topology being remembered.
CardPointer opened_client(const fake::FakeConfig& config) {
  CardOptions options;
  options.cache_folder = test::fresh_folder("identify").string();
  EXPECT_TRUE(Card::open(test::fake_gpu(fake::small_gpu()), options));
  return Card::open(test::fake_gpu(config), options).value();
}

TEST(Identify, outside_mps_smid_names_the_sms) {
  const auto card = test::fake_card().value();
  const auto found = identify_sms(*card, 1);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->launches,
            (std::vector(1, gpu::sms_of(card->topology(), gpu::TpcSet::first(12)))));
  EXPECT_EQ(found->tpcs, gpu::TpcSet::first(12));
  EXPECT_TRUE(found->as_numbered);
  EXPECT_THAT(identification_to_text(card->topology(), *found),
              HasSubstr("launch 1: 24 SMs, TPCs 0-11 (GPCs 0,1,2,3)\n"
                        "SM numbers in kernels (%smid) name the SMs\n"));
}

TEST(Identify, a_client_of_mps_is_found_on_its_tpcs_though_its_numbers_start_at_zero) {
  const auto card = opened_client(client_with(0xca2));
  const auto found = identify_sms(*card, 2);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->tpcs, (gpu::TpcSet{1, 5, 7, 10, 11}));
  EXPECT_EQ(found->launches,
            (std::vector(2, test::sm_list({2, 3, 10, 11, 14, 15, 20, 21, 22, 23}))));
  EXPECT_FALSE(found->as_numbered);
  EXPECT_THAT(identification_to_text(card->topology(), *found),
              HasSubstr("launch 2: 10 SMs, TPCs 1,5,7,10-11 (GPCs 1,2,3)\n"
                        "SM numbers in kernels (%smid) count the SMs of a launch"));
  const Json json = Json::parse(identification_to_json(card->topology(), *found));
  EXPECT_EQ(json["schema"], "demarc.topo.identity/2");
  EXPECT_EQ(json["tpcs"], "1,5,7,10-11");
  EXPECT_EQ(json["smid_names_sms"], false);
  ASSERT_EQ(json["launches"].size(), 2U);
  EXPECT_EQ(json["launches"][1]["tpcs"], "1,5,7,10-11");
  EXPECT_EQ(json["launches"][1]["sms"].size(), 10U);
  EXPECT_EQ(json["launches"][1]["sms"][2], 10);
}

TEST(Identify, where_no_number_names_an_sm_it_says_why) {
  fake::FakeConfig config = client_with(0xca2);
  config.linker = fake::Linker::refuses;
  const auto found = identify_sms(*opened_client(config), 1);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("no other way does: probes.ptx: cannot begin"));
}

// Whether the register can be believed is seen under a mask.
TEST(Identify, without_masks_no_number_is_believed_in_a_client_of_mps) {
  CardOptions options;
  options.cache_folder = test::fresh_folder("identify").string();
  options.use_masks = false;
  const auto client = Card::open(test::fake_gpu(client_with(0xca2)), options).value();
  const auto found = identify_sms(*client, 1);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(found.error().message,
              HasSubstr("no other way does: this card was opened without support for masks"));
  const auto whole = Card::open(test::fake_gpu(fake::small_gpu()), options).value();
  EXPECT_TRUE(identify_sms(*whole, 1));
}

TEST(Identify, an_sm_that_the_card_does_not_have_is_refused) {
  const auto card = test::fake_card().value();
  const auto tpcs = tpcs_with(card->topology(), test::sm_list({23, 24}));
  ASSERT_FALSE(tpcs);
  EXPECT_EQ(tpcs.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(tpcs.error().message, HasSubstr("ran on SM 24, but 24 SMs are known of this card"));
}

// verify() of a process, the whole card being remembered.
Result<VerifyReport> verify_as(const fake::FakeConfig& config, const partition::TpcChoice& choice) {
  ::setenv("DEMARC_LIBCUDA", test::fake_driver()->origin().c_str(), 1);
  ::setenv("DEMARC_CACHE", test::fresh_folder("client").c_str(), 1);
  test::configure(fake::small_gpu());
  EXPECT_TRUE(open_card(0));
  test::configure(config);
  VerifyPlan plan;
  plan.choice = choice;
  auto report = verify(plan);
  ::unsetenv("DEMARC_LIBCUDA");
  ::unsetenv("DEMARC_CACHE");
  return report;
}

TEST(VerifyOfAClient, holds_on_the_listed_tpcs) {
  const auto report = verify_as(client_with(0xca2), {"1,5,7,10-11", "", 0, 0});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->holds);
  EXPECT_FALSE(report->by_count);
  EXPECT_THAT(report_to_text(*report), HasSubstr(" blocks on  10 SMs, 0 outside\n"));
  EXPECT_EQ(Json::parse(report_to_json(*report))["paths"][0]["outside"], 0);
}

TEST(VerifyOfAClient, does_not_hold_on_other_tpcs_though_their_number_is_right) {
  const auto report = verify_as(client_with(0xca2), {"0-4", "", 0, 0});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->holds);
  for (const VerifyPath& path : report->paths) {
    EXPECT_EQ(10 * path.outside, 8 * path.placement.total()) << path.name;
  }
}

// The driver does not tell of MPS, and a launch calls the SMs of five TPCs 0 to 9.
TEST(VerifyOfAClient, does_not_believe_numbers_of_a_launch) {
  fake::FakeConfig config = client_with(0xca2);
  config.mps_attribute = 0;
  config.client_hidden = true;
  const auto report = verify_as(config, {"0-4", "", 0, 0});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->holds);
}

TEST(VerifyOfAClient, that_is_shown_fewer_sms_though_nobody_tells_of_mps_is_another_card) {
  fake::FakeConfig config = client_with(0x3);
  config.mps_attribute = 2;
  config.virtual_sms = false;
  ::setenv("CUDA_MPS_PIPE_DIRECTORY", test::fresh_folder("no_daemon").c_str(), 1);
  const auto report = verify_as(config, {"0-1", "", 0, 0});
  ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("the number of SMs is 24 there and 4 now"));
}

TEST(VerifyOfAClient, needs_numbers_that_name_sms_for_a_list_and_none_for_a_count) {
  fake::FakeConfig config = client_with(0x3);
  config.linker = fake::Linker::refuses;
  const auto named = verify_as(config, {"0-1", "", 0, 0});
  ASSERT_FALSE(named);
  EXPECT_THAT(named.error().message, HasSubstr("probes.ptx: cannot begin a link"));
  const auto counted = verify_as(config, {"", "", 4, 0});
  ASSERT_TRUE(counted) << counted.error().message;
  EXPECT_TRUE(counted->by_count);
  EXPECT_TRUE(counted->holds);
  const std::string text = report_to_text(*counted);
  EXPECT_THAT(text, HasSubstr("MPS chooses the SMs of its clients, so their number was checked\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("outside")));
  const Json json = Json::parse(report_to_json(*counted));
  EXPECT_EQ(json["by_count"], true);
  EXPECT_FALSE(json["paths"][0].contains("outside"));
  const auto fewer = verify_as(config, {"", "", 2, 0});
  ASSERT_TRUE(fewer) << fewer.error().message;
  EXPECT_FALSE(fewer->holds);
}

TEST(VerifyOfAClient, outside_mps_smid_serves_where_the_register_cannot_be_read) {
  fake::FakeConfig config = fake::small_gpu();
  config.linker = fake::Linker::reads_otherwise;
  const auto whole = verify_as(config, {"0-11", "", 0, 0});
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_TRUE(whole->holds);
}

// MPS may give such a client other SMs than the first ones.
TEST(VerifyOfAClient, is_held_against_the_number_of_sms_where_no_tpcs_are_listed) {
  const auto counted = verify_as(client_with(0xca2), {"", "", 10, 0});
  ASSERT_TRUE(counted) << counted.error().message;
  EXPECT_TRUE(counted->holds);
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

// verify() as the process is, on a card that need not be as it says.
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
  EXPECT_FALSE(wrong->holds);
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
              testing::Not(HasSubstr("their number was checked")));
  const Json json = Json::parse(report_to_json(*part));
  EXPECT_EQ(json["schema"], "demarc.verify/2");
  EXPECT_EQ(json["expected_tpcs"], "0-5");
  EXPECT_EQ(json["expected_sms"], 12);
  EXPECT_EQ(json["sms"], 24);
  EXPECT_EQ(json["holds"], false);
  EXPECT_EQ(json["unconfined"], true);
  EXPECT_EQ(json["paths"].size(), 3U);
  EXPECT_EQ(json["paths"][2]["path"], "graph");
  EXPECT_EQ(json["paths"][2]["outside"], 2 * blocks);
  EXPECT_EQ(json["paths"][2]["blocks_per_sm"].size(), 24U);
  EXPECT_EQ(json["by_count"], false);
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

}  // namespace
}  // namespace demarc::cuda
