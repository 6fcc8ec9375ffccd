// Messages come back as they were, and whatever is not one is refused with its place.
#include "demarc/lease/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace demarc::lease {
namespace {

using color::LinearByte;
using testing::HasSubstr;

Lease lease_by_parities() {
  return {"detector",
          "GPU-1",
          "0-15,20",
          {{1, 2, 3, 4}, 34},
          3,
          4096,
          {2 << 20, 70, 1 << 30, color::make_law(color::Parities{{0xc4000}, 1})},
          "/run/mps",
          8192};
}

Lease lease_by_remainders() {
  Lease lease = lease_by_parities();
  lease.sync_domain.reset();
  lease.share.law =
      color::make_law(color::RemainderSteps{8, 13, 9, 1, 0xffffffff, 3, 4, 5, 6, 1030});
  lease.share.patterns_at = 512;
  lease.share.places_at = 1024;
  return lease;
}

TenantStatus full_status() {
  return {.name = "a",
          .tpcs = "0-3",
          .colors = "0",
          .sync_domain = 2,
          .bytes = 10,
          .given_bytes = 11,
          .unclean_bytes = 12,
          .extents = 13,
          .leases = 14,
          .processes = {15, 16},
          .attached_ms = 17,
          .at_limit_ms = 29,
          .refused_takes = 18,
          .refused_bytes = 19,
          .refused_calls = 20,
          .refused_kernels = 21,
          .launches_total = 30,
          .slo_misses = 31,
          .canary_slowdown = 1.5,
          .launches = {22, 23},
          .unconfined = {24},
          .refused = {25},
          .revoked = true,
          .lost_bytes = 26,
          .window_bytes = 27,
          .shown_bytes = 28};
}

template <class Answer>
void expect_kept(const Answer& answer) {
  const auto read = parse_answer<Answer>(to_text(answer));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, answer) << to_text(answer);
}

template <class Answer>
std::string refusal(const std::string& text) {
  const auto read = parse_answer<Answer>(text);
  return read ? "taken" : read.error().message;
}

std::string without(std::string text, const std::string& part, const std::string& instead = "") {
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part << " in " << text;
  return text.replace(at, part.size(), instead);
}

TEST(Messages, of_every_kind_come_back_as_they_were) {
  for (const Request& request :
       {Request(OpenRequest{"a \"name\"", "/proc/1/fd/2#3"}), Request(AttachRequest{"0f"}),
        Request(PagesRequest{{color::ArenaPage(5), 9}}),
        Request(TakeRequest{std::uint64_t{1} << 40}), Request(GiveRequest{LinearByte(7)}),
        Request(ShowRequest{LinearByte(9)}), Request(LendRequest{LinearByte(9), 512}),
        Request(WithdrawRequest{LinearByte(9), 512}), Request(BorrowRequest{"0f"}),
        Request(ListRequest{}), Request(GrowRequest{"a", 9}), Request(MoveRequest{"a", "0-3"}),
        Request(RevokeRequest{"a"}), Request(EndWorkRequest{}), Request(SloRequest{"a", 3}),
        Request(ProveRequest{"a", 4}), Request(ProvedRequest{4, 1 << 21, "page 3"})}) {
    const auto read = parse_request(to_text(request));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, request) << to_text(request);
  }
  expect_kept(Opened{lease_by_parities(), "0123"});
  expect_kept(Opened{lease_by_remainders(), "0123", 3});
  expect_kept(Attached{lease_by_remainders(), 2});
  expect_kept(PageBatch{{color::ArenaPage(5), 200}});
  expect_kept(Extent{LinearByte(2 << 20), 4 << 20});
  expect_kept(Lent{"0f"});
  expect_kept(Proving{4, {123, 456}, 2, 1 << 21, "page 3"});
  expect_kept(Done{});
  expect_kept(ListHead{"GPU-1", std::uint64_t{1} << 37, 2, "ended"});
  expect_kept(full_status());
}

