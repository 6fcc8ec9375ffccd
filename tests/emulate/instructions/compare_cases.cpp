// Lists cases of comparisons and selections, with unordered numbers among the operands.
#include <fmt/format.h>

#include "reference.hpp"

namespace demarc::emulate::test {

namespace {

// What is known of two operands.
enum class Order { less, equal, greater, unordered };

struct Word {
  const char* name;
  bool (*holds)(Order);
};
constexpr Word ordered_words[] = {
    {"eq", [](Order o) { return o == Order::equal; }},
    {"ne", [](Order o) { return o == Order::less || o == Order::greater; }},
    {"lt", [](Order o) { return o == Order::less; }},
    {"le", [](Order o) { return o == Order::less || o == Order::equal; }},
    {"gt", [](Order o) { return o == Order::greater; }},
    {"ge", [](Order o) { return o == Order::greater || o == Order::equal; }}};
constexpr Word unsigned_words[] = {
    {"lo", [](Order o) { return o == Order::less; }},
    {"ls", [](Order o) { return o == Order::less || o == Order::equal; }},
    {"hi", [](Order o) { return o == Order::greater; }},
    {"hs", [](Order o) { return o == Order::greater || o == Order::equal; }}};
constexpr Word unordered_words[] = {
    {"equ", [](Order o) { return o == Order::equal || o == Order::unordered; }},
    {"neu", [](Order o) { return o != Order::equal; }},
    {"ltu", [](Order o) { return o == Order::less || o == Order::unordered; }},
    {"leu", [](Order o) { return o != Order::greater; }},
    {"gtu", [](Order o) { return o == Order::greater || o == Order::unordered; }},
    {"geu", [](Order o) { return o != Order::less; }},
    {"num", [](Order o) { return o != Order::unordered; }},
    {"nan", [](Order o) { return o == Order::unordered; }}};

using OrderOf = std::function<Order(std::uint64_t, std::uint64_t)>;

template <class T>
Order order_of(T a, T b) {
  if (a < b) return Order::less;
  if (a > b) return Order::greater;
  return a == b ? Order::equal : Order::unordered;
}

struct Compared {
  std::string type;
  Value value;
  OrderOf order;
  std::vector<Word> words;
  unsigned target = 75;
  bool ftz = false;
};

std::vector<Word> words(std::initializer_list<std::pair<const Word*, std::size_t>> parts) {
  std::vector<Word> out;
  for (const auto& [first, count] : parts) out.insert(out.end(), first, first + count);
  return out;
}

std::vector<Compared> compared_types() {
  std::vector<Compared> out;
  for_words([&](auto type) {
    out.push_back({type.name, type.value,
                   [](std::uint64_t a, std::uint64_t b) { return order_of(a, b); },
                   words({{ordered_words, 2}})});
  });
  for_integers([&](auto type) {
    using T = typename decltype(type)::type;
    const OrderOf order = [](std::uint64_t a, std::uint64_t b) {
      return order_of(static_cast<T>(a), static_cast<T>(b));
    };
    if (std::is_signed_v<T>) {
      out.push_back({type.name, type.value, order, words({{ordered_words, 6}})});
    } else {
      out.push_back(
          {type.name, type.value, order, words({{ordered_words, 6}, {unsigned_words, 4}})});
    }
  });
  const auto floats = words({{ordered_words, 6}, {unordered_words, 8}});
  out.push_back({"f32", Value::f32,
                 [](std::uint64_t a, std::uint64_t b) { return order_of(f32_of(a), f32_of(b)); },
                 floats});
  out.push_back({"f32", Value::f32,
                 [](std::uint64_t a, std::uint64_t b) {
                   return order_of(f32_of(flushed(a)), f32_of(flushed(b)));
                 },
                 floats, 75, true});
  out.push_back({"f64", Value::f64,
                 [](std::uint64_t a, std::uint64_t b) { return order_of(f64_of(a), f64_of(b)); },
                 floats});
  const auto flush16 = [](std::uint64_t a) { return (a & 0x7c00U) == 0 ? a & 0x8000U : a; };
  out.push_back({"f16", Value::f16,
                 [](std::uint64_t a, std::uint64_t b) {
                   return order_of(narrow_f16().value(a), narrow_f16().value(b));
                 },
                 floats});
  out.push_back({"f16", Value::f16,
                 [flush16](std::uint64_t a, std::uint64_t b) {
                   return order_of(narrow_f16().value(flush16(a)), narrow_f16().value(flush16(b)));
                 },
                 floats, 75, true});
  out.push_back({"bf16", Value::bf16,
                 [](std::uint64_t a, std::uint64_t b) {
                   return order_of(narrow_bf16().value(a), narrow_bf16().value(b));
                 },
                 floats, 90});
  return out;
}

bool combined(const char* how, bool value, bool c) {
  switch (how[0]) {
    case 'a':
      return value && c;
    case 'o':
      return value || c;
    case 'x':
      return value != c;
    default:
      return value;
  }
}

void predicates(Cases& out, const Compared& type) {
  const char* ftz = type.ftz ? ".ftz" : "";
  for (const Word& word : type.words) {
    const auto holds = word.holds;
    const OrderOf order = type.order;
    out.push_back({fmt::format("setp.{}{}.{} D, A, B;", word.name, ftz, type.type),
                   {Value::pred},
                   {type.value, type.value},
                   [=](const Inputs& x) {
                     return Results{holds(order(x[0], x[1])) ? 1U : 0U, 0};
                   },
                   type.target});
    // Only comparisons of 32 and 64 bits, of integers, and of pairs have a second predicate.
    const bool half = type.value == Value::f16 || type.value == Value::bf16;
    for (const char* how : {"and", "or", "xor"}) {
      const bool negated = how[0] == 'x';
      InstructionCase entry;
      entry.text = fmt::format("setp.{}.{}{}.{} D{}, A, B, {}C;", word.name, how, ftz, type.type,
                               half ? "" : "|E", negated ? "!" : "");
      entry.results = std::vector<Value>(half ? 1 : 2, Value::pred);
      entry.sources = {type.value, type.value, Value::pred};
      entry.target = type.target;
      entry.reference = [=](const Inputs& x) {
        const bool value = holds(order(x[0], x[1]));
        const bool c = (x[2] != 0) != negated;
        return Results{combined(how, value, c) ? 1U : 0U, combined(how, !value, c) ? 1U : 0U};
      };
      out.push_back(std::move(entry));
    }
  }
}

// set gives all ones or 1.0.
void numbers(Cases& out, const Compared& type) {
  struct Result {
    const char* name;
    Value value;
    std::uint64_t yes;
  };
  std::vector<Result> results{{"u32", Value::i32, 0xffffffffU},
                              {"s32", Value::i32, 0xffffffffU},
                              {"f32", Value::f32, 0x3f800000U}};
  unsigned target = type.target;
  if (type.value == Value::f16) {
    results = {{"u16", Value::i16, 0xffffU},
               {"s16", Value::i16, 0xffffU},
               {"u32", Value::i32, 0xffffffffU},
               {"f16", Value::f16, 0x3c00U}};
  }
  if (type.value == Value::bf16) {
    results = {{"u16", Value::i16, 0xffffU},
               {"u32", Value::i32, 0xffffffffU},
               {"bf16", Value::bf16, 0x3f80U}};
    target = 90;
  }
  const char* ftz = type.ftz ? ".ftz" : "";
  for (const Result& result : results) {
    for (const Word& word : type.words) {
      const auto holds = word.holds;
      const OrderOf order = type.order;
      const std::uint64_t yes = result.yes;
      out.push_back({fmt::format("set.{}{}.{}.{} D, A, B;", word.name, ftz, result.name, type.type),
                     {result.value},
                     {type.value, type.value},
                     [=](const Inputs& x) {
                       return Results{holds(order(x[0], x[1])) ? yes : 0, 0};
                     },
                     target});
    }
    const auto holds = type.words[1].holds;
    const OrderOf order = type.order;
    const std::uint64_t yes = result.yes;
    out.push_back({fmt::format("set.{}.xor{}.{}.{} D, A, B, C;", type.words[1].name, ftz,
                               result.name, type.type),
                   {result.value},
                   {type.value, type.value, Value::pred},
                   [=](const Inputs& x) {
                     return Results{holds(order(x[0], x[1])) != (x[2] != 0) ? yes : 0, 0};
                   },
                   target});
  }
}

void pairs(Cases& out, bool brain) {
  const Narrow& format = brain ? narrow_bf16() : narrow_f16();
  const Value value = brain ? Value::bf16x2 : Value::f16x2;
  const char* type = brain ? "bf16x2" : "f16x2";
  const unsigned target = brain ? 90 : 75;
  const auto order = [&format](std::uint64_t a, std::uint64_t b, unsigned shift) {
    return order_of(format.value((a >> shift) & 0xffff), format.value((b >> shift) & 0xffff));
  };
  for (const Word& word : words({{ordered_words, 6}, {unordered_words, 8}})) {
    const auto holds = word.holds;
    out.push_back({fmt::format("setp.{}.{} D|E, A, B;", word.name, type),
                   {Value::pred, Value::pred},
                   {value, value},
                   [=](const Inputs& x) {
                     return Results{holds(order(x[0], x[1], 0)) ? 1U : 0U,
                                    holds(order(x[0], x[1], 16)) ? 1U : 0U};
                   },
                   target});
    const auto set = [&](const char* result, Value kind, std::uint64_t yes) {
      out.push_back({fmt::format("set.{}.{}.{} D, A, B;", word.name, result, type),
                     {kind},
                     {value, value},
                     [=](const Inputs& x) {
                       return Results{(holds(order(x[0], x[1], 0)) ? yes : 0) |
                                          (holds(order(x[0], x[1], 16)) ? yes << 16 : 0),
                                      0};
                     },
                     target});
    };
    set(type, value, brain ? 0x3f80U : 0x3c00U);
    set("u32", Value::i32, 0xffffU);
  }
}

void selections(Cases& out) {
  const auto select = [&](const char* name, Value v) {
    out.push_back(
        {fmt::format("selp.{} D, A, B, C;", name), {v}, {v, v, Value::pred}, [](const Inputs& x) {
           return Results{x[2] != 0 ? x[0] : x[1], 0};
         }});
    out.push_back({fmt::format("slct.{}.s32 D, A, B, C;", name),
                   {v},
                   {v, v, Value::i32},
                   [](const Inputs& x) {
                     return Results{static_cast<std::int32_t>(x[2]) >= 0 ? x[0] : x[1], 0};
                   }});
    for (const bool ftz : {false, true}) {
      out.push_back({fmt::format("slct{}.{}.f32 D, A, B, C;", ftz ? ".ftz" : "", name),
                     {v},
                     {v, v, Value::f32},
                     [ftz](const Inputs& x) {
                       const float c = f32_of(ftz ? flushed(x[2]) : x[2]);
                       return Results{c >= 0 ? x[0] : x[1], 0};
                     }});
    }
  };
  for_words([&](auto type) { select(type.name, type.value); });
  for_integers([&](auto type) { select(type.name, type.value); });
  select("f32", Value::f32);
  select("f64", Value::f64);
}

}  // namespace

void add_compare_cases(Cases& out) {
  for (const Compared& type : compared_types()) {
    predicates(out, type);
    numbers(out, type);
  }
  pairs(out, false);
  pairs(out, true);
  selections(out);
}

}  // namespace demarc::emulate::test
