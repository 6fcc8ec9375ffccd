// Turns messages into JSON and back, by a list of members for each.
#include "demarc/lease/messages.hpp"

#include <array>
#include <utility>

#include "demarc/base/text.hpp"

// Found by the reader and the writer through the types' namespace, so not in one without a name.
namespace demarc::lease {

void law_fields(FieldWriter& to, color::LawPtr& law) {
  law->write(to);
}
void law_fields(FieldReader& from, color::LawPtr& law) {
  if (auto read = color::read_law(from)) law = std::move(read);
}

template <class Fields>
void fields(Fields& to, Share& value) {
  to.member("page_bytes", value.page_bytes);
  to.member("pages", value.pages);
  to.member("bytes", value.bytes);
  law_fields(to, value.law);
  to.member("patterns_at", value.patterns_at);
  to.member("places_at", value.places_at);
}
template <class Fields>
void fields(Fields& to, ProvedMask& value) {
  to.member("disabled", value.disabled);
  to.member("sms", value.sms);
}
template <class Fields>
void fields(Fields& to, Lease& value) {
  to.member("tenant", value.tenant);
  to.member("card", value.card);
  to.member("tpcs", value.tpcs);
  to.member("mask", value.mask);
  to.member("sync_domain", value.sync_domain);
  to.member("bytes", value.bytes);
  to.member("share", value.share);
  to.member("mps", value.mps);
}

// Requests.
template <class Fields>
void fields(Fields& to, OpenRequest& value) {
  to.member("tenant", value.tenant);
  to.member("control", value.control);
}
template <class Fields>
void fields(Fields& to, AttachRequest& value) {
  to.member("token", value.token);
}
template <class Fields>
void fields(Fields& to, PagesRequest& value) {
  to.member("first_page", value.first);
  to.member("pages", value.count);
}
template <class Fields>
void fields(Fields& to, TakeRequest& value) {
  to.member("bytes", value.bytes);
}
template <class Fields>
void fields(Fields& to, GiveRequest& value) {
  to.member("first", value.first);
}
template <class Fields>
void fields(Fields&, ListRequest&) {}
template <class Fields>
void fields(Fields& to, GrowRequest& value) {
  to.member("tenant", value.tenant);
  to.member("bytes", value.bytes);
}
template <class Fields>
void fields(Fields& to, MoveRequest& value) {
  to.member("tenant", value.tenant);
  to.member("tpcs", value.tpcs);
}
template <class Fields>
void fields(Fields& to, RevokeRequest& value) {
  to.member("tenant", value.tenant);
}
template <class Fields>
void fields(Fields&, EndWorkRequest&) {}

// Answers.
template <class Fields>
void fields(Fields& to, Opened& value) {
  to.member("lease", value.lease);
  to.member("token", value.token);
  to.member("locks", value.locks);
}
template <class Fields>
void fields(Fields& to, Attached& value) {
  to.member("lease", value.lease);
  to.member("locks", value.locks);
}
template <class Fields>
void fields(Fields& to, PageBatch& value) {
  to.member("first_page", value.first);
  to.member("pages", value.count);
}
template <class Fields>
void fields(Fields& to, Extent& value) {
  to.member("first", value.first);
  to.member("bytes", value.bytes);
}
template <class Fields>
void fields(Fields&, Done&) {}
template <class Fields>
void fields(Fields& to, ListHead& value) {
  to.member("card", value.card);
  to.member("arena_bytes", value.arena_bytes);
  to.member("tenants", value.tenants);
  to.member("mps", value.mps);
}
template <class Fields>
void fields(Fields& to, TenantStatus& value) {
  to.member("name", value.name);
  to.member("tpcs", value.tpcs);
  to.member("colors", value.colors);
  to.member("sync_domain", value.sync_domain);
  to.member("bytes", value.bytes);
  to.member("given_bytes", value.given_bytes);
  to.member("unclean_bytes", value.unclean_bytes);
  to.member("lost_bytes", value.lost_bytes);
  to.member("extents", value.extents);
  to.member("leases", value.leases);
  to.member("processes", value.processes);
  to.member("attached_ms", value.attached_ms);
  to.member("refused_takes", value.refused_takes);
  to.member("refused_bytes", value.refused_bytes);
  to.member("refused_calls", value.refused_calls);
  to.member("refused_kernels", value.refused_kernels);
  to.member("launches", value.launches);
  to.member("unconfined", value.unconfined);
  to.member("refused", value.refused);
  to.member("revoked", value.revoked);
}

namespace {

constexpr const char* answer_place = "answer of demarc serve";

// The words that ask, in the order of Request.
constexpr std::array<const char*, std::variant_size_v<Request>> words{
    "open", "attach", "pages", "take", "give", "list", "grow", "move", "revoke", "end-work"};

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

template <std::size_t Kind = 0>
Result<Request> request_of(const std::string& wanted, JsonObject object) {
  if constexpr (Kind == std::variant_size_v<Request>) {
    return invalid_input("request.do: '{}': one of {} was expected", wanted, joined(words, ", "));
  } else {
    using Message = std::variant_alternative_t<Kind, Request>;
    if (wanted != words[Kind]) return request_of<Kind + 1>(wanted, std::move(object));
    DEMARC_TRY(Message message, message_of<Message>(std::move(object)));
    return Request(std::move(message));
  }
}

template <class Answer>
Result<Answer> answer_of(std::string_view text) {
  DEMARC_TRY(const Json json, parse_json(text, answer_place));
  DEMARC_TRY(JsonObject object, JsonObject::of(json, answer_place));
  if (object.has("error")) {
    DEMARC_TRY(const std::string message, object.string("error"));
    DEMARC_TRY(const std::int64_t code, object.integer("code", 1, 3));
    DEMARC_CHECK(object.finish());
    return tl::unexpected(Error{static_cast<ErrorKind>(code), message});
  }
  return message_of<Answer>(std::move(object));
}

}  // namespace

std::string to_text(const Request& request) {
  Json json{{"do", words.at(request.index())}};
  json.update(std::visit([](const auto& message) { return json_of(message); }, request));
  return json_text(json);
}

Result<Request> parse_request(std::string_view text) {
  if (text.size() > question_bytes) {
    return invalid_input("request: a question of {} bytes came, but it has at most {}", text.size(),
                         question_bytes);
  }
  DEMARC_TRY(const Json json, parse_json(text, "request"));
  DEMARC_TRY(JsonObject object, JsonObject::of(json, "request"));
  DEMARC_TRY(const std::string wanted, object.string("do"));
  return request_of(wanted, std::move(object));
}

std::string to_text(const Error& error) {
  return json_text(Json{{"error", error.message}, {"code", static_cast<int>(error.kind)}});
}
std::string to_text(const Opened& answer) {
  return json_text(json_of(answer));
}
std::string to_text(const Attached& answer) {
  return json_text(json_of(answer));
}
std::string to_text(const PageBatch& answer) {
  return json_text(json_of(answer));
}
std::string to_text(const Extent& answer) {
  return json_text(json_of(answer));
}
std::string to_text(const Done& answer) {
  return json_text(json_of(answer));
}
std::string to_text(const ListHead& answer) {
  return json_text(json_of(answer));
}
std::string to_text(const TenantStatus& answer) {
  return json_text(json_of(answer));
}

template <>
Result<Opened> parse_answer(std::string_view text) {
  return answer_of<Opened>(text);
}
template <>
Result<Attached> parse_answer(std::string_view text) {
  return answer_of<Attached>(text);
}
template <>
Result<PageBatch> parse_answer(std::string_view text) {
  return answer_of<PageBatch>(text);
}
template <>
Result<Extent> parse_answer(std::string_view text) {
  return answer_of<Extent>(text);
}
template <>
Result<Done> parse_answer(std::string_view text) {
  return answer_of<Done>(text);
}
template <>
Result<ListHead> parse_answer(std::string_view text) {
  return answer_of<ListHead>(text);
}
template <>
Result<TenantStatus> parse_answer(std::string_view text) {
  return answer_of<TenantStatus>(text);
}

}  // namespace demarc::lease
