// Sends a client's questions to `demarc serve` and reads the answers.
#include "demarc/lease/client.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace demarc::lease {
namespace {

constexpr double long_turns = 6;  // of what takes the server longer

tl::unexpected<Error> no_answer(const std::string& why) {
  return check_failed("the answer of demarc serve cannot be understood: {}", why);
}

Result<void> check_files(const Packet& packet, std::size_t files) {
  if (packet.files.size() == files) return {};
  return no_answer(
      fmt::format("{} descriptors came, but {} were expected", packet.files.size(), files));
}

// What the server says, and not an error of the answer's form.
template <class Answer>
Result<Answer> read_answer(const Packet& packet, std::size_t files) {
  Result<Answer> answer = parse_answer<Answer>(packet.text);
  if (answer) DEMARC_CHECK(check_files(packet, files));
  return answer;
}

bool is_whole(const Extent& extent) {
  return extent.bytes % extent_step == 0 && extent.first.raw() % extent_step == 0;
}

Result<std::vector<std::byte>> read_table(const OwnedFile& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return no_answer("the table of the colours is no file");
  }
  std::vector<std::byte> table(static_cast<std::size_t>(status.st_size));
  const ssize_t bytes = ::pread(file.get(), table.data(), table.size(), 0);
  if (bytes != static_cast<ssize_t>(table.size())) {
    return no_answer("the table of the colours cannot be read");
  }
  return table;
}

}  // namespace

Result<LeaseClient> LeaseClient::connect(const std::string& socket, double patience_seconds) {
  DEMARC_TRY(PacketSocket connected, PacketSocket::connect(socket));
  return LeaseClient(std::move(connected), patience_seconds);
}

tl::unexpected<Error> LeaseClient::no_answer_in_time() const {
  silent_ = lost_ = true;  // an answer that comes yet is of an earlier question
  return missing_capability(
      "demarc serve does not answer: it stands still, or has very much to do");
}

Result<Packet> LeaseClient::receive(double seconds) const {
  if (!socket_.wait(seconds)) return no_answer_in_time();
  DEMARC_TRY(PacketSocket::Received received, socket_.receive());
  if (received.packet) return *std::move(received.packet);
  lost_ = true;
  return missing_capability("demarc serve has ended, or ended this connection");
}

Result<Packet> LeaseClient::ask(const Request& request, double turns) const {
  if (!socket_.is_open()) {
    lost_ = true;
    return missing_capability(
        "the connection to demarc serve was closed by this program, which may close the files that "
        "it opened, but not all others (closefrom, close_range)");
  }
  if (silent_) return no_answer_in_time();
  const auto sent = socket_.send(to_text(request));
  if (sent && !*sent) return no_answer_in_time();
  if (!sent && sent.error().kind == ErrorKind::invalid_input) return tl::unexpected(sent.error());
  // One that has ended the connection has said why.
  return receive(turns * patience_seconds_);
}

template <class Answer>
Result<Answer> LeaseClient::answer(const Request& request, double turns) const {
  DEMARC_TRY(const Packet packet, ask(request, turns));
  return read_answer<Answer>(packet, 0);
}

Result<void> LeaseClient::keep(std::vector<OwnedFile> locks, const std::vector<off_t>& addresses) {
  for (OwnedFile& lock : locks) {
    KeptFile& kept = locks_.emplace_back(std::move(lock));
    for (const off_t address : addresses) DEMARC_CHECK(kept.keep(address));
  }
  return {};
}

Result<Opened> LeaseClient::open(const std::string& tenant, const std::string& control) {
  DEMARC_TRY(Packet packet, ask(OpenRequest{tenant, control}));
  DEMARC_TRY(Opened opened, parse_answer<Opened>(packet.text));
  DEMARC_CHECK(check_files(packet, opened.locks));
  DEMARC_CHECK(
      keep(std::move(packet.files), {claim_address(opened.lease.card, ClaimRole::tenant)}));
  return opened;
}

Result<Attachment> LeaseClient::attach(const std::string& token) {
  DEMARC_TRY(Packet packet, ask(AttachRequest{token}));
  DEMARC_TRY(Attached attached, parse_answer<Attached>(packet.text));
  Attachment attachment{attached.lease, {}};
  const Share& share = attachment.lease.share;
  const bool needs_table = share.law->table_parts().has_value();
  DEMARC_CHECK(check_files(packet, attached.locks + (needs_table ? 1 : 0)));
  if (needs_table) {
    DEMARC_TRY(attachment.table, read_table(packet.files.back()));
    packet.files.pop_back();
  }
  const Lease& lease = attachment.lease;
  DEMARC_CHECK(keep(std::move(packet.files), {claim_address(lease.card, ClaimRole::tenant),
                                              tenant_address(lease.card, lease.tenant)}));
  return attachment;
}

