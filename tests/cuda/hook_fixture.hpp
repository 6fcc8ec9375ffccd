// The launch callback of a card of the stand-in, for tests of what it does with launches.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance.hpp"
#include "demarc/card/masks.hpp"
#include "demarc/driver/launch_hook.hpp"
#include "fake_card.hpp"
#include "sms.hpp"

namespace demarc::cuda {

// A hook whose ceiling and counters are the test's.
class Hook : public testing::Test {
 protected:
  void SetUp() override { open(fake::small_gpu()); }
  void TearDown() override {
    hook->use_ceiling(nullptr);
    hook->use_storage(nullptr, nullptr);
    hook->set_refusal_handler(nullptr);
    ASSERT_TRUE(hook->watch_calls(nullptr));
    hook->set_largest_cluster(0);
    hook->set_sync_domain(std::nullopt);
    hook->set_process_mask(std::nullopt);
    hook->set_next_mask(std::nullopt);
  }
  void open(const fake::FakeConfig& wanted) {
    if (hook != nullptr) hook->use_storage(nullptr, nullptr);
    config = wanted;
    auto opened = test::fake_card(config);
    ASSERT_TRUE(opened) << opened.error().message;
    card = *opened;
    const auto ready = card->hook();
    ASSERT_TRUE(ready) << ready.error().message;
    hook = *ready;
    stream.emplace(Stream::create(card->gpu()).value());
    hook->use_storage(nullptr, &counters);
    reported.clear();
    hook->set_refusal_handler([](const char* message) { reported = message; });
  }
  void set_ceiling(const gpu::TpcSet& tpcs) {
    ceiling.store(card->hardware_mask(tpcs).value(), true);
    hook->use_ceiling(&ceiling);
  }
  // The stand-in goes on with another configuration.
  template <class Change>
  void change(Change how) {
    how(config);
    test::configure(config);
  }
  // The streams of the stand-in outlive a configuration; their masks are those of before.
  [[nodiscard]] gpu::TpcSet tpcs_used() const {
    const auto placement =
        probe_placement(*stream, card->kernels(), LaunchShape::line(96, 32), 0).value();
    return test::tpcs_of(placement.used_sms());
  }
  void launch_one() const {
    ASSERT_TRUE(launch(*stream, card->kernels().idle(), LaunchShape::line(1, 1)));
  }
  static std::size_t at(LaunchPath path) { return static_cast<std::size_t>(path); }

  static inline std::string reported;  // by the refusal handler, the last one
  fake::FakeConfig config;
  CardPointer card;
  LaunchHook* hook = nullptr;
  std::optional<Stream> stream;
  SharedMask ceiling;
  LaunchCounters counters;
};

}  // namespace demarc::cuda
