// What a description, an address map and a colouring must not say, each beside what just may be
// said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "demarc/device/device.hpp"

namespace demarc::gpu {
namespace {

using testing::HasSubstr;

// The H100's description with one key changed; empty: it is read.
std::string error_with(const char* pointer, const char* value) {
  Json json = Json::parse(device_to_json(find_device("h100-sxm").value()));
  json[Json::json_pointer(pointer)] = Json::parse(value);
  const auto device = parse_device(json.dump(), "x.json");
  return device ? "" : device.error().message;
}

struct Refusal {
  const char* name;
  const char* pointer;
  const char* right;  // JSON
  const char* wrong;
  const char* message;
};

// clang-format off
constexpr Refusal refusals[] = {
    {"negative_clock", "/sm_clock_hz", "0", "-1",
     "sm_clock_hz: -1 is negative"},
    {"negative_latency", "/l2/latency_cycles", "0", "-0.5",
     "l2.latency_cycles: -0.5 is negative"},
    {"minor_capability", "/compute_capability", R"("99.9")", R"("9.10")",
     "is not a compute capability"},
    {"major_capability", "/compute_capability", R"("99.0")", R"("100.0")",
     "is not a compute capability"},
    {"no_sector", "/l2/sector_bytes", "64", "0",
     "cannot have sectors of 0 bytes"},
    {"odd_sector", "/l1/sector_bytes", "128", "48",
     "a line of 128 bytes cannot have sectors"},
    {"no_slice", "/l2/slices", "1", "0",
     "l2.slices: at least one slice is needed"},
    {"an_sm_that_is_no_number", "/topology/tpcs/1/sms", "[2, 3]", R"([2, "3"])",
     "is not the number"},
    {"an_sm_too_high", "/topology/tpcs/1/sms", "[2, 3]", "[2, 65536]",
     "is not the number of an SM"},
    {"a_tpc_without_sms", "/topology/tpcs/65/sms", "[130, 131]", "[]",
     "at least one SM"},
    {"a_third_side", "/topology/tpcs/1/side", "1", "2",
     "side: 2 is not within 0 .. 1"},
    {"too_many_address_bits", "/address_map/address_bits", "21", "65",
     "address_bits"},
    {"a_page_of_no_power_of_two", "/address_map/page_bytes", "2097152", "3145728",
     "page_bytes"},
    {"a_page_below_the_address_bits", "/address_map/page_bytes", "4194304", "1048576",
     "page_bytes"},
    {"an_odd_run", "/address_map/interleave_bytes", "4096", "3000",
     "must be a power of two"},
    {"a_mask_that_is_a_number", "/address_map/module_masks", R"(["0x77000"])", "[77000]",
     "a mask such as"},
    {"a_mask_above_the_address", "/address_map/module_masks", R"(["0x100000"])", R"(["0x200000"])",
     "module row 0 uses bits above address_bits = 21"},
    {"masks_that_depend", "/address_map/module_masks", R"(["0x1000", "0x2000"])", R"(["0x1000", "0x2000", "0x3000"])",
     "the rows of module depend on each other"},
    {"a_modulus_of_one", "/address_map/stack/modulus", "2", "1",
     "modulus"},
    {"runs_that_miss_a_remainder", "/address_map/remainder_runs", "[3, 2]", "[3, 1]",
     "must add up to the modulus of stack, 5"},
    {"a_run_that_is_no_count", "/address_map/remainder_runs", "[3, 2]", "[-1, 6]",
     "a count of remainders was expected"},
    {"a_page_kind_that_is_no_list", "/address_map/table", R"({"chunk_bytes": 1048576, "page_kinds": [[0, 65535]]})", R"({"chunk_bytes": 1048576, "page_kinds": [7]})",
     "a list of classes was expected"},
    {"a_class_too_high", "/address_map/table", R"({"chunk_bytes": 1048576, "page_kinds": [[0, 1]]})", R"({"chunk_bytes": 1048576, "page_kinds": [[0, 65536]]})",
     "a class from 0 to 65535"},
    {"a_negative_time", "/memory_system/row_cycle_ns", "0", "-1",
     "row_cycle_ns: -1 must be 0 or more"},
    {"no_issue", "/memory_system/issue_per_cycle", "0.5", "0",
     "issue_per_cycle: 0 must be above 0"},
    {"l1_miss_registers_too_few", "/memory_system/l1_miss_registers", "1", "0",
     "l1_miss_registers: 0 is not within 1 .. 65535"},
    {"l1_miss_registers_too_many", "/memory_system/l1_miss_registers", "65535", "65536",
     "l1_miss_registers: 65536 is not within 1 .. 65535"},
    {"store_registers_too_few", "/memory_system/store_registers", "1", "0",
     "store_registers: 0 is not within 1 .. 65535"},
    {"store_registers_too_many", "/memory_system/store_registers", "65535", "65536",
     "store_registers: 65536 is not within 1 .. 65535"},
    {"miss_registers_too_few", "/memory_system/miss_registers", "1", "0",
     "miss_registers: 0 is not within 1 .. 65535"},
    {"miss_registers_too_many", "/memory_system/miss_registers", "65535", "65536",
     "miss_registers: 65536 is not within 1 .. 65535"},
    {"row_shift_too_few", "/memory_system/row_shift", "7", "6",
     "row_shift: 6 is not within 7 .. 40"},
    {"row_shift_too_many", "/memory_system/row_shift", "40", "41",
     "row_shift: 41 is not within 7 .. 40"},
    {"burst_bytes_too_few", "/memory_system/burst_bytes", "1", "0",
     "burst_bytes: 0 is not within 1 .. 4096"},
    {"burst_bytes_too_many", "/memory_system/burst_bytes", "4096", "4097",
     "burst_bytes: 4097 is not within 1 .. 4096"},
    {"write_queue_too_few", "/memory_system/write_queue", "2", "1",
     "write_queue: 1 is not within 2 .. 65535"},
    {"write_queue_too_many", "/memory_system/write_queue", "65535", "65536",
     "write_queue: 65536 is not within 2 .. 65535"},
    {"turn_accesses_too_many", "/memory_system/turn_accesses", "65535", "65536",
     "turn_accesses: 65536 is not within 0 .. 65535"},
    {"no_instruction_latency", "/memory_system/instruction_latency_cycles", "0.5", "0",
     "instruction_latency_cycles: 0 must be above 0"},
    {"negative_sm_link_bytes", "/memory_system/sm_link_bytes", "0", "-1",
     "sm_link_bytes: -1 must be 0 or more"},
    {"negative_gpc_link_bytes", "/memory_system/gpc_link_bytes", "0", "-1",
     "gpc_link_bytes: -1 must be 0 or more"},
    {"negative_port_bytes", "/memory_system/port_bytes", "0", "-1",
     "port_bytes: -1 must be 0 or more"},
    {"negative_latency_spread_cycles", "/memory_system/latency_spread_cycles", "0", "-1",
     "latency_spread_cycles: -1 must be 0 or more"},
    {"negative_precharge_ns", "/memory_system/precharge_ns", "0", "-1",
     "precharge_ns: -1 must be 0 or more"},
    {"negative_activate_ns", "/memory_system/activate_ns", "0", "-1",
     "activate_ns: -1 must be 0 or more"},
    {"negative_column_ns", "/memory_system/column_ns", "0", "-1",
     "column_ns: -1 must be 0 or more"},
    {"negative_turnaround_ns", "/memory_system/turnaround_ns", "0", "-1",
     "turnaround_ns: -1 must be 0 or more"},
    {"negative_row_idle_ns", "/memory_system/row_idle_ns", "0", "-1",
     "row_idle_ns: -1 must be 0 or more"},
    {"no_level_of_tlbs", "/address_translation/levels", R"([{"entries": 1, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"}])", "[]",
     "address_translation.levels: 0 levels of TLBs; 1 to 4 can be described"},
    {"five_levels_of_tlbs", "/address_translation/levels", R"([{"entries": 1, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"}, {"entries": 2, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"}, {"entries": 3, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"}, {"entries": 4, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "gpu"}])", R"([{"entries": 1, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"}, {"entries": 2, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"}, {"entries": 3, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"}, {"entries": 4, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "gpu"}, {"entries": 5, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "gpu"}])",
     "address_translation.levels: 5 levels of TLBs"},
    {"a_level_that_is_a_number", "/address_translation/levels/0", R"({"entries": 1, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"})", "7",
     "address_translation.levels[0]"},
    {"an_unknown_key_of_a_level", "/address_translation/levels/0", R"({"entries": 1, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"})", R"({"entries": 1, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm", "ways": 1})",
     "levels[0]: unknown key 'ways'"},
    {"no_entries", "/address_translation/levels/0/entries", "1", "0",
     "levels[0].entries: 0 is not within 1 .. 1048576"},
    {"too_many_entries", "/address_translation/levels/1/entries", "1048576", "1048577",
     "levels[1].entries: 1048577 is not within 1 .. 1048576"},
    {"no_pages_per_entry", "/address_translation/levels/0/pages_per_entry", "1", "0",
     "levels[0].pages_per_entry: 0 is not within 1 .. 4096"},
    {"too_many_pages_per_entry", "/address_translation/levels/1/pages_per_entry", "4096", "8192",
     "levels[1].pages_per_entry: 8192 is not within 1 .. 4096"},
    {"odd_pages_per_entry", "/address_translation/levels/1/pages_per_entry", "32", "24",
     "levels[1].pages_per_entry: 24 is not a power of two"},
    {"a_negative_hit", "/address_translation/levels/0/hit_cycles", "0", "-1",
     "levels[0].hit_cycles: -1 must be 0 or more"},
    {"a_later_level_that_is_faster", "/address_translation/levels/0/hit_cycles", "10", "11",
     "levels[1].hit_cycles: 10 are fewer than the 11 of the level before it"},
    {"a_later_level_with_smaller_entries", "/address_translation/levels/0/pages_per_entry", "16", "32",
     "levels[1].pages_per_entry: 16 are fewer than the 32 of the level before it"},
    {"a_later_level_that_reaches_no_further", "/address_translation/levels/1/entries", "9", "8",
     "levels[1].entries: 128 pages are not more than the 128 of the level before it"},
    {"a_level_of_unknown_sharers", "/address_translation/levels/0/shared_by", R"("sm")", R"("gpc")",
     "levels[0].shared_by: 'gpc' must be 'sm' (each SM has such a TLB) or 'gpu'"},
    {"a_level_of_one_sm_behind_one_of_all", "/address_translation/levels", R"([{"entries": 1, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"}, {"entries": 2, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"}])", R"([{"entries": 1, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "gpu"}, {"entries": 2, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"}])",
     "levels[1].shared_by: the level before it is shared by all SMs"},
    {"no_walker", "/address_translation/walkers", "1", "0",
     "walkers: 0 is not within 1 .. 65535"},
    {"too_many_walkers", "/address_translation/walkers", "65535", "65536",
     "walkers: 65536 is not within 1 .. 65535"},
    {"a_walk_in_no_time", "/address_translation/walk_cycles", "0.5", "0",
     "walk_cycles: 0 must be above 0"},
    {"an_entry_of_no_bytes", "/address_translation/entry_bytes", "1", "0",
     "entry_bytes: 0 is not within 1 .. 128"},
    {"an_entry_above_a_line", "/address_translation/entry_bytes", "128", "256",
     "entry_bytes: 256 is not within 1 .. 128"},
    {"an_odd_entry", "/address_translation/entry_bytes", "16", "12",
     "entry_bytes: 12 is not a power of two"},
    {"an_unknown_key_of_translation", "/address_translation", R"({"source": "x", "levels": [{"entries": 1, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"}], "walkers": 1, "walk_cycles": 1, "entry_bytes": 8})", R"({"source": "x", "levels": [{"entries": 1, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"}], "walkers": 1, "walk_cycles": 1, "entry_bytes": 8, "walks": 1})",
     "address_translation: unknown key 'walks'"},
    {"translation_without_a_source", "/address_translation", R"({"source": "x", "levels": [{"entries": 1, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"}], "walkers": 1, "walk_cycles": 1, "entry_bytes": 8})", R"({"levels": [{"entries": 1, "pages_per_entry": 1, "hit_cycles": 0, "shared_by": "sm"}], "walkers": 1, "walk_cycles": 1, "entry_bytes": 8})",
     "source"},
};
// clang-format on

