// Requests and answers as JSON objects, by the lists of members of json_fields.hpp. A request has
// "do", the word for what is asked; an answer has "error" (words) with "code" (the exit code that
// they mean), or what was asked for.
#pragma once

#include <array>
#include <variant>

#include "demarc/base/json_fields.hpp"
#include "demarc/base/text.hpp"

namespace demarc {

// A word for each kind of request, in the order of the variant.
template <class Request>
using RequestWords = std::array<const char*, std::variant_size_v<Request>>;

namespace detail {

template <class Message>
Json json_of(Message message) {
  FieldWriter writer;
  fields(writer, message);
  return std::move(writer.json());
}

template <class Message>
Result<Message> message_of(JsonObject object) {
  FieldReader reader(std::move(object));
  Message message;
  fields(reader, message);
  DEMARC_CHECK(reader.finish());
  return message;
}

template <class Request, std::size_t Kind = 0>
Result<Request> request_of(const std::string& wanted, JsonObject object,
                           const RequestWords<Request>& words) {
  if constexpr (Kind == std::variant_size_v<Request>) {
    return invalid_input("{}.do: '{}': one of {} was expected", object.where(), wanted,
                         joined(words, ", "));
  } else {
    using Message = std::variant_alternative_t<Kind, Request>;
    if (wanted != words[Kind]) {
      return request_of<Request, Kind + 1>(wanted, std::move(object), words);
    }
    DEMARC_TRY(Message message, message_of<Message>(std::move(object)));
    return Request(std::move(message));
  }
}

}  // namespace detail

template <class Request>
[[nodiscard]] std::string request_text(const Request& request, const RequestWords<Request>& words) {
  Json json{{"do", words.at(request.index())}};
  json.update(std::visit([](const auto& message) { return detail::json_of(message); }, request));
  return json_text(json);
}

template <class Request>
[[nodiscard]] Result<Request> request_in(std::string_view text,
                                         const RequestWords<Request>& words) {
  DEMARC_TRY(const Json json, parse_json(text, "request"));
  DEMARC_TRY(JsonObject object, JsonObject::of(json, "request"));
  DEMARC_TRY(const std::string wanted, object.string("do"));
  return detail::request_of<Request>(wanted, std::move(object), words);
}

[[nodiscard]] inline std::string answer_text(const Error& error) {
  return json_text(Json{{"error", error.message}, {"code", static_cast<int>(error.kind)}});
}
template <class Answer>
[[nodiscard]] std::string answer_text(const Answer& answer) {
  return json_text(detail::json_of(answer));
}

// The answer or the error that the other side gave. The outer error: the text is neither.
template <class Answer>
[[nodiscard]] Result<Result<Answer>> answer_in(std::string_view text, const char* place) {
  DEMARC_TRY(const Json json, parse_json(text, place));
  DEMARC_TRY(JsonObject object, JsonObject::of(json, place));
  if (object.has("error")) {
    DEMARC_TRY(std::string message, object.string("error"));
    DEMARC_TRY(const std::int64_t code, object.integer("code", 1, 3));
    DEMARC_CHECK(object.finish());
    return Result<Answer>(tl::unexpected(Error{static_cast<ErrorKind>(code), std::move(message)}));
  }
  DEMARC_TRY(Answer answer, detail::message_of<Answer>(std::move(object)));
  return Result<Answer>(std::move(answer));
}

}  // namespace demarc
