// cuBLASLt's descriptions in libdemarc_blas.so: their attributes, and the memory that they take.
#include <set>

#include "blas_lt.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

class BlasLtDescriptions : public BlasLt {};

// A program that asks for them goes on: another process shows it.
TEST_F(BlasLtDescriptions, have_no_other_attributes_and_are_none_at_null) {
  EXPECT_EXIT(
      {
        void* const none = nullptr;
        std::uint64_t value = 0;
        std::size_t written = 0;
        for (const int number : {-1, 9, 99}) {
          DEMAND(set(number, 0) == blas_not_supported);
          DEMAND(call("cublasLtMatmulDescGetAttribute", product, number, &value, std::size_t{4},
                      &written) == blas_not_supported);
        }
        for (const std::string kind :
             {"cublasLtMatmulDesc", "cublasLtMatrixLayout", "cublasLtMatmulPreference"}) {
          const auto is_refused = [](BlasCode code) { DEMAND(code == blas_invalid_value); };
          is_refused(call((kind + "SetAttribute").c_str(), none, 0, &value, std::size_t{4}));
          is_refused(call((kind + "SetAttribute").c_str(), product, 0, none, std::size_t{4}));
          is_refused(
              call((kind + "GetAttribute").c_str(), none, 0, &value, std::size_t{4}, &written));
          is_refused(
              call((kind + "GetAttribute").c_str(), product, 0, none, std::size_t{4}, &written));
          is_refused(call((kind + "Destroy").c_str(), none));
        }
        DEMAND(call("cublasLtMatmulDescCreate", none, 68, 0) == blas_invalid_value);
        DEMAND(call("cublasLtMatmulPreferenceInit_internal", none, std::size_t{64}) ==
               blas_invalid_value);
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "SetAttribute was refused, because it knows no attribute 99");
}

TEST_F(BlasLtDescriptions, keep_attributes_and_refuse_those_that_are_not_followed) {
  EXPECT_EQ(set(epilogue_attribute, 36U), blas_success);
  std::uint32_t value = 0;
  std::size_t written = 0;
  EXPECT_EQ(call("cublasLtMatmulDescGetAttribute", product, epilogue_attribute, &value,
                 std::size_t{4}, &written),
            blas_success);
  EXPECT_EQ(value, 36U);
  EXPECT_EQ(written, 4U);
  EXPECT_EQ(call("cublasLtMatmulDescGetAttribute", product, bias_attribute, nullptr, std::size_t{0},
                 &written),
            blas_success);
  EXPECT_EQ(written, 8U);
  EXPECT_EQ(call("cublasLtMatmulDescGetAttribute", product, epilogue_attribute, &value,
                 std::size_t{8}, &written),
            blas_invalid_value);
  EXPECT_EQ(call("cublasLtMatmulDescGetAttribute", product, 99, &value, std::size_t{4}, &written),
            blas_not_supported);
  EXPECT_EQ(call("cublasLtMatmulDescGetAttribute", product, 6, &value, std::size_t{4}, &written),
            blas_success);
  EXPECT_EQ(value, 2U) << "CUBLAS_FILL_MODE_FULL, as it can only be";
  EXPECT_EQ(set(epilogue_attribute, std::uint64_t{1}), blas_invalid_value) << "the size is wrong";
  testing::internal::CaptureStderr();
  EXPECT_EQ(set(99, 1), blas_not_supported);
  EXPECT_EQ(set(17, &value), blas_not_supported) << "a scale of FP8";
  EXPECT_EQ(set(5, 1), blas_not_supported);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("cublasLtMatmulDescSetAttribute was refused, because "
                        "CUBLASLT_MATMUL_DESC_A_SCALE_POINTER may only be 0. "));
  EXPECT_EQ(set(17, std::uint64_t{0}), blas_success);
  EXPECT_EQ(set(5, 0), blas_success);
  EXPECT_EQ(set_layout(a, 7, std::int64_t{1}), blas_not_supported);
  EXPECT_EQ(set_layout(a, 9, 1), blas_not_supported);
  std::uint64_t bytes = 123;
  EXPECT_EQ(call("cublasLtMatmulPreferenceSetAttribute", preference, 1, &bytes, sizeof bytes),
            blas_success);
  bytes = 0;
  EXPECT_EQ(
      call("cublasLtMatmulPreferenceGetAttribute", preference, 1, &bytes, sizeof bytes, &written),
      blas_success);
  EXPECT_EQ(bytes, 123U);
  EXPECT_EQ(call("cublasLtMatmulPreferenceSetAttribute", preference, 2, &bytes, sizeof bytes),
            blas_not_supported);
}

