// Reads and writes the object "address_map" of a device description.
#include "address_map_json.hpp"

#include "demarc/base/numbers.hpp"

namespace demarc::gpu {
namespace {

constexpr std::int64_t max_map_bytes = std::int64_t{1} << 52;

// Masks are written as "0x77000": JSON numbers would lose bits above 2^53 in other readers.
Result<std::uint64_t> mask_from_json(const Json& item, const std::string& place) {
  if (!item.is_string()) {
    return invalid_input("{}: a mask such as \"0x77000\" was expected, found {}", place,
                         json_text(item));
  }
  return parse_u64(item.get<std::string>(), place);
}

}  // namespace

Result<LinearHash> hash_from_json(JsonObject& object, std::string_view key) {
  LinearHash hash;
  if (!object.has(key)) return hash;
  DEMARC_TRY(const Json* list, object.array(key));
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string place = fmt::format("{}.{}[{}]", object.where(), key, i);
    DEMARC_TRY(const std::uint64_t mask, mask_from_json((*list)[i], place));
    hash.rows.push_back(mask);
  }
  return hash;
}

Json hash_to_json(const LinearHash& hash) {
  Json list = Json::array();
  for (const std::uint64_t mask : hash.rows) list.push_back(fmt::format("{:#x}", mask));
  return list;
}

namespace {

Result<ModuloStage> stage_from_json(JsonObject object) {
  ModuloStage stage;
  DEMARC_TRY(const std::int64_t modulus, object.integer("modulus", 2, 65535));
  stage.modulus = static_cast<std::uint32_t>(modulus);
  DEMARC_TRY(stage.number, hash_from_json(object, "number_masks"));
  DEMARC_CHECK(object.finish());
  return stage;
}

Result<std::vector<std::uint32_t>> runs_from_json(JsonObject& object) {
  DEMARC_TRY(const Json* list, object.array("remainder_runs"));
  std::vector<std::uint32_t> runs;
  for (const Json& item : *list) {
    if (!item.is_number_unsigned() || item.get<std::uint64_t>() > 65535) {
      return invalid_input("{}.remainder_runs: a count of remainders was expected, found {}",
                           object.where(), json_text(item));
    }
    runs.push_back(item.get<std::uint32_t>());
  }
  return runs;
}

Result<ChunkTable> table_from_json(JsonObject object) {
  ChunkTable table;
  DEMARC_TRY(const std::int64_t bytes, object.integer("chunk_bytes", 1, max_map_bytes));
  table.chunk_bytes = static_cast<std::uint64_t>(bytes);
  DEMARC_TRY(const Json* kinds, object.array("page_kinds"));
  for (std::size_t i = 0; i < kinds->size(); ++i) {
    const Json& kind = (*kinds)[i];
    const std::string place = fmt::format("{}.page_kinds[{}]", object.where(), i);
    if (!kind.is_array()) return invalid_input("{}: a list of classes was expected", place);
    std::vector<std::uint16_t> classes;
    classes.reserve(kind.size());
    for (const Json& item : kind) {
      if (!item.is_number_unsigned() || item.get<std::uint64_t>() > 65535) {
        return invalid_input("{}: a class from 0 to 65535 was expected, found {}", place,
                             json_text(item));
      }
      classes.push_back(item.get<std::uint16_t>());
    }
    table.page_kinds.push_back(std::move(classes));
  }
  DEMARC_CHECK(object.finish());
  return table;
}

Result<MaskIsolation> isolation_from_json(JsonObject object) {
  MaskIsolation isolation;
  DEMARC_TRY(const Json* mask, object.any("mask"));
  DEMARC_TRY(isolation.mask, mask_from_json(*mask, object.where() + ".mask"));
  DEMARC_TRY(isolation.dram_read, object.number_or("dram_read", 0));
  DEMARC_TRY(isolation.dram_write, object.number_or("dram_write", 0));
  DEMARC_TRY(isolation.l2_read, object.number_or("l2_read", 0));
  DEMARC_TRY(isolation.l2_write, object.number_or("l2_write", 0));
  DEMARC_CHECK(object.finish());
  return isolation;
}

Json isolation_to_json(const MaskIsolation& entry) {
  return Json{{"mask", fmt::format("{:#x}", entry.mask)},
              {"dram_read", entry.dram_read},
              {"dram_write", entry.dram_write},
              {"l2_read", entry.l2_read},
              {"l2_write", entry.l2_write}};
}

}  // namespace

