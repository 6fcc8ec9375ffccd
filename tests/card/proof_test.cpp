// The proof of a partition, on cards that lie.
#include "demarc/card/proof.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using gpu::TpcSet;
using testing::HasSubstr;

// What topo remembers of the whole card; this process is a client of MPS.
Result<CardPointer> client_of_mps(const fake::FakeConfig& client) {
  CardOptions options;
  options.cache_folder = test::fresh_folder("proof").string();
  DEMARC_TRY(const CardPointer whole, Card::open(test::fake_gpu(fake::small_gpu()), options));
  return Card::open(test::fake_gpu(client), options);
}

fake::FakeConfig renumbered() {
  fake::FakeConfig config = fake::small_gpu();
  config.virtual_sms = true;
  return config;
}

// Goes on as another card than the one that was opened.
template <class Change>
void change(fake::FakeConfig config, Change how) {
  how(config);
  test::configure(config);
}

void refuses(const CardPointer& card, const TpcSet& tpcs, ErrorKind kind, const char* words) {
  const auto proof = prove_partition(card, tpcs);
  ASSERT_FALSE(proof) << gpu::to_string(tpcs);
  EXPECT_EQ(proof.error().kind, kind) << proof.error().message;
  EXPECT_THAT(proof.error().message, HasSubstr(words));
}

TEST(Proof, a_partition_that_holds_is_proved_and_the_mask_taken_back) {
  const auto card = test::fake_card().value();
  for (const TpcSet& tpcs : {TpcSet{0, 1, 2, 3}, TpcSet{4, 7}, TpcSet{11}, TpcSet::first(12)}) {
    const auto proof = prove_partition(card, tpcs);
    EXPECT_TRUE(proof) << gpu::to_string(tpcs) << ": " << proof.error().message;
  }
  EXPECT_FALSE((*card->hook())->process_mask());
}

TEST(Proof, domains_that_descriptors_do_not_show_are_found) {
  EXPECT_TRUE(prove_sync_domains(test::fake_gpu(fake::small_gpu())));
  fake::FakeConfig config = fake::small_gpu();
  config.hides_domains = true;
  const auto hidden = prove_sync_domains(test::fake_gpu(config));
  ASSERT_FALSE(hidden);
  EXPECT_EQ(hidden.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(hidden.error().message, HasSubstr("do not show where a launch has its memory sync"));
  config.hides_domains = false;
  config.descriptors_pass = false;
  EXPECT_THAT(prove_sync_domains(test::fake_gpu(config)).error().message,
              HasSubstr("launches do not pass"));
}

TEST(Proof, a_mask_that_is_not_obeyed_is_found) {
  fake::FakeConfig config = fake::small_gpu();
  config.obey_masks = false;
  const auto card = test::fake_card(config).value();
  refuses(card, {0, 1}, ErrorKind::check_failed,
          "the partition does not hold on this card: 80 of 96 probe blocks ran outside the TPCs "
          "0-1");
}

TEST(Proof, an_inverted_mask_is_found) {
  fake::FakeConfig config = fake::small_gpu();
  config.invert_masks = true;
  const auto card = test::fake_card(config).value();
  EXPECT_FALSE(card->virtual_sms());
  refuses(card, {0, 1, 2, 3}, ErrorKind::check_failed, "does not hold on this card");
  refuses(card, TpcSet::first(6), ErrorKind::check_failed, "does not hold on this card");
}

TEST(Proof, a_wrong_half_is_found) {
  const auto card = test::fake_card().value();
  change(fake::small_gpu(), [](fake::FakeConfig& c) { c.shift_masks = 6; });
  refuses(card, TpcSet::first(6), ErrorKind::check_failed, "does not hold on this card");
  refuses(card, {6, 7, 8, 9, 10, 11}, ErrorKind::check_failed, "does not hold on this card");
}

// Numbers from 0 on look right for the first TPCs.
TEST(Proof, numbers_of_a_launch_are_found_out_by_the_rest_of_the_card) {
  const auto card = test::fake_card().value();
  ASSERT_FALSE(card->virtual_sms());
  change(fake::small_gpu(), [](fake::FakeConfig& c) { c.virtual_sms = true; });
  refuses(card, {0, 1, 2, 3}, ErrorKind::check_failed,
          "does not keep other work out: 48 of 96 probe blocks that must not use the TPCs 0-3 ran "
          "there");
  refuses(card, {4, 5}, ErrorKind::check_failed, "does not hold on this card");
}

TEST(Proof, a_partition_that_is_smaller_than_said_is_found) {
  const auto card = test::fake_card().value();
  change(fake::small_gpu(), [](fake::FakeConfig& c) { c.bit[3] = c.bit[4]; });
  refuses(card, {2, 3}, ErrorKind::check_failed, "ran on 2 of the 4 SMs of the TPCs 2-3");
}

TEST(Proof, without_masks_it_says_why) {
  const auto card = test::fake_card(fake::small_gpu(), false).value();
  refuses(card, {1}, ErrorKind::missing_capability, "opened without support for masks");
}

// Whatever SMs are called, and however busy others make the memory.
TEST(ProofOfAMask, counts_the_sms_that_it_leaves) {
  fake::FakeConfig config = fake::small_gpu();
  config.virtual_sms = true;
  config.latency_noise = 100;
  const auto mask = test::fake_card().value()->hardware_mask(TpcSet{1, 4, 5}).value();
  const GpuPointer gpu = test::fake_gpu(config);
  LaunchHook* const hook = LaunchHook::install(gpu->driver()).value();
  EXPECT_TRUE(prove_mask(gpu, mask, 6));
  EXPECT_FALSE(hook->process_mask()) << "it is taken back";
  for (const std::uint32_t sms : {5U, 7U, 24U}) {
    const auto proof = prove_mask(gpu, mask, sms);
    ASSERT_FALSE(proof);
    EXPECT_EQ(proof.error().kind, ErrorKind::check_failed);
    EXPECT_THAT(proof.error().message,
                HasSubstr(fmt::format("its mask leaves {} SMs, but probe blocks ran on 6", sms)));
    EXPECT_THAT(proof.error().message, HasSubstr(sms < 6 ? "does not hold" : "not be proved"));
  }
  config.obey_masks = false;
  test::configure(config);
  EXPECT_THAT(prove_mask(gpu, mask, 6).error().message, HasSubstr("probe blocks ran on 24"));
}

// Other programs of the tenant leave the probe no room at first.
TEST(ProofOfAMask, is_tried_with_more_blocks_where_others_hold_the_sms) {
  fake::FakeConfig config = fake::small_gpu();
  config.virtual_sms = true;
  const auto mask = test::fake_card().value()->hardware_mask(TpcSet{1, 4, 5}).value();
  const GpuPointer gpu = test::fake_gpu(config);
  config.crowded_blocks = 4 * 24;
  test::configure(config);
  EXPECT_TRUE(prove_mask(gpu, mask, 6));
  config.crowded_blocks = 16 * 24;
  test::configure(config);
  EXPECT_TRUE(prove_mask(gpu, mask, 6));
  config.crowded_blocks = 32 * 24;
  test::configure(config);
  const auto proof = prove_mask(gpu, mask, 6);
  ASSERT_FALSE(proof);
  EXPECT_EQ(proof.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(proof.error().message, HasSubstr("probe blocks ran on 2 at most, in 12 tries"));
}

TEST(ProofUnderMps, a_partition_is_proved_by_the_register_that_names_sms) {
  const auto card = client_of_mps(renumbered()).value();
  ASSERT_TRUE(card->virtual_sms());
  ASSERT_TRUE(card->names_sms());
  for (const TpcSet& tpcs :
       {TpcSet{0, 1, 2, 3}, TpcSet{4, 7}, TpcSet{0}, TpcSet{11}, TpcSet::first(12)}) {
    const auto proof = prove_partition(card, tpcs);
    EXPECT_TRUE(proof) << gpu::to_string(tpcs) << ": " << proof.error().message;
  }
  EXPECT_FALSE((*card->hook())->process_mask());
}

// A card that was never measured, and neighbours that keep the memory busy.
TEST(ProofUnderMps, needs_no_measurement) {
  CardOptions options;
  options.cache_folder = test::fresh_folder("proof").string();
  fake::FakeConfig config = renumbered();
  config.latency_noise = 1000;
  const auto card = Card::open(test::fake_gpu(config), options).value();
  EXPECT_TRUE(prove_partition(card, {4, 7}));
}

TEST(ProofUnderMps, wrong_masks_are_found) {
  const auto card = client_of_mps(renumbered()).value();
  const auto lie = [](auto how) { change(renumbered(), how); };
  lie([](fake::FakeConfig& c) { c.invert_masks = true; });
  refuses(card, TpcSet::first(6), ErrorKind::check_failed,
          "96 of 96 probe blocks ran outside the TPCs 0-5");
  lie([](fake::FakeConfig& c) { c.shift_masks = 1; });
  refuses(card, {4, 5}, ErrorKind::check_failed, "ran outside the TPCs 4-5");
  lie([](fake::FakeConfig& c) { c.obey_masks = false; });
  refuses(card, {4, 5}, ErrorKind::check_failed, "80 of 96 probe blocks ran outside the TPCs 4-5");
  lie([](fake::FakeConfig& c) { c.bit[3] = c.bit[4]; });
  refuses(card, {2, 3}, ErrorKind::check_failed, "ran on 2 of the 4 SMs of the TPCs 2-3");
}

// Every wrong TPC, every set of two: numbers from 0 on look right for the first TPCs alone.
TEST(ProofUnderMps, a_register_that_counts_the_sms_of_a_launch_proves_nothing) {
  const auto card = client_of_mps(renumbered()).value();
  change(renumbered(), [](fake::FakeConfig& c) { c.register_of_launch = true; });
  for (std::uint32_t last = 1; last < 12; ++last) {
    refuses(card, TpcSet::first(last + 1), ErrorKind::check_failed,
            fmt::format("ran outside the TPCs {}", last).c_str());
  }
  fake::FakeConfig config = renumbered();
  config.register_of_launch = true;
  const auto opened = client_of_mps(config).value();
  refuses(opened, {0}, ErrorKind::missing_capability,
          "%smid does not name SMs here (MPS), and no other way does: the register that names SMs "
          "on other cards counts those of a launch here");
}

TEST(ProofUnderMps, without_a_linker_that_is_known_nothing_is_proved) {
  fake::FakeConfig config = renumbered();
  config.linker = fake::Linker::refuses;
  refuses(client_of_mps(config).value(), {1}, ErrorKind::missing_capability,
          "no other way does: probes.ptx: cannot begin a link");
  config.linker = fake::Linker::reads_otherwise;
  refuses(client_of_mps(config).value(), {1}, ErrorKind::check_failed,
          "its machine code does not read %smid in a way that is known here");
}

// Blocks find no room at first.
TEST(ProofUnderMps, is_tried_with_more_blocks_where_others_fill_the_sms) {
  const auto card = client_of_mps(renumbered()).value();
  change(renumbered(), [](fake::FakeConfig& c) { c.crowded_blocks = 16 * 24; });
  EXPECT_TRUE(prove_partition(card, {1, 4, 5}));
  change(renumbered(), [](fake::FakeConfig& c) { c.crowded_blocks = 32 * 24; });
  refuses(card, {1, 4, 5}, ErrorKind::check_failed,
          "ran on 2 of the 6 SMs of the TPCs 1,4-5, in 12 tries");
}

// Other programs may fill them, and the proof would wait.
TEST(ProofUnderMps, leaves_the_tpcs_of_others_alone) {
  const auto card = client_of_mps(renumbered()).value();
  const auto launches = test::fake_symbol<std::uint64_t()>("fake_launch_count");
  const std::uint64_t before = launches();
  ASSERT_TRUE(prove_partition(card, {4, 5}));
  EXPECT_EQ(launches() - before, 2U) << "the partition, and its last TPC alone";
}

}  // namespace
}  // namespace demarc::cuda
