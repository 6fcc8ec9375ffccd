// Tests where masks, sizes and domains lie in launch descriptors of each generation.
#include "demarc/driver/descriptor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstring>
#include <tuple>

namespace demarc::cuda {
namespace {

using testing::HasSubstr;
using Bytes = std::array<unsigned char, 384>;

Bytes descriptor_of(std::size_t version_offset, std::uint8_t version) {
  Bytes bytes{};
  bytes[version_offset] = version;
  return bytes;
}

std::uint32_t word(const Bytes& bytes, std::size_t offset) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, 4);
  return value;
}

TEST(Descriptor, each_generation_has_its_layout) {
  const Bytes volta = descriptor_of(72, 0x22);
  const Bytes hopper = descriptor_of(72, 0x40);
  const Bytes blackwell = descriptor_of(58, 0x50);
  EXPECT_STREQ((*find_layout(volta.data(), {7, 0}))->name, "V01_06 to V03");
  EXPECT_STREQ((*find_layout(hopper.data(), {9, 0}))->name, "V04_00");
  EXPECT_STREQ((*find_layout(blackwell.data(), {12, 0}))->name, "V05_00");
}

TEST(Descriptor, an_unknown_version_is_refused_with_what_was_seen) {
  Bytes next = descriptor_of(72, 0x41);
  next[58] = 0x33;
  const auto layout = find_layout(next.data(), {9, 0});
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(layout.error().message, HasSubstr("compute capability 9.0"));
  EXPECT_THAT(layout.error().message, HasSubstr("version bytes 0x41 and 0x33"));
}

TEST(Descriptor, a_hopper_version_byte_on_a_blackwell_card_is_not_a_hopper_descriptor) {
  const Bytes stray = descriptor_of(72, 0x40);
  EXPECT_FALSE(find_layout(stray.data(), {10, 0}));
}

TEST(Descriptor, the_sync_domain_is_two_bits_of_descriptors_from_hopper_on) {
  for (const auto& [version_offset, version, capability, offset] :
       {std::tuple{72U, 0x40, gpu::ComputeCapability{9, 0}, 140U},
        std::tuple{58U, 0x50, gpu::ComputeCapability{12, 0}, 76U}}) {
    Bytes bytes = descriptor_of(version_offset, static_cast<std::uint8_t>(version));
    const auto* layout = *find_layout(bytes.data(), capability);
    bytes[offset] = 0x5a;
    bytes[offset + 3] = 0xc5;
    EXPECT_EQ(read_domain(*layout, bytes.data()), 0U);
    for (const std::uint32_t domain : {3U, 1U, 2U}) {
      EXPECT_TRUE(write_domain(*layout, bytes.data(), domain));
      EXPECT_EQ(read_domain(*layout, bytes.data()), domain);
      EXPECT_EQ(word(bytes, offset), 0xc500005aU | domain << 28);
    }
  }
  Bytes volta = descriptor_of(72, 0x22);
  const Bytes before = volta;
  const auto* layout = *find_layout(volta.data(), {7, 0});
  EXPECT_FALSE(read_domain(*layout, volta.data()));
  EXPECT_FALSE(write_domain(*layout, volta.data(), 1));
  EXPECT_EQ(volta, before);
}

TEST(Descriptor, hopper_masks_are_four_words_at_304_with_the_enable_bit) {
  Bytes bytes = descriptor_of(72, 0x40);
  bytes[0] = 0x3f;
  const auto* layout = *find_layout(bytes.data(), {9, 0});
  EXPECT_FALSE(mask_enabled(*layout, bytes.data()));
  write_mask(*layout, bytes.data(), {{1, 2, 3, 0x80000004}});
  EXPECT_EQ(word(bytes, 304), 1U);
  EXPECT_EQ(word(bytes, 308), 2U);
  EXPECT_EQ(word(bytes, 312), 3U);
  EXPECT_EQ(word(bytes, 316), 0x80000004U);
  EXPECT_EQ(word(bytes, 0), 0x8000003fU);
  EXPECT_TRUE(mask_enabled(*layout, bytes.data()));
  clear_mask(*layout, bytes.data());
  EXPECT_FALSE(read_mask(*layout, bytes.data()).any());
}

