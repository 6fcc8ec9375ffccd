// Files of contents: typed where NumPy wrote them, else byte by byte.
#include "demarc/launch/content_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

#include "demarc/base/files.hpp"
#include "demarc/base/npy.hpp"
#include "paths.hpp"

namespace demarc::gpu {
namespace {

using testing::HasSubstr;

class ContentFile : public testing::Test {
 protected:
  std::string file_of(const std::string& name, const std::string& content) {
    EXPECT_TRUE(write_file(folder / name, content));
    return (folder / name).string();
  }
  // Both readers, which must agree.
  static std::string refusal(const std::string& file, ScalarType element) {
    const auto measured = content_bytes(file, element);
    const auto read = read_content(file, element, 1000);
    EXPECT_EQ(measured.has_value(), read.has_value());
    if (!measured && !read) {
      EXPECT_EQ(measured.error().message, read.error().message);
    }
    return measured ? "accepted" : measured.error().message;
  }
  std::filesystem::path folder = test::fresh_folder("content_file");
};

const std::string eight = "abcdefgh";

TEST_F(ContentFile, of_numpy_is_read_behind_its_header_and_any_other_from_the_start) {
  const auto npy = file_of("a.npy", npy_header("f4", std::vector<std::uint64_t>{2}) + eight);
  EXPECT_EQ(read_content(npy, ScalarType::f32, 8).value(), eight);
  EXPECT_EQ(content_bytes(npy, ScalarType::f32).value(), 8U);
  const auto raw = file_of("a.bin", eight);
  EXPECT_EQ(read_content(raw, ScalarType::f32, 8).value(), eight);
  EXPECT_EQ(content_bytes(raw, ScalarType::f32).value(), 8U);
}

TEST_F(ContentFile, that_holds_more_than_there_is_room_for_is_refused) {
  const auto npy = file_of("a.npy", npy_header("f4", std::vector<std::uint64_t>{2}) + eight);
  EXPECT_EQ(read_content(npy, ScalarType::f32, 7).error().message,
            npy + " holds 8 bytes, more than the buffer's 7");
  EXPECT_EQ(read_content(file_of("a.bin", eight), ScalarType::f32, 7).error().message,
            (folder / "a.bin").string() + " holds 8 bytes, more than the buffer's 7");
}

TEST_F(ContentFile, of_another_type_than_the_elements_is_refused) {
  const auto npy = file_of("a.npy", npy_header("f4", std::vector<std::uint64_t>{2}) + eight);
  EXPECT_EQ(refusal(npy, ScalarType::f32), "accepted");
  EXPECT_EQ(
      refusal(npy, ScalarType::u32),
      npy + ": its elements are f4, but u4 was expected, because the elements are declared u32");
  const auto flags = file_of("b.npy", npy_header("b1", std::vector<std::uint64_t>{8}) + eight);
  EXPECT_EQ(refusal(flags, ScalarType::u8), "accepted");
  EXPECT_THAT(refusal(flags, ScalarType::i8), HasSubstr("its elements are b1"));
}

TEST_F(ContentFile, that_is_shorter_or_longer_than_its_shape_is_refused) {
  const std::string head = npy_header("f4", std::vector<std::uint64_t>{2});
  const auto cut = file_of("cut.npy", head + "abcdefg");
  EXPECT_EQ(refusal(cut, ScalarType::f32),
            cut + ": 7 bytes follow its header, but its shape needs 8");
  EXPECT_THAT(refusal(file_of("long.npy", head + eight + "i"), ScalarType::f32),
              HasSubstr("9 bytes follow its header, but its shape needs 8"));
  EXPECT_THAT(refusal(file_of("no.npy", eight), ScalarType::f32),
              HasSubstr("no.npy: no .npy file"));
}

TEST_F(ContentFile, that_is_a_pipe_has_no_size_before_it_is_read) {
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(content_bytes((folder / "pipe").string(), ScalarType::u8).value(), std::nullopt);
  EXPECT_THAT(refusal((folder / "none").string(), ScalarType::u8), HasSubstr("cannot be read"));
  EXPECT_THAT(refusal(folder.string(), ScalarType::u8), HasSubstr("is a directory"));
}

RC_GTEST_PROP(ContentRoundTrip, what_is_written_of_every_type_is_read, ()) {
  const auto type = static_cast<ScalarType>(*rc::gen::inRange(0, int{11}));
  const auto words = *rc::gen::container<std::string>(*rc::gen::inRange<std::size_t>(0, 40),
                                                      rc::gen::arbitrary<char>());
  std::string bytes;
  while (bytes.size() < words.size() * size_of(type)) bytes += words;
  bytes.resize(words.size() * size_of(type));
  static const auto folder = test::fresh_folder("content_round_trip");
  for (const char* name : {"a.npy", "a.bin"}) {
    const std::string file = (folder / name).string();
    RC_ASSERT(write_file(file, content_head(file, type, bytes.size()) + bytes).has_value());
    RC_ASSERT(read_content(file, type, bytes.size()).value() == bytes);
    RC_ASSERT(content_bytes(file, type).value() == bytes.size());
  }
}

}  // namespace
}  // namespace demarc::gpu