Result<AddressMap> address_map_from_json(JsonObject object) {
  AddressMap map;
  DEMARC_TRY(const std::int64_t bits, object.integer_or("address_bits", 0, 64, 64));
  DEMARC_TRY(const std::int64_t page, object.integer_or("page_bytes", 0, max_map_bytes, 0));
  DEMARC_TRY(const std::int64_t run, object.integer_or("interleave_bytes", 0, max_map_bytes, 0));
  DEMARC_TRY(const std::int64_t slices, object.integer_or("slices", 0, 65535, 0));
  DEMARC_TRY(const std::int64_t ways, object.integer_or("cache_ways", 0, 65535, 0));
  DEMARC_TRY(const std::int64_t misses, object.integer_or("miss_registers", 0, 65535, 0));
  map.address_bits = static_cast<std::uint32_t>(bits);
  map.page_bytes = static_cast<std::uint64_t>(page);
  map.interleave_bytes = static_cast<std::uint64_t>(run);
  map.slices = static_cast<std::uint32_t>(slices);
  map.cache_ways = static_cast<std::uint32_t>(ways);
  map.miss_registers = static_cast<std::uint32_t>(misses);
  DEMARC_TRY(map.module, hash_from_json(object, "module_masks"));
  DEMARC_TRY(map.bank, hash_from_json(object, "bank_masks"));
  DEMARC_TRY(map.set, hash_from_json(object, "set_masks"));
  if (object.has("stack")) {
    DEMARC_TRY(JsonObject stack, object.object("stack"));
    DEMARC_TRY(map.stack, stage_from_json(std::move(stack)));
  }
  if (object.has("remainder_runs")) {
    DEMARC_TRY(map.remainder_runs, runs_from_json(object));
  }
  if (object.has("table")) {
    DEMARC_TRY(JsonObject table, object.object("table"));
    DEMARC_TRY(map.table, table_from_json(std::move(table)));
  }
  if (object.has("isolation")) {
    DEMARC_TRY(const Json* list, object.array("isolation"));
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string place = fmt::format("{}.isolation[{}]", object.where(), i);
      DEMARC_TRY(JsonObject entry, JsonObject::of((*list)[i], place));
      DEMARC_TRY(const MaskIsolation isolation, isolation_from_json(std::move(entry)));
      map.isolation.push_back(isolation);
    }
  }
  DEMARC_CHECK(object.finish());
  DEMARC_CHECK(check_address_map(map, object.where()));
  return map;
}

Json address_map_to_json(const AddressMap& map) {
  Json json{{"address_bits", map.address_bits},
            {"page_bytes", map.page_bytes},
            {"interleave_bytes", map.interleave_bytes},
            {"slices", map.slices},
            {"cache_ways", map.cache_ways},
            {"miss_registers", map.miss_registers},
            {"module_masks", hash_to_json(map.module)},
            {"bank_masks", hash_to_json(map.bank)},
            {"set_masks", hash_to_json(map.set)}};
  if (map.stack) {
    json["stack"] = {{"modulus", map.stack->modulus},
                     {"number_masks", hash_to_json(map.stack->number)}};
  }
  if (!map.remainder_runs.empty()) json["remainder_runs"] = map.remainder_runs;
  if (map.table) {
    json["table"] = {{"chunk_bytes", map.table->chunk_bytes},
                     {"page_kinds", map.table->page_kinds}};
  }
  if (!map.isolation.empty()) {
    Json list = Json::array();
    for (const auto& entry : map.isolation) list.push_back(isolation_to_json(entry));
    json["isolation"] = std::move(list);
  }
  return json;
}

}  // namespace demarc::gpu
