// Heads of .npy files: what is read, what is refused and how, and that what is written is read.
#include "demarc/base/npy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace demarc {
namespace {

using testing::HasSubstr;

const std::string npy_magic_bytes("\x93NUMPY");

// A file of that version; its header's length takes two or four bytes.
std::string npy_of(const std::string& dictionary, char major = 1) {
  std::string file = npy_magic_bytes + std::string({major, 0});
  file += static_cast<char>(dictionary.size());
  file += static_cast<char>(dictionary.size() >> 8U);
  return file + std::string(major == 1 ? 0 : 2, '\0') + dictionary;
}

// The dictionary with another value for one key.
std::string npy_dictionary(const std::string& key, const std::string& value) {
  std::string text = "{";
  for (const auto& [name, usual] : {std::pair<std::string, std::string>{"descr", "'<f4'"},
                                    {"fortran_order", "False"},
                                    {"shape", "(2,)"}}) {
    text += fmt::format("'{}': {}, ", name, name == key ? value : usual);
  }
  return text + "}";
}

std::string npy_refusal(const std::string& file) {
  const auto header = parse_npy_header(file, "x.npy");
  return header ? "accepted" : header.error().message;
}

// As numpy.save() of NumPy 2 writes an array of 3 x 2 numbers of f4.
TEST(Npy, a_file_of_numpy_is_read) {
  const std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
  const auto header =
      parse_npy_header(npy_of(text + std::string(117 - text.size(), ' ') + "\n"), "x.npy");
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->type, "f4");
  EXPECT_EQ(header->shape, (std::vector<std::uint64_t>{3, 2}));
  EXPECT_EQ(header->header_bytes, 128U);
  EXPECT_EQ(header->data_bytes, 24U);
}

TEST(Npy, versions_1_to_3_are_read_and_no_other) {
  for (const char major : {'\1', '\2', '\3'}) {
    const auto header = parse_npy_header(npy_of(npy_dictionary("", ""), major), "x.npy");
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_EQ(header->data_bytes, 8U);
    EXPECT_EQ(header->header_bytes, npy_of(npy_dictionary("", ""), major).size());
  }
  EXPECT_EQ(npy_refusal(npy_of(npy_dictionary("", ""), 4)),
            "x.npy: version 4.0 of .npy; 1.0, 2.0 and 3.0 are read");
  EXPECT_THAT(npy_refusal(npy_of(npy_dictionary("", ""), 0)), HasSubstr("version 0.0"));
  std::string minor = npy_of(npy_dictionary("", ""));
  minor[7] = 1;
  EXPECT_THAT(npy_refusal(minor), HasSubstr("version 1.1"));
  EXPECT_THAT(npy_refusal(npy_magic_bytes), HasSubstr("version 0.0"));
}

TEST(Npy, what_is_no_array_of_numbers_in_our_order_is_refused_by_name) {
  EXPECT_EQ(npy_refusal(npy_of(npy_dictionary("fortran_order", "True"))),
            "x.npy: the array is in Fortran order; C order is read (numpy.ascontiguousarray)");
  EXPECT_EQ(npy_refusal(npy_of(npy_dictionary("descr", "'>f4'"))),
            "x.npy: the elements are '>f4'; little-endian ones are read, as '<f4'");
  EXPECT_THAT(npy_refusal(npy_of(npy_dictionary("descr", "'|O'"))),
              HasSubstr("the elements are objects"));
  EXPECT_THAT(npy_refusal(npy_of(npy_dictionary("descr", "[('a', '<f4')]"))),
              HasSubstr("the elements are structures"));
  for (const char* other : {"'<c8'", "'<U4'", "'|S4'", "'<M8[ns]'", "'<f16'", "'|i4'", "'<i1'"}) {
    EXPECT_THAT(npy_refusal(npy_of(npy_dictionary("descr", other))),
                HasSubstr(fmt::format("the elements are {}; these are read: |b1, |i1", other)));
  }
}

TEST(Npy, every_type_that_numpy_has_for_these_numbers_is_read) {
  for (const char* type :
       {"b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"}) {
    const std::vector<std::uint64_t> shape{5};
    const auto header = parse_npy_header(npy_header(type, shape), "x.npy");
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_EQ(header->type, type);
    EXPECT_EQ(header->data_bytes, 5U * static_cast<unsigned>(type[1] - '0'));
  }
}

