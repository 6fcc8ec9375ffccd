// Tests that knees and conflicts of a simulated memory are those of its description.
#include "simulated_memory.hpp"

#include <gtest/gtest.h>

namespace demarc::probe {
namespace {

// The knee lies at the number of registers only if a thread holds one all the time. Threads that
// wait for each load hold one for `held` of `total` cycles, so theirs lies at registers x total /
// held; and once all registers are taken, each further thread adds held / registers cycles,
// whatever the threads do in between.
TEST(SimulatedMemory, with_one_load_a_thread_knee_and_slope_still_give_the_registers_of_a_module) {
  using sim::Cycles;
  constexpr Cycles settle(20'000);
  const gpu::Device device = gpu::find_device("gtx1080").value();
  sim::memory::Spec spec = sim::memory::make_spec(device, 1).value();
  spec.l1 = {};
  const sim::memory::AddressDecoder decoder(spec.address);
  const auto place = [&](std::uint64_t address) {
    return decoder(line_of(sim::memory::PhysicalAddress(address)));
  };
  const std::uint64_t primary = 0x12345680;
  // The same module, another bank and another set; one row of each bank, so that only registers are
  // short.
  std::vector<std::uint64_t> others;
  const auto reader = place(primary);
  for (std::uint64_t address = 0x40000000; others.size() < 64; address += 128) {
    const auto at = place(address);
    ASSERT_EQ(at.row, place(0x40000000).row);
    if (at.slice == reader.slice && at.bank != reader.bank && at.set != reader.set) {
      others.push_back(address);
    }
  }
  const auto read_beside = [&](std::size_t threads) {
    sim::memory::Simulation gpu(spec);
    std::vector<sim::memory::Request> requests{{.at = settle,
                                                .sm = sim::SmIndex(0),
                                                .address = sim::memory::PhysicalAddress(primary),
                                                .cached = false,
                                                .repeats = 20}};
    for (std::size_t i = 0; i < threads; ++i) {
      requests.push_back({.at = Cycles(i),
                          .sm = sim::SmIndex(1 + i % (spec.sms() - 1)),
                          .address = sim::memory::PhysicalAddress(others[i]),
                          .cached = false,
                          .repeats = 0});
    }
    return static_cast<double>((gpu.timed(requests).value().front().last - settle).raw()) / 20;
  };
  const double alone = read_beside(0);
  const double at_48 = read_beside(48);
  const double at_64 = read_beside(64);
  const double slope = (at_64 - at_48) / 16;
  // Both are seen from outside: a read alone, and an L2 hit.
  const double held = alone - static_cast<double>(spec.l2_hit_latency().raw());
  EXPECT_NEAR(held / slope, 16, 1);
  const double knee = 64 - (at_64 - alone) / slope;
  EXPECT_NEAR(knee * held / alone, 16, 2);
  EXPECT_GT(knee, 20);
}

TEST(SimulatedMemory, a_description_without_memory_system_is_refused_by_name) {
  const auto memory = SimulatedMemory::open(gpu::find_device("h100-80gb-hbm3").value(), 1);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().kind, ErrorKind::missing_capability);
  EXPECT_NE(memory.error().message.find("memory_system"), std::string::npos);
}

TEST(SimulatedMemory, streams_in_one_module_of_an_h100_disturb_each_other_and_in_two_do_not) {
  const gpu::Device device = gpu::find_device("h100-sxm").value();
  auto memory = SimulatedMemory::open(device, 1).value();
  const sim::memory::AddressDecoder decoder(sim::memory::make_spec(device, 1).value().address);
  const auto stream_of = [&](std::uint32_t module, std::uint32_t first_page) {
    Stream stream;
    stream.chunk_shift = 11;
    for (std::uint32_t chunk = first_page << 10U; stream.chunks.size() < 32768; ++chunk) {
      const sim::memory::LineNumber line(chunk << (11U - sim::memory::line_shift));
      if (decoder(line).slice.raw() / 5 == module) stream.chunks.push_back(chunk);
    }
    return stream;
  };
  const Stream victim = stream_of(3, 0);
  const auto first = memory->stream_seconds(victim, {});
  ASSERT_TRUE(first) << first.error().message;
  const double alone = *first;
  const auto same = memory->stream_seconds(victim, stream_of(3, 1024));
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_GT(*same / alone, 1.7);
  const auto other = memory->stream_seconds(victim, stream_of(8, 1024));
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_LT(*other / alone, 1.25);
}

Stream stream_of_chunks(std::uint32_t first, std::uint32_t count) {
  Stream stream;
  stream.chunk_shift = 11;
  for (std::uint32_t i = 0; i < count; ++i) stream.chunks.push_back(first + i);
  return stream;
}

// What the simulation says today of half of the SMs: 512 KiB again and again, and 64 MiB.
TEST(SimulatedMemory,
     a_stream_that_stays_in_the_l2_is_timed_by_its_launches_and_a_longer_one_by_its_sectors) {
  auto memory = SimulatedMemory::open(gpu::find_device("gtx1080").value(), 1).value();
  const Stream small = stream_of_chunks(0, 256);
  const Stream large = stream_of_chunks(0, 32'768);
  Stream writes = stream_of_chunks(100'000, 32'768);
  writes.writes = true;
  const auto ns = [&](const Stream& victim, const Stream& aggressor) {
    return memory->stream_seconds(victim, aggressor).value() * 1e9;
  };
  EXPECT_NEAR(ns(small, {}), 788, 20);
  EXPECT_NEAR(ns(small, writes), 791, 20);
  EXPECT_NEAR(ns(large, {}), 210'000, 5'000);
  EXPECT_NEAR(ns(large, writes), 452'000, 10'000);
  // Known by now, and measured with noise once more.
  const double again = ns(large, writes);
  EXPECT_NEAR(again, 452'000, 10'000);
  EXPECT_NE(again, ns(large, writes));
}

}  // namespace
}  // namespace demarc::probe
