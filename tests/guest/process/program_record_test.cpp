// What a program did, by name: added by several processes at once, read by a process that watches.
#include "demarc/guest/program_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "demarc/base/json.hpp"

namespace demarc::cuda {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> lines_of(const ProgramRecord& record) {
  std::vector<std::string> lines;
  for (const RecordedName& one : record.names()) {
    lines.push_back(fmt::format("{} {} {}{}", static_cast<unsigned>(one.what), one.name, one.count,
                                one.why.empty() ? "" : " " + one.why));
  }
  return lines;
}

TEST(ProgramRecords, have_a_counter_for_each_name_of_a_kind) {
  const auto record = std::make_unique<ProgramRecord>();
  EXPECT_THAT(record->names(), IsEmpty());
  record->counter(Recorded::kernel, "k").fetch_add(2);
  record->counter(Recorded::kernel, "l").fetch_add(3);
  record->counter(Recorded::refused_kernel, "k", "why").fetch_add(1);
  record->counter(Recorded::kernel, "k", "too late").fetch_add(5);
  static_cast<void>(record->counter(Recorded::refused_call, "cuNone"));
  EXPECT_THAT(lines_of(*record), ElementsAre("1 k 7", "1 l 3", "6 k 1 why", "8 cuNone 0"));
}

TEST(ProgramRecords, keep_long_names_apart) {
  const auto record = std::make_unique<ProgramRecord>();
  const std::string begin(383, 'k');
  record->counter(Recorded::kernel, begin).fetch_add(1);
  record->counter(Recorded::kernel, begin + "a", std::string(300, 'w')).fetch_add(2);
  record->counter(Recorded::kernel, begin + "b").fetch_add(4);
  record->counter(Recorded::kernel, begin + "b").fetch_add(4);
  const auto names = record->names();
  ASSERT_EQ(names.size(), 3U);
  EXPECT_EQ(names[0].count, 8U);
  EXPECT_EQ(names[1].count, 2U);
  EXPECT_EQ(names[1].why, std::string(231, 'w'));
  EXPECT_EQ(names[2].name, begin);
  for (const auto& one : names) EXPECT_EQ(one.name.size(), 383U);
  EXPECT_NE(names[0].name, names[1].name);
}

TEST(ProgramRecords, count_what_has_no_room_for_its_name) {
  const auto record = std::make_unique<ProgramRecord>();
  const std::uint32_t most = ProgramRecord::max_names[1];
  for (std::uint32_t i = 0; i < most; ++i) {
    record->counter(Recorded::kernel, fmt::format("k{}", i)).fetch_add(1);
  }
  EXPECT_EQ(record->unnamed(Recorded::kernel), 0U);
  record->counter(Recorded::kernel, "more").fetch_add(1);
  record->counter(Recorded::kernel, "still more").fetch_add(2);
  record->counter(Recorded::kernel, "k7").fetch_add(2);
  EXPECT_EQ(record->unnamed(Recorded::kernel), 3U);
  EXPECT_EQ(record->names().size(), most);
  EXPECT_EQ(record->names().front().count, 3U);
}

TEST(ProgramRecords, keep_room_for_each_kind_whatever_the_others_have) {
  const auto record = std::make_unique<ProgramRecord>();
  for (std::uint32_t kind = 1; kind < ProgramRecord::max_names.size(); ++kind) {
    for (std::uint32_t i = 0; i < ProgramRecord::max_names[kind]; ++i) {
      record->counter(Recorded{kind}, fmt::format("n{}", i)).fetch_add(1);
    }
    record->counter(Recorded{kind}, "without room").fetch_add(10 * kind);
  }
  for (std::uint32_t kind = 1; kind < ProgramRecord::max_names.size(); ++kind) {
    EXPECT_EQ(record->unnamed(Recorded{kind}), 10 * kind);
  }
  EXPECT_EQ(record->names().size(), 2048U + 1024 + 2048 + 128 + 512 + 1024 + 128 + 512 + 16);
  const ProgramReport report = report_of("a", *record);
  EXPECT_THAT(report_to_text(report),
              HasSubstr("\n          90  with names for which there was no room\n"
                        "memory in"));
  const Json json = parse_json(report_to_json(report), "report").value();
  EXPECT_EQ(json.at("unnamed"), 10 + 20 + 30 + 40 + 50 + 60 + 70 + 80 + 90);
  EXPECT_EQ(json.at("unnamed_by_kind").at("refused_calls"), 80);
}

TEST(ProgramReports, never_say_that_there_was_none_of_a_kind_whose_names_had_no_room) {
  ProgramReport full;
  full.unnamed[static_cast<std::size_t>(Recorded::refused_call)] = 9;
  EXPECT_THAT(
      report_to_text(full),
      HasSubstr("calls of the driver refused, by calls:\n           9  with names for which "
                "there was no room\n"));
  EXPECT_THAT(report_to_text(full), HasSubstr("no kernel was refused\n"));
}

TEST(ProgramRecords, hold_what_killed_processes_counted) {
  auto* shared = static_cast<ProgramRecord*>(::mmap(
      nullptr, sizeof(ProgramRecord), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(shared, MAP_FAILED);
  new (shared) ProgramRecord;
  constexpr std::uint64_t times = 200;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    for (std::uint64_t k = 0; k < times; ++k) {
      shared->counter(Recorded::kernel, fmt::format("k{}", k)).fetch_add(1);
    }
    shared->note_bytes(static_cast<std::uint64_t>(100 * (i + 1)));
    ::kill(::getpid(), SIGKILL);
  }
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  const auto names = shared->names();
  EXPECT_EQ(names.size(), times) << "a name is there once, whoever added it";
  for (const auto& one : names) EXPECT_EQ(one.count, 4U) << one.name;
  EXPECT_EQ(shared->max_bytes(), 400U);
  ::munmap(shared, sizeof(ProgramRecord));
}

TEST(ProgramRecords, know_the_most_bytes_of_a_process) {
  const auto record = std::make_unique<ProgramRecord>();
  record->note_bytes(30);
  record->note_bytes(10);
  record->note_refused_bytes(5);
  record->note_refused_bytes(6);
  EXPECT_EQ(record->max_bytes(), 30U);
  EXPECT_EQ(record->refused_bytes(), 11U);
}

ProgramReport example() {
  const auto record = std::make_unique<ProgramRecord>();
  record->counter(Recorded::kernel, "_Z3addPi").fetch_add(12);
  record->counter(Recorded::kernel, "plain_c").fetch_add(40);
  record->counter(Recorded::spilling_kernel, "wide", "8 bytes per thread").fetch_add(2);
  record->counter(Recorded::refused_kernel, "_Z3mulPf", "no PTX").fetch_add(1);
  record->counter(Recorded::refused_call, "cuMemCreate", "not known").fetch_add(3);
  record->counter(Recorded::window_code, "it has no PTX").fetch_add(2);
  record->note_bytes(32 << 20);
  record->note_refused_bytes(7);
  record->counter(Recorded::plain_kernel, "gemm").fetch_add(5);
  record->note_plain_bytes(4);
  record->note_plain_bytes(7);
  record->note_staging_bytes(5);
  return report_of("a", *record);
}

TEST(ProgramReports, say_in_words_what_was_coloured_and_what_was_refused) {
  EXPECT_EQ(report_to_text(example()),
            "tenant 'a'\n"
            "kernels in the tenant's colours, by launches:\n"
            "          40  plain_c\n"
            "          12  add(int*)\n"
            "kernels on memory WITHOUT A COLOUR, by launches:\n"
            "           5  gemm\n"
            "no kernel reached memory by the page table\n"
            "code that runs as it is, with the reason, by loads:\n"
            "           2  it has no PTX\n"
            "kernels of these that keep registers in local memory WITHOUT A COLOUR, by loads:\n"
            "           2  wide: 8 bytes per thread\n"
            "kernels refused, by loads:\n"
            "           1  mul(float*): no PTX\n"
            "no code was refused\n"
            "calls of the driver refused, by calls:\n"
            "           3  cuMemCreate: not known\n"
            "no context was ended by an error\n"
            "memory in the tenant's colours: at most 33554432 bytes in one process; 7 bytes were "
            "refused\n"
            "memory without a colour: 11 bytes were asked for; 5 bytes of copies went through such "
            "memory\n");
}

TEST(ProgramReports, are_json_that_programs_read) {
  const Json json = parse_json(report_to_json(example()), "report").value();
  EXPECT_EQ(json.at("schema"), "demarc.exec.tenant/1");
  EXPECT_EQ(json.at("tenant"), "a");
  EXPECT_EQ(json.at("kernels").at(1),
            (Json{{"name", "_Z3addPi"}, {"as_written", "add(int*)"}, {"count", 12}}));
  EXPECT_EQ(json.at("refused_kernels").at(0).at("why"), "no PTX");
  EXPECT_EQ(json.at("spilling_kernels").at(0).at("why"), "8 bytes per thread");
  EXPECT_EQ(json.at("refused_code"), Json::array());
  EXPECT_EQ(json.at("window_code").at(0).at("name"), "it has no PTX");
  EXPECT_EQ(json.at("refused_calls").at(0).at("name"), "cuMemCreate");
  EXPECT_EQ(json.at("most_bytes"), 33554432);
  EXPECT_EQ(json.at("refused_bytes"), 7);
  EXPECT_EQ(json.at("plain_bytes"), 11);
  EXPECT_EQ(json.at("plain_kernels").at(0).at("name"), "gemm");
  EXPECT_EQ(json.at("unnamed"), 0);
  EXPECT_EQ(json.at("staging_bytes"), 5);
  EXPECT_THAT(report_to_json(example()), EndsWith("}\n"));
}

}  // namespace
}  // namespace demarc::cuda