// The server and a program in a container may be of different versions.
TEST(Messages, are_written_as_other_versions_read_them) {
  EXPECT_EQ(to_text(Request(OpenRequest{"a", "/proc/1/fd/2#3"})),
            R"({"do":"open","tenant":"a","control":"/proc/1/fd/2#3"})");
  EXPECT_EQ(to_text(Request(AttachRequest{"0f"})), R"({"do":"attach","token":"0f"})");
  EXPECT_EQ(to_text(Request(PagesRequest{{color::ArenaPage(5), 9}})),
            R"({"do":"pages","first_page":5,"pages":9})");
  EXPECT_EQ(to_text(Request(TakeRequest{6})), R"({"do":"take","bytes":6})");
  EXPECT_EQ(to_text(Request(GiveRequest{LinearByte(7)})), R"({"do":"give","first":7})");
  EXPECT_EQ(to_text(Request(ShowRequest{LinearByte(8)})), R"({"do":"show","first":8})");
  EXPECT_EQ(to_text(Request(LendRequest{LinearByte(8), 9})),
            R"({"do":"lend","first":8,"place":9})");
  EXPECT_EQ(to_text(Request(WithdrawRequest{LinearByte(8), 9})),
            R"({"do":"withdraw","first":8,"place":9})");
  EXPECT_EQ(to_text(Request(BorrowRequest{"0f"})), R"({"do":"borrow","key":"0f"})");
  EXPECT_EQ(to_text(Request(ListRequest{})), R"({"do":"list"})");
  EXPECT_EQ(to_text(Request(GrowRequest{"a", 9})), R"({"do":"grow","tenant":"a","bytes":9})");
  EXPECT_EQ(to_text(Request(MoveRequest{"a", "0-3"})),
            R"({"do":"move","tenant":"a","tpcs":"0-3"})");
  EXPECT_EQ(to_text(Request(RevokeRequest{"a"})), R"({"do":"revoke","tenant":"a"})");
  EXPECT_EQ(to_text(Request(EndWorkRequest{})), R"({"do":"end-work"})");
  EXPECT_EQ(to_text(Request(SloRequest{"a", 3})), R"({"do":"slo","tenant":"a","misses":3})");
  EXPECT_EQ(to_text(Request(ProveRequest{"a", 4})), R"({"do":"prove","tenant":"a","number":4})");
  EXPECT_EQ(to_text(Request(ProvedRequest{4, 9, "page 3"})),
            R"({"do":"proved","number":4,"bytes":9,"failure":"page 3"})");
  EXPECT_EQ(to_text(Proving{4, {12}, 2, 9, "no"}),
            R"({"number":4,"waiting":[12],"processes":2,"bytes":9,"failure":"no"})");
  EXPECT_EQ(to_text(Error{ErrorKind::check_failed, "no"}), R"({"error":"no","code":3})");
  EXPECT_EQ(
      to_text(Attached{lease_by_parities(), 2}),
      R"({"lease":{"tenant":"detector","card":"GPU-1","tpcs":"0-15,20",)"
      R"("mask":{"disabled":[1,2,3,4],"sms":34},"sync_domain":3,"bytes":4096,)"
      R"("share":{"page_bytes":2097152,"pages":70,"bytes":1073741824,)"
      R"("parities":{"masks":[802816],"color":1,"pivots":[]},"patterns_at":null,"places_at":null},)"
      R"("mps":"/run/mps","window_bytes":8192},"locks":2})");
  EXPECT_EQ(
      to_text(Opened{lease_by_remainders(), "0123", 3}),
      R"({"lease":{"tenant":"detector","card":"GPU-1","tpcs":"0-15,20",)"
      R"("mask":{"disabled":[1,2,3,4],"sms":34},"sync_domain":null,"bytes":4096,)"
      R"("share":{"page_bytes":2097152,"pages":70,"bytes":1073741824,)"
      R"("remainders":{"chunk_shift":8,"page_shift":13,"pattern_bits":9,"begin":1,"end":4294967295,)"
      R"("reciprocal":3,"reciprocal_shift":4,"skipped":5,"first_page":6,"pages_at":1030},)"
      R"("patterns_at":512,"places_at":1024},"mps":"/run/mps","window_bytes":8192},"token":"0123","locks":3})");
  EXPECT_EQ(to_text(PageBatch{{color::ArenaPage(5), 9}}), R"({"first_page":5,"pages":9})");
  EXPECT_EQ(to_text(Extent{LinearByte(2), 4}), R"({"first":2,"bytes":4})");
  EXPECT_EQ(to_text(Lent{"0f"}), R"({"key":"0f"})");
  EXPECT_EQ(to_text(Done{}), "{}");
  EXPECT_EQ(to_text(ListHead{"GPU-1", 7, 2, "on"}),
            R"({"card":"GPU-1","arena_bytes":7,"tenants":2,"mps":"on"})");
  EXPECT_EQ(
      to_text(full_status()),
      R"({"name":"a","tpcs":"0-3","colors":"0","sync_domain":2,"bytes":10,"given_bytes":11,)"
      R"("unclean_bytes":12,"lost_bytes":26,"window_bytes":27,"shown_bytes":28,"extents":13,)"
      R"("leases":14,"processes":[15,16],)"
      R"("attached_ms":17,"at_limit_ms":29,"refused_takes":18,"refused_bytes":19,"refused_calls":20,)"
      R"("refused_kernels":21,"launches_total":30,"slo_misses":31,"canary_slowdown":1.5,"canary_baseline_cycles":null,"launches":[22,23],"unconfined":[24],"refused":[25],"revoked":true})");
}

TEST(Messages, say_the_error_of_the_server_with_its_exit_code) {
  for (const ErrorKind kind :
       {ErrorKind::invalid_input, ErrorKind::missing_capability, ErrorKind::check_failed}) {
    const auto read = parse_answer<Extent>(to_text(Error{kind, "no room"}));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error(), (Error{kind, "no room"}));
  }
  EXPECT_THAT(refusal<Done>(R"({"error":"x","code":4})"),
              HasSubstr("answer of demarc serve.code: 4 is not within 1 .. 3"));
  EXPECT_THAT(refusal<Done>(R"({"error":"x","code":0})"), HasSubstr("0 is not within 1 .. 3"));
  EXPECT_THAT(refusal<Done>(R"({"error":"x"})"), HasSubstr("the key 'code' is missing"));
  EXPECT_THAT(refusal<Done>(R"({"error":"x","code":1,"y":2})"), HasSubstr("unknown key 'y'"));
  EXPECT_THAT(refusal<Done>(R"({"error":1,"code":1})"), HasSubstr(".error: a string was expected"));
}

