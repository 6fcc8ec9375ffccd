// Symbols found by the names that people write.
#include "demarc/base/symbols.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace demarc {
namespace {

// axpy(float*, float*), image::blur(int), image::blur(float), scale<float>(float*, int),
// scale<int>(int*, int), (anonymous namespace)::quiet(int).
const std::vector<std::string> kernels{"_Z4axpyPfS_",      "_ZN5image4blurEi", "_ZN5image4blurEf",
                                       "_Z5scaleIfEvPT_i", "_Z5scaleIiEvPT_i", "plain"};

std::string found(std::string_view name, const std::vector<std::string>& among = kernels) {
  const auto index = find_symbol(among, name, {"kernel", "kernels"});
  return index ? among[*index] : index.error().message;
}

TEST(Symbols, are_written_as_in_cpp_where_they_are_names_of_cpp) {
  EXPECT_EQ(demangled("_Z5scaleIfEvPT_i"), "void scale<float>(float*, int)");
  EXPECT_EQ(demangled("_ZN5image4blurEi"), "image::blur(int)");
  EXPECT_EQ(demangled("_ZL4taps"), "taps");
  for (const char* other : {"plain", "f", "i", "_Zzz", "", "_Z"})
    EXPECT_EQ(demangled(other), other);
  EXPECT_EQ(symbol_list(kernels),
            "axpy(float*, float*), image::blur(int), image::blur(float), "
            "scale<float>(float*, int), scale<int>(int*, int), plain");
}

TEST(Symbols, are_found_as_they_are_and_as_people_write_them) {
  EXPECT_EQ(found("_Z4axpyPfS_"), "_Z4axpyPfS_");
  EXPECT_EQ(found("plain"), "plain");
  EXPECT_EQ(found("axpy"), "_Z4axpyPfS_");
  EXPECT_EQ(found("axpy(float*,float*)"), "_Z4axpyPfS_");
  EXPECT_EQ(found("image::blur(float)"), "_ZN5image4blurEf");
  EXPECT_EQ(found("scale<int>"), "_Z5scaleIiEvPT_i");
  EXPECT_EQ(found("void scale<int>(int*, int)"), "_Z5scaleIiEvPT_i");
  EXPECT_EQ(found("scale", {"_Z5scaleIfEvPT_i", "plain"}), "_Z5scaleIfEvPT_i");
  EXPECT_EQ(found("(anonymous namespace)::quiet", {"_ZN12_GLOBAL__N_15quietEi"}),
            "_ZN12_GLOBAL__N_15quietEi");
}

TEST(Symbols, a_name_of_several_is_refused_with_all_of_them) {
  EXPECT_EQ(found("image::blur"),
            "'image::blur' matches each of these kernels; name one in full: image::blur(int), "
            "image::blur(float)");
  EXPECT_EQ(found("scale"),
            "'scale' matches each of these kernels; name one in full: scale<float>(float*, int), "
            "scale<int>(int*, int)");
}

TEST(Symbols, a_name_of_none_is_refused_with_the_nearest) {
  EXPECT_EQ(found("axpi", {"_Z4axpyPfS_", "plain"}),
            "there is no kernel 'axpi'; its kernels are: axpy(float*, float*), plain");
  const std::vector<std::string> many{"first", "second", "third",  "_Z4axpyPfS_",
                                      "fifth", "sixth",  "seventh"};
  EXPECT_EQ(found("axpi", many).substr(0, 79),
            "there is no kernel 'axpi'; the nearest of its 7 kernels are: axpy(float*, float");
  EXPECT_EQ(found("sixht", many).substr(0, 67),
            "there is no kernel 'sixht'; the nearest of its 7 kernels are: sixth");
  EXPECT_EQ(found("sixht", many).find("seventh"), std::string::npos) << found("sixht", many);
  // By the letters that have to be added, taken away or changed.
  const std::vector<std::string> cats{"itten",   "sitting", "xkittxen", "flaws",
                                      "kittens", "kitkat",  "tten"};
  EXPECT_EQ(found("kitten", cats),
            "there is no kernel 'kitten'; the nearest of its 7 kernels are: itten, kittens, "
            "xkittxen, tten, sitting, kitkat");
  EXPECT_EQ(found("", {}), "there is no kernel ''; its kernels are: ");
}

}  // namespace
}  // namespace demarc
