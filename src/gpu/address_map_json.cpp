#include "address_map_json.hpp"

#include "demarc/base/numbers.hpp"

namespace demarc::gpu {
namespace {

// Masks are written as "0x77000": JSON numbers would lose bits above 2^53 in other readers.
Result<std::vector<std::uint64_t>> masks_from_json(JsonObject& object, std::string_view key) {
  std::vector<std::uint64_t> masks;
  if (!object.has(key)) return masks;
  DEMARC_TRY(const Json* list, object.array(key));
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string place = fmt::format("{}.{}[{}]", object.where(), key, i);
    const Json& item = (*list)[i];
    if (!item.is_string()) {
      return invalid_input("{}: a mask such as \"0x77000\" was expected, found {}", place,
                           item.dump());
    }
    DEMARC_TRY(const std::uint64_t mask, parse_u64(item.get<std::string>(), place));
    masks.push_back(mask);
  }
  return masks;
}

Json masks_to_json(const std::vector<std::uint64_t>& masks) {
  Json list = Json::array();
  for (const std::uint64_t mask : masks) list.push_back(fmt::format("{:#x}", mask));
  return list;
}

}  // namespace

Result<AddressMap> address_map_from_json(JsonObject object) {
  AddressMap map;
  DEMARC_TRY(map.module_masks, masks_from_json(object, "module_masks"));
  DEMARC_TRY(map.bank_masks, masks_from_json(object, "bank_masks"));
  DEMARC_TRY(map.set_masks, masks_from_json(object, "set_masks"));
  DEMARC_CHECK(object.finish());
  return map;
}

Json address_map_to_json(const AddressMap& map) {
  return Json{{"module_masks", masks_to_json(map.module_masks)},
              {"bank_masks", masks_to_json(map.bank_masks)},
              {"set_masks", masks_to_json(map.set_masks)}};
}

}  // namespace demarc::gpu
