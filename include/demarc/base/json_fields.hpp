// One list of members reads and writes a message: each type names its members once, to a reader or
// a writer.
#pragma once

#include <limits>
#include <type_traits>

#include "demarc/base/json.hpp"
#include "demarc/base/strong.hpp"

namespace demarc {

// Takes members out of an object; after the first error it takes nothing.
class FieldReader {
 public:
  explicit FieldReader(JsonObject object) : object_(std::move(object)) {}

  void member(const char* name, std::string& value) { take(object_.string(name), value); }
  void member(const char* name, bool& value) {
    if (!object_.has(name)) return fail(object_.any(name).error());
    take(object_.boolean_or(name, false), value);
  }
  template <class Number>
  requires(std::is_unsigned_v<Number> &&
           !std::is_same_v<Number, bool>) void member(const char* name, Number& value) {
    take(object_.integer(name, 0, largest<Number>()), value);
  }
  template <class Tag, class Raw, Arithmetic arithmetic>
  void member(const char* name, Strong<Tag, Raw, arithmetic>& value) {
    Raw number = value.raw();
    member(name, number);
    value = Strong<Tag, Raw, arithmetic>(number);
  }
  void member(const char* name, double& value) { take(object_.number(name), value); }
  template <class Number>
  void member(const char* name, std::optional<Number>& value);
  template <class Number>
  void member(const char* name, std::vector<Number>& values);
  // The members of an object of its own.
  template <class Type>
  requires(std::is_class_v<Type>) void member(const char* name, Type& value) {
    if (!result_) return;
    auto inner = object_.object(name);
    if (!inner) return fail(inner.error());
    FieldReader reader(*std::move(inner));
    fields(reader, value);
    if (auto done = reader.finish(); !done) fail(done.error());
  }

  [[nodiscard]] bool has(const char* name) const { return object_.has(name); }
  void fail(Error error) {
    if (result_) result_ = tl::unexpected(std::move(error));
  }
  [[nodiscard]] const JsonObject& object() const { return object_; }
  [[nodiscard]] Result<void> finish() const {
    DEMARC_CHECK(result_);
    return object_.finish();
  }

 private:
  template <class Number>
  static constexpr std::int64_t largest() {
    if constexpr (sizeof(Number) < sizeof(std::int64_t)) return std::numeric_limits<Number>::max();
    return std::numeric_limits<std::int64_t>::max();
  }
  template <class From, class To>
  void take(Result<From> from, To& to) {
    if (!from) return fail(from.error());
    if (result_) to = static_cast<To>(*std::move(from));
  }

  JsonObject object_;
  Result<void> result_;
};

template <class Number>
void FieldReader::member(const char* name, std::optional<Number>& value) {
  const auto any = object_.any(name);
  if (!any) return fail(any.error());
  value.reset();
  if ((*any)->is_null()) return;
  Number number = 0;
  member(name, number);
  value = number;
}

template <class Number>
void FieldReader::member(const char* name, std::vector<Number>& values) {
  const auto array = object_.array(name);
  if (!array) return fail(array.error());
  values.clear();
  for (const Json& item : **array) {
    if constexpr (std::is_floating_point_v<Number>) {
      if (!item.is_number()) {
        return fail(invalid_input("{}.{}: numbers were expected, found {}", object_.where(), name,
                                  json_text(item))
                        .value());
      }
      values.push_back(item.get<Number>());
      continue;
    }
    if (!item.is_number_integer() ||
        (item.is_number_unsigned() &&
         item.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) ||
        item.get<std::int64_t>() < 0) {
      return fail(invalid_input("{}.{}: whole numbers from 0 on were expected, found {}",
                                object_.where(), name, json_text(item))
                      .value());
    }
    if (item.get<std::int64_t>() > largest<Number>()) {
      return fail(invalid_input("{}.{}: {} is not within 0 .. {}", object_.where(), name,
                                json_text(item), largest<Number>())
                      .value());
    }
    values.push_back(static_cast<Number>(item.get<std::int64_t>()));
  }
}

class FieldWriter {
 public:
  template <class Value>
  void member(const char* name, const Value& value) {
    if constexpr (requires { value.has_value(); }) {
      json_[name] = value ? Json(*value) : Json(nullptr);
    } else if constexpr (requires { value.raw(); }) {
      json_[name] = value.raw();
    } else if constexpr (std::is_class_v<Value> && !requires { value.size(); }) {
      FieldWriter inner;
      fields(inner, const_cast<Value&>(value));
      json_[name] = std::move(inner.json_);
    } else {
      json_[name] = value;
    }
  }
  [[nodiscard]] Json& json() { return json_; }

 private:
  Json json_ = Json::object();
};

}  // namespace demarc
