// Lists the laws and reads them from messages.
#include "demarc/color/law.hpp"

#include "demarc/base/text.hpp"
#include "law_readers.hpp"

namespace demarc::color {

std::span<const LawKind> law_kinds() {
  static constexpr LawKind kinds[] = {{"parities", read_parities}, {"remainders", read_remainders}};
  return kinds;
}

LawPtr read_law(FieldReader& from, std::span<const LawKind> kinds) {
  const LawKind* found = nullptr;
  std::size_t count = 0;
  std::vector<std::string> names;
  for (const LawKind& kind : kinds) {
    names.push_back(fmt::format("'{}'", kind.name));
    if (!from.has(kind.name)) continue;
    found = &kind;
    ++count;
  }
  if (count == 1) return found->read(from, found->name);
  from.fail(
      invalid_input("{}: one of {} was expected", from.object().where(), joined(names, " and "))
          .value());
  return nullptr;
}

std::string to_text(const Law& law) {
  FieldWriter writer;
  law.write(writer);
  return json_text(writer.json());
}

}  // namespace demarc::color
