// Tests that a pool's pieces do not overlap, and that what is taken from a module outlives it.
#include "demarc/ptx/pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "demarc/ptx/printer.hpp"
#include "text.hpp"

namespace demarc::ptx {
namespace {

TEST(Pool, gives_aligned_storage_that_does_not_overlap_and_is_its_own) {
  Pool pool(100);
  const auto* a = static_cast<std::byte*>(pool.allocate(3));
  const auto* b = static_cast<std::byte*>(pool.allocate(70));
  const auto* c = static_cast<std::byte*>(pool.allocate(1'000'000));  // a block of its own
  for (const std::byte* p : {a, b, c}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 16, 0U);
    EXPECT_TRUE(pool.owns(p));
  }
  EXPECT_GE(b - a, 3);
  const int outside = 0;
  EXPECT_FALSE(pool.owns(&outside));
}

TEST(Pool, gives_nothing_once_it_is_sealed_so_that_vectors_grow_on_the_heap) {
  const auto pool = std::make_shared<Pool>(4096);
  PooledVector<int> numbers({1, 2, 3}, PoolAllocator<int>(pool));
  EXPECT_TRUE(pool->owns(numbers.data()));
  pool->seal();
  EXPECT_EQ(pool->allocate(16), nullptr);
  numbers.resize(100, 4);
  EXPECT_FALSE(pool->owns(numbers.data()));
  EXPECT_EQ(numbers[2], 3);
}

TEST(Pool, a_moved_vector_stays_where_it_is_and_a_copy_is_on_the_heap) {
  const auto pool = std::make_shared<Pool>(4096);
  PooledVector<int> numbers({1, 2, 3}, PoolAllocator<int>(pool));
  const PooledVector<int> copy = numbers;
  EXPECT_FALSE(pool->owns(copy.data()));
  PooledVector<int> moved;
  moved = std::move(numbers);
  EXPECT_TRUE(pool->owns(moved.data()));
  EXPECT_EQ(moved, copy);
}

TEST(Pool, a_body_outlives_the_module_it_was_taken_from_and_can_grow) {
  Body body;
  {
    Module module = test::parsed(test::kernel("mov.u32 %r1, 7;\nret;\n"));
    body = std::move(module.functions[0].body);
  }
  ASSERT_EQ(body.instructions.size(), 2U);
  body.instructions.insert(body.instructions.begin(), body.instructions.back());
  EXPECT_EQ(body.instructions[0].opcode, Opcode::ret);
  EXPECT_EQ(body.instructions[1].opcode, Opcode::mov);
}

TEST(Pool, a_copied_module_outlives_the_original) {
  std::string expected;
  Module copy;
  {
    const Module module = test::parsed(test::kernel("mov.u32 %r1, 7;\nret;\n"));
    expected = print(module);
    copy = module;
  }
  EXPECT_EQ(print(copy), expected);
}

}  // namespace
}  // namespace demarc::ptx
