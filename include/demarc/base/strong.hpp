// Numbers of different kinds that do not mix: a page number is not an SM index, an address not a
// cycle. Mixing them does not compile. The constructor and raw() are the only ways in and out. Both
// are visible, and both check: a number that the other side cannot hold is a mistake of the
// program, and std::logic_error is thrown, in every build. So a caller first checks values that
// come from outside.
//
//   using GpuIndex = Index<struct GpuIndexTag>;                      // names one of many
//   using Address = Location<struct AddressTag>;                     // locations are bytes apart
//   using Cycles = Quantity<struct CyclesTag>;                       // how much
//
//   GpuIndex gpu(settings.gpus - 1);   Cycles end = now + 2 * latency;   Address next = first + 64;
//   gpu + 1;  gpu == page;  now + 1;  std::uint32_t x = gpu;         // none of these compiles
//
// The compiled program has only the raw number: it costs no time and no space.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <type_traits>
#include <utility>

namespace demarc {

// The arithmetic of a kind of number, besides comparing and hashing.
enum class Arithmetic {
  none,      // counting up
  location,  // counting up; a raw distance added or taken away; the distance of two
  quantity,  // sums, differences, multiples, parts, ratios
};

namespace detail {

template <class T>
concept Number = std::integral<T> && !std::same_as<T, bool>;

[[noreturn]] void does_not_fit(bool negative, std::uint64_t number, std::size_t bytes);

template <Number To, Number From>
[[gnu::always_inline]] constexpr To fitting(From number) {
  constexpr bool always =
      std::is_unsigned_v<To> && std::is_unsigned_v<From> && sizeof(To) >= sizeof(From);
  if constexpr (!always) {
    if (!std::in_range<To>(number)) [[unlikely]]
      does_not_fit(std::cmp_less(number, 0), static_cast<std::uint64_t>(number), sizeof(To));
  }
  return static_cast<To>(number);
}

}  // namespace detail

template <class Tag, std::unsigned_integral Raw, Arithmetic arithmetic>
class Strong {
  static constexpr bool counts = arithmetic != Arithmetic::quantity;
  static constexpr bool locates = arithmetic == Arithmetic::location;
  static constexpr bool adds = arithmetic == Arithmetic::quantity;

 public:
  constexpr Strong() = default;
  template <detail::Number Given>
  [[gnu::always_inline]] explicit constexpr Strong(Given number)
      : raw_(detail::fitting<Raw>(number)) {}

  // The bare number, as a `To` that holds it.
  template <detail::Number To = Raw>
  [[nodiscard, gnu::always_inline]] constexpr To raw() const {
    return detail::fitting<To>(raw_);
  }

  // Written out: in builds without optimisation `<=>` costs calls.
  [[gnu::always_inline]] friend constexpr bool operator==(Strong a, Strong b) {
    return a.raw_ == b.raw_;
  }
  [[gnu::always_inline]] friend constexpr bool operator<(Strong a, Strong b) {
    return a.raw_ < b.raw_;
  }
  [[gnu::always_inline]] friend constexpr bool operator>(Strong a, Strong b) { return b < a; }
  [[gnu::always_inline]] friend constexpr bool operator<=(Strong a, Strong b) { return !(b < a); }
  [[gnu::always_inline]] friend constexpr bool operator>=(Strong a, Strong b) { return !(a < b); }

  [[gnu::always_inline]] constexpr Strong& operator++() {
    ++raw_;
    return *this;
  }

  [[gnu::always_inline]] friend constexpr Strong operator+(Strong at,
                                                           Raw distance) requires locates {
    return Strong(static_cast<Raw>(at.raw_ + distance));
  }
  [[gnu::always_inline]] friend constexpr Strong operator-(Strong at,
                                                           Raw distance) requires locates {
    return Strong(static_cast<Raw>(at.raw_ - distance));
  }
  [[gnu::always_inline]] friend constexpr Raw operator-(Strong to, Strong from) requires locates {
    return static_cast<Raw>(to.raw_ - from.raw_);
  }

  [[gnu::always_inline]] friend constexpr Strong operator+(Strong a, Strong b) requires adds {
    return Strong(static_cast<Raw>(a.raw_ + b.raw_));
  }
  [[gnu::always_inline]] friend constexpr Strong operator-(Strong a, Strong b) requires adds {
    return Strong(static_cast<Raw>(a.raw_ - b.raw_));
  }
  [[gnu::always_inline]] friend constexpr Strong operator*(Strong a, Raw times) requires adds {
    return Strong(static_cast<Raw>(a.raw_ * times));
  }
  [[gnu::always_inline]] friend constexpr Strong operator*(Raw times, Strong a) requires adds {
    return a * times;
  }
  [[gnu::always_inline]] friend constexpr Strong operator/(Strong a, Raw parts) requires adds {
    return Strong(static_cast<Raw>(a.raw_ / parts));
  }
  [[gnu::always_inline]] friend constexpr Raw operator/(Strong a, Strong b) requires adds {
    return static_cast<Raw>(a.raw_ / b.raw_);
  }
  [[gnu::always_inline]] constexpr Strong& operator+=(Strong other) requires adds {
    return *this = *this + other;
  }
  [[gnu::always_inline]] constexpr Strong& operator-=(Strong other) requires adds {
    return *this = *this - other;
  }

  // For tests that print what they found.
  template <class Traits>
  friend std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                                      Strong number) {
    return out << std::uint64_t{number.raw_};
  }

 private:
  Raw raw_ = 0;
};

template <class Tag, std::unsigned_integral Raw = std::uint32_t>
using Index = Strong<Tag, Raw, Arithmetic::none>;
template <class Tag, std::unsigned_integral Raw = std::uint64_t>
using Location = Strong<Tag, Raw, Arithmetic::location>;
template <class Tag, std::unsigned_integral Raw = std::uint64_t>
using Quantity = Strong<Tag, Raw, Arithmetic::quantity>;

}  // namespace demarc

template <class Tag, class Raw, demarc::Arithmetic arithmetic>
struct std::hash<demarc::Strong<Tag, Raw, arithmetic>> {
  std::size_t operator()(demarc::Strong<Tag, Raw, arithmetic> number) const noexcept {
    return std::hash<Raw>{}(number.raw());
  }
};

template <class Tag, class Raw, demarc::Arithmetic arithmetic>
struct fmt::formatter<demarc::Strong<Tag, Raw, arithmetic>> : fmt::formatter<Raw> {
  template <class Context>
  auto format(demarc::Strong<Tag, Raw, arithmetic> number, Context& context) const {
    return fmt::formatter<Raw>::format(number.raw(), context);
  }
};