TEST(Descriptor, older_masks_are_two_words_at_84) {
  Bytes bytes = descriptor_of(72, 0x30);
  const auto* layout = *find_layout(bytes.data(), {8, 0});
  write_mask(*layout, bytes.data(), {{5, 6, 0, 0}});
  EXPECT_EQ(word(bytes, 84), 5U);
  EXPECT_EQ(word(bytes, 88), 6U);
  EXPECT_EQ(word(bytes, 92), 0U);
  // Nothing else changes, in front of the descriptor neither: no bit switches them on.
  std::array<Bytes, 2> placed{};
  placed[1] = descriptor_of(72, 0x30);
  std::array<Bytes, 2> wanted = placed;
  const std::uint32_t words[] = {5, 6};
  std::memcpy(wanted[1].data() + 84, words, sizeof words);
  write_mask(*layout, placed[1].data(), {{5, 6, 0, 0}});
  EXPECT_EQ(placed, wanted);
  EXPECT_FALSE(fits(*layout, gpu::regular_topology(9, 8, 2)));
  EXPECT_TRUE(fits(*layout, gpu::regular_topology(8, 8, 2)));
  gpu::Topology small = gpu::regular_topology(2, 2, 2);
  small.tpcs[gpu::TpcIndex(1)].bit = 63;
  EXPECT_TRUE(fits(*layout, small));
  small.tpcs[gpu::TpcIndex(1)].bit = 64;
  EXPECT_FALSE(fits(*layout, small));
}

TEST(Descriptor, blackwell_masks_are_four_words_at_280_with_the_enable_bit) {
  Bytes bytes = descriptor_of(58, 0x50);
  const auto* layout = *find_layout(bytes.data(), {10, 0});
  Bytes wanted = bytes;
  const std::uint32_t words[] = {1, 2, 3, 0x80000004};
  std::memcpy(wanted.data() + 280, words, sizeof words);
  wanted[19] = 0x80;
  write_mask(*layout, bytes.data(), {{1, 2, 3, 0x80000004}});
  EXPECT_EQ(bytes, wanted);
  EXPECT_EQ(read_mask(*layout, bytes.data()), (HardwareMask{{1, 2, 3, 0x80000004}}));
}

// What lies in front of such a descriptor belongs to none.
TEST(Descriptor, older_ones_tell_neither_sizes_nor_launchers) {
  std::array<Bytes, 2> placed{};
  for (Bytes& bytes : placed) bytes.fill(0xff);
  placed[1][72] = 0x22;
  const auto* layout = *find_layout(placed[1].data(), {7, 0});
  EXPECT_FALSE(may_launch(*layout, placed[1].data()));
  EXPECT_EQ(launch_size(*layout, placed[1].data()).blocks, 0U);
  EXPECT_EQ(launch_size(*layout, placed[1].data()).cluster_blocks, 0U);
}

TEST(Descriptor, blackwells_do_not_tell_launchers) {
  std::array<Bytes, 2> placed{};
  for (Bytes& bytes : placed) bytes.fill(0xff);
  placed[1][58] = 0x50;
  EXPECT_FALSE(may_launch(**find_layout(placed[1].data(), {12, 0}), placed[1].data()));
}

struct Sizes {
  const char* name;
  std::size_t version_at;
  std::uint8_t version;
  gpu::ComputeCapability capability;
  std::size_t type;  // the word with the kind of the launch
  std::size_t grid;
  std::size_t cluster;
};

class DescriptorSizes : public testing::TestWithParam<Sizes> {};

TEST_P(DescriptorSizes, grids_of_clusters_are_counted_in_blocks) {
  const Sizes& at = GetParam();
  Bytes bytes = descriptor_of(at.version_at, at.version);
  const auto* layout = *find_layout(bytes.data(), at.capability);
  bytes[at.grid] = 3;
  bytes[at.grid + 4] = 2;
  bytes[at.grid + 6] = 9;  // no part of the height
  bytes[at.grid + 8] = 1;
  bytes[at.grid + 10] = 9;  // nor of the depth
  EXPECT_EQ(launch_size(*layout, bytes.data()).blocks, 6U);
  bytes[at.cluster] = 4;
  EXPECT_EQ(launch_size(*layout, bytes.data()).cluster_blocks, 0U) << "not launched in clusters";
  bytes[at.type + 2] = 0x80;
  EXPECT_EQ(launch_size(*layout, bytes.data()).blocks, 6U) << "a size of none is not known";
  bytes[at.cluster + 1] = 2;
  bytes[at.cluster + 2] = 1;
  EXPECT_EQ(launch_size(*layout, bytes.data()).blocks, 48U);
  EXPECT_EQ(launch_size(*layout, bytes.data()).cluster_blocks, 8U);
}

