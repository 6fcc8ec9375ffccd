// Errors that a user can cause are values. A function that can fail on its input returns Result<T>.
// The message names the file, line, option or address at fault and says what would be right. Only
// cli/ turns them into exit codes.
#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

namespace demarc {

// The value of an enumerator is the exit code of the program.
enum class ErrorKind {
  invalid_input = 1,       // the input is wrong
  missing_capability = 2,  // the machine lacks what is asked
  check_failed = 3,        // a check did not hold
};

struct Error {
  ErrorKind kind = ErrorKind::invalid_input;
  std::string message;

  friend bool operator==(const Error&, const Error&) = default;
};

namespace detail {

// Both throw std::logic_error; the first says the error's message.
[[noreturn]] void value_of_an_error(const Error& error);
[[noreturn]] void error_of_a_value();

}  // namespace detail

// A value, or an error in its place. To ask for the one that is not there is a mistake of the
// program: std::logic_error is thrown, in every build.
template <class T>
class Result : public tl::expected<T, Error> {
  using Base = tl::expected<T, Error>;

 public:
  using Base::Base;
  using Base::operator=;
  Result() = default;
  Result(const Base& other) : Base(other) {}
  Result(Base&& other) : Base(std::move(other)) {}

  template <class U = T>
  requires(!std::is_void_v<U>) const U& operator*() const& {
    check_value();
    return Base::operator*();
  }
  template <class U = T>
  requires(!std::is_void_v<U>) U& operator*() & {
    check_value();
    return Base::operator*();
  }
  template <class U = T>
  requires(!std::is_void_v<U>) U && operator*() && {
    check_value();
    return std::move(Base::operator*());
  }
  template <class U = T>
  requires(!std::is_void_v<U>) const U* operator->() const { return &**this; }
  template <class U = T>
  requires(!std::is_void_v<U>) U* operator->() { return &**this; }
  template <class U = T>
  requires(!std::is_void_v<U>) const U& value() const& { return **this; }
  template <class U = T>
  requires(!std::is_void_v<U>) U& value() & { return **this; }
  template <class U = T>
  requires(!std::is_void_v<U>) U && value() && {
    return *std::move(*this);
  }

  const Error& error() const& {
    check_error();
    return Base::error();
  }
  Error& error() & {
    check_error();
    return Base::error();
  }
  Error&& error() && {
    check_error();
    return std::move(Base::error());
  }

 private:
  void check_value() const {
    if (!this->has_value()) [[unlikely]]
      detail::value_of_an_error(Base::error());
  }
  void check_error() const {
    if (this->has_value()) [[unlikely]]
      detail::error_of_a_value();
  }
};

// An error whose message is `format` with its arguments.
[[nodiscard]] tl::unexpected<Error> failure(ErrorKind kind, fmt::string_view format,
                                            fmt::format_args arguments);

template <class... Args>
[[nodiscard]] tl::unexpected<Error> invalid_input(fmt::format_string<Args...> format,
                                                  Args&&... args) {
  return failure(ErrorKind::invalid_input, format, fmt::make_format_args(args...));
}

template <class... Args>
[[nodiscard]] tl::unexpected<Error> missing_capability(fmt::format_string<Args...> format,
                                                       Args&&... args) {
  return failure(ErrorKind::missing_capability, format, fmt::make_format_args(args...));
}

template <class... Args>
[[nodiscard]] tl::unexpected<Error> check_failed(fmt::format_string<Args...> format,
                                                 Args&&... args) {
  return failure(ErrorKind::check_failed, format, fmt::make_format_args(args...));
}

}  // namespace demarc

#define DEMARC_CONCAT_DETAIL(a, b) a##b
#define DEMARC_CONCAT(a, b) DEMARC_CONCAT_DETAIL(a, b)

// DEMARC_TRY(declaration, expression): returns the error of `expression` from the enclosing
// function, or initialises `declaration` with its value.   DEMARC_TRY(auto text, read_file(path));
#define DEMARC_TRY(declaration, expression)                                            \
  auto DEMARC_CONCAT(demarc_result_, __LINE__) = (expression);                         \
  if (!DEMARC_CONCAT(demarc_result_, __LINE__))                                        \
    return tl::unexpected(std::move(DEMARC_CONCAT(demarc_result_, __LINE__)).error()); \
  declaration = std::move(*DEMARC_CONCAT(demarc_result_, __LINE__))

// DEMARC_CHECK(expression): the same for Result<void>.
#define DEMARC_CHECK(expression)                              \
  do {                                                        \
    if (auto demarc_check = (expression); !demarc_check)      \
      return tl::unexpected(std::move(demarc_check).error()); \
  } while (false)
