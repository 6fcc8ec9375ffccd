// Topology, cache, calibration and verification on the stand-in.
#include "demarc/card/card.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "demarc/base/files.hpp"
#include "fake_card.hpp"
#include "sms.hpp"

namespace demarc::cuda {
namespace {

using test::fake_card;
using testing::HasSubstr;

TEST(Card, the_topology_of_the_planted_gpu_is_found_by_both_ways) {
  const fake::FakeConfig config = fake::small_gpu();
  const auto card = fake_card(config);
  ASSERT_TRUE(card) << card.error().message;
  const auto& facts = (*card)->facts();
  EXPECT_TRUE(facts.by_descriptor);
  EXPECT_TRUE(facts.by_cluster);
  ASSERT_TRUE(facts.stream_field);
  EXPECT_EQ(facts.stream_field->offset, config.stream_offset);
  EXPECT_FALSE((*card)->virtual_sms());
  for (std::uint32_t t = 0; t < config.tpcs; ++t) {
    const gpu::Tpc& tpc = (*card)->topology().tpcs[gpu::TpcIndex(t)];
    EXPECT_EQ(tpc.gpc, gpu::GpcIndex(config.gpc[t])) << t;
    EXPECT_EQ(tpc.bit, config.bit[t]) << t;
    EXPECT_EQ(tpc.side, config.side[t] ^ config.side[0]) << t;
    EXPECT_EQ(tpc.sms, test::sm_list({2 * t, 2 * t + 1}));
  }
}

TEST(Card, without_masks_clusters_alone_tell_the_gpcs) {
  const auto card = fake_card(fake::small_gpu(), false);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_FALSE((*card)->facts().by_descriptor);
  EXPECT_TRUE((*card)->facts().by_cluster);
  EXPECT_EQ((*card)->topology().gpc_count(), 4U);
  EXPECT_FALSE((*card)->topology().tpcs.front().bit);
}

TEST(Card, disagreeing_ways_are_an_error_that_names_the_tpcs) {
  fake::FakeConfig config = fake::small_gpu();
  std::swap(config.bit[0], config.bit[1]);  // descriptors and clusters tell different GPCs
  const auto card = fake_card(config);
  ASSERT_FALSE(card);
  EXPECT_EQ(card.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(card.error().message,
              testing::AllOf(HasSubstr("disagree: TPCs 0 and"), HasSubstr("of 9 bits")));
}

TEST(Card, renumbered_sms_are_noticed_and_what_they_show_is_not_remembered) {
  fake::FakeConfig config = fake::small_gpu();
  config.virtual_sms = true;
  CardOptions options;
  options.cache_folder = test::fresh_folder("renumbered").string();
  const auto card = Card::open(test::fake_gpu(config), options);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_TRUE((*card)->virtual_sms());
  EXPECT_FALSE(std::filesystem::exists(facts_path(*(*card)->gpu(), options.cache_folder)));
}

TEST(Card, tpcs_that_the_descriptor_cannot_name_get_no_mask) {
  CardOptions options;
  options.cache_folder = test::fresh_folder("narrow").string();
  fake::FakeConfig config = fake::small_gpu();
  config.capability_major = 8;
  config.descriptor_version = 0x30;  // with a mask of 64 bits
  const GpuPointer gpu = test::fake_gpu(config);
  CardFacts facts = Card::open(gpu, options).value()->facts();
  EXPECT_FALSE(facts.by_cluster);
  EXPECT_EQ(facts.device.topology.gpc_count(), 1U) << "nobody knows how many bits a GPC has there";
  facts.device.topology.tpcs[gpu::TpcIndex(5)].bit = 64;
  ASSERT_TRUE(write_file(facts_path(*gpu, options.cache_folder), facts_to_json(facts)));
  const auto card = Card::open(gpu, options);
  ASSERT_TRUE(card) << card.error().message;
  const auto mask = (*card)->hardware_mask({1});
  ASSERT_FALSE(mask);
  EXPECT_THAT(mask.error().message, HasSubstr("cannot name all TPCs"));
}

TEST(Card, what_was_found_is_remembered_for_the_same_card_and_driver) {
  CardOptions options;
  options.cache_folder = (test::fresh_folder("cache") / "that" / "is" / "made").string();
  const GpuPointer gpu = test::fake_gpu();
  const auto first = Card::open(gpu, options);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_FALSE((*first)->facts().from_cache);
  const auto second = Card::open(gpu, options);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_TRUE((*second)->facts().from_cache);
  EXPECT_EQ((*second)->device(), (*first)->device());
  options.refresh = true;
  EXPECT_FALSE((*Card::open(gpu, options))->facts().from_cache);
}

TEST(Card, a_damaged_facts_file_is_an_error_that_names_it) {
  CardOptions options;
  options.cache_folder = test::fresh_folder("damaged").string();
  const GpuPointer gpu = test::fake_gpu();
  ASSERT_TRUE(write_file(facts_path(*gpu, options.cache_folder), R"({"schema": "demarc.topo/9"})"));
  const auto card = Card::open(gpu, options);
  ASSERT_FALSE(card);
  EXPECT_THAT(card.error().message, HasSubstr("demarc.topo/9"));
  EXPECT_THAT(card.error().message, HasSubstr("GPU-fafafafa"));
  EXPECT_THAT(card.error().message, testing::EndsWith("; demarc topo --refresh writes it anew"));
  options.refresh = true;
  ASSERT_TRUE(Card::open(gpu, options)) << "as it was advised";
  options.refresh = false;
  EXPECT_TRUE(Card::open(gpu, options).value()->facts().from_cache);
}

TEST(CardFacts, are_read_as_they_were_written_and_refused_by_name_where_they_are_wrong) {
  CardFacts facts = fake_card().value()->facts();
  facts.unconfirmed = {gpu::TpcIndex(3), gpu::TpcIndex(5)};
  facts.notes = {"one", "two"};
  facts.stream_field = StreamField{0x25c, false};
  const std::string text = facts_to_json(facts);
  EXPECT_THAT(text,
              testing::AllOf(HasSubstr("\n  \"notes\": ["), HasSubstr("\n  },\n  \"device\"")));
  const auto read = parse_facts(text, "facts");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->by_descriptor, facts.by_descriptor);
  EXPECT_EQ(read->by_cluster, facts.by_cluster);
  EXPECT_EQ(read->unconfirmed, facts.unconfirmed);
  EXPECT_EQ(read->notes, facts.notes);
  EXPECT_EQ(read->stream_field->offset, 0x25cU);
  EXPECT_FALSE(read->stream_field->wide);
  EXPECT_EQ(read->device, facts.device);
  EXPECT_FALSE(read->from_cache);
  const auto parsed = [&text](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    return parse_facts(changed, "facts");
  };
  const auto refused = [&parsed](const std::string& from, const std::string& to) {
    const auto result = parsed(from, to);
    return result ? "read all the same" : result.error().message;
  };
  EXPECT_THAT(refused("demarc.topo/2", "demarc.topo/1"),
              HasSubstr("facts: topo.schema: 'demarc.topo/1' is not understood"));
  EXPECT_THAT(refused("3,", "-3,"), HasSubstr("facts: topo.unconfirmed: -3 is not the number"));
  EXPECT_THAT(refused("\"one\"", "1"), HasSubstr("topo.notes: sentences are expected"));
  EXPECT_THAT(refused("\"offset\": 604", "\"offset\": 65537"), HasSubstr("offset"));
  EXPECT_THAT(refused("\"offset\"", "\"far\": 1, \"offset\""), HasSubstr("far"));
  EXPECT_THAT(refused("\"unconfirmed\"", "\"else\": 1, \"unconfirmed\""), HasSubstr("else"));
  EXPECT_THAT(refused("\"device\"", "\"card\""), HasSubstr("device"));
  EXPECT_EQ(refused("\"offset\": 604", "\"offset\": 65536"), "read all the same");
  const auto wide = parsed("\"wide\": false", "\"wide\": true");
  ASSERT_TRUE(wide);
  EXPECT_TRUE(wide->stream_field->wide);
  EXPECT_FALSE(parsed("\"by_cluster\": true", "\"by_cluster\": false")->by_cluster);
  EXPECT_FALSE(parsed("\"by_cluster\": true,", "")->by_cluster) << "what nobody says is not so";
  EXPECT_FALSE(parsed("\"by_descriptor\": true,", "")->by_descriptor);
  EXPECT_TRUE(parsed(",\n    \"wide\": false", "")->stream_field->wide);
  EXPECT_EQ(refused("\"offset\": 604", "\"offset\": 0"), "read all the same");
  EXPECT_THAT(refused("\"offset\": 604", "\"offset\": -1"), HasSubstr("offset"));
}

TEST(CardFacts, lie_where_the_user_wants_them_else_in_the_users_cache) {
  const GpuPointer gpu = test::fake_gpu();
  const std::string name =
      "/GPU-fafafafa-fafa-fafa-fafa-fafafafafafa-" + gpu->driver().driver_version() + ".json";
  const auto with = [&](const char* own, const char* xdg, const char* home) {
    const auto set = [](const char* variable, const char* value) {
      value == nullptr ? ::unsetenv(variable) : ::setenv(variable, value, 1);
    };
    const std::string home_before = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
    set("DEMARC_CACHE", own);
    set("XDG_CACHE_HOME", xdg);
    set("HOME", home);
    std::string path = facts_path(*gpu, "");
    set("DEMARC_CACHE", nullptr);
    set("XDG_CACHE_HOME", nullptr);
    set("HOME", home_before.c_str());
    return path;
  };
  EXPECT_EQ(facts_path(*gpu, "/here"), "/here" + name);
  EXPECT_EQ(with("/own", "/xdg", "/me"), "/own" + name);
  EXPECT_EQ(with("", "/xdg", "/me"), "/xdg/demarc" + name);
  EXPECT_EQ(with(nullptr, nullptr, "/me"), "/me/.cache/demarc" + name);
}

TEST(Card, renumbering_is_looked_for_where_facts_are_remembered) {
  CardOptions options;
  options.cache_folder = test::fresh_folder("renumbered_later").string();
  ASSERT_TRUE(Card::open(test::fake_gpu(), options));
  fake::FakeConfig config = fake::small_gpu();
  config.virtual_sms = true;
  config.mps_attribute = 0;
  const auto card = Card::open(test::fake_gpu(config), options);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_TRUE((*card)->facts().from_cache);
  EXPECT_TRUE((*card)->virtual_sms());
  EXPECT_FALSE((*card)->stream_masks().value()->get((*card)->stream().handle()))
      << "the mask of the look is taken back";
}

TEST(Card, what_the_topology_leaves_open_is_said) {
  fake::FakeConfig config = fake::small_gpu();
  config.latency_noise = 60;
  const auto card = fake_card(config, false).value();
  EXPECT_EQ(card->facts().unconfirmed.size(), 12U) << "found by clusters alone";
  EXPECT_THAT(card->facts().notes,
              testing::Contains("L2 sides: the latencies do not fall into two groups"));
  EXPECT_TRUE(fake_card().value()->facts().unconfirmed.empty());
}

TEST(Card, without_masks_it_says_why_and_remembers_nothing) {
  CardOptions options;
  options.cache_folder = test::fresh_folder("observer").string();
  options.use_masks = false;
  const auto card = Card::open(test::fake_gpu(), options).value();
  EXPECT_EQ(card->hook().error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(card->stream_masks().error().message, HasSubstr("opened without support for masks"));
  EXPECT_THAT(card->hardware_mask({1}).error().message,
              HasSubstr("opened without support for masks"));
  EXPECT_THAT(card->facts().notes.back(),
              HasSubstr("masks: this card was opened without support for masks"));
  EXPECT_FALSE(card->facts().stream_field);
  EXPECT_FALSE(std::filesystem::exists(facts_path(*card->gpu(), options.cache_folder)));
}

TEST(Card, an_unknown_drivers_field_is_looked_for_in_a_process_of_its_own_and_remembered) {
  ::setenv("DEMARC_LIBCUDA", test::fake_driver()->origin().c_str(), 1);
  fake::FakeConfig config = fake::small_gpu();
  config.cuda_version = 15780;
  config.stream_offset = 0x6d8;
  test::configure(config);
  CardOptions options;
  options.cache_folder = test::fresh_folder("unknown_driver").string();
  options.refresh = true;
  const auto found = open_card(0, options);
  config.stream_field_works = false;
  test::configure(config);
  CardOptions elsewhere = options;
  elsewhere.cache_folder = test::fresh_folder("unknown_field").string();
  const auto missed = open_card(0, elsewhere);
  config.stream_field_works = true;
  test::configure(config);
  options.refresh = false;
  const auto later = open_card(0, options);
  ::unsetenv("DEMARC_LIBCUDA");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT((*found)->facts().notes,
              testing::Contains("CUDA 15.78 is not in the table of drivers; the mask of a stream "
                                "was found at offset 0x6d8 and proved"));
  EXPECT_EQ((*found)->facts().stream_field->offset, 0x6d8U);
  EXPECT_TRUE((*found)->stream_masks());
  ASSERT_TRUE(missed) << missed.error().message;
  EXPECT_THAT((*missed)->facts().notes,
              testing::Contains(testing::StartsWith("a stream's mask was looked for: ")));
  EXPECT_FALSE((*missed)->stream_masks());
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_TRUE((*later)->facts().from_cache);
  EXPECT_TRUE((*later)->stream_masks());
}

// For a card without remembered facts that may not use masks, or is not to be refreshed.
TEST(Card, an_unknown_drivers_field_is_not_looked_for_unasked) {
  ::setenv("DEMARC_LIBCUDA", test::fake_driver()->origin().c_str(), 1);
  fake::FakeConfig config = fake::small_gpu();
  config.cuda_version = 14020;
  const auto searched = [&config](const CardOptions& how) {
    CardOptions options = how;
    options.cache_folder = test::fresh_folder("unasked").string();
    test::configure(config);
    const auto card = open_card(0, options);
    EXPECT_TRUE(card) << card.error().message;
    const auto& notes = (*card)->facts().notes;
    return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.find("mask of a stream was found") != std::string::npos ||
             note.find("stream's mask was looked for") != std::string::npos;
    });
  };
  CardOptions options;
  EXPECT_FALSE(searched(options));
  options.refresh = true;
  EXPECT_TRUE(searched(options));
  options.stream_field = StreamField{config.stream_offset, true};
  EXPECT_FALSE(searched(options)) << "it was named";
  options.stream_field.reset();
  options.use_masks = false;
  EXPECT_FALSE(searched(options));
  ::unsetenv("DEMARC_LIBCUDA");
}

// A stream's object has room for a mask at every 24th to 44th byte of 64: at seven places, the last
// of which is the mask's, or at six that are none.
TEST(Calibration, goes_on_behind_places_that_end_the_process_but_not_for_ever) {
  ::setenv("DEMARC_LIBCUDA", test::fake_driver()->origin().c_str(), 1);
  const auto search = [](std::uint32_t deadly_bytes) {
    fake::FakeConfig config = fake::small_gpu();
    config.cuda_version = 14020;
    config.stream_offset = 24 + 5 * 64;
    config.deadly_from = 24;
    config.deadly_until = 24 + deadly_bytes;
    test::configure(config);
    auto found = calibrate_isolated(0);
    test::configure(fake::small_gpu());
    return found;
  };
  const auto after_one = search(4);
  ASSERT_TRUE(after_one) << after_one.error().message;
  EXPECT_EQ(after_one->offset, 24U + 5U * 64U);
  const auto after_sixteen = search(2 * 64 + 16);
  EXPECT_TRUE(after_sixteen) << after_sixteen.error().message;
  const auto after_more = search(2 * 64 + 20);
  ::unsetenv("DEMARC_LIBCUDA");
  ASSERT_FALSE(after_more);
  EXPECT_EQ(after_more.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(after_more.error().message, HasSubstr("ended without an answer"));
}

TEST(Card, an_unknown_driver_whose_descriptors_are_not_known_either_says_that) {
  ::setenv("DEMARC_LIBCUDA", test::fake_driver()->origin().c_str(), 1);
  fake::FakeConfig config = fake::small_gpu();
  config.cuda_version = 14020;
  config.descriptor_version = 0x4f;
  test::configure(config);
  CardOptions options;
  options.cache_folder = test::fresh_folder("unknown_descriptor").string();
  options.refresh = true;
  const auto card = open_card(0, options);
  ::unsetenv("DEMARC_LIBCUDA");
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_THAT((*card)->facts().notes,
              testing::Contains(testing::AllOf(
                  testing::StartsWith("a stream's mask was looked for: the task descriptors"),
                  HasSubstr("0x4f"))));
}

// The card of the stand-in is remembered, then it is another one under the same UUID.
class Remembered : public testing::Test {
 protected:
  void SetUp() override {
    options.cache_folder = test::fresh_folder("remembered").string();
    const auto first = Card::open(test::fake_gpu(), options);
    ASSERT_TRUE(first) << first.error().message;
  }
  void refused(const fake::FakeConfig& config, const char* words) {
    const GpuPointer gpu = test::fake_gpu(config);
    const auto card = Card::open(gpu, options);
    ASSERT_FALSE(card) << words;
    EXPECT_EQ(card.error().kind, ErrorKind::check_failed);
    EXPECT_THAT(card.error().message, HasSubstr(words));
    EXPECT_THAT(card.error().message, HasSubstr("demarc topo --refresh"));
    options.refresh = true;
    EXPECT_TRUE(Card::open(gpu, options));
    options.refresh = false;
  }
  CardOptions options;
  fake::FakeConfig now = fake::small_gpu();
};

TEST_F(Remembered, facts_of_a_card_with_another_name_are_refused) {
  std::snprintf(now.name, sizeof now.name, "Other GPU");
  refused(now, "the name is Fake GPU there and Other GPU now");
}

TEST_F(Remembered, facts_of_a_card_with_another_capability_are_refused) {
  now.capability_minor = 1;
  refused(now, "the compute capability is 9.0 there and 9.1 now");
}

TEST_F(Remembered, facts_of_a_card_with_more_or_fewer_sms_are_refused) {
  now.tpcs = 11;
  refused(now, "the number of SMs is 24 there and 22 now");
}

TEST_F(Remembered, facts_of_a_card_with_more_or_less_memory_are_refused) {
  now.memory_bytes *= 2;
  refused(now, "the memory's size is 1073741824 there and 2147483648 now");
}

TEST_F(Remembered, facts_of_a_card_with_other_hardware_bits_are_refused) {
  now.bit[11] = 30;
  refused(now, "remembered are 12 TPCs with 0 and 29");
  now.bit[0] = 5;
  refused(now, "with hardware bit 5 for the first");
}

TEST_F(Remembered, facts_in_the_file_of_another_card_are_refused) {
  now.uuid = 0x77;
  const GpuPointer other = test::fake_gpu(now);
  std::filesystem::copy_file(facts_path(*test::fake_gpu(), options.cache_folder),
                             facts_path(*other, options.cache_folder));
  refused(now, "on GPU-77777777");
}

// It sees a part of the card, and is none of its own.
TEST_F(Remembered, facts_serve_a_client_of_mps_that_is_shown_less) {
  now.virtual_sms = true;
  now.client = 0xc3;
  now.memory_bytes /= 2;
  const auto card = Card::open(test::fake_gpu(now), options);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_TRUE((*card)->facts().from_cache);
  EXPECT_TRUE((*card)->virtual_sms());
  now.memory_bytes *= 4;
  EXPECT_THAT(Card::open(test::fake_gpu(now), options).error().message,
              HasSubstr("the memory's size"));
}

TEST(Card, a_client_of_mps_is_noticed_though_its_numbers_look_right) {
  fake::FakeConfig config = fake::small_gpu();
  config.mps_attribute = 1;
  const auto card = fake_card(config);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_TRUE((*card)->virtual_sms());
}

TEST(Card, numbers_of_a_launch_are_noticed_though_the_driver_tells_of_no_mps) {
  fake::FakeConfig config = fake::small_gpu();
  config.virtual_sms = true;
  config.mps_attribute = 0;
  const auto card = fake_card(config);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_TRUE((*card)->virtual_sms());
}

TEST(Calibration, finds_the_field_anywhere_in_the_stream_object) {
  for (const std::uint32_t offset : {0x18U, 0x25cU, 0x6d8U}) {
    fake::FakeConfig config = fake::small_gpu();
    config.cuda_version = 14020;
    config.stream_offset = offset;
    const GpuPointer gpu = test::fake_gpu(config);
    const auto kernels = ProbeKernels::load(gpu).value();
    LaunchHook* hook = LaunchHook::install(gpu->driver()).value();
    const Stream stream = Stream::create(gpu).value();
    hook->begin_probe(gpu->compute_capability());
    ASSERT_TRUE(launch(stream, kernels.idle(), LaunchShape::line(1, 1)));
    ASSERT_TRUE(hook->end_probe());
    std::vector<std::uint32_t> tried;
    const auto field = calibrate(gpu, *hook, kernels.idle(), 0x800, {},
                                 [&tried](std::uint32_t at) { tried.push_back(at); });
    ASSERT_TRUE(field) << field.error().message;
    EXPECT_EQ(field->offset, offset);
    EXPECT_EQ(tried.back(), offset);
    const std::vector<std::uint32_t> skip = {offset};
    EXPECT_FALSE(calibrate(gpu, *hook, kernels.idle(), 0x800, skip, [](std::uint32_t) {}));
    EXPECT_TRUE(StreamMasks::open(gpu, *hook, kernels.idle(), field.value()));
  }
}

TEST(Calibration, refuses_when_no_place_acts_as_a_mask) {
  fake::FakeConfig config = fake::small_gpu();
  config.cuda_version = 14020;
  config.stream_field_works = false;
  const GpuPointer gpu = test::fake_gpu(config);
  const auto kernels = ProbeKernels::load(gpu).value();
  LaunchHook* hook = LaunchHook::install(gpu->driver()).value();
  const auto field = calibrate(gpu, *hook, kernels.idle(), 0x800, {}, [](std::uint32_t) {});
  ASSERT_FALSE(field);
  EXPECT_THAT(field.error().message, HasSubstr("CUDA 14.2: no place in the driver's stream object "
                                               "below 0x800 acts as a TPC mask"));
  EXPECT_THAT(field.error().message, HasSubstr("masks are refused"));
}

TEST(Watchdog, a_launch_that_never_starts_is_given_up_and_the_gpu_marked) {
  const auto card = fake_card();
  ASSERT_TRUE(card) << card.error().message;
  const GpuPointer& gpu = (*card)->gpu();
  const Stream stream = Stream::create(gpu).value();
  ASSERT_TRUE((*(*card)->stream_masks())->set(stream.handle(), {0, 1}));
  LaunchShape shape = LaunchShape::line(64, 32);
  shape.cluster[0] = 4;  // TPCs 0 and 1 lie in different GPCs
  ASSERT_TRUE(launch(stream, (*card)->kernels().idle(), shape));
  const auto waited = stream.wait(std::chrono::milliseconds(20));
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().kind, ErrorKind::check_failed);
  EXPECT_TRUE(gpu->stuck());
  EXPECT_TRUE((*(*card)->stream_masks())->clear(stream.handle()));
}

}  // namespace
}  // namespace demarc::cuda
