// Tests that masks by stream behave as a map does, and that no reader sees half a mask.
#include "demarc/driver/stream_table.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <memory>
#include <thread>

namespace demarc::cuda {
namespace {

const void* stream_number(std::uintptr_t number) {
  return reinterpret_cast<const void*>(0x7f0000000000 + 64 * number);  // NOLINT: never followed
}

HardwareMask mask_number(std::uint32_t number) {
  HardwareMask mask;
  mask.disabled = {number, number, number, number};
  return mask;
}

RC_GTEST_PROP(StreamTable, behaves_like_a_map, ()) {
  const auto table = std::make_unique<StreamTable>();
  std::map<std::uintptr_t, std::uint32_t> model;
  const auto steps = *rc::gen::container<std::vector<std::pair<std::uint8_t, std::uint32_t>>>(
      rc::gen::arbitrary<std::pair<std::uint8_t, std::uint32_t>>());
  for (const auto& [stream, value] : steps) {
    if (value % 3 == 0) {
      table->erase(stream_number(stream));
      model.erase(stream);
    } else {
      RC_ASSERT(table->set(stream_number(stream), mask_number(value)));
      model[stream] = value;
    }
    RC_ASSERT(table->size() == model.size());
    for (std::uintptr_t other = 0; other < 256; ++other) {
      HardwareMask found;
      const auto entry = model.find(other);
      RC_ASSERT(table->find(stream_number(other), found) == (entry != model.end()));
      if (entry != model.end()) RC_ASSERT(found == mask_number(entry->second));
    }
  }
}

TEST(StreamTable, refuses_one_stream_too_many_and_takes_it_after_another_went) {
  const auto table = std::make_unique<StreamTable>();
  for (std::uintptr_t i = 0; i < StreamTable::max_streams; ++i) {
    ASSERT_TRUE(table->set(stream_number(i), mask_number(1)));
  }
  const void* late = stream_number(StreamTable::max_streams);
  EXPECT_FALSE(table->set(late, mask_number(1)));
  EXPECT_TRUE(table->set(stream_number(0), mask_number(2)));
  table->erase(stream_number(77));
  EXPECT_TRUE(table->set(late, mask_number(3)));
  HardwareMask found;
  ASSERT_TRUE(table->find(late, found));
  EXPECT_EQ(found, mask_number(3));
}

TEST(StreamTable, streams_that_come_and_go_for_ever_find_room) {
  const auto table = std::make_unique<StreamTable>();
  for (std::uintptr_t i = 0; i < 200000; ++i) {
    ASSERT_TRUE(table->set(stream_number(i), mask_number(1)));
    table->erase(stream_number(i));
  }
  EXPECT_EQ(table->size(), 0U);
}

TEST(StreamTable, a_reader_never_sees_half_a_mask_or_anothers_mask) {
  const auto table = std::make_unique<StreamTable>();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint32_t i = 0; i < 200000; ++i) {
      table->set(stream_number(i % 3), mask_number(3 * i + i % 3));
      if (i % 5 == 0) table->erase(stream_number(i % 3));
    }
    stop = true;
  });
  while (!stop) {
    for (std::uint32_t stream = 0; stream < 3; ++stream) {
      HardwareMask found;
      if (!table->find(stream_number(stream), found)) continue;
      EXPECT_EQ(found.disabled[0] % 3, stream);
      EXPECT_EQ(found, mask_number(found.disabled[0]));
    }
  }
  writer.join();
}

}  // namespace
}  // namespace demarc::cuda
