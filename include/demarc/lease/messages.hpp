// What clients and server say to each other: one JSON object per packet. Each message is read back
// exactly. Unknown members, missing members and wrong types are errors that name the place.
//
// A client asks with "do"; the answer has "error" (words) with "code" (the exit code that they
// mean), or what was asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/lease/share.hpp"

namespace demarc::lease {

inline constexpr std::uint64_t extent_step = std::uint64_t{2} << 20U;  // bytes

// Sent by `demarc exec`. The lease lives as long as this connection, or one that attached to it.
struct OpenRequest {
  std::string tenant;
  std::string control;  // what cuda::Control::open() takes; empty: launches are not counted
  friend bool operator==(const OpenRequest&, const OpenRequest&) = default;
};
// Sent by a process of the program. From then on the connection and the memory belong to this
// process.
struct AttachRequest {
  std::string token;  // 32 hexadecimal digits
  friend bool operator==(const AttachRequest&, const AttachRequest&) = default;
};
// Asks for descriptors of pages of the arena, in order; at most as many as one packet carries.
struct PagesRequest {
  color::PageRun run;
  friend bool operator==(const PagesRequest&, const PagesRequest&) = default;
};
struct TakeRequest {
  std::uint64_t bytes = 0;
  friend bool operator==(const TakeRequest&, const TakeRequest&) = default;
};
struct GiveRequest {
  color::LinearByte first = {};
  friend bool operator==(const GiveRequest&, const GiveRequest&) = default;
};
// Asks for mappings by which any code reaches what take() gave at `first` (cuda::BorrowedShare).
struct ShowRequest {
  color::LinearByte first = {};
  friend bool operator==(const ShowRequest&, const ShowRequest&) = default;
};
// Asks for a key by which other processes of the tenant borrow what take() gave at `first`, for the
// allocation that begins at `place` in these bytes.
struct LendRequest {
  color::LinearByte first = {};
  std::uint64_t place = 0;
  friend bool operator==(const LendRequest&, const LendRequest&) = default;
};
// Says that this allocation was freed: its key is not known any more.
struct WithdrawRequest {
  color::LinearByte first = {};
  std::uint64_t place = 0;
  friend bool operator==(const WithdrawRequest&, const WithdrawRequest&) = default;
};
// Asks for bytes that another process of the tenant has: both have them until both have given them
// back or ended.
struct BorrowRequest {
  std::string key;  // Lent has it
  friend bool operator==(const BorrowRequest&, const BorrowRequest&) = default;
};
struct ListRequest {
  friend bool operator==(const ListRequest&, const ListRequest&) = default;
};
// Says how many linear bytes the tenant may take from now on.
struct GrowRequest {
  std::string tenant;
  std::uint64_t bytes = 0;
  friend bool operator==(const GrowRequest&, const GrowRequest&) = default;
};
struct MoveRequest {
  std::string tenant;
  std::string tpcs;  // "0-15,20"
  friend bool operator==(const MoveRequest&, const MoveRequest&) = default;
};
// Asks that nothing is given any more and that the tenant's processes are ended.
struct RevokeRequest {
  std::string tenant;
  friend bool operator==(const RevokeRequest&, const RevokeRequest&) = default;
};
// Asks to end the work that the asking process has on the card, without harm to others, before a
// signal ends the process.
struct EndWorkRequest {
  friend bool operator==(const EndWorkRequest&, const EndWorkRequest&) = default;
};
// Says that programs of the tenant have missed their service-level objective so many times.
struct SloRequest {
  std::string tenant;
  std::uint64_t misses = 0;  // 1 to max_slo_misses
  friend bool operator==(const SloRequest&, const SloRequest&) = default;
};
inline constexpr std::uint64_t max_slo_misses = 1'000'000;  // in one question
// Asks each process of the tenant to prove again that its windows show the tenant's memory, or how
// far that is.
struct ProveRequest {
  std::string tenant;
  std::uint64_t number = 0;  // that Proving had; 0: begin a proof
  friend bool operator==(const ProveRequest&, const ProveRequest&) = default;
};
// Sent by a process that was asked to.
struct ProvedRequest {
  std::uint64_t number = 0;  // what it was asked
  std::uint64_t bytes = 0;   // in its windows
  std::string failure;       // empty: all of them show the tenant's memory
  friend bool operator==(const ProvedRequest&, const ProvedRequest&) = default;
};
using Request =
    std::variant<OpenRequest, AttachRequest, PagesRequest, TakeRequest, GiveRequest, ShowRequest,
                 LendRequest, WithdrawRequest, BorrowRequest, ListRequest, GrowRequest, MoveRequest,
                 RevokeRequest, EndWorkRequest, SloRequest, ProveRequest, ProvedRequest>;

// The longest question. It bounds what a server reads for one: nested text takes long.
inline constexpr std::size_t question_bytes = 4096;

[[nodiscard]] std::string to_text(const Request& request);
[[nodiscard]] Result<Request> parse_request(std::string_view text);

struct Opened {
  Lease lease;
  std::string token;
  std::uint64_t locks = 1;
  friend bool operator==(const Opened&, const Opened&) = default;
};
// The answers to OpenRequest and AttachRequest carry descriptors of so many locks:
// PacketListener::lock() and those of the server's claim of the card. Behind them the second one
// also carries a file if its colours need a table.
struct Attached {
  Lease lease;
  std::uint64_t locks = 1;
  friend bool operator==(const Attached&, const Attached&) = default;
};
// The answer to PagesRequest, with the same run. It carries a descriptor for each page.
struct PageBatch {
  color::PageRun run;
  friend bool operator==(const PageBatch&, const PageBatch&) = default;
};
// In the tenant's share; begin and size are multiples of extent_step.
using color::Extent;
// The answer to LendRequest. The key is known until it is withdrawn, or until the last owner of the
// bytes has given them back. It cannot be guessed.
struct Lent {
  std::string key;  // 32 hexadecimal digits
  friend bool operator==(const Lent&, const Lent&) = default;
};
// The answer to ProveRequest: what processes that have windows have found so far.
struct Proving {
  std::uint64_t number = 0;
  std::vector<std::int64_t> waiting = {};  // processes that have not answered
  std::uint64_t processes = 0;             // that have
  std::uint64_t bytes = 0;                 // in their windows
  std::string failure = {};                // the first one
  friend bool operator==(const Proving&, const Proving&) = default;
};
struct Done {
  friend bool operator==(const Done&, const Done&) = default;
};
// Begins the answer to ListRequest: so many packets of a TenantStatus follow.
struct ListHead {
  std::string card;
  std::uint64_t arena_bytes = 0;
  std::uint64_t tenants = 0;
  std::string mps = {};  // "on", "off", or "ended": its daemon has
  friend bool operator==(const ListHead&, const ListHead&) = default;
};
struct TenantStatus {
  std::string name = {};
  std::string tpcs = {};
  std::string colors = {};
  std::optional<std::uint32_t> sync_domain = {};
  std::uint64_t bytes = 0;          // bytes that may be taken
  std::uint64_t given_bytes = 0;    // taken and not given back
  std::uint64_t unclean_bytes = 0;  // given back, and waiting to be filled with zeros
  std::uint64_t extents = 0;
  std::uint64_t leases = 0;
  std::vector<std::int64_t> processes = {};  // attached ones
  std::uint64_t attached_ms = 0;  // how long its processes were on the card, ended ones included
  std::uint64_t at_limit_ms = 0;  // how long nothing more of its memory could be given
  std::uint64_t refused_takes = 0;
  // What was refused to its live leases: allocations, calls of the driver and kernels.
  std::uint64_t refused_bytes = 0;
  std::uint64_t refused_calls = 0;
  std::uint64_t refused_kernels = 0;
  // Kernel launches of its programs since the start of the server, without Demarc's own.
  std::uint64_t launches_total = 0;
  std::uint64_t slo_misses = 0;  // that were reported since the start of the server
  // The tenant's canary: the time of its reads now over that without neighbours, and the latter, in
  // cycles per read. Nothing: not known.
  std::optional<double> canary_slowdown = {};
  std::optional<double> canary_baseline_cycles = {};
  // Launches of its live leases, for each path (cuda::LaunchPath): confined, not confined, refused.
  std::vector<std::uint64_t> launches = {};
  std::vector<std::uint64_t> unconfined = {};
  std::vector<std::uint64_t> refused = {};
  bool revoked = false;            // its processes are being ended
  std::uint64_t lost_bytes = 0;    // could not be filled with zeros, and are never given again
  std::uint64_t window_bytes = 0;  // bytes that the page table may show at a time
  std::uint64_t shown_bytes = 0;   // and does
  friend bool operator==(const TenantStatus&, const TenantStatus&) = default;
};

[[nodiscard]] std::string to_text(const Error& error);
[[nodiscard]] std::string to_text(const Opened& answer);
[[nodiscard]] std::string to_text(const Attached& answer);
[[nodiscard]] std::string to_text(const PageBatch& answer);
[[nodiscard]] std::string to_text(const Extent& answer);
[[nodiscard]] std::string to_text(const Lent& answer);
[[nodiscard]] std::string to_text(const Proving& answer);
[[nodiscard]] std::string to_text(const Done& answer);
[[nodiscard]] std::string to_text(const ListHead& answer);
[[nodiscard]] std::string to_text(const TenantStatus& answer);

// Reads an answer of that kind, one of the types above. If the packet holds the server's error, it
// is returned.
template <class Answer>
[[nodiscard]] Result<Answer> parse_answer(std::string_view text);
template <>
Result<Opened> parse_answer(std::string_view text);
template <>
Result<Attached> parse_answer(std::string_view text);
template <>
Result<PageBatch> parse_answer(std::string_view text);
template <>
Result<Extent> parse_answer(std::string_view text);
template <>
Result<Lent> parse_answer(std::string_view text);
template <>
Result<Proving> parse_answer(std::string_view text);
template <>
Result<Done> parse_answer(std::string_view text);
template <>
Result<ListHead> parse_answer(std::string_view text);
template <>
Result<TenantStatus> parse_answer(std::string_view text);

}  // namespace demarc::lease
