// Sums in C for comparison: reads lines "kernel bytes rounds" and answers each
// with the nanoseconds that so many rounds of dst += src took.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define PLAIN(name, type)                                                      \
  __attribute__((noinline)) static void name(void *d, const void *s, size_t n) { \
    type *restrict x = d;                                                      \
    const type *restrict y = s;                                                \
    for (size_t i = 0; i < n / sizeof(type); i++) x[i] += y[i];                \
  }
PLAIN(f32, float)
PLAIN(f64, double)
PLAIN(i8, int8_t)
PLAIN(i32, int32_t)
PLAIN(i64, int64_t)
#ifdef __FLT16_MAX__
PLAIN(f16, _Float16)
#endif
__attribute__((noinline)) static void bf16(void *d, const void *s, size_t n) {
  uint16_t *restrict x = d;
  const uint16_t *restrict y = s;
  for (size_t i = 0; i < n / 2; i++) {
    union { uint32_t u; float f; } p = {(uint32_t)x[i] << 16}, q = {(uint32_t)y[i] << 16};
    p.f += q.f;
    p.u += 0x7fff + ((p.u >> 16) & 1);
    x[i] = p.u >> 16;
  }
}
#ifdef __F16C__
#include <immintrin.h>
__attribute__((noinline)) static void f16c(void *d, const void *s, size_t n) {
  for (size_t i = 0; i < n; i += 16) {
    __m256 p = _mm256_cvtph_ps(_mm_loadu_si128((void *)((char *)d + i)));
    __m256 q = _mm256_cvtph_ps(_mm_loadu_si128((void *)((char *)s + i)));
    _mm_storeu_si128((void *)((char *)d + i), _mm256_cvtps_ph(_mm256_add_ps(p, q), 0));
  }
}
#endif
static struct { const char *name; void (*f)(void *, const void *, size_t); } kernels[] = {
    {"f32", f32}, {"f64", f64}, {"i8", i8}, {"i32", i32}, {"i64", i64}, {"bf16", bf16},
#ifdef __FLT16_MAX__
    {"f16", f16},
#endif
#ifdef __F16C__
    {"f16c", f16c},
#endif
};
int main(void) {
  char name[16];
  size_t bytes, have = 0;
  long rounds;
  char *d = 0, *s = 0;
  while (scanf("%15s %zu %ld", name, &bytes, &rounds) == 3) {
    if (bytes != have) {
      free(d), free(s);
      d = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096), s = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
      memset(d, 0, bytes), memset(s, 0, bytes);
      have = bytes;
    }
    long ns = -1;
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
      if (strcmp(kernels[k].name, name)) continue;
      struct timespec a, b;
      clock_gettime(CLOCK_MONOTONIC, &a);
      for (long i = 0; i < rounds; i++) kernels[k].f(d, s, bytes);
      clock_gettime(CLOCK_MONOTONIC, &b);
      ns = (b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec;
    }
    printf("%ld\n", ns);
    fflush(stdout);
  }
}