TEST(Refusals, a_topology_without_tpcs_is_one) {
  EXPECT_THAT(Topology{}.check().error().message, HasSubstr("the topology has no TPC"));
}

class DescriptionRefusals : public testing::TestWithParam<std::size_t> {};

TEST_P(DescriptionRefusals, are_by_name_and_what_is_right_is_read) {
  const Refusal& refusal = refusals[GetParam()];
  EXPECT_EQ(error_with(refusal.pointer, refusal.right), "");
  EXPECT_THAT(error_with(refusal.pointer, refusal.wrong), HasSubstr(refusal.message));
}

INSTANTIATE_TEST_SUITE_P(All, DescriptionRefusals,
                         testing::Range<std::size_t>(0, std::size(refusals)),
                         [](const auto& given) { return std::string(refusals[given.param].name); });

AddressMap map_of_a_page() {
  AddressMap map;
  map.address_bits = 12;
  map.page_bytes = 4096;
  return map;
}

std::string error_of(const AddressMap& map) {
  const auto checked = check_address_map(map, "here");
  return checked ? "" : checked.error().message;
}

TEST(AddressMapChecks, rows_are_at_most_31_and_within_the_address) {
  AddressMap map;
  map.address_bits = 64;
  for (unsigned bit = 0; bit < 31; ++bit) map.bank.rows.push_back(std::uint64_t{1} << (63 - bit));
  EXPECT_EQ(error_of(map), "");
  map.bank.rows.push_back(1);
  EXPECT_THAT(error_of(map), HasSubstr("here: bank has 32 rows; at most 31"));
  map.bank.rows.clear();
  map.address_bits = 65;
  EXPECT_THAT(error_of(map), HasSubstr("address_bits is 65; at most 64"));
  map.address_bits = 12;
  map.set.rows = {0x800};
  EXPECT_EQ(error_of(map), "");
  map.set.rows = {0x1800};
  EXPECT_THAT(error_of(map), HasSubstr("set row 0 uses bits above address_bits = 12"));
}

