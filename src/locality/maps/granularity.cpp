// Reads and prints the granularities of maps and what their cells count.
#include "demarc/locality/maps.hpp"

namespace demarc::locality {

Result<Granularity> parse_granularity(std::string_view text) {
  for (const Granularity granularity :
       {Granularity::element, Granularity::sector, Granularity::line, Granularity::page_4k,
        Granularity::page_64k, Granularity::page_2m})
    if (text == to_string(granularity)) return granularity;
  return invalid_input("--granularity: '{}' is none of element, 32, 128, 4096, 65536, 2097152",
                       text);
}

Result<Count> parse_count(std::string_view text) {
  for (const Count count : {Count::accesses, Count::multiset, Count::distinct})
    if (text == to_string(count)) return count;
  return invalid_input("--count: '{}' is none of accesses, multiset, distinct", text);
}

const char* to_string(Granularity granularity) {
  switch (granularity) {
    case Granularity::element:
      return "element";
    case Granularity::sector:
      return "32";
    case Granularity::line:
      return "128";
    case Granularity::page_4k:
      return "4096";
    case Granularity::page_64k:
      return "65536";
    case Granularity::page_2m:
      return "2097152";
  }
  return "element";
}

const char* to_string(Count count) {
  switch (count) {
    case Count::accesses:
      return "accesses";
    case Count::multiset:
      return "multiset";
    case Count::distinct:
      return "distinct";
  }
  return "accesses";
}

}  // namespace demarc::locality