TEST(Messages, that_ask_for_nothing_known_are_refused_with_the_place) {
  const auto refused = [](std::string_view text) {
    const auto read = parse_request(text);
    return read ? "taken" : read.error().message;
  };
  EXPECT_THAT(refused("{"), HasSubstr("request: not valid JSON"));
  EXPECT_EQ(refused("[]"), "request: an object was expected, found array");
  EXPECT_EQ(refused("{}"), "request: the key 'do' is missing");
  EXPECT_EQ(refused(R"({"do":"steal"})"),
            "request.do: 'steal': one of open, attach, pages, take, give, show, lend, withdraw, "
            "borrow, list, grow, move, revoke, end-work, slo, prove, proved was expected");
  EXPECT_EQ(refused(R"({"do":"take"})"), "request: the key 'bytes' is missing");
  EXPECT_EQ(refused(R"({"do":"take","bytes":"1"})"),
            "request.bytes: a whole number was expected, found \"1\"");
  EXPECT_EQ(refused(R"({"do":"take","bytes":-1})"),
            "request.bytes: -1 is not within 0 .. 9223372036854775807");
  EXPECT_EQ(refused(R"({"do":"take","bytes":1,"more":1})"), "request: unknown key 'more'");
  EXPECT_EQ(refused(R"({"do":"open","tenant":1,"control":""})"),
            "request.tenant: a string was expected, found number");
}

