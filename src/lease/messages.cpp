// Turns messages into JSON and back, by a list of members for each.
#include "demarc/lease/messages.hpp"

#include "demarc/base/json_messages.hpp"

// Found by the reader and the writer through the types' namespace, so not in one without a name.
namespace demarc::color {

template <class Fields>
void fields(Fields& to, Extent& value) {
  to.member("first", value.first);
  to.member("bytes", value.bytes);
}

}  // namespace demarc::color

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
  to.member("window_bytes", value.window_bytes);
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
  to.member("first_page", value.run.first);
  to.member("pages", value.run.count);
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
void fields(Fields& to, ShowRequest& value) {
  to.member("first", value.first);
}
template <class Fields>
void fields(Fields& to, LendRequest& value) {
  to.member("first", value.first);
  to.member("place", value.place);
}
template <class Fields>
void fields(Fields& to, WithdrawRequest& value) {
  to.member("first", value.first);
  to.member("place", value.place);
}
template <class Fields>
void fields(Fields& to, BorrowRequest& value) {
  to.member("key", value.key);
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
template <class Fields>
void fields(Fields& to, SloRequest& value) {
  to.member("tenant", value.tenant);
  to.member("misses", value.misses);
}
template <class Fields>
void fields(Fields& to, ProveRequest& value) {
  to.member("tenant", value.tenant);
  to.member("number", value.number);
}
template <class Fields>
void fields(Fields& to, ProvedRequest& value) {
  to.member("number", value.number);
  to.member("bytes", value.bytes);
  to.member("failure", value.failure);
}

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
  to.member("first_page", value.run.first);
  to.member("pages", value.run.count);
}
template <class Fields>
void fields(Fields& to, Lent& value) {
  to.member("key", value.key);
}
template <class Fields>
void fields(Fields& to, Proving& value) {
  to.member("number", value.number);
  to.member("waiting", value.waiting);
  to.member("processes", value.processes);
  to.member("bytes", value.bytes);
  to.member("failure", value.failure);
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
  to.member("window_bytes", value.window_bytes);
  to.member("shown_bytes", value.shown_bytes);
  to.member("extents", value.extents);
  to.member("leases", value.leases);
  to.member("processes", value.processes);
  to.member("attached_ms", value.attached_ms);
  to.member("at_limit_ms", value.at_limit_ms);
  to.member("refused_takes", value.refused_takes);
  to.member("refused_bytes", value.refused_bytes);
  to.member("refused_calls", value.refused_calls);
  to.member("refused_kernels", value.refused_kernels);
  to.member("launches_total", value.launches_total);
  to.member("slo_misses", value.slo_misses);
  to.member("canary_slowdown", value.canary_slowdown);
  to.member("canary_baseline_cycles", value.canary_baseline_cycles);
  to.member("launches", value.launches);
  to.member("unconfined", value.unconfined);
  to.member("refused", value.refused);
  to.member("revoked", value.revoked);
}

namespace {

constexpr const char* answer_place = "answer of demarc serve";

// The words that ask, in the order of Request.
constexpr RequestWords<Request> words{"open",   "attach",   "pages",  "take",  "give",  "show",
                                      "lend",   "withdraw", "borrow", "list",  "grow",  "move",
                                      "revoke", "end-work", "slo",    "prove", "proved"};

template <class Answer>
Result<Answer> answer_of(std::string_view text) {
  DEMARC_TRY(auto answer, answer_in<Answer>(text, answer_place));
  return answer;
}

}  // namespace

std::string to_text(const Request& request) {
  return request_text(request, words);
}

Result<Request> parse_request(std::string_view text) {
  if (text.size() > question_bytes) {
    return invalid_input("request: a question of {} bytes came, but it has at most {}", text.size(),
                         question_bytes);
  }
  return request_in<Request>(text, words);
}

std::string to_text(const Error& error) {
  return answer_text(error);
}
std::string to_text(const Opened& answer) {
  return answer_text(answer);
}
std::string to_text(const Attached& answer) {
  return answer_text(answer);
}
std::string to_text(const PageBatch& answer) {
  return answer_text(answer);
}
std::string to_text(const Extent& answer) {
  return answer_text(answer);
}
std::string to_text(const Lent& answer) {
  return answer_text(answer);
}
std::string to_text(const Proving& answer) {
  return answer_text(answer);
}
std::string to_text(const Done& answer) {
  return answer_text(answer);
}
std::string to_text(const ListHead& answer) {
  return answer_text(answer);
}
std::string to_text(const TenantStatus& answer) {
  return answer_text(answer);
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
Result<Lent> parse_answer(std::string_view text) {
  return answer_of<Lent>(text);
}
template <>
Result<Proving> parse_answer(std::string_view text) {
  return answer_of<Proving>(text);
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
