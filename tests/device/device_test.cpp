// Tests that every bundled description is read and written, and that wrong ones are refused.
#include "demarc/device/device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"

namespace demarc::gpu {
namespace {

using testing::HasSubstr;

std::string h100_text() {
  return read_file(test::source_dir() / "devices/h100-sxm.json").value();
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  const auto device = parse_device(text, "x.json");
  return device ? "no error" : device.error().message;
}

TEST(Device, every_bundled_description_is_read_and_has_a_name) {
  ASSERT_FALSE(builtin_device_names().empty());
  for (const std::string& name : builtin_device_names()) {
    const auto device = find_device(name);
    ASSERT_TRUE(device) << device.error().message;
    EXPECT_FALSE(device->name.empty());
    EXPECT_FALSE(device->source.empty());
  }
}

TEST(Device, written_and_read_again_is_the_same) {
  for (const std::string& name : builtin_device_names()) {
    Device device = find_device(name).value();
    device.topology.tpcs.front().side = 1;
    const auto again = parse_device(device_to_json(device), "again.json");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, device);
  }
}

TEST(Device, what_a_description_says_is_what_is_written_of_it) {
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() / "devices")) {
    if (entry.is_directory()) continue;  // machines of several GPUs
    const std::string text = read_file(entry.path()).value();
    const auto device = parse_device(text, entry.path().string());
    ASSERT_TRUE(device) << device.error().message;
    const Json said = Json::parse(text).flatten();
    const Json written = Json::parse(device_to_json(*device)).flatten();
    for (const auto& [place, value] : said.items()) {
      ASSERT_TRUE(written.contains(place)) << entry.path() << ": " << place;
      EXPECT_EQ(written[place], value) << entry.path() << ": " << place;
    }
  }
}

TEST(Device, the_h100_has_132_sms_in_66_tpcs_over_eight_gpcs_and_four_singles) {
  const Device device = find_device("h100-sxm").value();
  EXPECT_EQ(device.topology.sm_count(), 132U);
  EXPECT_EQ(device.topology.tpc_count(), 66U);
  EXPECT_EQ(device.topology.gpc_count(), 12U);
  EXPECT_EQ(device.topology.tpcs_of_gpc(GpcIndex(0)).size(), 4U);
  EXPECT_EQ(device.topology.tpcs_of_gpc(GpcIndex(7)).size(), 9U);
  EXPECT_EQ(device.topology.tpcs_of_gpc(GpcIndex(11)).size(), 1U);
  EXPECT_EQ(device.dram.channels, 80U);
}

// docs/measurements/probe.md: reaches of 256 MiB and 64 GiB with pages of 2 MiB, on both cards.
TEST(Device, what_the_probe_measured_of_tlbs_is_in_two_descriptions) {
  for (const char* name : {"h100-sxm", "h200"}) {
    const auto translation = find_device(name).value().address_translation;
    ASSERT_TRUE(translation) << name;
    ASSERT_EQ(translation->levels.size(), 2U);
    EXPECT_EQ(translation->levels[0].reach_pages() << 21U, std::uint64_t{256} << 20U);
    EXPECT_EQ(translation->levels[1].reach_pages() << 21U, std::uint64_t{64} << 30U);
    EXPECT_EQ(translation->levels[1].hit_cycles, 10);
    EXPECT_TRUE(translation->levels[0].per_sm);
    EXPECT_FALSE(translation->levels[1].per_sm);
  }
  EXPECT_EQ(find_device("h100-sxm")->address_translation->walk_cycles, 77);
  EXPECT_EQ(find_device("h200")->address_translation->walk_cycles, 89);
  EXPECT_FALSE(find_device("v100")->address_translation);
}

TEST(Device, another_schema_is_refused_by_name) {
  EXPECT_THAT(error_of(replaced(h100_text(), "demarc.device/1", "demarc.device/9")),
              HasSubstr("x.json: device.schema: 'demarc.device/9' is not understood; this version "
                        "reads 'demarc.device/1'"));
}

TEST(Device, errors_name_the_place) {
  EXPECT_THAT(error_of("{"), HasSubstr("x.json: not valid JSON"));
  EXPECT_THAT(error_of(replaced(h100_text(), "\"slices\":80", "\"slices\":-1")),
              HasSubstr("x.json: device.l2.slices: -1 is not within"));
  EXPECT_THAT(error_of(replaced(h100_text(), "\"slices\":80", "\"slyces\":80")),
              HasSubstr("x.json: device.l2: unknown key 'slyces'"));
  EXPECT_THAT(error_of(replaced(h100_text(), "\"9.0\"", "\"nine\"")),
              HasSubstr("compute_capability: 'nine' is not MAJOR.MINOR"));
  EXPECT_THAT(error_of(replaced(h100_text(), "\"sms\":[2,3]", "\"sms\":[2,2]")),
              HasSubstr("x.json: device.topology.tpcs[1].sms: SM 2 is listed twice"));
  EXPECT_THAT(error_of(replaced(h100_text(), "\"sms\":[2,3],\"bit\":1", "\"sms\":[2,3],\"bit\":0")),
              HasSubstr("tpcs[1].bit: hardware bit 0 already belongs to TPC 0"));
  EXPECT_THAT(error_of(replaced(h100_text(), "\"sms\":[2,3]", "\"sms\":[2,700]")),
              HasSubstr("SM 700 is out of range: 132 SMs"));
}

TEST(Device, an_unknown_name_is_answered_with_the_near_ones_and_the_list) {
  const auto device = find_device("h100-sxn");
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().message,
              HasSubstr("there is no device 'h100-sxn'; did you mean h100-sxm"));
  EXPECT_THAT(device.error().message,
              HasSubstr("? demarc list devices shows all; a file's name ends in .json"));
}

TEST(Topology, a_gpc_without_a_tpc_is_found) {
  Topology topology = regular_topology(3, 2, 2);
  ASSERT_TRUE(topology.check());
  for (Tpc& tpc : topology.tpcs) {
    if (tpc.gpc == GpcIndex(1)) tpc.gpc = GpcIndex(0);
  }
  const auto sound = topology.check();
  ASSERT_FALSE(sound);
  EXPECT_THAT(sound.error().message, HasSubstr("no TPC belongs to GPC 1"));
}

TEST(Topology, sms_are_found_in_their_tpc) {
  const Topology topology = regular_topology(2, 3, 2);
  EXPECT_EQ(topology.tpc_of_sm(SmIndex(7)), TpcIndex(3));
  EXPECT_FALSE(topology.tpc_of_sm(SmIndex(12)));
  EXPECT_EQ(sms_per_tpc(6, 0), 2U);
  EXPECT_EQ(sms_per_tpc(6, 1), 1U);
  EXPECT_EQ(sms_per_tpc(9, 0), 2U);
}

}  // namespace
}  // namespace demarc::gpu