TEST(Messages, with_a_lease_that_is_none_are_refused_with_the_place) {
  const std::string good = to_text(Opened{lease_by_parities(), "0123"});
  const std::string place = "answer of demarc serve.lease";
  EXPECT_EQ(refusal<Opened>(without(good, "\"masks\":[802816]", "\"masks\":[1.5]")),
            place + ".share.parities.masks: whole numbers from 0 on were expected, found 1.5");
  EXPECT_EQ(refusal<Opened>(without(good, "\"masks\":[802816]", "\"masks\":[-1]")),
            place + ".share.parities.masks: whole numbers from 0 on were expected, found -1");
  EXPECT_EQ(refusal<Opened>(without(good, "\"pivots\":[]", "\"pivots\":[4294967317]")),
            place + ".share.parities.pivots: 4294967317 is not within 0 .. 4294967295");
  EXPECT_THAT(refusal<Opened>(without(good, "[802816]", "[9223372036854775808]")),
              HasSubstr("found 9223372036854775808"));
  EXPECT_THAT(refusal<Opened>(without(good, "[802816]", "1")), HasSubstr("an array was expected"));
  EXPECT_EQ(refusal<Opened>(without(good, "\"parities\"", "\"stripes\"")),
            place + ".share: one of 'parities' and 'remainders' was expected");
  EXPECT_EQ(refusal<Opened>(without(good, "\"parities\"", "\"remainders\":{},\"parities\"")),
            place + ".share: one of 'parities' and 'remainders' was expected");
  EXPECT_EQ(refusal<Opened>(without(good, "\"color\":1", "\"color\":4294967296")),
            place + ".share.parities.color: 4294967296 is not within 0 .. 4294967295");
  EXPECT_EQ(refusal<Opened>(without(good, "\"color\":1", "\"color\":1,\"hue\":2")),
            place + ".share.parities: unknown key 'hue'");
  EXPECT_EQ(refusal<Opened>(without(good, "\"sync_domain\":3", "\"sync_domain\":\"x\"")),
            place + ".sync_domain: a whole number was expected, found \"x\"");
  EXPECT_EQ(refusal<Opened>(without(good, "\"sync_domain\":3,")),
            place + ": the key 'sync_domain' is missing");
  EXPECT_EQ(refusal<Opened>(without(good, "\"page_bytes\":2097152,")),
            place + ".share: the key 'page_bytes' is missing");
  EXPECT_THAT(refusal<Attached>(good), HasSubstr("unknown key 'token'"));
}

TEST(Messages, with_several_faults_are_refused_for_the_first) {
  EXPECT_EQ(refusal<Extent>(R"({"first":"x","bytes":"y","more":1})"),
            "answer of demarc serve.first: a whole number was expected, found \"x\"");
  const std::string good = to_text(Opened{lease_by_parities(), "0123"});
  EXPECT_THAT(refusal<Opened>(without(without(good, "\"sms\":34", "\"sms\":-1"), "\"0123\"", "1")),
              HasSubstr("lease.mask.sms: -1 is not within 0 .. 4294967295"));
}

TEST(Messages, that_are_not_true_or_false_where_they_must_be_are_refused) {
  const std::string good = to_text(TenantStatus{});
  EXPECT_THAT(refusal<TenantStatus>(without(good, "\"revoked\":false", "\"revoked\":0")),
              HasSubstr(".revoked: true or false was expected"));
  EXPECT_THAT(refusal<TenantStatus>(without(good, ",\"revoked\":false")),
              HasSubstr("the key 'revoked' is missing"));
}

TEST(Questions, that_are_longer_than_any_are_not_read) {
  const std::string list = to_text(Request(ListRequest{}));
  EXPECT_TRUE(parse_request(list + std::string(question_bytes - list.size(), ' ')));
  EXPECT_THAT(
      parse_request(list + std::string(question_bytes + 1 - list.size(), ' ')).error().message,
      testing::HasSubstr("a question of 4097 bytes came, but it has at most 4096"));
}

}  // namespace
}  // namespace demarc::lease