TEST(Npy, a_header_that_is_not_numpys_is_refused) {
  EXPECT_EQ(npy_refusal("PK\x03\x04"), "x.npy: no .npy file: it does not begin with \\x93NUMPY");
  EXPECT_EQ(npy_refusal(""), "x.npy: no .npy file: it does not begin with \\x93NUMPY");
  for (const auto& [text, message] :
       {std::pair<std::string, std::string>{"", "'{' was expected before ''"},
        {"{'descr': '<f4'}", "the header does not say 'fortran_order'"},
        {"{'descr': '<f4', 'fortran_order': False}", "the header does not say 'shape'"},
        {"{'fortran_order': False, 'shape': ()}", "the header does not say 'descr'"},
        {"{'descr': '<f4', 'descr': '<f4'}", "the header names 'descr' twice"},
        {"{'colour': '<f4'}", "the header names 'colour'; descr, fortran_order and shape"},
        {"{'descr' '<f4'}", "':' was expected before ''<f4'}'"},
        {"{'descr': '<f4' 'shape'}", "',' or '}' was expected before ''shape'}'"},
        {"{'descr': 4}", "a text in quotes was expected before '4}'"},
        {"{'descr': '<f4}", "a quote at the end of the text was expected"},
        {npy_dictionary("fortran_order", "0"), "True or False was expected before '0, 'shape'"},
        {npy_dictionary("shape", "[2]"), "'(' was expected before '[2]"},
        {npy_dictionary("shape", "(2 3)"), "',' or ')' was expected before '3)"},
        {npy_dictionary("shape", "(-1,)"), "a whole number below 2^64 was expected before '-1,)"},
        {npy_dictionary("shape", "(18446744073709551616,)"),
         "a whole number below 2^64 was expected"},
        {npy_dictionary("", "") + "x", "its end was expected before 'x'"}}) {
    EXPECT_THAT(npy_refusal(npy_of(text)), HasSubstr(message)) << text;
  }
}

TEST(Npy, a_header_that_is_cut_or_too_long_is_refused) {
  const std::string whole = npy_of(npy_dictionary("", ""));
  EXPECT_EQ(npy_refusal(whole), "accepted");
  EXPECT_EQ(npy_refusal(whole.substr(0, whole.size() - 1)),
            fmt::format("x.npy: it ends within its header, after {} bytes", whole.size() - 1));
  EXPECT_THAT(npy_refusal(whole.substr(0, 9)), HasSubstr("it ends within its header"));
  std::string longer = npy_of(npy_dictionary("", ""), 2);
  longer[10] = 0x10;
  EXPECT_THAT(npy_refusal(longer), HasSubstr("1048564 are the most that are read"));
}

TEST(Npy, a_shape_beyond_all_memory_is_refused_and_one_without_elements_is_not) {
  EXPECT_THAT(npy_refusal(npy_of(npy_dictionary("shape", "(4294967296, 4294967296)"))),
              HasSubstr("the shape (4294967296, 4294967296) is that of more than 2^62 bytes"));
  EXPECT_EQ(parse_npy_header(npy_of(npy_dictionary("shape", "(3, 0)")), "x.npy")->data_bytes, 0U);
  EXPECT_EQ(parse_npy_header(npy_of(npy_dictionary("shape", "()")), "x.npy")->data_bytes, 4U);
}

RC_GTEST_PROP(NpyRoundTrip, what_is_written_is_read_and_its_data_is_aligned, ()) {
  const auto type = *rc::gen::element<std::string>("b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8",
                                                   "u8", "f2", "f4", "f8");
  const auto shape = *rc::gen::container<std::vector<std::uint64_t>>(
      *rc::gen::inRange<std::size_t>(0, 6), rc::gen::inRange<std::uint64_t>(0, 500));
  const std::string written = npy_header(type, shape);
  RC_ASSERT(written.size() % 64 == 0U);
  const auto header = parse_npy_header(written + "data", "x.npy");
  RC_ASSERT(header.has_value());
  RC_ASSERT(header->type == type);
  RC_ASSERT(header->shape == shape);
  RC_ASSERT(header->header_bytes == written.size());
}

RC_GTEST_PROP(NpyRoundTrip, some_bytes_changed_anywhere_are_answered, ()) {
  std::string file = npy_header("f4", std::vector<std::uint64_t>{3, 2});
  const auto at = *rc::gen::inRange<std::size_t>(0, file.size());
  file[at] = *rc::gen::arbitrary<char>();
  const auto header = parse_npy_header(file, "x.npy");
  if (!header) RC_ASSERT(header.error().message.starts_with("x.npy: "));
}

}  // namespace
}  // namespace demarc
