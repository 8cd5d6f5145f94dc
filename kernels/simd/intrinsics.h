// x86 intrinsics: those of the compiler, or SIMDe's emulation for tests on processors without them.
#pragma once

#if defined(SAGITTA_EMULATE)
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/fma.h>
#ifndef _mm256_dpbusd_avx_epi32
#define _mm256_dpbusd_avx_epi32 simde_mm256_dpbusd_epi32
#endif
#else
#include <immintrin.h>
#endif