struct LtRow {
  int number;
  std::size_t bytes;
  std::int64_t only = -1;  // the one value that it may have; -1: any
};

// All that cublasLt.h lets programs set, and nothing else.
TEST_F(BlasLtDescriptions, have_the_attributes_of_the_header) {
  void* const layout = a;
  struct Table {
    const char* set;
    const char* get;
    void* of;
    std::vector<LtRow> rows;
  };
  const Table tables[] = {
      {"cublasLtMatmulDescSetAttribute",
       "cublasLtMatmulDescGetAttribute",
       product,
       {{0, 4},     {1, 4},     {2, 4},  {3, 4},     {4, 4},     {5, 4, 0},
        {6, 4, 2},  {7, 4},     {8, 8},  {10, 8, 0}, {11, 8, 0}, {12, 8, 0},
        {13, 8, 0}, {14, 8, 0}, {15, 4}, {17, 8, 0}, {18, 8, 0}, {19, 8, 0},
        {20, 8, 0}, {21, 8, 0}, {25, 1}, {26, 4}}},
      {"cublasLtMatrixLayoutSetAttribute",
       "cublasLtMatrixLayoutGetAttribute",
       layout,
       {{0, 4}, {1, 4}, {2, 8}, {3, 8}, {4, 8}, {5, 4}, {6, 8}, {7, 8, 0}, {8, 4}}},
      {"cublasLtMatmulPreferenceSetAttribute",
       "cublasLtMatmulPreferenceGetAttribute",
       preference,
       {{0, 4}, {1, 8}, {3, 4}, {5, 4}, {6, 4}, {7, 4}, {8, 4}, {9, 4}, {12, 8}}}};
  testing::internal::CaptureStderr();
  for (const Table& table : tables) {
    std::set<int> numbers;
    for (const LtRow& row : table.rows) {
      numbers.insert(row.number);
      for (const std::size_t wrong : {row.bytes - 1, row.bytes + 1}) {
        const std::uint64_t value[2] = {};
        EXPECT_EQ(call(table.set, table.of, row.number, value, wrong), blas_invalid_value);
      }
      const std::int64_t value = row.only >= 0 ? row.only : row.number + 20;
      EXPECT_EQ(call(table.set, table.of, row.number, &value, row.bytes), blas_success);
      const std::int64_t other = row.only + 1;
      EXPECT_EQ(call(table.set, table.of, row.number, &other, row.bytes),
                row.only >= 0 ? blas_not_supported : blas_success);
      EXPECT_EQ(call(table.set, table.of, row.number, &value, row.bytes), blas_success);
    }
    // Each has a place of its own.
    for (const LtRow& row : table.rows) {
      std::int64_t value = 0;
      EXPECT_EQ(call(table.get, table.of, row.number, &value, row.bytes, nullptr), blas_success);
      EXPECT_EQ(value, row.only >= 0 ? row.only : row.number + 20) << table.get << row.number;
    }
    for (int number = -1; number < 40; ++number) {
      std::size_t bytes = 0;
      EXPECT_EQ(call(table.get, table.of, number, nullptr, std::size_t{0}, &bytes),
                numbers.contains(number) ? blas_success : blas_not_supported)
          << table.get << number;
    }
  }
  testing::internal::GetCapturedStderr();
}