INSTANTIATE_TEST_SUITE_P(Of, DescriptorSizes,
                         testing::Values(Sizes{"Hopper", 72, 0x40, {9, 0}, 0, 128, 268},
                                         Sizes{"Blackwell", 58, 0x50, {10, 0}, 16, 156, 256}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(Descriptor, a_mask_without_an_existing_tpc_is_refused) {
  const gpu::Topology topology = gpu::regular_topology(2, 2, 2);
  const auto mask = to_hardware(topology, {100});
  ASSERT_FALSE(mask);
  EXPECT_THAT(mask.error().message, HasSubstr("would hang every launch"));
  EXPECT_FALSE(to_hardware(topology, {}));
}

TEST(Descriptor, an_unknown_hardware_bit_is_refused) {
  gpu::Topology topology = gpu::regular_topology(2, 2, 2);
  topology.tpcs[gpu::TpcIndex(3)].bit.reset();
  const auto mask = to_hardware(topology, {0});
  ASSERT_FALSE(mask);
  EXPECT_THAT(mask.error().message, HasSubstr("bit of TPC 3 is not known"));
}

TEST(Descriptor, a_hardware_bit_beyond_the_mask_is_refused) {
  gpu::Topology topology = gpu::regular_topology(2, 2, 2);
  topology.tpcs[gpu::TpcIndex(3)].bit = 128;
  EXPECT_FALSE(to_hardware(topology, {0}));
  topology.tpcs[gpu::TpcIndex(3)].bit = 127;
  EXPECT_TRUE(to_hardware(topology, {0}));
}

TEST(Descriptor, a_mask_covers_another_when_it_disables_all_that_the_other_does) {
  const HardwareMask one = {{0b0011, 0, 0, 0}};
  const HardwareMask two = {{0b0111, 0, 0, 1}};
  EXPECT_TRUE(two.covers(one));
  EXPECT_FALSE(one.covers(two));
  EXPECT_TRUE(one.covers(one));
  EXPECT_FALSE(two.everything());
  EXPECT_TRUE((HardwareMask{{~0U, ~0U, ~0U, ~0U}}).everything());
  EXPECT_FALSE((HardwareMask{{~0U, ~0U, ~0U, ~2U}}).everything());
  EXPECT_FALSE((HardwareMask{{~2U, ~0U, ~0U, ~0U}}).everything());
}

TEST(Descriptor, only_hopper_tells_launchers) {
  const Bytes volta = descriptor_of(72, 0x22);
  const Bytes hopper = descriptor_of(72, 0x40);
  const Bytes blackwell = descriptor_of(58, 0x50);
  EXPECT_FALSE(tells_launchers(**find_layout(volta.data(), {7, 0})));
  EXPECT_TRUE(tells_launchers(**find_layout(hopper.data(), {9, 0})));
  EXPECT_FALSE(tells_launchers(**find_layout(blackwell.data(), {10, 0})));
}

// Words as seen on an H200: a kernel of a stream, the same in a graph of two, a kernel with
// launches.
TEST(Descriptor, nodes_of_graphs_are_no_launchers_unless_they_await_their_own_count) {
  Bytes bytes = descriptor_of(72, 0x40);
  const auto& layout = **find_layout(bytes.data(), {9, 0});
  const auto may = [&](std::uint32_t flags, std::uint32_t counts, std::uint32_t awaits) {
    std::memcpy(bytes.data() + 40, &flags, sizeof flags);
    std::memcpy(bytes.data() + 192, &counts, sizeof counts);
    std::memcpy(bytes.data() + 232, &awaits, sizeof awaits);
    return may_launch(layout, bytes.data());
  };
  EXPECT_FALSE(may(0x03, 0xfe696000, 0xfe696000)) << "a stream's";
  EXPECT_TRUE(may(0x13, 0xfe696400, 0xfe696400)) << "a stream's, with launches";
  EXPECT_FALSE(may(0x10, 0xfe680440, 0xfe68045c)) << "the first node";
  EXPECT_FALSE(may(0x13, 0xfe68045c, 0)) << "the last node";
  EXPECT_TRUE(may(0x13, 0xfe6804cc, 0xfe6804cc)) << "a node with launches";
}

RC_GTEST_PROP(Descriptor, masks_disable_everything_but_their_tpcs, (std::uint64_t low)) {
  gpu::Topology topology = gpu::regular_topology(5, 8, 2);
  for (gpu::Tpc& tpc : topology.tpcs) tpc.bit = (*tpc.bit * 7 + 3) % 120;
  const auto set = gpu::TpcSet::from_words(low, 0) & gpu::all_tpcs(topology);
  RC_PRE(!set.empty());
  const HardwareMask mask = to_hardware(topology, set).value();
  RC_ASSERT(mask.ours());
  RC_ASSERT(enabled_tpcs(topology, mask) == set);
  std::uint32_t enabled = 0;
  for (std::uint32_t bit = 0; bit < 128; ++bit) enabled += mask.disables(bit) ? 0U : 1U;
  RC_ASSERT(enabled == set.size());
}

}  // namespace
}  // namespace demarc::cuda
