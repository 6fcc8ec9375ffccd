// What probes ask the card for: on a real card proofs stand on it, the stand-in
// answers whatever is asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>

#include "conformance.hpp"
#include "demarc/card/colored_memory.hpp"
#include "demarc/card/launch_place.hpp"
#include "demarc/card/memory_timer.hpp"
#include "demarc/card/page_arena.hpp"
#include "demarc/card/proof.hpp"
#include "demarc/card/verify.hpp"
#include "pools.hpp"
#include "sms.hpp"

namespace demarc::cuda {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

// Bytes of each argument.
const std::map<std::string, std::vector<std::size_t>> argument_sizes{
    {"demarc_where", {8, 8, 8}},
    {"demarc_affine", {8, 8, 4, 8, 8}},
    {"demarc_self_lines", {8, 8, 4}},
    {"demarc_latency", {8, 8, 4, 4, 4, 4, 8, 8}},
    {"demarc_hit_latency", {8, 8, 4, 8, 4, 4, 8, 4}},
    {"demarc_streams", {40, 40, 8, 8, 8, 8, 8, 8}},
    {"demarc_copy_colored", {}},
};

struct Heard {
  unsigned blocks = 0;
  unsigned threads = 0;
  unsigned cluster = 0;
  unsigned shared = 0;
  std::vector<std::uint64_t> arguments;       // their first eight bytes
  std::vector<std::uint32_t> first_argument;  // all of it, where it is a structure
};
std::map<CuFunction, std::string> heard_names;
std::vector<std::uint8_t> heard_roles;  // of the last launch of streams
bool heard_large_clusters = false;
constexpr unsigned whole_sm = 232448 - 64;  // all that a block may have, but for the kernel's own
std::map<std::string, std::vector<Heard>> heard;  // by the kernel's name

void hear_launch(CuFunction function, unsigned blocks, unsigned threads, unsigned cluster,
                 unsigned shared, void** arguments) {
  const std::string& name = heard_names[function];
  const auto sizes = argument_sizes.find(name);
  if (sizes == argument_sizes.end()) return;
  Heard one{blocks, threads, cluster, shared, {}, {}};
  for (std::size_t i = 0; i < sizes->second.size(); ++i) {
    std::uint64_t value = 0;
    std::memcpy(&value, arguments[i], std::min(sizes->second[i], sizeof value));
    one.arguments.push_back(value);
  }
  if (!sizes->second.empty() && sizes->second[0] > 8) {
    one.first_argument.resize(sizes->second[0] / 4);
    std::memcpy(one.first_argument.data(), arguments[0], sizes->second[0]);
  }
  if (name == "demarc_streams") {  // the stand-in's memory is the host's
    heard_roles.resize(24);
    std::memcpy(heard_roles.data(), reinterpret_cast<const void*>(one.arguments[2]), 24);  // NOLINT
  }
  heard[name].push_back(std::move(one));
}

GpuPointer heard_gpu(const fake::FakeConfig& config = fake::small_gpu()) {
  test::configure(config);
  heard_names.clear();
  heard.clear();
  heard_large_clusters = false;
  DriverApi api = test::fake_driver()->api();
  api.cuModuleGetFunction = [](CuFunction* function, CuModule module, const char* name) {
    const CuResult code = test::fake_driver()->api().cuModuleGetFunction(function, module, name);
    if (code == cu_success) heard_names[*function] = name;
    return code;
  };
  api.cuFuncSetAttribute = [](CuFunction function, int attribute, int value) {
    heard_large_clusters |= heard_names[function] == "demarc_where" &&
                            attribute == function_non_portable_cluster && value == 1;
    return test::fake_driver()->api().cuFuncSetAttribute(function, attribute, value);
  };
  api.cuLaunchKernel = [](CuFunction function, unsigned x, unsigned y, unsigned z, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, CuStream stream,
                          void** arguments, void** extra) {
    hear_launch(function, x * y * z, bx * by * bz, 0, shared, arguments);
    return test::fake_driver()->api().cuLaunchKernel(function, x, y, z, bx, by, bz, shared, stream,
                                                     arguments, extra);
  };
  api.cuLaunchKernelEx = [](const CuLaunchConfig* config_of_launch, CuFunction function,
                            void** arguments, void** extra) {
    hear_launch(function, config_of_launch->grid[0], config_of_launch->block[0],
                config_of_launch->attributes[0].value.cluster[0], config_of_launch->shared_bytes,
                arguments);
    return test::fake_driver()->api().cuLaunchKernelEx(config_of_launch, function, arguments,
                                                       extra);
  };
  return Gpu::open(Driver::from_table(api, "heard").value(), 0).value();
}

CardPointer heard_card(bool use_masks, const fake::FakeConfig& config = fake::small_gpu()) {
  CardOptions options;
  options.cache_folder = test::fresh_folder("heard").string();
  options.use_masks = use_masks;
  return Card::open(heard_gpu(config), options).value();
}

// Four blocks an SM, each of which holds its SM so that the others look for another.
TEST(ProbeArguments, of_a_proof_are_blocks_that_reach_every_sm) {
  const auto card = heard_card(true);
  heard.clear();
  ASSERT_TRUE(prove_partition(card, {0, 1}));
  ASSERT_EQ(heard["demarc_where"].size(), 2U) << "inside, and outside";
  for (const Heard& one : heard["demarc_where"]) {
    EXPECT_EQ(one.blocks, 4U * 24U);
    EXPECT_EQ(one.threads, 64U);
    EXPECT_EQ(one.arguments[2], 20000U);
  }
}

TEST(ProbeArguments, of_a_lanes_proof_are_the_same_shorter) {
  const auto card = heard_card(false);
  heard.clear();
  ASSERT_TRUE(make_backend(card, Mode::none).value()->open(test::part_of({0})));
  ASSERT_EQ(heard["demarc_where"].size(), 1U);
  EXPECT_EQ(heard["demarc_where"][0].blocks, 4U * 24U);
  EXPECT_EQ(heard["demarc_where"][0].threads, 64U);
  EXPECT_EQ(heard["demarc_where"][0].arguments[2], 2000U);
}

TEST(ProbeArguments, of_masked_and_affine_lanes_are_blocks_of_64_threads) {
  for (const Mode mode : {Mode::mask, Mode::affinity}) {
    const auto card = heard_card(mode == Mode::mask);
    heard.clear();
    ASSERT_TRUE(make_backend(card, mode).value()->open(test::part_of({0, 1})));
    const auto& launches = heard[mode == Mode::mask ? "demarc_where" : "demarc_affine"];
    ASSERT_EQ(launches.size(), 1U);
    EXPECT_EQ(launches[0].threads, 64U);
    EXPECT_EQ(launches[0].blocks, mode == Mode::mask ? 4U * 24U : 24U) << "one fits on an SM";
  }
}

TEST(ProbeArguments, of_clusters_on_a_small_card_are_one_of_each_size_at_least) {
  fake::FakeConfig config = fake::small_gpu();
  config.tpcs = 2;
  const GpuPointer gpu = heard_gpu(config);
  const auto kernels = ProbeKernels::load(gpu).value();
  ASSERT_TRUE(probe_clusters(Stream::create(gpu).value(), kernels));
  ASSERT_EQ(heard["demarc_where"].size(), 6U);
  EXPECT_EQ(heard["demarc_where"][0].blocks, 16U);
  EXPECT_EQ(heard["demarc_where"][1].blocks, 8U);
  EXPECT_EQ(heard["demarc_where"][3].blocks, 8U);
}

TEST(ProbeArguments, of_a_topology_are_clusters_of_every_size_and_odd_strides) {
  const auto card = heard_card(true);
  std::vector<unsigned> sizes;
  for (const Heard& one : heard["demarc_where"]) {
    EXPECT_EQ(one.arguments[2], 20000U);
    if (one.cluster == 0) {
      EXPECT_EQ(one.blocks, 32U) << "of one TPC, to see whether SMs are renumbered";
      EXPECT_EQ(one.threads, 32U);
      continue;
    }
    sizes.push_back(one.cluster);
    EXPECT_EQ(one.blocks, std::max(48 / one.cluster, 1U) * one.cluster) << one.cluster;
    EXPECT_EQ(one.threads, 32U);
    EXPECT_EQ(one.shared, whole_sm);
  }
  EXPECT_TRUE(heard_large_clusters) << "those of 12 and 16 are not portable";
  EXPECT_THAT(sizes, ElementsAre(16, 8, 4, 2, 12, 6));
  ASSERT_EQ(heard["demarc_self_lines"].size(), 1U);
  EXPECT_EQ(heard["demarc_self_lines"][0].blocks, 1U) << "for 96 lines";
  EXPECT_EQ(heard["demarc_self_lines"][0].threads, 256U);
  ASSERT_EQ(heard["demarc_latency"].size(), 24U) << "one for each SM";
  for (std::size_t sm = 0; sm < 24; ++sm) {
    const Heard& one = heard["demarc_latency"][sm];
    EXPECT_EQ(one.blocks, 48U);
    EXPECT_EQ(one.threads, 32U);
    EXPECT_EQ(one.arguments[1], 256U * 17U) << "bytes from line to line";
    EXPECT_EQ(one.arguments[2], 96U) << "lines";
    EXPECT_EQ(one.arguments[3], 6U) << "repeats";
    EXPECT_EQ(one.arguments[4], sm);
    EXPECT_EQ(one.shared, whole_sm);
  }
}

TEST(ProbeArguments, of_hits_are_eight_sms_at_a_time) {
  const CardPointer card = heard_card(false);
  heard.clear();
  const auto pool = ColoredPool::create(card, color::scheme_of_masks(test::half_mask).value(),
                                        4 << 20, test::both_halves)
                        .value();
  ASSERT_THAT(heard["demarc_hit_latency"], Not(IsEmpty()));
  for (const Heard& one : heard["demarc_hit_latency"]) {
    EXPECT_EQ(one.blocks, 24U);
    EXPECT_EQ(one.threads, 32U);
    EXPECT_EQ(one.shared, whole_sm);
    EXPECT_EQ(one.arguments[4], 8U) << "SMs at a time";
    EXPECT_EQ(one.arguments[5], 4U) << "repeats";
  }
  EXPECT_EQ(heard["demarc_hit_latency"][0].arguments[2], 8192U) << "every chunk of a page";
  heard.clear();
  ASSERT_TRUE(pool->allocate(0, 100000)->audit());
  for (const Heard& one : heard["demarc_hit_latency"]) {
    EXPECT_EQ(one.arguments[2], 7U * 16U) << "16 places of each chunk";
  }
}

TEST(ProbeArguments, of_remainders_are_32_chunks_of_a_page_and_four_of_a_number) {
  fake::FakeConfig config = fake::small_gpu();
  config.remainders = true;
  CardOptions options;
  options.cache_folder = test::fresh_folder("heard").string();
  const auto card = Card::open(heard_gpu(config), options).value();
  heard.clear();
  constexpr ShareRequest shares_by_side[] = {{{0x1, 2}, 0}, {{0x2, 2}, 0}};
  const auto scheme = color::color_scheme(gpu::find_device("h200").value(), 2).value();
  const auto pool = ColoredPool::create(card, scheme, 8 << 20, shares_by_side).value();
  ASSERT_EQ(heard["demarc_hit_latency"].size(), 6U);
  EXPECT_EQ(heard["demarc_hit_latency"][0].arguments[2], 8192U);
  EXPECT_EQ(heard["demarc_hit_latency"][3].arguments[2], 4U * 32U);
  heard.clear();
  ASSERT_TRUE(pool->allocate(0, 100000)->audit());
  ASSERT_THAT(heard["demarc_hit_latency"], Not(IsEmpty()));
  EXPECT_EQ(heard["demarc_hit_latency"][0].arguments[2], 49U * 4U);
  // A thread for every 16 bytes, and for those that are cut at both ends.
  const ColoredBuffer buffer = pool->allocate(1, 4080).value();
  const std::vector<char> bytes(buffer.bytes());
  for (const std::size_t size : {4063U, 4064U}) {
    heard.clear();
    ASSERT_TRUE(buffer.upload(bytes.data(), size));
    ASSERT_EQ(heard["demarc_copy_colored"].size(), 1U);
    EXPECT_EQ(heard["demarc_copy_colored"][0].threads, 256U);
    EXPECT_EQ(heard["demarc_copy_colored"][0].blocks, size == 4063 ? 1U : 2U);
  }
}

// More than the copier keeps on the card at a time.
TEST(ProbeArguments, of_large_copies_are_1024_blocks_for_each_32_mebibytes) {
  fake::FakeConfig config = fake::small_gpu();
  config.remainders = true;
  CardOptions options;
  options.cache_folder = test::fresh_folder("heard").string();
  const auto card = Card::open(heard_gpu(config), options).value();
  constexpr ShareRequest everything[] = {{{0x3, 2}, 0}};
  const auto scheme = color::color_scheme(gpu::find_device("h200").value(), 2).value();
  const auto pool = ColoredPool::create(card, scheme, 40 << 20, everything).value();
  const auto before = pool->allocate(0, 256).value();
  const ColoredBuffer buffer = pool->allocate(0, (33 << 20) + 77).value();
  std::vector<std::uint32_t> words((33 << 20) / 4);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint32_t>(i * 77);
  std::vector<std::uint32_t> back(words.size());
  heard.clear();
  ASSERT_TRUE(buffer.upload(words.data(), 4 * words.size(), 5));
  ASSERT_TRUE(buffer.download(back.data(), 4 * back.size(), 5));
  EXPECT_TRUE(back == words);
  const auto& copies = heard["demarc_copy_colored"];
  ASSERT_EQ(copies.size(), 4U);
  EXPECT_EQ(copies[0].blocks, 1024U);
  EXPECT_EQ(copies[1].blocks, 257U);
}

TEST(ProbeArguments, of_traffic_beside_launches_are_the_sms_of_others) {
  const CardPointer card = heard_card(false);
  const auto pool = test::pool_of_constants(card->gpu(), {0, 0}).value();
  const Stream stream = Stream::create(card->gpu()).value();
  const std::vector<const Stream*> streams{&stream};
  const auto times = time_launches(card, *pool, streams, {0, 1, 2});
  ASSERT_TRUE(times) << times.error().message;
  std::vector<std::uint8_t> others(24, 1);
  std::fill_n(others.begin(), 6, std::uint8_t{0});
  EXPECT_EQ(heard_roles, others);
}

TEST(ProbeArguments, of_streams_are_rounds_of_about_two_gigabytes) {
  const GpuPointer gpu = heard_gpu();
  const MemoryTimer timer = MemoryTimer::create(gpu).value();
  const PageArena arena = PageArena::create(gpu, 1).value();
  SmRoles roles(24, 2);
  for (const gpu::SmIndex sm : test::sm_list({0, 5, 7})) roles[sm] = 1;
  const auto rounds = [&](std::size_t count, unsigned shift, bool latency) {
    heard.clear();
    const std::vector<std::uint32_t> chunks(count, 0);
    EXPECT_TRUE(timer.stream_seconds(arena.address(), {chunks, shift, true, latency}, {}, roles));
    const auto& both = heard["demarc_streams"];
    EXPECT_EQ(both.size(), 2U);
    EXPECT_EQ(both[0].first_argument[6], 1U) << "a round to warm up";
    for (const Heard& one : both) {
      EXPECT_EQ(one.blocks, 24U);
      EXPECT_EQ(one.threads, 1024U);
      EXPECT_EQ(one.shared, whole_sm);
      EXPECT_EQ(one.first_argument[4], count);
      EXPECT_EQ(one.first_argument[5], shift);
      EXPECT_EQ(one.first_argument[7], 1U) << "writes";
      EXPECT_EQ(one.first_argument[8], latency ? 1U : 0U);
      EXPECT_EQ(one.first_argument[9], 3U) << "workers";
      EXPECT_EQ(one.arguments[5], 3'000'000'000U) << "ns until it is given up";
    }
    return both[1].first_argument[6];
  };
  EXPECT_EQ(rounds(2, 14, false), 4096U) << "at most";
  const std::vector<std::uint8_t> victims{1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0,
                                          0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(heard_roles, victims) << "without a neighbour nobody has its role";
  EXPECT_EQ(rounds(100, 20, false), 19U);
  EXPECT_EQ(rounds(100, 30, false), 2U) << "at least";
  EXPECT_EQ(rounds(100, 14, true), 20000U) << "loads of a chase";
}

}  // namespace
}  // namespace demarc::cuda
