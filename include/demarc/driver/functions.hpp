// What is known of each of the driver's functions: the table functions.def, and the numbers that
// their callbacks have in CUDA 13.0.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace demarc::cuda {

inline constexpr int functions_known_until = 13000;  // as cuDriverGetVersion() tells it

// The functions that the table has rows for, without those that it only lists.
enum class DriverFunction : std::uint8_t {
  listed,
#define DEMARC_CALL(function, rule, does, Parameters) function,
#include "demarc/driver/functions.def"
};

// What becomes of a call in a program whose memory and kernels keep to colours; all others than the
// first three are refused.
enum class Rule : std::uint8_t {
  passes,    // the driver carries the call out as it is
  answered,  // Demarc does, or says that it may pass (calls/colored_calls.hpp)
  told,      // the same, and the tenant's memory need not be there (calls/device_calls.hpp)
  unknown,   // the function, or its version, may take parameters that no row knows
#define DEMARC_REFUSAL(rule, windows, why) rule,
#include "demarc/driver/functions.def"
};
// The call is carried out or answered without the tenant's memory.
[[nodiscard]] constexpr bool needs_no_share(Rule rule) {
  return rule == Rule::passes || rule == Rule::told;
}
// In words, of a rule by which calls are refused.
[[nodiscard]] const char* why_refused(Rule rule);
// What becomes of such a call in a process whose window can be filled (calls/window_code.hpp).
enum class WindowRule : std::uint8_t {
  never,   // it is refused all the same
  filled,  // it passes once the window is filled
  fills,   // it passes, and the window is filled for it
};
[[nodiscard]] WindowRule window_rule(Rule rule);

namespace does {
inline constexpr std::uint32_t nothing = 0;
inline constexpr std::uint32_t gives_tables = 1U << 0U;  // tables of private functions
inline constexpr std::uint32_t makes_context = 1U << 1U;
inline constexpr std::uint32_t ends_context = 1U << 2U;
inline constexpr std::uint32_t gives_host_memory = 1U << 3U;
inline constexpr std::uint32_t may_give_host_memory = 1U << 4U;  // its parameters tell
inline constexpr std::uint32_t pins_host_memory = 1U << 5U;      // gives it, too
inline constexpr std::uint32_t loads_image = 1U << 6U;
inline constexpr std::uint32_t loads_file = 1U << 7U;
inline constexpr std::uint32_t launches = 1U << 8U;       // a kernel, on one card
inline constexpr std::uint32_t may_cooperate = 1U << 9U;  // launches, or makes a node that does
inline constexpr std::uint32_t launches_together = launches | may_cooperate;
inline constexpr std::uint32_t launches_graph = 1U << 10U;
inline constexpr std::uint32_t ends_graph = 1U << 11U;
inline constexpr std::uint32_t ends_stream = 1U << 12U;
inline constexpr std::uint32_t begins_capture = 1U << 13U;
inline constexpr std::uint32_t builds_graph = 1U << 14U;     // for later launches
inline constexpr std::uint32_t copies_or_fills = 1U << 15U;  // perhaps by kernels of the driver's
}  // namespace does

struct CallFacts {
  DriverFunction function = DriverFunction::listed;
  Rule rule = Rule::unknown;
  bool shows_parameters = true;
  std::uint32_t does = does::nothing;
};

// The rows of the table, by name.
struct FunctionRow {
  std::string_view name;
  CallFacts facts;
  bool all_versions = true;
};
[[nodiscard]] std::span<const FunctionRow> function_rows();

// By the name that a callback shows, and by the number of the callback where it has that name.
[[nodiscard]] CallFacts facts_of(std::string_view name);
[[nodiscard]] CallFacts facts_of(std::string_view name, std::uint32_t number);
[[nodiscard]] CallFacts facts_of(std::uint32_t number);

// By number; the first, 0, is the empty name of none.
[[nodiscard]] std::span<const std::string_view> function_names();
// The numbers of those that do one of these.
[[nodiscard]] std::vector<int> numbers_of_functions(std::uint32_t does);

}  // namespace demarc::cuda