TEST_F(BlasLtDescriptions, need_values_and_places_for_them) {
  void* const none = nullptr;
  std::int64_t value = 0;
  std::size_t written = 0;
  for (const std::string kind :
       {"cublasLtMatmulDesc", "cublasLtMatrixLayout", "cublasLtMatmulPreference"}) {
    const auto with = [&](const char* end) { return kind + end; };
    void* const of = kind == "cublasLtMatmulDesc"     ? product
                     : kind == "cublasLtMatrixLayout" ? a
                                                      : preference;
    const std::size_t bytes = 4;
    EXPECT_EQ(call(with("SetAttribute").c_str(), none, 0, &value, bytes), blas_invalid_value);
    EXPECT_EQ(call(with("SetAttribute").c_str(), of, 0, none, bytes), blas_invalid_value);
    EXPECT_EQ(call(with("GetAttribute").c_str(), none, 0, &value, bytes, &written),
              blas_invalid_value);
    EXPECT_EQ(call(with("GetAttribute").c_str(), of, 0, none, bytes, &written), blas_invalid_value);
    EXPECT_EQ(call(with("GetAttribute").c_str(), of, 0, &value, std::size_t{0}, nullptr),
              blas_invalid_value);
  }
  EXPECT_EQ(call("cublasLtMatmulDescCreate", none, 68, 0), blas_invalid_value);
  EXPECT_EQ(call("cublasLtMatrixLayoutCreate", none, 0, std::uint64_t{1}, std::uint64_t{1},
                 std::int64_t{1}),
            blas_invalid_value);
  EXPECT_EQ(call("cublasLtMatmulPreferenceCreate", none), blas_invalid_value);
  EXPECT_EQ(call("cublasLtMatmulDescInit_internal", none, std::size_t{184}, 68, 0),
            blas_invalid_value);
  EXPECT_EQ(call("cublasLtMatrixLayoutInit_internal", none, std::size_t{64}, 0, std::uint64_t{1},
                 std::uint64_t{1}, std::int64_t{1}),
            blas_invalid_value);
  LtAnswer answer;
  int returned = 7;
  const auto asked = [&](void* const* without, LtAnswer* answers, int* count) {
    const auto given = [without](void* const& one) { return without == &one ? nullptr : one; };
    return call("cublasLtMatmulAlgoGetHeuristic", lt, given(product), given(a), given(b), given(c),
                given(d), given(preference), 1, answers, count);
  };
  EXPECT_EQ(asked(nullptr, &answer, &returned), blas_success);
  for (void* const* without : {&product, &a, &b, &c, &d, &preference}) {
    EXPECT_EQ(asked(without, &answer, &returned), blas_invalid_value);
  }
  EXPECT_EQ(asked(nullptr, nullptr, &returned), blas_invalid_value);
  EXPECT_EQ(asked(nullptr, &answer, nullptr), blas_invalid_value);
}

// Nothing is written behind the bytes that a program says are there.
TEST_F(BlasLtDescriptions, take_no_more_memory_than_they_ask_for) {
  std::vector<unsigned char> place(128, 0xee);
  std::size_t bytes = 0;
  while (bytes < 64 &&
         call("cublasLtMatrixLayoutInit_internal", place.data(), bytes, 0, std::uint64_t{1},
              std::uint64_t{1}, std::int64_t{1}) == blas_invalid_value) {
    ++bytes;
  }
  EXPECT_THAT(bytes, testing::AllOf(testing::Ge(8U), testing::Le(64U)));
  EXPECT_NE(place[bytes - 1], 0xee) << "it needs them all";
  for (std::size_t i = bytes; i < place.size(); ++i) ASSERT_EQ(place[i], 0xee) << i;
}

TEST_F(BlasLtDescriptions, may_lie_in_memory_of_the_programs) {
  std::uint64_t place[23] = {};
  EXPECT_EQ(call("cublasLtMatmulDescInit_internal", place, sizeof place, 68, int{type_f32}),
            blas_success);
  EXPECT_EQ(call("cublasLtMatmulDescInit_internal", place, std::size_t{8}, 68, int{type_f32}),
            blas_invalid_value);
  std::uint64_t layout[8] = {};
  EXPECT_EQ(call("cublasLtMatrixLayoutInit_internal", layout, sizeof layout, int{type_f16},
                 std::uint64_t{2}, std::uint64_t{4}, std::int64_t{2}),
            blas_success);
  std::uint64_t rows = 0;
  EXPECT_EQ(call("cublasLtMatrixLayoutGetAttribute", layout, 2, &rows, sizeof rows, nullptr),
            blas_success);
  EXPECT_EQ(rows, 2U);
  EXPECT_EQ(call("cublasLtMatmulPreferenceInit_internal", layout, sizeof layout), blas_success);
  EXPECT_EQ(call("cublasLtMatmulPreferenceInit_internal", nullptr, sizeof layout),
            blas_invalid_value);
  void* const none = nullptr;
  for (const char* destroy : {"cublasLtMatmulDescDestroy", "cublasLtMatrixLayoutDestroy",
                              "cublasLtMatmulPreferenceDestroy"}) {
    EXPECT_EQ(call(destroy, none), blas_invalid_value);
  }
}

}  // namespace
}  // namespace demarc::cuda