Result<std::vector<OwnedFile>> LeaseClient::pages(color::PageRun run) const {
  run.count = std::min<std::uint64_t>(run.count, packet_files);
  DEMARC_TRY(Packet packet, ask(PagesRequest{run}));
  DEMARC_TRY(const PageBatch batch, parse_answer<PageBatch>(packet.text));
  if (batch.run != run || packet.files.size() != run.count) {
    return no_answer(
        fmt::format("an answer has pages from {} on, {} of them, with {} descriptors; {} from {} "
                    "on were expected",
                    batch.run.first, batch.run.count, packet.files.size(), run.count, run.first));
  }
  return std::move(packet.files);
}

Result<Extent> LeaseClient::take(std::uint64_t bytes) const {
  DEMARC_TRY(const Extent extent, answer<Extent>(TakeRequest{bytes}, long_turns));
  if (extent.bytes < bytes || !is_whole(extent)) {
    return no_answer(fmt::format("{} bytes at {} for {} bytes", extent.bytes, extent.first, bytes));
  }
  return extent;
}

Result<void> LeaseClient::give(color::LinearByte first) const {
  DEMARC_CHECK(answer<Done>(GiveRequest{first}));
  return {};
}

Result<std::string> LeaseClient::lend(color::LinearByte first, std::uint64_t place) const {
  DEMARC_TRY(Lent lent, answer<Lent>(LendRequest{first, place}));
  return std::move(lent.key);
}

Result<void> LeaseClient::withdraw(color::LinearByte first, std::uint64_t place) const {
  DEMARC_CHECK(answer<Done>(WithdrawRequest{first, place}));
  return {};
}

Result<Extent> LeaseClient::borrow(const std::string& key) const {
  DEMARC_TRY(const Extent extent, answer<Extent>(BorrowRequest{key}));
  if (extent.bytes == 0 || !is_whole(extent)) {
    return no_answer(fmt::format("{} bytes at {} for borrowed memory", extent.bytes, extent.first));
  }
  return extent;
}

Result<void> LeaseClient::show(color::LinearByte first) const {
  DEMARC_CHECK(answer<Done>(ShowRequest{first}));
  return {};
}

Result<ServerStatus> LeaseClient::list() const {
  DEMARC_TRY(const ListHead head, answer<ListHead>(ListRequest{}));
  ServerStatus status{head.card, head.arena_bytes, {}, head.mps};
  for (std::uint64_t i = 0; i < head.tenants; ++i) {
    DEMARC_TRY(const Packet packet, receive(patience_seconds_));
    DEMARC_TRY(TenantStatus tenant, read_answer<TenantStatus>(packet, 0));
    status.tenants.push_back(std::move(tenant));
  }
  return status;
}

Result<void> LeaseClient::grow(const std::string& tenant, std::uint64_t bytes) const {
  DEMARC_CHECK(answer<Done>(GrowRequest{tenant, bytes}));
  return {};
}

Result<void> LeaseClient::move(const std::string& tenant, const std::string& tpcs) const {
  DEMARC_CHECK(answer<Done>(MoveRequest{tenant, tpcs}, long_turns));
  return {};
}

Result<void> LeaseClient::revoke(const std::string& tenant) const {
  DEMARC_CHECK(answer<Done>(RevokeRequest{tenant}, long_turns));
  return {};
}

Result<void> LeaseClient::count_slo_misses(const std::string& tenant, std::uint64_t misses) const {
  DEMARC_CHECK(answer<Done>(SloRequest{tenant, misses}));
  return {};
}

Result<Proving> LeaseClient::prove(const std::string& tenant, std::uint64_t number) const {
  return answer<Proving>(ProveRequest{tenant, number});
}

Result<void> LeaseClient::proved(std::uint64_t number, std::uint64_t bytes,
                                 const std::string& failure) const {
  DEMARC_CHECK(answer<Done>(ProvedRequest{number, bytes, failure}));
  return {};
}

std::string LeaseClient::last_words() const {
  const auto packet = receive(0);
  const auto said =
      packet ? read_answer<Done>(*packet, 0) : Result<Done>(tl::unexpected(packet.error()));
  return said ? std::string() : said.error().message;
}

}  // namespace demarc::lease
