#include "test.h"
namespace platform_test {
void test_machine() {}
void test_mistakes() {}
}
