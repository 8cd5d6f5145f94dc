// x86 intrinsics: those of the compiler, or SIMDe's emulation of them for tests on processors without them.
#pragma once

#if defined(SAGITTA_EMULATE)
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/fma.h>
#ifndef _mm256_dpbusd_avx_epi32
#define _mm256_dpbusd_avx_epi32 simde_mm256_dpbusd_epi32
#endif
#else
// GCC 12 warns about the undefined operands inside its own intrinsics.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif
