// Every back end against the stand-in. Green contexts come first: like the real driver, the
// stand-in refuses them once the launch callback is subscribed in the process.
#include "conformance.hpp"

#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using test::fake_card;

void run_mode(Mode mode) {
  const auto card =
      fake_card(fake::small_gpu(), partition::traits_of(mode).hook == partition::HookUse::needed);
  ASSERT_TRUE(card) << card.error().message;
  const auto backend = make_backend(*card, mode);
  ASSERT_TRUE(backend) << backend.error().message;
  EXPECT_EQ((*backend)->mode(), mode);
  test::conforms(*card, **backend, 30);
}

TEST(Conformance, none_meets_the_contract) {
  run_mode(Mode::none);
}
TEST(Conformance, timeslice_meets_the_contract) {
  run_mode(Mode::timeslice);
}
TEST(Conformance, preempt_meets_the_contract) {
  run_mode(Mode::preempt);
}
TEST(Conformance, affinity_meets_the_contract) {
  run_mode(Mode::affinity);
}
TEST(Conformance, mask_meets_the_contract) {
  run_mode(Mode::mask);
}

TEST(Conformance, throttle_meets_the_contract) {
  run_mode(Mode::throttle);
}

TEST(Conformance, tenant_has_no_streams) {
  const auto card = fake_card(fake::small_gpu(), false);
  ASSERT_TRUE(card) << card.error().message;
  const auto backend = make_backend(*card, Mode::tenant);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(backend.error().message, testing::HasSubstr("mode tenant: its parts are leases"));
}

// ctest runs each test in a process of its own; run all together, the masks may come first.
TEST(Conformance, green_meets_the_contract_or_refuses_after_masks) {
  const auto card = fake_card(fake::small_gpu(), false);
  ASSERT_TRUE(card) << card.error().message;
  const auto backend = make_backend(*card, Mode::green);
  if (!backend) {
    EXPECT_THAT(backend.error().message, testing::HasSubstr("because masks were used"));
    return;
  }
  test::conforms(*card, **backend, 30);
}

TEST(SyncDomains, of_a_card_without_them_are_one_for_all) {
  fake::FakeConfig old = fake::small_gpu();
  old.sync_domains = 1;
  const auto card = fake_card(old, false);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(sync_domain_count(*(*card)->gpu()), 1U);
  const auto backend = make_backend(*card, Mode::none).value();
  test::lanes_have_domains_of_their_own(*card, *backend);
}

TEST(SyncDomains, that_the_driver_does_not_keep_are_not_believed) {
  fake::FakeConfig forgetful = fake::small_gpu();
  forgetful.forgets_domains = true;
  const auto card = fake_card(forgetful, false);
  ASSERT_TRUE(card) << card.error().message;
  auto part = test::part_of({0});
  part.sync_domain = 2;
  const auto stream = make_backend(*card, Mode::none).value()->open(part);
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().message,
            "a stream was given the memory synchronisation domain 2, but has 0 and 1");
}

TEST(Conformance, green_is_refused_once_masks_were_used) {
  const auto card = fake_card();
  ASSERT_TRUE(card) << card.error().message;
  const auto backend = make_backend(*card, Mode::green);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().kind, ErrorKind::missing_capability);
}

TEST(Conformance, mps_needs_a_process_started_for_it) {
  ::unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
  ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  const auto card = fake_card(fake::small_gpu(), false);
  const auto refused = make_backend(*card, Mode::mps);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("nvidia-cuda-mps-control"));
  for (const char* variable : {"CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"}) {
    ::setenv(variable, "/tmp", 1);
    const auto backend = make_backend(*card, Mode::mps);
    ::unsetenv(variable);
    EXPECT_TRUE(backend) << variable;
  }
}

// Rounded down: three thirds of the card are 99 per cent of its threads and not 102.
TEST(Conformance, processes_of_mps_get_the_share_of_their_part) {
  const auto card = fake_card(fake::small_gpu(), false);
  const auto share_of = [&](const gpu::TpcSet& tpcs) {
    const auto set_for_mps =
        process_environment(Mode::mps, (*card)->topology(), test::part_of(tpcs));
    return set_for_mps.size() == 1 && set_for_mps[0].first == "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
               ? set_for_mps[0].second
               : "";
  };
  EXPECT_EQ(share_of({0, 1, 2}), "25");
  const gpu::Topology large = gpu::regular_topology(10, 20, 2);
  EXPECT_EQ(process_environment(Mode::mps, large, test::part_of({7}))[0].second, "1")
      << "0 per cent would be no limit";
  EXPECT_EQ(process_environment(Mode::mps, gpu::Topology{}, test::part_of({}))[0].second, "1");
  EXPECT_EQ(share_of({0, 1, 2, 3}), "33");
  EXPECT_EQ(share_of({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), "100");
  for (const Mode mode : {Mode::none, Mode::timeslice, Mode::green, Mode::mask, Mode::affinity}) {
    EXPECT_TRUE(process_environment(mode, (*card)->topology(), test::part_of({0})).empty());
  }
}

}  // namespace
}  // namespace demarc::cuda