TEST(AddressMapChecks, a_table_covers_every_chunk_of_a_page) {
  AddressMap map = map_of_a_page();
  map.table.emplace();
  map.table->chunk_bytes = 1024;
  map.table->page_kinds = {{0, 1, 2, 3}};
  EXPECT_EQ(error_of(map), "");
  map.table->page_kinds.push_back({0, 1, 2});
  EXPECT_THAT(error_of(map), HasSubstr("a page kind of the table has 3 chunks; a page has 4"));
  for (const std::uint64_t bytes : {0U, 1000U, 8192U}) {
    map.table->chunk_bytes = bytes;
    EXPECT_THAT(error_of(map), HasSubstr("table.chunk_bytes must divide page_bytes")) << bytes;
  }
}

TEST(AddressMapChecks, a_modulus_is_two_or_more_and_runs_belong_to_one) {
  AddressMap map = map_of_a_page();
  map.stack = ModuloStage{2, {{0x400}}};
  EXPECT_EQ(error_of(map), "");
  map.stack->modulus = 1;
  EXPECT_THAT(error_of(map), HasSubstr("the modulus of stack must be at least 2"));
  map.stack.reset();
  map.remainder_runs = {1};
  EXPECT_THAT(error_of(map), HasSubstr("must add up to the modulus of stack, 0"));
}

}  // namespace
}  // namespace demarc::gpu
