// Reads whole numbers of launch files.
#include "launch_number.hpp"

namespace demarc::gpu {

Result<std::int64_t> number_of(const Json& value, const Variables& variables,
                               const std::string& where) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
    return invalid_input("{}: {} is not below 2^63", where, json_text(value));
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_string()) return evaluate(value.get<std::string>(), variables, where);
  return invalid_input("{}: a whole number or an expression such as \"4*n\" was expected, found {}",
                       where, json_text(value));
}

Result<std::int64_t> number_within(const Json& value, const Variables& variables, std::int64_t low,
                                   std::int64_t high, const std::string& where) {
  DEMARC_TRY(const std::int64_t number, number_of(value, variables, where));
  if (number < low || number > high)
    return invalid_input("{}: {} is not within {} .. {}", where, number, low, high);
  return number;
}

}  // namespace demarc::gpu
